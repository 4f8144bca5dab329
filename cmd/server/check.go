package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"vigil/core"
)

// Why this file: a window that is too small for the clients reaps live
// workers, and the server never learns the clients' interval. This says which
// are safe before anything runs.

func sortedKeys(m map[string]uint64) []string { return slices.Sorted(maps.Keys(m)) }

func newCheckConfig(s *streams) *cobra.Command {
	c := &runConfig{}
	list := c.settings()
	var interval, deadline string
	cmd := &cobra.Command{
		Use:   "check-config",
		Short: "Say what is wrong with a configuration, and which heartbeat intervals it is safe with",
		Long: `Say what is wrong with a configuration of server run, and which heartbeat
intervals of the clients it is safe with. It takes the same flags, environment
and file as server run and starts nothing.

A client's period is its interval while the server answers, and up to its reply
deadline more while it does not. A few lost pings must never look like death:
3 x max(interval, reply deadline) must fit the window.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(list.resolve(cmd), c.settle()); err != nil {
				return err
			}
			for _, w := range list.mistyped() {
				fmt.Fprintln(s.out, "warning: "+w)
			}
			return c.check(s, interval, deadline)
		},
	}
	list.bind(cmd)
	cmd.Flags().StringVar(&interval, "heartbeat-interval", "", "judge this `SECONDS` between a client's pings (lmcache.mp.heartbeat_interval)")
	cmd.Flags().StringVar(&deadline, "heartbeat-timeout", "", "and its reply deadline in `SECONDS`, where it differs from the interval")
	return cmd
}

func (c *runConfig) check(s *streams, intervalText, deadlineText string) error {
	say := func(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }
	say("the configuration is sound: %s design, reap %s, grace %s, a scan every %s", c.core.Protections, c.reap, c.grace, c.core.Scan())
	if wide := c.exposed(); wide != "" && !c.keys.Enabled() {
		say("warning: other hosts can reach %s and there is no curve-key-file: whoever connects gets in", wide)
	}
	if c.reap == 0 {
		say("heartbeat: any interval; nothing is reaped, and the memory of dead workers stays mapped")
	} else {
		longest := longestSafe(c.reap)
		say("heartbeat: safe up to %s, where 3 x max(interval, reply deadline) fits the window of %s", longest, c.reap)
		say("           a worker of ours and of LMCache warns above %s whatever the window, because the smallest window is %s", core.ReapFloor/3, core.ReapFloor)
		say("           a silent worker's memory is back between %s and about %s after its last sign of life", c.reap, c.reap+c.core.Scan()+c.confirm())
	}
	if intervalText == "" {
		return nil
	}
	interval, err := core.ParseSeconds("heartbeat interval", intervalText)
	if err != nil {
		return fmt.Errorf("--heartbeat-interval: %w", err)
	}
	deadline := interval
	if deadlineText != "" {
		if deadline, err = core.ParseSeconds("heartbeat timeout", deadlineText); err != nil {
			return fmt.Errorf("--heartbeat-timeout: %w", err)
		}
	}
	if interval <= 0 || deadline <= 0 {
		return errors.New("--heartbeat-interval and --heartbeat-timeout must be > 0")
	}
	if worst := 3 * max(interval, deadline); c.reap > 0 && worst > c.reap {
		return fmt.Errorf("heartbeat interval %s with a reply deadline of %s is not safe: 3 x %s = %s exceeds the window of %s; a few lost pings reap a live worker", interval, deadline, max(interval, deadline), worst, c.reap)
	}
	say("heartbeat: an interval of %s with a reply deadline of %s is safe", interval, deadline)
	return nil
}

// confirm is what a second look adds to the longest time until a reap.
func (c *runConfig) confirm() time.Duration {
	if c.core.Protections.LookBeforeReap {
		return core.LookAgain
	}
	return 0
}
