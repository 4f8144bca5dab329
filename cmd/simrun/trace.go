package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/sim"
)

// trace is the hidden command by which doctor asks another process of this
// program for its hashes, or for the records of one run.
func newTrace(s *streams) *cobra.Command {
	var design designFlags
	var seeds string
	var records bool
	var only string
	cmd := &cobra.Command{
		Use:    "trace [NAME|FILE|DIR]...",
		Short:  "Print the hash of each run, or with --records each record",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := choose(cmd, args)
			if err != nil {
				return err
			}
			c, err := design.choose()
			if err != nil {
				return err
			}
			r, err := parseSeeds(seeds)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(s.out)
			for _, sc := range list {
				if only != "" && sc.ID != only {
					continue
				}
				if err := traceScenario(cmd.Context(), w, sc, c, r, records); err != nil {
					return err
				}
			}
			return w.Flush()
		},
	}
	design.add(cmd)
	cmd.Flags().StringVar(&seeds, "seeds", "1", "seeds of each scenario: `N` or A..B")
	cmd.Flags().StringVar(&only, "only", "", "of a file of variants, the scenario of this `ID`")
	cmd.Flags().BoolVar(&records, "records", false, "print each record")
	return cmd
}

func traceScenario(ctx context.Context, w io.Writer, sc selected, c choice, seeds seedRange, records bool) error {
	p := newPlayer(c)
	for i := range seeds.Count {
		if ctx.Err() != nil {
			return &ending{exitInterrupted}
		}
		seed := seeds.First + uint64(i)
		var observer recordLines
		if records {
			observer.w = w
		}
		hash := p.hash(sc, seed, observer.orNil())
		if !records {
			fmt.Fprintf(w, "%s %d %016x\n", sc.ID, seed, uint64(hash))
		}
	}
	return nil
}

// recordLines writes each record as one line of all its fields.
type recordLines struct{ w io.Writer }

func (o recordLines) orNil() sim.Observer {
	if o.w == nil {
		return nil
	}
	return o
}

// Observe writes one record.
func (o recordLines) Observe(r *core.Record) {
	fmt.Fprintf(o.w, "%d actor=%d %s instance=%d incarnation=%d context=%s a=%d b=%d flag=%t failure=%s\n",
		int64(r.At), r.Actor, r.Kind, uint64(r.Instance), uint64(r.Incarnation), r.Context, r.A, r.B, r.Flag, r.Failure)
}

// otherProcess starts this program once more with other settings and returns
// what it prints.
func otherProcess(ctx context.Context, setting string, args ...string) (*exec.Cmd, io.ReadCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot start a second process: %w", err)
	}
	child := exec.CommandContext(ctx, self, append([]string{"trace"}, args...)...)
	child.Env = append(os.Environ(), setting)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := child.Start(); err != nil {
		return nil, nil, fmt.Errorf("cannot start a second process: %w", err)
	}
	return child, out, nil
}
