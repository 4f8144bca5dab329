package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vigil/scenarios"
)

// newRoot builds the commands.
func newRoot(s *streams) *cobra.Command {
	common := &commonFlags{}
	root := &cobra.Command{
		Use:   "simrun",
		Short: "Run a KV-cache server's liveness protocol in a simulated world, under faults",
		Long: `simrun runs the production server and worker code in a simulated world, injects
faults, and checks thirteen invariants on every run, "exactly one context per
instance" first. A run is a function of code, scenario and seed: a failure is
never flaky, and its token replays it.

Without a command it does the same as simrun run.`,
		Example: `  simrun                          the whole suite, 200 seeds of each scenario
  simrun run A1 A6 --seeds 1000   two scenarios, more seeds
  simrun run my-story.yaml        a scenario of your own
  simrun list scenarios           what there is
  simrun replay TOKEN             the story of one run, in words`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().BoolVar(&common.noColour, "no-color", false, "no colour (as with NO_COLOR set, or CI)")
	root.AddCommand(newRun(s, common), newReplay(s, common), newShrink(s, common), newAudit(s, common), newList(s, common), newDoctor(s, common), newBench(s, common), newTrace(s), newExplore(s, common), newMerge(s, common))
	root.SetFlagErrorFunc(nearestFlag)
	root.AddCommand(newProtections(s, common), newPlan(s, common), newExplain(s, common), newVersion(s))
	root.Flags().Bool("version", false, "say which version this is")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	return root
}

// withDefault puts the default command in front of arguments that name none:
// simrun A1 --seeds 5 is simrun run A1 --seeds 5.
func withDefault(root *cobra.Command, args []string) []string {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help" || strings.HasPrefix(args[0], "__complete")) {
		return args
	}
	if len(args) == 1 && args[0] == "--version" {
		return []string{"version"}
	}
	if cmd, _, err := root.Find(args); err == nil && cmd != root {
		return args
	}
	return append([]string{"run"}, args...)
}

// unknownHelp is the error of help for a command that there is not.
func unknownHelp(root *cobra.Command, args []string) error {
	if len(args) < 2 || args[0] != "help" || strings.HasPrefix(args[1], "-") {
		return nil
	}
	if cmd, _, err := root.Find(args[1:]); err == nil && cmd != root {
		return nil
	}
	return unknownName("help", args[1], commandNames(root))
}

// commandNames are what a mistyped first word may have meant.
func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Root().Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// nearestFlag adds the nearest valid flag to an error about an unknown one.
func nearestFlag(cmd *cobra.Command, err error) error {
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "unknown flag: --")
	if !unknown {
		return &usageError{invalidValue(cmd, text) + " (see simrun " + cmd.Name() + " --help)"}
	}
	var valid []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			valid = append(valid, f.Name)
		}
	})
	if near, ok := scenarios.Nearest(name, valid); ok {
		return &usageError{"there is no flag --" + name + "; did you mean --" + near + "?"}
	}
	return &usageError{"there is no flag --" + name + " (simrun " + cmd.Name() + " --help lists them)"}
}

var invalidArgument = regexp.MustCompile(`^invalid argument "(.*)" for "(?:-., )?--([a-z-]+)" flag: `)

// invalidValue says what a flag takes where its value cannot be read: the flag
// library says how a number is parsed.
func invalidValue(cmd *cobra.Command, text string) string {
	m := invalidArgument.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	f := cmd.Flags().Lookup(m[2])
	if f == nil {
		return text
	}
	wanted := "something else"
	switch f.Value.Type() {
	case "uint64":
		wanted = "a whole number from 0 on, such as 7"
	case "int":
		wanted = "a whole number, such as 4"
	case "duration":
		wanted = "a time with its unit, such as 60s or 2m"
	case "bool":
		wanted = "true or false"
	default:
		return text
	}
	return fmt.Sprintf("--%s %s: it must be %s", m[2], m[1], wanted)
}

// usageError is a mistake in the call: one line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }
