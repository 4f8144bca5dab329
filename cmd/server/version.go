package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"vigil/core/zmq"
	"vigil/realgpu/cuda"
	"vigil/reports"
)

// release is the version, set by make release.
var release string

type about struct {
	Version, Commit, Go, Platform, LibZMQ, Driver string
}

var versionOf = sync.OnceValue(func() about {
	a := about{Version: release, Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Driver: driverFound()}
	a.LibZMQ = zmq.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		if a.Version == "" {
			a.Version = info.Main.Version
		}
		dirty := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				a.Commit = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					dirty = " and changes"
				}
			}
		}
		a.Commit += dirty
	}
	if commit != "" {
		a.Commit = commit
	}
	if a.Version == "" {
		a.Version = "(devel)"
	}
	return a
})

// commit is set by make release, where the build does not look for it itself.
var commit string

// driverFound says which GPU driver this host has.
func driverFound() string {
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		d, err := cuda.Shared("")
		if err != nil {
			return "none: " + err.Error()
		}
		return fmt.Sprintf("%s of CUDA %d.%d", d.Path, d.Version/1000, d.Version%1000/10)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "NVRM version:"))
}

func newVersion(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say what this program is made of",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			a := versionOf()
			l := reports.Listing{Head: []string{"WHAT", "WHICH"}, Rows: [][]string{
				{"server", a.Version}, {"commit", a.Commit}, {"go", a.Go + " " + a.Platform}, {"libzmq", a.LibZMQ},
				{"backends", "hostshm, cuda"}, {"nvidia driver", a.Driver},
			}}
			return l.Write(s.out, 0, false)
		},
	}
}
