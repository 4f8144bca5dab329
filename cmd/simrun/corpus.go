package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"vigil/reports"
	"vigil/sim"
	"vigil/sim/explore"
)

// The corpus folder of a search that is guided by coverage: one file a tape,
// named by what it holds, so that two searches may fill one folder.

// tapeEnding is the ending of a tape's file.
const tapeEnding = ".tape"

// keeper keeps a corpus in a folder; where that is empty, in memory alone.
type keeper struct {
	dir      string
	strategy *explore.Coverage
	err      error // the first that writing met
}

// read reads the folder's tapes in the order of their names. A file that is no
// tape is an error: whoever mistyped a folder wants to know.
func (k *keeper) read() ([]*sim.Tape, error) {
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return nil, fmt.Errorf("--corpus-dir %s: %w", k.dir, err)
	}
	paths, err := filepath.Glob(filepath.Join(escapeGlob(k.dir), "*"+tapeEnding))
	if err != nil {
		return nil, fmt.Errorf("--corpus-dir %s: %w", k.dir, err)
	}
	sort.Strings(paths)
	var tapes []*sim.Tape
	for _, path := range paths[:min(len(paths), explore.MaxCorpus)] {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.Size() > explore.MaxTapeBytes {
			return nil, fmt.Errorf("%s: it has more than %d bytes", path, explore.MaxTapeBytes)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		tape, err := explore.DecodeTape(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		tapes = append(tapes, tape)
	}
	return tapes, nil
}

// keep writes one tape.
func (k *keeper) keep(_ uint64, tape *sim.Tape) {
	text := explore.EncodeTape(tape)
	if k.err != nil || len(text) > explore.MaxTapeBytes {
		return
	}
	sum := sha256.Sum256(text)
	k.err = reports.WriteFile(filepath.Join(k.dir, hex.EncodeToString(sum[:8])+tapeEnding), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// escapeGlob is a path as a pattern that matches it alone.
func escapeGlob(path string) string {
	var b []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			b = append(b, '\\')
		}
		b = append(b, path[i])
	}
	return string(b)
}
