package hostshm

import "runtime/debug"

// Why this file: a worker can shorten its segment while the server reads it,
// and touching a page that is gone is SIGBUS. A check before the copy cannot
// close that gap, so the goroutine that copies asks the runtime for a panic
// in place of the signal's usual end and takes it for what it is.

// addressed is what a runtime fault looks like.
type addressed interface{ Addr() uintptr }

// guarded runs touch, and reports false where it met a memory fault at an
// address that ours says is mapped from a segment. Every other panic is a
// defect of ours and goes on.
func guarded(ours func(uintptr) bool, touch func()) (whole bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case addressed:
			if !ours(fault.Addr()) {
				panic(fault)
			}
			whole = false
		default:
			panic(fault)
		}
	}()
	touch()
	return true
}
