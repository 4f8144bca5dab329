package scenarios

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// Load reads the scenarios of one file: the story itself, or each of its
// variants.
func Load(path string) ([]*Scenario, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// One byte more than the bound, so that Parse sees that it is passed.
	data := make([]byte, 0, 16<<10)
	for len(data) <= MaxFileBytes {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := file.Read(data[len(data):min(cap(data), MaxFileBytes+1)])
		data = data[:len(data)+n]
		if n == 0 || err != nil {
			break
		}
	}
	return Parse(path, data)
}

// Parse reads the scenarios of one file's bytes; name is for errors, each of
// which is a *Problem.
func Parse(name string, data []byte) ([]*Scenario, error) {
	root, problem := parseTree(name, data)
	if problem != nil {
		return nil, problem
	}
	variants := root.get("variants")
	if variants == nil {
		s, problem := build(name, root, "")
		if problem != nil {
			return nil, problem
		}
		return []*Scenario{s}, nil
	}
	d := decoder{file: name}
	if variants.kind != mapNode || len(variants.keys) == 0 || len(variants.keys) > MaxVariants {
		d.fail(variants, "variants must be a mapping of 1 to %d names to what each changes", MaxVariants)
		return nil, d.problem
	}
	base := without(root, "variants")
	var all []*Scenario
	for i, k := range variants.keys {
		over := variants.items[i]
		if d.name(k, "a variant's name"); over.kind != nullNode {
			d.mapping(over, "a variant", without(&node{kind: mapNode, keys: keysOf(rootKeys)}, "id", "name", "variants").words()...)
		}
		if d.bad() {
			return nil, d.problem
		}
		tree := base
		if over.kind == mapNode {
			tree = overlay(base, over)
		}
		s, problem := build(name, tree, k.text)
		if problem != nil {
			return nil, problem
		}
		all = append(all, s)
	}
	return all, nil
}

func keysOf(words []string) []*node {
	keys := make([]*node, len(words))
	for i, w := range words {
		keys[i] = &node{kind: scalarNode, text: w}
	}
	return keys
}

func (n *node) words() []string {
	out := make([]string, len(n.keys))
	for i, k := range n.keys {
		out[i] = k.text
	}
	return out
}

// without is a mapping less some keys.
func without(n *node, keys ...string) *node {
	if n.kind != mapNode {
		return n
	}
	out := *n
	out.keys, out.items = nil, nil
	for i, k := range n.keys {
		if contains(keys, k.text) {
			continue
		}
		out.keys = append(out.keys, k)
		if i < len(n.items) {
			out.items = append(out.items, n.items[i])
		}
	}
	return &out
}

var rootKeys = []string{
	"id", "name", "title", "story", "world", "config", "workers", "steps", "more-steps",
	"until", "calm", "expect", "more-expect", "breaks", "covers", "real", "random", "variants",
}

// realKeys are what a file may say otherwise of a run with real processes,
// beside `skip`: real time is dear, so that a window may be shorter there.
var realKeys = []string{
	"config", "workers", "steps", "more-steps", "until", "calm", "expect", "more-expect", "breaks",
}

// name reads a word that ids, files and command lines can carry.
func (d *decoder) name(n *node, what string) string {
	got := d.word(n, what)
	if d.bad() {
		return got
	}
	for i := 0; i < len(got); i++ {
		c := got[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digit(c) || c == '-' && i > 0 || c == '_') {
			d.failAt(n, i, "%s may hold letters, digits, - and _ only; got %q", what, clip(got))
			break
		}
	}
	return got
}

// build reads one scenario from its tree.
func build(file string, root *node, variant string) (*Scenario, *Problem) {
	d := decoder{file: file, workers: map[string]int{}}
	s := &Scenario{File: file, Plan: &sim.Plan{}}
	if d.mapping(root, "a scenario", rootKeys...) {
		d.head(root, s, variant)
		ids := d.config(root.get("config"), s.Plan)
		d.team(d.need(root, "a scenario", "workers"), s.Plan, ids)
		s.Plan.Until = d.positive(d.need(root, "a scenario", "until"), "until")
		d.names.set("until", s.Plan.Until)
		d.steps(root, s)
		d.calm(root.get("calm"), s)
		d.expectations(root, s)
		d.breaks(root.get("breaks"), s)
		d.covers(root.get("covers"), s)
	}
	if d.bad() {
		return nil, d.problem
	}
	if v := root.get("real"); v != nil {
		if p := s.real(file, root, v, variant); p != nil {
			return nil, p
		}
	}
	if s.RealSkip == "" && len(d.askers) > 0 {
		s.RealSkip = "what raw clients ask is played in the simulator only"
	}
	return s, nil
}

// real reads what the file says of a run with real processes.
func (s *Scenario) real(file string, root, over *node, variant string) *Problem {
	d := decoder{file: file}
	if !d.mapping(over, "real", append([]string{"skip"}, realKeys...)...) {
		return d.problem
	}
	if v := over.get("skip"); v != nil {
		s.RealSkip = d.text(v, "skip", maxText)
	}
	if d.bad() {
		return d.problem
	}
	own := without(over, "skip")
	if len(own.keys) == 0 {
		return nil
	}
	r, problem := build(file, overlay(without(root, "real"), own), variant)
	if problem != nil {
		return problem
	}
	r.RealSkip, s.Real = s.RealSkip, r
	return nil
}

func (d *decoder) head(root *node, s *Scenario, variant string) {
	s.ID = d.name(d.need(root, "a scenario", "id"), "id")
	s.Name = d.name(d.need(root, "a scenario", "name"), "name")
	if variant != "" {
		s.ID, s.Name = s.ID+"/"+variant, s.Name+"/"+variant
	}
	s.Title = d.text(d.need(root, "a scenario", "title"), "title", maxText)
	if v := root.get("story"); v != nil {
		s.Story = d.text(v, "story", maxText)
	}
	if v := root.get("world"); v != nil {
		s.World = d.boolean(v, "world")
	}
	if v := root.get("random"); v != nil {
		s.Random = Menus[d.choice(v, "random", Menus)]
		for _, key := range []string{"config", "steps", "more-steps", "expect", "more-expect", "breaks", "calm"} {
			if k := root.get(key); k != nil {
				d.fail(k, "a random world draws its own %s: the file has only workers and until", key)
			}
		}
	}
}

// identity is what the configuration says of all workers.
type identity struct {
	pid                bool
	heartbeat, timeout time.Duration
	chunk              int
}

var configKeys = []string{
	"reap", "grace", "heartbeat", "timeout", "ids", "server", "modules", "chunk-tokens", "normal-slots",
	"affinity-lanes", "l1-bytes", "pool-bytes", "latency", "open-time", "close-time", "copy-time", "server-start",
	"device-bytes", "prompts", "prompt-tokens", "block-tokens", "proof-of-death", "bounds",
}

// versionWords are what a server and a worker can be: of the design that is
// played, from before liveness, or the design document's.
var versionWords = []string{"new", "old", "document"}

var moduleWords = []string{"server-driven", "engine-driven", "blend"}

func (d *decoder) config(n *node, p *sim.Plan) identity {
	c := core.DefaultServerConfig()
	worker := core.DefaultWorkerConfig()
	id := identity{heartbeat: worker.Interval, timeout: worker.Timeout}
	if n == nil || n.kind == nullNode {
		n = &node{kind: mapNode, line: 1, column: 1}
	}
	if !d.mapping(n, "config", configKeys...) {
		return id
	}
	if v := n.get("reap"); v != nil {
		c.Reap = d.time(v, "reap")
	}
	d.names.set("reap", c.Reap)
	d.names.set("scan", c.Scan())
	if v := n.get("grace"); v != nil {
		c.Grace = d.time(v, "grace")
	}
	d.names.set("grace", c.Grace)
	if v := n.get("heartbeat"); v != nil {
		id.heartbeat = d.positive(v, "heartbeat")
	}
	d.names.set("heartbeat", id.heartbeat)
	if v := n.get("timeout"); v != nil {
		id.timeout = d.positive(v, "timeout")
	}
	d.names.set("timeout", id.timeout)
	if v := n.get("ids"); v != nil {
		id.pid = d.choice(v, "ids", []string{"uuid", "pid"}) == 1
	}
	if v := n.get("server"); v != nil {
		of := d.choice(v, "server", versionWords)
		c.Legacy, p.PlainServer = of == 1, of == 2
	}
	if v := n.get("modules"); v != nil {
		c.ServerDriven, c.EngineDriven, c.Blend = false, false, false
		for _, item := range d.list(v, "modules", len(moduleWords)) {
			*[]*bool{&c.ServerDriven, &c.EngineDriven, &c.Blend}[d.choice(item, "a module", moduleWords)] = true
		}
	}
	for _, whole := range []struct {
		key  string
		into *int
		low  uint64
		high uint64
	}{
		{"chunk-tokens", &c.ChunkTokens, 1, core.MaxChunkTokens},
		{"normal-slots", &c.NormalSlots, 1, core.MaxSlots},
		{"affinity-lanes", &c.AffinityLanes, 1, core.MaxLanes},
		{"prompts", &p.Prompts, 1, 1 << 20},
		{"block-tokens", &p.BlockTokens, 1, core.MaxChunkTokens},
	} {
		if v := n.get(whole.key); v != nil {
			*whole.into = int(d.number(v, whole.key, whole.low, whole.high))
		}
	}
	id.chunk = c.ChunkTokens
	for _, span := range []struct {
		key  string
		into *faults.Span
	}{
		{"latency", &p.Latency}, {"open-time", &p.OpenTime}, {"close-time", &p.CloseTime},
		{"copy-time", &p.CopyTime}, {"server-start", &p.ServerStart},
	} {
		if v := n.get(span.key); v != nil {
			*span.into = d.span(v, span.key)
		}
	}
	start := p.ServerStart
	if start.Zero() {
		start.High = 2 * time.Second // the simulator's default
	}
	d.names.set("server-start", start.High)
	if v := n.get("l1-bytes"); v != nil {
		c.L1Bytes = d.bytes(v, "l1-bytes")
	}
	if v := n.get("pool-bytes"); v != nil {
		c.PoolBytes = d.bytes(v, "pool-bytes")
	}
	if v := n.get("bounds"); v != nil {
		c.Bounds = d.bounds(v)
	}
	if v := n.get("proof-of-death"); v != nil {
		p.Proof = d.boolean(v, "proof-of-death")
	}
	if v := n.get("device-bytes"); v != nil {
		p.DeviceBytes = d.bytes(v, "device-bytes")
	}
	if v := n.get("prompt-tokens"); v != nil {
		r := d.count(v, "prompt-tokens", func(n *node, what string) uint64 { return d.number(n, what, 1, core.MaxChunkTokens) })
		if r.High == math.MaxUint64 {
			d.fail(v, "prompt-tokens must be a number or a range with both ends")
		}
		p.PromptLow, p.PromptHigh = int(r.Low), int(min(r.High, core.MaxChunkTokens))
	}
	if err := c.Validate(); err != nil {
		where := n
		for _, key := range []string{"grace", "reap"} {
			if v := n.get(key); v != nil {
				where = v
			}
		}
		d.fail(where, "%s", oneLine(err.Error()))
	}
	p.Server = c
	return id
}

// bounds reads what the server's bounds are lowered to.
func (d *decoder) bounds(n *node) (b core.Bounds) {
	if d.mapping(n, "bounds", core.BoundNames[:]...) {
		for i, name := range core.BoundNames {
			if v := n.get(name); v != nil {
				b[i] = d.number(v, name, 1, maxNumber)
			}
		}
	}
	return b
}

var workerKeys = []string{
	"count", "mode", "model", "salt", "world", "rank", "pod", "blend", "start", "warmup", "traffic",
	"prober", "idle", "client", "ids", "memory", "heartbeat",
}

var modeWords = []string{"server-driven", "engine-driven"}

func (d *decoder) team(n *node, p *sim.Plan, id identity) {
	if d.bad() {
		return
	}
	if n.kind != mapNode {
		d.fail(n, "workers must be a mapping of names, not %s", n.kind)
		return
	}
	shared := n.get(everyone)
	for i, k := range n.keys {
		if k.text == everyone {
			continue
		}
		name := d.name(k, "a worker's name")
		if name == "server" || name == "end" {
			d.fail(k, "a worker cannot be called %s", name)
		}
		item := n.items[i]
		if item.kind == nullNode {
			item = &node{kind: mapNode, line: item.line, column: item.column}
		}
		if shared != nil && shared.kind == mapNode && item.kind == mapNode {
			item = overlay(shared, item)
		}
		count, w := d.hand(item, name, id)
		if d.bad() {
			return
		}
		if len(p.Workers)+count > MaxWorkers {
			d.fail(k, "the world has more than %d workers", MaxWorkers)
			return
		}
		pod := w.Pod
		for j := 1; j <= count; j++ {
			w.Name, w.Pod = name, pod
			if count > 1 {
				w.Name = fmt.Sprintf("%s%d", name, j)
			}
			if pod < 0 { // each worker in a pod of its own
				w.Pod = len(p.Workers)
			}
			if _, twice := d.workers[w.Name]; twice {
				d.fail(k, "two workers are called %s", w.Name)
				return
			}
			d.workers[w.Name] = len(p.Workers)
			d.order = append(d.order, w.Name)
			p.Workers = append(p.Workers, w)
		}
	}
	if len(p.Workers) == 0 {
		d.fail(n, "a world needs at least one worker")
	}
}

// hand reads one worker and how many of it there are.
func (d *decoder) hand(n *node, name string, id identity) (int, sim.WorkerPlan) {
	c := core.DefaultWorkerConfig()
	c.Interval, c.Timeout, c.ChunkTokens = id.heartbeat, id.timeout, id.chunk
	w := sim.WorkerPlan{PIDIdentity: id.pid, Pod: -1}
	count := 1
	if !d.mapping(n, "worker "+clip(name), workerKeys...) {
		return 0, w
	}
	if v := n.get("count"); v != nil {
		count = int(d.number(v, "count", 1, MaxWorkers))
	}
	if v := n.get("mode"); v != nil {
		c.Mode = core.TransferMode(d.choice(v, "mode", modeWords))
	}
	if v := n.get("model"); v != nil {
		c.Model = d.word(v, "model")
	}
	if v := n.get("salt"); v != nil {
		c.Salt = d.word(v, "salt")
	}
	if v := n.get("world"); v != nil {
		c.WorldSize = int(d.number(v, "world", 1, 1<<16))
	}
	if v := n.get("rank"); v != nil {
		c.Rank = int(d.number(v, "rank", 0, 1<<16))
		if c.Rank >= c.WorldSize {
			d.fail(v, "rank must be below world (%d); got %d", c.WorldSize, c.Rank)
		}
	}
	if v := n.get("pod"); v != nil {
		w.Pod = int(d.number(v, "pod", 0, MaxWorkers))
	}
	if v := n.get("blend"); v != nil {
		c.Blend = d.boolean(v, "blend")
	}
	if v := n.get("start"); v != nil {
		w.Start = d.span(v, "start")
	}
	if v := n.get("warmup"); v != nil {
		w.Warmup = d.span(v, "warmup")
	}
	if v := n.get("heartbeat"); v != nil {
		c.Interval = d.positive(v, "heartbeat")
	}
	if v := n.get("prober"); v != nil {
		c.Prober = d.boolean(v, "prober")
	}
	if v := n.get("idle"); v != nil {
		w.Idle = d.boolean(v, "idle")
	}
	if v := n.get("client"); v != nil {
		of := d.choice(v, "client", versionWords)
		c.Legacy, w.Plain = of == 1, of == 2
	}
	if v := n.get("ids"); v != nil {
		w.PIDIdentity = d.choice(v, "ids", []string{"uuid", "pid"}) == 1
	}
	if v := n.get("memory"); v != nil {
		d.memory(v, &w)
	}
	if v := n.get("traffic"); v != nil {
		d.traffic(v, &w.Traffic)
	}
	w.Config = c
	if err := c.Validate(); err != nil {
		d.fail(n, "worker %s: %s", clip(name), oneLine(err.Error()))
	}
	return count, w
}

// memory reads the shape of an engine's memory: blocks of one tensor, or
// several tensors in groups.
func (d *decoder) memory(n *node, w *sim.WorkerPlan) {
	if n.get("exports") == nil && n.get("groups") == nil {
		if !d.mapping(n, "memory", "blocks", "block-bytes", "exports", "groups") {
			return
		}
		if b := n.get("blocks"); b != nil {
			w.Blocks = int(d.number(b, "blocks", 1, 1<<24))
		}
		if b := n.get("block-bytes"); b != nil {
			w.BlockBytes = int(min(d.bytes(b, "block-bytes"), 1<<32))
		}
		return
	}
	if d.mapping(n, "memory with exports or groups", "exports", "groups") {
		w.Memory = &sim.Memory{Exports: d.exports(n.get("exports"), "exports"), Groups: d.groups(n.get("groups"), "groups")}
	}
}

// traffic reads `30s` or a mapping.
func (d *decoder) traffic(n *node, t *sim.Traffic) {
	if n.kind == scalarNode {
		t.Every = d.span(n, "traffic")
	} else if d.mapping(n, "traffic", "every", "stores", "retrieves", "from", "to") {
		t.Every = d.span(d.need(n, "traffic", "every"), "every")
		if v := n.get("stores"); v != nil {
			t.Stores = int(d.number(v, "stores", 0, 1000))
		}
		if v := n.get("retrieves"); v != nil {
			t.Retrieve = int(d.number(v, "retrieves", 0, 1000))
		}
		if v := n.get("from"); v != nil {
			t.From = d.time(v, "from")
		}
		if v := n.get("to"); v != nil {
			if t.To = d.positive(v, "to"); !d.bad() && t.To <= t.From {
				d.fail(v, "traffic ends at %s, before it begins at %s", Seconds(t.To), Seconds(t.From))
			}
		}
	}
	if !d.bad() && t.Every.Low == 0 {
		d.fail(n, "traffic needs more than 0s from one request to the next")
	}
}

// calm is when the last fault has ceased to act: liveness is owed from then.
func (d *decoder) calm(n *node, s *Scenario) {
	if d.bad() {
		return
	}
	p := s.Plan
	if n != nil && n.kind == scalarNode && n.text == "never" {
		return // liveness is owed at no time: a fault may act to the end
	}
	if n != nil {
		if p.FaultsOver = d.positive(n, "calm"); !d.bad() && p.FaultsOver > p.Until {
			d.fail(n, "calm (%s) is after until (%s)", Seconds(p.FaultsOver), Seconds(p.Until))
		}
		return
	}
	latest := make([]time.Duration, len(p.Steps))
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.When != nil {
			if step.Do.Kind == sim.ActFault {
				d.problem = &Problem{d.file, s.Steps[i].Line, 1, "a fault that waits for a record strikes at no known time; say with `calm:` when the last fault has ceased to act"}
				return
			}
			latest[i] = -1
			continue
		}
		latest[i] = step.At.High
		if step.After > 0 {
			if latest[step.After-1] < 0 {
				if step.Do.Kind == sim.ActFault {
					d.problem = &Problem{d.file, s.Steps[i].Line, 1, "a fault that waits for a record strikes at no known time; say with `calm:` when the last fault has ceased to act"}
					return
				}
				latest[i] = -1
				continue
			}
			latest[i] += latest[step.After-1]
		}
		if step.Do.Kind == sim.ActFault {
			over := latest[i] + step.Do.Fault.For.High
			if f := step.Do.Fault.Kind; f == faults.ServerRestart && step.Do.Fault.For.Zero() {
				over += d.named("server-start")
			}
			p.FaultsOver = max(p.FaultsOver, over)
		}
	}
	p.FaultsOver = min(max(p.FaultsOver, 1), p.Until)
}

func (d *decoder) named(name string) time.Duration {
	for i, n := range d.names.names {
		if n == name {
			return d.names.values[i]
		}
	}
	return 0
}

func (d *decoder) breaks(n *node, s *Scenario) {
	if n == nil || n.kind == nullNode || !d.mapping(n, "breaks", Designs...) {
		return
	}
	for i, design := range n.keys {
		items := []*node{n.items[i]}
		switch n.items[i].kind {
		case nullNode:
			continue
		case listNode:
			items = d.list(n.items[i], "breaks", 64)
		}
		for _, item := range items {
			if !d.mapping(item, "a break", "invariant", "seeds", "actors") {
				return
			}
			b := Break{Line: item.line, Design: design.text}
			b.Invariant = Invariants[d.choice(d.need(item, "a break", "invariant"), "invariant", Invariants)]
			b.All = d.choice(d.need(item, "a break", "seeds"), "seeds", []string{"some", "all"}) == 1
			if v := item.get("actors"); v != nil {
				for _, a := range d.list(v, "actors", 1000) {
					if strings.TrimSpace(a.text) == "server" {
						b.Actors = append(b.Actors, faults.Server)
						continue
					}
					b.Actors = append(b.Actors, d.worker(a, "an actor", false))
				}
			}
			for _, other := range s.Breaks {
				if other.Design == b.Design && other.Invariant == b.Invariant {
					d.fail(item, "%s is declared twice for %s", b.Invariant, b.Design)
				}
			}
			s.Breaks = append(s.Breaks, b)
		}
	}
}
