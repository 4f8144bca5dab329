package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// newVersion says which program this is: a report of a failure needs the
// commit, because a token replays on the same code only.
func newVersion(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, commit, changed := "(devel)", "unknown", ""
			if info, ok := debug.ReadBuildInfo(); ok {
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
			}
			_, err := fmt.Fprintf(s.out, "simrun %s, commit %s%s, tokens %s, %s %s/%s\n", version, commit, changed, tokenVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
