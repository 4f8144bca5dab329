// Command server is the program that people deploy: the KV-cache server, a
// worker to try it with, and the small tools around both.
//
// Contract. The commands, flags, exit codes and the JSON that it prints are in
// the project's description of the command lines and in docs/server.md; other
// people's scripts depend on them. This package holds flags, wiring and exit
// codes: core/loop drives the core, core/zmq carries its messages,
// realgpu/hostshm opens the workers' memory.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// execute is the program as a function of its arguments. It returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr *os.File) int {
	root := newRoot(&streams{out: stdout, err: stderr})
	root.SetArgs(withDefault(root, args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var ended *ending
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ended):
		return ended.code
	}
	// A configuration may break several rules; each has its own line.
	for _, line := range errorLines(err) {
		fmt.Fprintln(stderr, "server: "+line)
	}
	return exitUsage
}

// errorLines lists what is wrong, one thing a line.
func errorLines(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, errorLines(e)...)
		}
		return lines
	}
	return []string{oneLine(err.Error())}
}

// oneLine keeps an error on its line: what reads our errors reads lines.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
