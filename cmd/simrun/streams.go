package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"vigil/reports"
)

// streams is where the program's words go.
type streams struct{ out, err *os.File }

// commonFlags shape the output of every command.
type commonFlags struct {
	noColour bool
}

// human is a place for words to people, and how they look there.
type human struct {
	io.Writer
	reports.Terminal
}

// people returns where words to people go: standard output, or standard error
// where a machine reads standard output.
func (s *streams) people(f *commonFlags, machineReads bool) human {
	file := s.out
	if machineReads {
		file = s.err
	}
	return human{file, reports.Look(file, f.noColour)}
}

// write writes a result to a file, or to standard output where it is "-".
func (s *streams) write(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(s.out)
	}
	return reports.WriteFile(path, write)
}

// replayCommand is the exact command that replays a token for whoever started
// this program the way it was started.
func replayCommand(token string) string {
	return fmt.Sprintf("%s replay %s", programName(), token)
}

// programName is what to type to start this program again: the path that it
// was called by, its name alone where the shell found it, and go run where
// there is no program to call again.
func programName() string {
	if self, err := os.Executable(); err == nil && strings.Contains(filepath.ToSlash(self), "/go-build") {
		return "go run ./cmd/simrun"
	}
	if len(os.Args) > 0 && os.Args[0] != "" {
		return os.Args[0]
	}
	return "simrun"
}
