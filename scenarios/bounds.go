package scenarios

import "time"

// The bounds that a file meets. What passes one is an error that names it.
const (
	MaxFileBytes = 1 << 20              // of one file
	MaxLine      = 4096                 // bytes in one line; it also bounds nesting within a line
	MaxNesting   = 32                   // lists and mappings inside each other
	MaxSteps     = 10_000               // in one scenario
	MaxWorkers   = 100_000              // in one scenario, counts included
	MaxExpect    = 1_000                // expectations in one scenario
	MaxVariants  = 64                   // of one file
	MaxTime      = 400 * 24 * time.Hour // any time or result of time arithmetic
	maxMarkers   = 256                  // lines that begin with a YAML tag, anchor or alias; the format has none
	maxTerms     = 64                   // terms in one time expression
	maxBytes     = uint64(1) << 60      // any number of bytes
	maxNumber    = uint64(1) << 31      // any other number
	maxName      = 64                   // bytes in a name
	maxText      = 16 << 10             // bytes in a title or story
)
