package capsule

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"vigil/core"
	"vigil/scenarios"
)

// formatVersion is raised when a capsule is written otherwise. One of another
// version is refused with both numbers.
const formatVersion = 1

const firstLine = "vigil capsule"

// none stands for an empty list or text.
const none = "none"

// Encode is the capsule as its file holds it. Equal capsules are equal bytes.
// The head is for people, the scenario is the file that simrun run takes, and
// the last line is a check over all before it.
func (c *Capsule) Encode() []byte {
	var b bytes.Buffer
	line := func(key, value string) { fmt.Fprintf(&b, "%s: %s\n", key, value) }
	fmt.Fprintf(&b, "%s %d\n", firstLine, formatVersion)
	b.WriteString("# One run of a simulated world. Play it: simrun replay FILE. Make it smaller: simrun shrink FILE\n")
	line("verdict", orNone(c.Verdict))
	line("invariant", orNone(c.Invariant))
	line("actors", orNone(strings.Join(c.Actors, ", ")))
	line("time", scenarios.Seconds(c.At.Sub(0)))
	line("message", strconv.Quote(c.Message))
	line("design", c.Design)
	line("protections", names(c.Protections))
	green := make([]string, len(c.Green))
	for i, g := range c.Green {
		green[i] = greenText(g)
	}
	line("green", orNone(strings.Join(green, ", ")))
	line("origin", strconv.Quote(c.Origin))
	line("seed", fmt.Sprint(c.Seed))
	line("records", fmt.Sprint(c.records))
	line("hash", fmt.Sprintf("%016x", uint64(c.Hash)))
	line("code", strconv.Quote(c.Version))
	line("tape-version", fmt.Sprint(c.tapeIs))

	lines := strings.Split(strings.TrimSuffix(string(c.Text), "\n"), "\n")
	line("scenario", fmt.Sprintf("%d lines", len(lines)))
	for _, l := range lines {
		if l != "" {
			l = "  " + l
		}
		b.WriteString(l + "\n")
	}
	line("tape", fmt.Sprintf("%d streams", len(c.Tape.Streams)))
	for i := range c.Tape.Streams {
		writeStream(&b, &c.Tape.Streams[i])
	}
	line("trail", fmt.Sprintf("%d bytes, one every %d records", len(c.trail.bytes), c.trail.every))
	text := base64.StdEncoding.EncodeToString(c.trail.bytes)
	for len(text) > 0 {
		n := min(len(text), packedWidth)
		b.WriteString("  " + text[:n] + "\n")
		text = text[n:]
	}
	line("check", check(b.Bytes()))
	return b.Bytes()
}

func check(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// names lists the protections that are on: by name, so that a preset that
// grows does not change what a capsule says.
func names(p core.Protections) string {
	var on []string
	for _, name := range core.ProtectionNames() {
		if isOn(p, name) {
			on = append(on, name)
		}
	}
	return orNone(strings.Join(on, ", "))
}

func isOn(p core.Protections, name string) bool {
	with := p
	with.Set(name, true)
	return with == p
}

// greenText is a green design in a list: hardened is the preset of whoever
// replays, for that is what must stay green.
func greenText(p core.Protections) string {
	switch p {
	case core.Hardened():
		return "hardened"
	case core.Document():
		return "document"
	}
	return strings.ReplaceAll(names(p), ", ", "+")
}

// Write writes the capsule to a file, whole or not at all: it is renamed from
// a temporary file beside it.
// What is there and is no regular file, such as a pipe or the null device, is
// written into: a rename would put a file in its place.
func (c *Capsule) Write(path string) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return os.WriteFile(path, c.Encode(), 0o644)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	if _, err = f.Write(c.Encode()); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// codeVersion is the code that this program is made of.
func codeVersion() string {
	version, commit, changed := "(devel)", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, b := range info.Settings {
			switch {
			case b.Key == "vcs.revision":
				commit = ", commit " + b.Value
			case b.Key == "vcs.modified" && b.Value == "true":
				changed = " and changes"
			}
		}
	}
	return "vigil " + version + commit + changed
}
