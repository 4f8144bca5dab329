// Command simrun runs the scenarios in the simulated world, replays single
// runs, and shows that both are deterministic.
//
// Contract. The commands, flags, exit codes and JSON are in the project's
// description of the command lines; other people's CI depends on them. This
// package holds flags, wiring and exit codes, nothing else: scenarios/run
// runs, scenarios/monitor judges, reports writes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	makeRoom()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once, the default way
	}()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute is the program as a function of its arguments. It returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr *os.File) int {
	root := newRoot(&streams{out: stdout, err: stderr})
	root.SetArgs(withDefault(root, args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := unknownHelp(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	var ended *ending
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &ended):
		return ended.code
	}
	fmt.Fprintln(stderr, "simrun: "+oneLine(err.Error()))
	return exitUsage
}

// oneLine keeps an error on its line: what reads our errors reads lines.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
