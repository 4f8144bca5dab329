package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vigil/scenarios"
)

// newRoot builds the commands.
func newRoot(s *streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "server",
		Short: "A KV-cache server that frees the memory of workers that died",
		Long: `server keeps one context per inference worker on this node - the worker's KV
memory, opened through a handle - stores and delivers KV chunks, and closes the
context of a worker that fell silent.

Without a command it does the same as server run. docs/server.md has a tour.`,
		Example: `  server run                                    on tcp://127.0.0.1:5555
  server run --bind ipc:///run/vigil/server.sock
  server worker                                 a worker to try it with
  server status                                 what a running server holds`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	worker := newWorker(s)
	worker.AddCommand(newControl(s))
	root.AddCommand(newRun(s), worker, newStatus(s), newCheckConfig(s), newKeygen(s), newVersion(s), newDeviceCheck(s))
	root.SetFlagErrorFunc(nearestFlag)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 100"))
	return root
}

// withDefault puts the default command in front of arguments that name none.
func withDefault(root *cobra.Command, args []string) []string {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help" || strings.HasPrefix(args[0], "__complete")) {
		return args
	}
	if cmd, _, err := root.Find(args); err == nil && cmd != root {
		return args
	}
	return append([]string{"run"}, args...)
}

// noArguments refuses words that are no flags: usually a mistyped command.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Root().Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near, ok := scenarios.Nearest(args[0], names); ok {
		return fmt.Errorf("there is no command %q; did you mean %q?", args[0], near)
	}
	return fmt.Errorf("%q is no command and server %s takes no arguments; the commands are %s", args[0], cmd.Name(), strings.Join(names, ", "))
}

// nearestFlag adds the nearest valid flag to an error about an unknown one.
func nearestFlag(cmd *cobra.Command, err error) error {
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "unknown flag: --")
	if !unknown {
		return fmt.Errorf("%s (see server %s --help)", text, cmd.Name())
	}
	var valid []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { valid = append(valid, f.Name) })
	if near, ok := scenarios.Nearest(name, valid); ok {
		return fmt.Errorf("there is no flag --%s; did you mean --%s?", name, near)
	}
	return fmt.Errorf("there is no flag --%s (server %s --help lists them)", name, cmd.Name())
}

// unknownName is the one line about a value that is none of the valid ones.
func unknownName(got string, valid []string) error {
	if near, ok := scenarios.Nearest(got, valid); ok {
		return fmt.Errorf("there is no %q; did you mean %q?", got, near)
	}
	return fmt.Errorf("there is no %q; it is one of %s", got, strings.Join(valid, ", "))
}
