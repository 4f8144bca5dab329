package main

import (
	"fmt"
	"os"
)

// The exit codes. 2 is the Go runtime's own, for a crash.
const (
	exitOK         = 0
	exitUsage      = 1 // a bad flag, file or environment value, or a start that failed
	exitHeld       = 3 // the server ended with something still held, and named it
	exitWrongBytes = 4 // a worker was told that it may use bytes that nobody stored
	exitUnserved   = 5 // a worker's registration failed, or the server cannot be asked
)

// streams is where the program's words go.
type streams struct{ out, err *os.File }

// ending is a command that is over with a code and has said why itself.
type ending struct{ code int }

func (e *ending) Error() string { return fmt.Sprintf("exit code %d", e.code) }
