package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// builtFrom is what this program was built from, as far as it knows.
func builtFrom() (version, commit, changed string) {
	version, commit = "(devel)", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, commit, changed
	}
	if info.Main.Version != "" {
		version = info.Main.Version
	}
	for _, b := range info.Settings {
		switch {
		case b.Key == "vcs.revision":
			commit = b.Value
		case b.Key == "vcs.modified" && b.Value == "true":
			changed = " and changes"
		}
	}
	return version, commit, changed
}

// codeIdentity tells programs apart whose results must not be added up: by the
// commit, and where that does not say all, by the program's own bytes.
func codeIdentity() string {
	_, commit, changed := builtFrom()
	if commit != "unknown" && changed == "" {
		return "commit " + commit
	}
	path, err := os.Executable()
	if err != nil {
		return "commit " + commit + changed
	}
	file, err := os.Open(path)
	if err != nil {
		return "commit " + commit + changed
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "commit " + commit + changed
	}
	return fmt.Sprintf("commit %s%s, program %x", commit, changed, sum.Sum(nil)[:6])
}

// newVersion says which program this is: a report of a failure needs the
// commit, because a token replays on the same code only.
func newVersion(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, commit, changed := builtFrom()
			_, err := fmt.Fprintf(s.out, "simrun %s, commit %s%s, tokens %s, %s %s/%s\n", version, commit, changed, tokenVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
