package audit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/server"
	"vigil/core/wire"
	"vigil/scenarios"
)

// A recording as a scenario: who was there, when they registered, when they
// fell silent or left. It is the story's outline and not the run itself: what
// the network did to single messages is not in it, and an engine's requests
// become a rhythm.

// seenWorker is what a recording shows of one instance.
type seenWorker struct {
	id               core.InstanceID
	kind             core.ContextKind
	model            string
	world            int64
	blend            bool
	registered       core.Time
	messages         []core.Time // of every kind, at the server's host
	pings            []core.Time
	stores, loads    int
	firstReq, lastRq core.Time
	left             core.Time // its unregister, Never
	reaped           int
}

// Outline collects a scenario's outline while a recording is replayed.
type Outline struct {
	config  core.ServerConfig
	begun   bool
	started int64 // wall-clock time of the first segment
	workers []*seenWorker
	byID    map[core.InstanceID]*seenWorker
	probers bool
	lives   []core.Time // when each life after the first began
	life    uint64
	last    core.Time
	cut     bool // more than the outline holds
}

// The bounds of an outline.
const (
	maxOutlineWorkers  = 10_000
	maxOutlineMessages = 1 << 20 // of one worker
	maxOutlineSteps    = 5_000
)

// NewOutline returns an empty outline.
func NewOutline() *Outline { return &Outline{byID: map[core.InstanceID]*seenWorker{}} }

// at is an input's time in the scenario: segments of several lives are put in
// line by the clock on the wall.
func (o *Outline) at(s *loop.Segment, now core.Time) core.Time {
	return core.Time((s.Head.Started-o.started)*max(s.Head.TimeScale, 1)) + now - core.Time(s.Head.At)
}

// Step takes one replayed input; it fits loop.Replay.
func (o *Outline) Step(s *loop.Segment, in *loop.Recorded, out *core.Effects) {
	if !o.begun {
		o.begun, o.started, o.life = true, s.Head.Started, s.Head.Life
		o.config = core.DefaultServerConfig()
		var machine server.Server
		if machine.ReadSnapshot(s.Snapshot) == nil {
			o.config = machine.Config()
		}
	}
	at := o.at(s, in.Now)
	o.last = max(o.last, at)
	if s.Head.Life != o.life {
		o.life = s.Head.Life
		o.lives = append(o.lives, at)
	}
	if r, ok := in.Input.Decoded.(*wire.Request); ok && r != nil && in.Input.Kind == core.InputFrames {
		o.message(at, r)
	}
	for i := range out.Records {
		r := &out.Records[i]
		if r.Kind == core.ContextRemoved && (core.RemovalCause(r.A) == core.RemovedByReaper || core.RemovalCause(r.A) == core.RemovedByProof) {
			if w := o.byID[r.Instance]; w != nil {
				w.reaped++
			}
		}
	}
}

func (o *Outline) message(at core.Time, r *wire.Request) {
	if r.Type == wire.Ping && r.NoInstance {
		o.probers = true
		return
	}
	if r.Instance == 0 || r.Failure != core.NoFailure {
		return
	}
	w := o.byID[r.Instance]
	if w == nil {
		if r.Type != wire.RegisterKVCache && r.Type != wire.RegisterEngineDriven {
			return
		}
		if len(o.workers) >= maxOutlineWorkers {
			o.cut = true
			return
		}
		w = &seenWorker{id: r.Instance, kind: core.ServerDriven, model: string(r.Model), world: max(r.WorldSize, 1), registered: at, left: core.Never}
		if r.Type == wire.RegisterEngineDriven {
			w.kind = core.EngineDriven
		}
		o.byID[r.Instance] = w
		o.workers = append(o.workers, w)
	}
	if len(w.messages) < maxOutlineMessages {
		w.messages = append(w.messages, at)
	} else {
		o.cut = true
	}
	request := func(n *int) {
		if *n++; w.stores+w.loads == 1 {
			w.firstReq = at
		}
		w.lastRq = at
	}
	switch r.Type {
	case wire.Ping:
		w.pings = append(w.pings, at)
	case wire.Store, wire.PrepareStore:
		request(&w.stores)
	case wire.Retrieve, wire.PrepareRetrieve:
		request(&w.loads)
	case wire.RegisterRope:
		w.blend = true
	case wire.UnregisterKVCache, wire.UnregisterEngineDriven:
		w.left = min(w.left, at)
	}
}

// heartbeat is the usual time between two pings, over all workers.
func (o *Outline) heartbeat() time.Duration {
	var gaps []core.Time
	for _, w := range o.workers {
		for i := 1; i < len(w.pings); i++ {
			gaps = append(gaps, w.pings[i]-w.pings[i-1])
		}
	}
	if len(gaps) == 0 {
		return core.DefaultInterval
	}
	slices.Sort(gaps)
	usual := gaps[len(gaps)/2].Sub(0)
	if usual >= time.Second {
		usual = usual.Round(time.Second)
	}
	return max(usual, 10*time.Millisecond)
}

// outlineStep is one step of the story.
type outlineStep struct {
	at   core.Time
	text string
}

// Scenario writes the outline as a scenario file, which it checks with the
// strict loader. name is its id.
func (o *Outline) Scenario(name, source string) ([]byte, error) {
	if len(o.workers) == 0 {
		return nil, errors.New("the recording has no worker that registers, so there is no story to tell")
	}
	usual := o.heartbeat()
	silence := core.Time(5 * usual / 2)
	var steps []outlineStep
	say := func(at core.Time, format string, args ...any) {
		steps = append(steps, outlineStep{at, fmt.Sprintf(format, args...)})
	}
	for n, w := range o.workers {
		who := fmt.Sprintf("w%d", n+1)
		for i := 1; i < len(w.messages) && len(w.pings) > 0; i++ {
			from, to := w.messages[i-1], w.messages[i]
			if to-from > silence && from >= w.pings[0] && !o.restarted(from, to) {
				say(from+core.Time(usual/10), "pause: {worker: %s, for: %s}", who, millis((to-from).Sub(0)-usual/10))
			}
		}
		last := w.messages[len(w.messages)-1]
		switch {
		case w.left != core.Never:
			say(w.left, "shutdown: %s", who)
		case w.reaped > 0 && o.last-last > silence || o.last-last > silence && len(w.pings) > 0:
			say(last+core.Time(usual/10), "kill: %s", who)
		}
	}
	for _, at := range o.lives {
		say(at, "server-restart:")
	}
	slices.SortStableFunc(steps, func(a, b outlineStep) int { return int(min(max(a.at-b.at, -1), 1)) })
	if len(steps) > maxOutlineSteps {
		steps, o.cut = steps[:maxOutlineSteps], true
	}
	until := max(o.last.Sub(0), time.Second) + o.config.Reap + o.config.Scan() + 10*time.Second

	var b bytes.Buffer
	fmt.Fprintf(&b, "# The outline of a recording (%s): who was there, when they fell silent or left.\n", source)
	if o.cut {
		fmt.Fprintf(&b, "# The recording holds more than an outline may; what is beyond its bounds is left out.\n")
	}
	fmt.Fprintf(&b, "id: %s\nname: %s\ntitle: what a recording shows\n\n", name, "recorded-"+name)
	fmt.Fprintf(&b, "config: {reap: %s, grace: %s, heartbeat: %s, chunk-tokens: %d, normal-slots: %d, affinity-lanes: %d}\n\nworkers:\n",
		millis(o.config.Reap), millis(o.config.Grace), millis(usual), o.config.ChunkTokens, o.config.NormalSlots, o.config.AffinityLanes)
	for n, w := range o.workers {
		start := max(w.registered.Sub(0)-100*time.Millisecond, 0)
		fmt.Fprintf(&b, "  w%d: {start: %s, warmup: 100ms", n+1, millis(start))
		if w.model != "" {
			fmt.Fprintf(&b, ", model: %s", quoted(w.model))
		}
		if w.world > 1 && w.world <= 1<<16 {
			fmt.Fprintf(&b, ", world: %d", w.world)
		}
		if w.kind == core.EngineDriven {
			b.WriteString(", mode: engine-driven")
		}
		if w.blend {
			b.WriteString(", blend: true")
		}
		if all := w.stores + w.loads; all > 0 {
			every := max((w.lastRq-w.firstReq).Sub(0)/time.Duration(max(all-1, 1)), 100*time.Millisecond)
			stores, loads := share(w.stores, w.loads)
			to := max(w.lastRq.Sub(0), w.firstReq.Sub(0)+time.Millisecond) + time.Millisecond
			fmt.Fprintf(&b, ", traffic: {every: %s, stores: %d, retrieves: %d, from: %s, to: %s}", millis(every), stores, loads, millis(w.firstReq.Sub(0)), millis(to))
		}
		b.WriteString("}")
		if w.reaped > 0 {
			fmt.Fprintf(&b, " # instance %d; reaped %d times in the recording\n", uint64(w.id), w.reaped)
		} else {
			fmt.Fprintf(&b, " # instance %d\n", uint64(w.id))
		}
	}
	if o.probers {
		b.WriteString("  prober: {prober: true}\n")
	}
	if len(steps) > 0 {
		b.WriteString("\nsteps:\n")
		for _, s := range steps {
			fmt.Fprintf(&b, "  - at: %s\n    %s\n", millis(max(s.at.Sub(0), 0)), s.text)
		}
	}
	fmt.Fprintf(&b, "\nuntil: %s\n", millis(until))
	if _, err := scenarios.Parse(name+".yaml", b.Bytes()); err != nil {
		return nil, fmt.Errorf("the outline is no scenario: %w", err)
	}
	return b.Bytes(), nil
}

// restarted reports whether the server was away in between: such a silence is
// the server's.
func (o *Outline) restarted(from, to core.Time) bool {
	for _, at := range o.lives {
		if at > from && at <= to {
			return true
		}
	}
	return false
}

// share keeps the proportion of stores and retrieves within what a file takes.
func share(stores, loads int) (int, int) {
	for stores > 1000 || loads > 1000 {
		stores, loads = (stores+1)/2, (loads+1)/2
	}
	return stores, loads
}

func millis(d time.Duration) string { return scenarios.Seconds(d.Round(time.Millisecond)) }

// quoted writes a stranger's word so that YAML reads it back.
func quoted(s string) string {
	clean := make([]rune, 0, len(s))
	for _, r := range s {
		if len(clean) == 64 {
			break
		}
		if r >= ' ' && r != '"' && r != '\\' && r < 0x7f {
			clean = append(clean, r)
		}
	}
	return `"` + string(clean) + `"`
}
