package server

import (
	"testing"
	"time"

	"vigil/core"
)

// Every answer to a register says the window (B22): of a new context, of one
// that is there already, and of an engine-driven one.
func TestRegistersSayTheWindow(t *testing.T) {
	for _, on := range []bool{true, false} {
		cfg := testConfig()
		cfg.Protections = core.Hardened()
		cfg.Protections.AgreedWindow = on
		w := newWorld(t, cfg)
		want := time.Duration(0)
		if on {
			want = cfg.Reap
		}
		for n, register := range []func(){func() { w.register(1) }, func() { w.register(1) }, func() { w.registerEngine(1) }} {
			register()
			if r := w.last(); r.Window != want || r.Refusal != core.NoFailure {
				t.Errorf("register %d: %+v", n, r)
			}
		}
	}
	cfg := testConfig()
	cfg.Protections, cfg.Reap = core.Hardened(), 0
	w := newWorld(t, cfg)
	if w.register(1); w.last().Window != 0 {
		t.Error("a server that reaps nothing says a window")
	}
}
