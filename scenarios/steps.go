package scenarios

import (
	"strconv"
	"strings"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// The steps of a story. Each says when, and then exactly one verb: an action
// of an engine, or a fault by its name in the faults table.

var actionVerbs = []string{"register", "store", "retrieve", "lookup", "shutdown", "traffic", "reallocate", "unregister", "ask"}

var actionKinds = []sim.ActionKind{
	sim.ActRegister, sim.ActStore, sim.ActRetrieve, sim.ActLookup, sim.ActShutdown, sim.ActTraffic,
	sim.ActReallocate, sim.ActUnregister, sim.ActAsk,
}

var timeKeys = []string{"at", "when", "after", "label", "maybe"}

// Verbs lists every verb that a step can have.
func Verbs() []string { return append(append([]string(nil), actionVerbs...), faults.Names()...) }

// VerbOf is the word of a file for what a step does.
func VerbOf(do *sim.Action) string {
	for i, kind := range actionKinds {
		if kind == do.Kind {
			return actionVerbs[i]
		}
	}
	return do.Fault.Kind.String()
}

func (d *decoder) steps(root *node, s *Scenario) {
	items := d.list(root.get("steps"), "steps", MaxSteps)
	items = append(items[:len(items):len(items)], d.list(root.get("more-steps"), "more-steps", MaxSteps)...)
	if len(items) > MaxSteps {
		d.fail(items[MaxSteps], "a scenario may have %d steps", MaxSteps)
	}
	labels := map[string]int{}
	verbs := Verbs()
	known := append(append([]string(nil), timeKeys...), verbs...)
	for _, item := range items {
		if d.bad() {
			return
		}
		if item.kind != mapNode {
			d.fail(item, "a step must be a mapping with a time and a verb, not %s", item.kind)
			return
		}
		verb := -1
		for i, k := range item.keys {
			switch {
			case contains(timeKeys, k.text):
			case !contains(verbs, k.text):
				d.fail(k, "there is no verb %q%s", clip(k.text), didYouMean(k.text, known))
				return
			case verb >= 0:
				d.fail(k, "a step has one verb; this one has %s and %s", item.keys[verb].text, k.text)
				return
			default:
				verb = i
			}
		}
		if verb < 0 {
			d.fail(item, "a step needs a verb such as store, kill or cut")
			return
		}
		step := sim.Step{}
		note := StepNote{Line: item.line, Verb: item.keys[verb].text}
		d.moment(item, s, labels, &step)
		if item.keys[verb].text == "ask" {
			step.Do = sim.Action{Kind: sim.ActAsk, Worker: faults.Server, Prompt: -1, Ask: d.ask(item.items[verb], s, len(s.Plan.Steps))}
		} else {
			d.act(item.keys[verb], item.items[verb], s.Plan, &step.Do)
		}
		note.Fault = step.Do.Kind == sim.ActFault
		if v := item.get("maybe"); v != nil {
			note.Maybe = d.boolean(v, "maybe")
		}
		if v := item.get("label"); v != nil {
			note.Label = d.name(v, "label")
			if _, twice := labels[note.Label]; twice {
				d.fail(v, "two steps are called %s", note.Label)
			}
			labels[note.Label] = len(s.Plan.Steps)
		}
		s.Plan.Steps, s.Steps = append(s.Plan.Steps, step), append(s.Steps, note)
	}
}

// moment reads when a step strikes.
func (d *decoder) moment(item *node, s *Scenario, labels map[string]int, step *sim.Step) {
	at, when, after := item.get("at"), item.get("when"), item.get("after")
	switch {
	case at != nil && when != nil:
		d.fail(when, "a step has either `at` or `when`; a time after `when` is said with `after`")
	case at != nil && after != nil:
		d.fail(after, "`after` belongs to `when`; a step with `at` has its time already")
	case at == nil && when == nil:
		d.fail(item, "a step needs a time: `at` (a time or range) or `when` (a record or an earlier step)")
	}
	if d.bad() {
		return
	}
	if at != nil {
		step.At = d.span(at, "at")
		if !d.bad() && step.At.High > s.Plan.Until {
			d.fail(at, "the step's time (%s) is after until (%s)", Seconds(step.At.High), Seconds(s.Plan.Until))
		}
		return
	}
	if after != nil {
		step.At = d.span(after, "after")
	}
	if when.kind == mapNode && when.get("step") != nil {
		if d.mapping(when, "when", "step") {
			name := d.word(when.get("step"), "step")
			i, ok := labels[name]
			if !ok && !d.bad() {
				var names []string
				for l := range s.Steps {
					if s.Steps[l].Label != "" {
						names = append(names, s.Steps[l].Label)
					}
				}
				d.fail(when.get("step"), "no earlier step has the label %q%s", clip(name), didYouMean(name, names))
			}
			step.After = i + 1
		}
		return
	}
	if !d.mapping(when, "when", "record", "worker", "nth", "step") {
		return
	}
	t := sim.Trigger{Record: d.record(d.need(when, "when", "record")), Worker: faults.Server}
	if v := when.get("worker"); v != nil {
		t.Worker = d.worker(v, "worker", true)
	}
	if v := when.get("nth"); v != nil {
		t.Nth = int(d.number(v, "nth", 1, maxNumber))
	}
	step.When = &t
}

// act reads one verb and what it is given.
func (d *decoder) act(key, value *node, p *sim.Plan, do *sim.Action) {
	if d.bad() {
		return
	}
	if desc, ok := faults.Named(key.text); ok {
		do.Kind = sim.ActFault
		d.fault(desc, value, &do.Fault)
		do.Worker = do.Fault.Worker
		if desc.Setting && !d.bad() {
			setting(&do.Fault, p)
		}
		return
	}
	for i, verb := range actionVerbs {
		if verb == key.text {
			do.Kind = actionKinds[i]
		}
	}
	do.Prompt = -1
	if value.kind == scalarNode {
		do.Worker, do.On = d.worker(value, key.text, false), true
		return
	}
	valid := []string{"worker"}
	switch do.Kind {
	case sim.ActStore, sim.ActLookup:
		valid = append(valid, "prompt")
	case sim.ActRetrieve:
		valid = append(valid, "prompt", "skip")
	case sim.ActTraffic:
		valid = append(valid, "on")
	}
	if do.Kind == sim.ActStore || do.Kind == sim.ActRetrieve {
		valid = append(valid, "from", "to", "blocks")
	}
	if value.kind == nullNode {
		d.fail(key, "%s needs a worker", key.text)
		return
	}
	if !d.mapping(value, key.text, valid...) {
		return
	}
	do.Worker, do.On = d.worker(d.need(value, key.text, "worker"), "worker", false), true
	if v := value.get("prompt"); v != nil {
		prompts := p.Prompts
		if prompts == 0 {
			prompts = 32 // the simulator's default
		}
		do.Prompt = int(d.number(v, "prompt", 0, uint64(prompts-1)))
	}
	do.Part = d.part(value)
	if v := value.get("on"); v != nil {
		do.On = d.boolean(v, "on")
	}
}

// part reads what of a prompt an engine asks for; nil where it is all of it. It
// may ask for what is not there, or with blocks that do not fit: what becomes
// of that is a story too.
func (d *decoder) part(n *node) *sim.Part {
	p := &sim.Part{}
	some := false
	for _, of := range []struct {
		key  string
		into *int
	}{{"from", &p.From}, {"to", &p.To}, {"skip", &p.Skip}} {
		if v := n.get(of.key); v != nil {
			some, *of.into = true, int(min(max(d.signed(v, of.key), -maxTokens), maxTokens))
		}
	}
	if v := n.get("blocks"); v != nil {
		var ask sim.Ask
		readBlocks(d, v, "blocks", &ask)
		some, p.Blocks = true, append([]uint32{}, ask.Request.Blocks...)
	}
	if !some {
		return nil
	}
	return p
}

// maxTokens bounds the tokens that a step may name, far above a prompt's.
const maxTokens = 1 << 30

// fault reads the parameters that the faults table names.
func (d *decoder) fault(desc *faults.Description, value *node, f *faults.Fault) {
	f.Kind, f.Worker = desc.Kind, faults.Server
	if desc.Target == faults.OnHost {
		f.Worker = faults.Everyone
	}
	onWorker := desc.Target == faults.OnWorker
	valid := desc.ParamNames()
	if desc.Target != faults.OnServer {
		valid = append([]string{"worker"}, valid...)
	}
	switch {
	case value.kind == scalarNode && onWorker:
		f.Worker = d.worker(value, desc.Name, true)
		value = &node{kind: mapNode, line: value.line, column: value.column}
	case value.kind == scalarNode && len(desc.Params) > 0 && desc.Params[0].Required:
		// The one thing that a server's fault cannot do without.
		d.param(&desc.Params[0], desc.Name, value, f)
		return
	case value.kind == nullNode:
		value = &node{kind: mapNode, line: value.line, column: value.column}
		fallthrough
	default:
		if !d.mapping(value, desc.Name, valid...) {
			return
		}
		if onWorker {
			f.Worker = d.worker(d.need(value, desc.Name, "worker"), "worker", true)
		} else if v := value.get("worker"); v != nil { // the host of one worker, that the server is not on
			f.Worker = d.worker(v, "worker", true)
		}
	}
	for i := range desc.Params {
		param := &desc.Params[i]
		v := value.get(param.Name)
		if v == nil {
			if param.Required {
				d.fail(value, "%s needs `%s` (%s): %s", desc.Name, param.Name, param.Unit, param.Meaning)
			}
			continue
		}
		d.param(param, param.Name, v, f)
	}
}

// setting lays a fault that is a property of the whole run into the plan.
func setting(f *faults.Fault, p *sim.Plan) {
	for i := range p.Workers {
		if f.Worker != faults.Everyone && f.Worker != i {
			continue
		}
		switch f.Kind {
		case faults.OldClient:
			p.Workers[i].Config.Legacy = true
		case faults.PIDIdentity:
			p.Workers[i].PIDIdentity = true
		}
	}
	if f.Kind == faults.OldServer {
		p.Server.Legacy = true
	}
}

func (d *decoder) param(p *faults.Param, what string, v *node, f *faults.Fault) {
	switch p.Field {
	case faults.FieldFor, faults.FieldAmount:
		span := d.span(v, what)
		if !d.bad() && span.High == 0 {
			d.fail(v, "%s must be more than 0s", what)
		}
		*p.Span(f) = span
	case faults.FieldCount:
		f.Count = int(d.number(v, what, 1, maxNumber))
	case faults.FieldWays:
		f.Ways = core.CutWays(d.choice(v, what, faults.WaysWords))
	case faults.FieldReset:
		f.Reset = d.choice(v, what, faults.BreakWords) == 1
	case faults.FieldSilent, faults.FieldSame:
		*p.Switch(f) = d.boolean(v, what)
	case faults.FieldBytes:
		f.Bytes = d.bytes(v, what)
	}
}

// Words says what a step does, for stories: "kill w1".
func (s *Scenario) Words(step int) string {
	if step < 0 || step >= len(s.Steps) {
		return "a step that is not in the file"
	}
	var b strings.Builder
	b.WriteString(s.Steps[step].Verb)
	do := &s.Plan.Steps[step].Do
	if do.Kind == sim.ActAsk {
		b.WriteString(" " + requestOf(do.Ask.Request.Type).name)
		switch a := do.Ask; {
		case a.Of > 0:
			b.WriteString(" for " + s.WorkerName(a.Of-1))
		case a.Request.Instance != 0:
			b.WriteString(" for instance " + strconv.FormatUint(uint64(a.Request.Instance), 10))
		}
	}
	if do.Worker != faults.Server {
		b.WriteString(" " + s.WorkerName(do.Worker))
	}
	return b.String()
}
