package worker

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

func TestRegisterTellsTheEngine(t *testing.T) {
	d := newDesk(t)
	from := len(d.records)
	d.register()
	if d.w.Registered() || d.wasTold(core.TellRegistered) {
		t.Fatal("registered before the server answered")
	}
	m := d.last(wire.RegisterKVCache)
	if string(m.Model) != "model" || m.WorldSize != 1 || string(m.Engine) != "vllm" ||
		len(m.Exports) != 1 || len(m.Groups) != 1 || m.Groups[0].TokensPerBlock != 16 {
		t.Fatalf("the server read %+v", m.Request)
	}
	d.answer(m, wire.Reply{})
	d.story(from, core.RegisterSent, core.RegisterEnded)
	if !d.wasTold(core.TellRegistered) || len(d.timers) != 0 {
		t.Fatal("the engine was not told, or a timer is left")
	}
}

// Upstream: test_register_kv_caches_raises_connection_error_on_timeout.
func TestARegisterWithoutAnswerFailsOnceAndForAll(t *testing.T) {
	d := newDesk(t)
	d.register()
	d.pass(300*time.Second - 1)
	if d.wasTold(core.TellRegisterFailed) {
		t.Fatal("failed before its deadline")
	}
	d.pass(1)
	if !d.wasTold(core.TellRegisterFailed) {
		t.Fatal("the engine waits for ever")
	}
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.pass(time.Hour)
	if d.wasTold(core.TellRegistered) || d.count(wire.RegisterKVCache) != 1 {
		t.Fatal("there must be no retry and no late success")
	}
}

// What the engine passes is its own again after the call.
func TestTheMemoryIsCopied(t *testing.T) {
	d := newDesk(t)
	mine := exports()
	d.call(core.Call{Kind: core.CallRegister, Exports: mine})
	mine[0].Handle[1] = 'X'
	mine[0].Shape[0] = 99
	kept := &d.w.memory.exports[0]
	if string(kept.Handle) != "/seg" || kept.Shape[0] != 2 {
		t.Fatal("the kept memory follows the engine's buffers")
	}
}

func TestBlendRegistersRopeAfterTheMemory(t *testing.T) {
	d := newDesk(t, blend)
	d.register()
	if d.count(wire.RegisterRope) != 0 {
		t.Fatal("rope before the memory")
	}
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	if d.wasTold(core.TellRegistered) || d.count(wire.RegisterRope) != 1 {
		t.Fatal("rope must follow, and the engine wait for it")
	}
	if d.timers[core.TimerRegister] != d.now.Add(300*time.Second) {
		t.Fatal("the rope's register has its own deadline")
	}
	d.answer(d.last(wire.RegisterRope), wire.Reply{})
	if !d.wasTold(core.TellRegistered) {
		t.Fatal("not told")
	}
	if r := d.saw(core.RegisterSent); r[0].Context != core.ServerDriven || r[1].Context != core.RopeState {
		t.Fatal("the records do not tell the two apart")
	}
}

// A reap drops the rope state too, so a recovery brings both back.
func TestARecoveryBringsRopeBackToo(t *testing.T) {
	d := unhealthy(t, blend)
	d.pass(10 * time.Second)
	d.answer(d.last(wire.Ping), yes)
	d.settle()
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	d.settle()
	if d.w.Healthy() || d.count(wire.RegisterRope) != 2 {
		t.Fatal("healthy without its rope state")
	}
	d.answer(d.last(wire.RegisterRope), wire.Reply{})
	d.settle()
	if !d.w.Healthy() {
		t.Fatal("not healthy")
	}
}

func TestEngineDrivenRegistersItsOwnForm(t *testing.T) {
	d := registered(t, engineDriven)
	m := d.last(wire.RegisterEngineDriven)
	if m.Instance != d.w.Instance() || string(m.Model) != "model" || m.BlockSize != 16 ||
		m.NumLayers != 1 || m.HiddenDim != 64 || string(m.DType) != "float16" {
		t.Fatalf("the server read %+v", m.Request)
	}
}

func TestRegisterRefusesWhatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		call core.Call
		want core.Failure
	}{
		"too many tensors":   {core.Call{Exports: make([]core.Export, core.MaxExports+1)}, core.FailTooLarge},
		"too many groups":    {core.Call{Groups: make([]core.Group, core.MaxGroups+1)}, core.FailTooLarge},
		"chunk of no blocks": {core.Call{Groups: []core.Group{{TokensPerBlock: 5}}}, core.FailBadBlocks},
	} {
		d := newDesk(t)
		d.call(c.call)
		if len(d.sent) != 0 || len(d.tells) != 1 || d.tells[0].Kind != core.TellRegisterFailed || d.tells[0].Failure != c.want {
			t.Fatalf("%s: sent %d, told %+v", name, len(d.sent), d.tells)
		}
	}
	d := newDesk(t)
	d.register()
	d.register()
	if d.count(wire.RegisterKVCache) != 1 || !d.wasTold(core.TellRegisterFailed) {
		t.Fatal("two registrations at once")
	}
}

// B9 needs it: an engine that reallocated registers again.
func TestAnEngineMayRegisterOtherMemory(t *testing.T) {
	d := registered(t)
	other := exports()
	other[0].Handle = []byte("/other-segment")
	d.call(core.Call{Kind: core.CallRegister, Exports: other})
	d.answer(d.last(wire.RegisterKVCache), wire.Reply{})
	if d.count(wire.RegisterKVCache) != 2 || string(d.last(wire.RegisterKVCache).Exports[0].Handle) != "/other-segment" {
		t.Fatal("the new memory was not registered")
	}
}
