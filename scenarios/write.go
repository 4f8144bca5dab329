package scenarios

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"vigil/core"
	"vigil/sim"
)

// The way back from a checked scenario to a file: what a search found, what a
// shrinker made smaller and what a tape drew become files that a person reads,
// edits and keeps. Parse of what Write wrote gives the same plan, the same
// expectations and the same breaks.

// Write returns the scenario as a file. The windows that the server and the
// workers live by are spelled out even where they are the defaults, so that
// the file means the same once the defaults have changed. comment, where
// given, stands in front, each a line. What a file says of real processes
// beside `skip` is left out.
func Write(s *Scenario, comment ...string) []byte {
	w := &writer{s: s}
	for _, c := range comment {
		for line := range strings.Lines(c) {
			w.b.WriteString(strings.TrimRight("# "+strings.TrimSpace(line), " ") + "\n")
		}
	}
	w.head()
	if s.Random == "" {
		w.section("config", w.config())
	}
	w.team()
	if s.Random == "" {
		w.steps()
	}
	fmt.Fprintf(&w.b, "\nuntil: %s\n", w.long(s.Plan.Until))
	if s.Random == "" {
		w.expectations()
		w.breaks()
	}
	w.covers()
	if s.RealSkip != "" {
		fmt.Fprintf(&w.b, "\nreal: {skip: %s}\n", quoted(s.RealSkip))
	}
	if _, variant, ok := strings.Cut(s.ID, "/"); ok {
		fmt.Fprintf(&w.b, "\nvariants:\n  %s: {}\n", word(variant))
	}
	return w.calm()
}

// writer writes one file.
type writer struct {
	b bytes.Buffer
	s *Scenario
}

func (w *writer) head() {
	s := w.s
	id, _, _ := strings.Cut(s.ID, "/")
	name, _, _ := strings.Cut(s.Name, "/")
	fmt.Fprintf(&w.b, "id: %s\nname: %s\ntitle: %s\n", word(id), word(name), quoted(s.Title))
	if s.Story != "" {
		w.b.WriteString("story: |\n")
		for line := range strings.Lines(s.Story) {
			line = strings.TrimRight(line, "\n")
			if line != "" {
				line = "  " + line
			}
			w.b.WriteString(line + "\n")
		}
	}
	if s.World {
		w.b.WriteString("world: true\n")
	}
	if s.Random != "" {
		fmt.Fprintf(&w.b, "random: %s\n", s.Random)
	}
}

// pair is one key of a mapping and its value as the file spells it.
type pair struct{ key, value string }

// pairs collects a mapping.
type pairs []pair

func (p *pairs) add(key, value string) { *p = append(*p, pair{key, value}) }

// addIf adds what is not as it would be without the key.
func (p *pairs) addIf(differs bool, key, value string) {
	if differs {
		p.add(key, value)
	}
}

// flow writes a mapping in one line.
func (p pairs) flow() string {
	parts := make([]string, len(p))
	for i := range p {
		parts[i] = p[i].key + ": " + p[i].value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// section writes a mapping under a key, one line each.
func (w *writer) section(key string, p pairs) {
	fmt.Fprintf(&w.b, "\n%s:\n", key)
	for i := range p {
		fmt.Fprintf(&w.b, "  %s: %s\n", p[i].key, p[i].value)
	}
}

// shared are the settings that all workers have from the config.
func (w *writer) shared() identity {
	c := core.DefaultWorkerConfig()
	id := identity{heartbeat: c.Interval, timeout: c.Timeout, pid: len(w.s.Plan.Workers) > 0}
	for i := range w.s.Plan.Workers {
		wp := &w.s.Plan.Workers[i]
		if i == 0 {
			id.heartbeat, id.timeout = wp.Config.Interval, wp.Config.Timeout
		}
		id.pid = id.pid && wp.PIDIdentity
	}
	return id
}

func (w *writer) config() pairs {
	plan, c, id := w.s.Plan, &w.s.Plan.Server, w.shared()
	normal := core.DefaultServerConfig()
	var p pairs
	p.add("reap", timeText(c.Reap))
	p.add("grace", timeText(c.Grace))
	p.add("heartbeat", timeText(id.heartbeat))
	p.add("timeout", timeText(id.timeout))
	p.addIf(id.pid, "ids", "pid")
	p.addIf(c.Legacy, "server", "old")
	p.addIf(plan.PlainServer, "server", "document")
	if !c.ServerDriven || !c.EngineDriven || !c.Blend {
		var modules []string
		for i, on := range []bool{c.ServerDriven, c.EngineDriven, c.Blend} {
			if on {
				modules = append(modules, moduleWords[i])
			}
		}
		p.add("modules", "["+strings.Join(modules, ", ")+"]")
	}
	p.addIf(c.ChunkTokens != normal.ChunkTokens, "chunk-tokens", fmt.Sprint(c.ChunkTokens))
	p.addIf(c.NormalSlots != normal.NormalSlots, "normal-slots", fmt.Sprint(c.NormalSlots))
	p.addIf(c.AffinityLanes != normal.AffinityLanes, "affinity-lanes", fmt.Sprint(c.AffinityLanes))
	p.addIf(c.L1Bytes != normal.L1Bytes, "l1-bytes", bytesText(c.L1Bytes))
	p.addIf(c.PoolBytes != normal.PoolBytes, "pool-bytes", bytesText(c.PoolBytes))
	p.addIf(plan.DeviceBytes != 0, "device-bytes", bytesText(plan.DeviceBytes))
	p.addIf(!plan.Latency.Zero(), "latency", spanText(plan.Latency))
	p.addIf(!plan.OpenTime.Zero(), "open-time", spanText(plan.OpenTime))
	p.addIf(!plan.CloseTime.Zero(), "close-time", spanText(plan.CloseTime))
	p.addIf(!plan.CopyTime.Zero(), "copy-time", spanText(plan.CopyTime))
	p.addIf(!plan.ServerStart.Zero(), "server-start", spanText(plan.ServerStart))
	p.addIf(plan.Prompts != 0, "prompts", fmt.Sprint(plan.Prompts))
	p.addIf(plan.PromptLow != 0, "prompt-tokens", fmt.Sprintf("%d..%d", plan.PromptLow, plan.PromptHigh))
	p.addIf(plan.BlockTokens != 0, "block-tokens", fmt.Sprint(plan.BlockTokens))
	p.addIf(plan.Proof, "proof-of-death", "true")
	var bounds pairs
	for i, name := range core.BoundNames {
		bounds.addIf(c.Bounds[i] != 0, name, fmt.Sprint(c.Bounds[i]))
	}
	p.addIf(len(bounds) > 0, "bounds", bounds.flow())
	return p
}

// crew is workers that are written as one: equal, and numbered from 1 on.
type crew struct {
	name string
	from int // index of the first
	n    int
	keys pairs
}

// team writes the workers: what all have stands under everyone.
func (w *writer) team() {
	crews := w.crews()
	w.b.WriteString("\nworkers:\n")
	if len(crews) > 1 {
		var all pairs
		for _, candidate := range crews[0].keys {
			everywhere := candidate.key != "pod"
			for i := range crews {
				everywhere = everywhere && contains(crews[i].keys.words(), candidate.key+": "+candidate.value)
			}
			if everywhere {
				all = append(all, candidate)
			}
		}
		if len(all) > 0 {
			fmt.Fprintf(&w.b, "  everyone: %s\n", all.flow())
			for i := range crews {
				crews[i].keys = crews[i].keys.less(all)
			}
		}
	}
	for i := range crews {
		c := &crews[i]
		if c.n > 1 {
			c.keys = append(pairs{{"count", fmt.Sprint(c.n)}}, c.keys...)
		}
		fmt.Fprintf(&w.b, "  %s: %s\n", word(c.name), c.keys.flow())
	}
}

func (p pairs) words() []string {
	out := make([]string, len(p))
	for i := range p {
		out[i] = p[i].key + ": " + p[i].value
	}
	return out
}

func (p pairs) less(other pairs) pairs {
	var out pairs
	for _, one := range p {
		if !contains(other.words(), one.key+": "+one.value) {
			out = append(out, one)
		}
	}
	return out
}

// crews gathers neighbours that differ in their number only.
func (w *writer) crews() []crew {
	workers, id := w.s.Plan.Workers, w.shared()
	var all []crew
	for i := 0; i < len(workers); {
		name := workers[i].Name
		c := crew{name: name, from: i, n: 1, keys: w.hand(i, id)}
		if base, one := strings.CutSuffix(name, "1"); one && base != "" {
			for i+c.n < len(workers) && w.follows(i, c.n, base) {
				c.n++
			}
			if c.n > 1 {
				c.name = base
			}
		}
		all = append(all, c)
		i += c.n
	}
	return all
}

// follows reports whether the nth worker after first differs from it in its
// number only.
func (w *writer) follows(first, n int, base string) bool {
	a, b := w.s.Plan.Workers[first], w.s.Plan.Workers[first+n]
	if b.Name != fmt.Sprintf("%s%d", base, n+1) {
		return false
	}
	own := a.Pod == first && b.Pod == first+n
	a.Name, b.Name = "", ""
	if own {
		a.Pod, b.Pod = 0, 0
	} else if a.Pod == first { // the one is in its own pod by default, the other is not
		return false
	}
	return a == b // memory of several groups is one worker's own
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// hand is one worker's own settings.
func (w *writer) hand(i int, id identity) pairs {
	wp := &w.s.Plan.Workers[i]
	c, normal := &wp.Config, core.DefaultWorkerConfig()
	var p pairs
	p.addIf(c.Mode != normal.Mode, "mode", modeWords[c.Mode%core.TransferMode(len(modeWords))])
	p.addIf(c.Model != normal.Model, "model", word(c.Model))
	p.addIf(c.Salt != "", "salt", word(c.Salt))
	p.addIf(c.WorldSize != normal.WorldSize, "world", fmt.Sprint(c.WorldSize))
	p.addIf(c.Rank != 0, "rank", fmt.Sprint(c.Rank))
	p.addIf(c.Blend, "blend", "true")
	p.addIf(c.Prober, "prober", "true")
	p.addIf(wp.Idle, "idle", "true")
	p.addIf(c.Legacy, "client", "old")
	p.addIf(wp.Plain, "client", "document")
	p.addIf(wp.PIDIdentity && !id.pid, "ids", "pid")
	p.addIf(wp.Pod != i, "pod", fmt.Sprint(wp.Pod))
	p.addIf(c.Interval != id.heartbeat, "heartbeat", timeText(c.Interval))
	p.addIf(!wp.Start.Zero(), "start", spanText(wp.Start))
	p.addIf(!wp.Warmup.Zero(), "warmup", spanText(wp.Warmup))
	if m := wp.Memory; m != nil {
		var keys pairs
		keys.addIf(len(m.Exports) > 0, "exports", exportsText(m.Exports))
		keys.add("groups", or(groupsText(m.Groups), "[]"))
		p.add("memory", keys.flow())
	} else if wp.Blocks != 0 || wp.BlockBytes != 0 {
		var m pairs
		m.addIf(wp.Blocks != 0, "blocks", fmt.Sprint(wp.Blocks))
		m.addIf(wp.BlockBytes != 0, "block-bytes", bytesText(uint64(wp.BlockBytes)))
		p.add("memory", m.flow())
	}
	p.addIf(!wp.Traffic.Every.Zero(), "traffic", w.traffic(&wp.Traffic))
	return p
}

func (w *writer) traffic(t *sim.Traffic) string {
	if (*t == sim.Traffic{Every: t.Every}) {
		return spanText(t.Every)
	}
	p := pairs{{"every", spanText(t.Every)}}
	if t.Stores != 0 || t.Retrieve != 0 {
		p.add("stores", fmt.Sprint(t.Stores))
		p.add("retrieves", fmt.Sprint(t.Retrieve))
	}
	p.addIf(t.From != 0, "from", w.long(t.From))
	p.addIf(t.To != 0, "to", w.long(t.To))
	return p.flow()
}

// calm adds when the last fault has ceased to act, where the file does not say
// so by its steps.
func (w *writer) calm() []byte {
	text := w.b.Bytes()
	if w.s.Random != "" {
		return text
	}
	if back, err := Parse("written", text); err == nil && back[0].Plan.FaultsOver == w.s.Plan.FaultsOver {
		return text
	}
	line := "calm: never # a fault may act to the end: nothing is owed by then\n"
	if over := w.s.Plan.FaultsOver; over > 0 {
		line = fmt.Sprintf("calm: %s # no fault acts from here on\n", w.long(over))
	}
	until := fmt.Sprintf("\nuntil: %s\n", w.long(w.s.Plan.Until))
	at := bytes.LastIndex(text, []byte(until)) + len(until)
	return append(append(append([]byte(nil), text[:at]...), line...), text[at:]...)
}

// long writes a time past the grace by it, where that is the plainer word.
func (w *writer) long(d time.Duration) string {
	grace := w.s.Plan.Server.Grace
	if w.s.Random == "" && d > grace && d-grace <= 1000*time.Second && grace >= 1000*time.Second {
		return "grace + " + timeText(d-grace)
	}
	return timeText(d)
}
