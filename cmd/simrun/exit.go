package main

import (
	"fmt"

	"vigil/reports"
)

// The exit codes. 2 is the Go runtime's own, for a crash of simrun.
const (
	exitPass           = 0
	exitUsage          = 1
	exitSafety         = 10
	exitLiveness       = 11
	exitNondeterminism = 12
	exitPanic          = 13
	exitUnknown        = 14
	exitMissed         = 15
	exitInterrupted    = 130
)

var exitCodes = map[reports.Verdict]int{
	reports.Pass:           exitPass,
	reports.Safety:         exitSafety,
	reports.Liveness:       exitLiveness,
	reports.Nondeterminism: exitNondeterminism,
	reports.Panic:          exitPanic,
	reports.Unknown:        exitUnknown,
	reports.Missed:         exitMissed,
}

// ending is a command that is over with a code and has said why itself.
type ending struct{ code int }

func (e *ending) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// endWith is the error that ends the program with a verdict's code; nil for a
// pass.
func endWith(v reports.Verdict) error {
	code, known := exitCodes[v]
	if !known {
		code = exitUnknown
	}
	if code == exitPass {
		return nil
	}
	return &ending{code}
}
