package scenarios

import (
	"fmt"
	"math"
	"strings"

	"vigil/faults"
	"vigil/sim"
)

// The story of a written file: its steps, what must come, and what is known to
// break.

// labels names the steps that others follow.
func (w *writer) labels() []string {
	labels := make([]string, len(w.s.Plan.Steps))
	taken := map[string]bool{}
	for i := range labels {
		if i < len(w.s.Steps) {
			labels[i] = w.s.Steps[i].Label
			taken[labels[i]] = true
		}
	}
	for i := range w.s.Plan.Steps {
		to := w.s.Plan.Steps[i].After - 1
		if to < 0 || labels[to] != "" {
			continue
		}
		for n := to + 1; labels[to] == ""; n += len(labels) {
			if name := fmt.Sprintf("step%d", n); !taken[name] {
				labels[to], taken[name] = name, true
			}
		}
	}
	return labels
}

func (w *writer) steps() {
	plan := w.s.Plan
	if len(plan.Steps) == 0 {
		return
	}
	labels := w.labels()
	w.b.WriteString("\nsteps:\n")
	for i := range plan.Steps {
		step := &plan.Steps[i]
		var p pairs
		switch {
		case step.When != nil:
			m := pairs{{"record", step.When.Record.String()}}
			m.addIf(step.When.Worker != faults.Server, "worker", w.worker(step.When.Worker))
			m.addIf(step.When.Nth != 0, "nth", fmt.Sprint(step.When.Nth))
			p.add("when", m.flow())
			p.addIf(!step.At.Zero(), "after", spanText(step.At))
		case step.After > 0:
			p.add("when", pairs{{"step", word(labels[step.After-1])}}.flow())
			p.addIf(!step.At.Zero(), "after", spanText(step.At))
		case step.At.Low == step.At.High:
			p.add("at", w.long(step.At.Low))
		default:
			p.add("at", spanText(step.At))
		}
		p.addIf(labels[i] != "", "label", word(labels[i]))
		if step.Do.Kind == sim.ActAsk {
			p.add("ask", w.ask(i))
		} else {
			p.add(w.verb(&step.Do))
		}
		p.addIf(i < len(w.s.Steps) && w.s.Steps[i].Maybe, "maybe", "true")
		for k := range p {
			lead := "    "
			if k == 0 {
				lead = "  - "
			}
			fmt.Fprintf(&w.b, "%s%s: %s\n", lead, p[k].key, p[k].value)
		}
	}
}

// verb is what a step does and to whom.
func (w *writer) verb(do *sim.Action) (verb, value string) {
	if do.Kind == sim.ActFault {
		return w.fault(&do.Fault)
	}
	verb = VerbOf(do)
	p := pairs{{"worker", w.worker(do.Worker)}}
	switch do.Kind {
	case sim.ActStore, sim.ActRetrieve, sim.ActLookup:
		p.addIf(do.Prompt >= 0, "prompt", fmt.Sprint(do.Prompt))
		if part := do.Part; part != nil {
			// One key is needed, or it is the whole prompt again.
			p.addIf(part.From != 0 || part.To == 0 && part.Skip == 0 && part.Blocks == nil, "from", fmt.Sprint(part.From))
			p.addIf(part.To != 0, "to", fmt.Sprint(part.To))
			p.addIf(part.Skip != 0, "skip", fmt.Sprint(part.Skip))
			if part.Blocks != nil {
				p.add("blocks", blocksText(part.Blocks, []int{len(part.Blocks)}))
			}
		}
	case sim.ActTraffic:
		p.add("on", fmt.Sprint(do.On))
	}
	if len(p) == 1 {
		return verb, p[0].value
	}
	return verb, p.flow()
}

func (w *writer) fault(f *faults.Fault) (verb, value string) {
	desc, _ := faults.Describe(f.Kind)
	var p pairs
	target := desc.Target == faults.OnWorker || desc.Target == faults.OnHost && f.Worker != faults.Everyone
	if target {
		p.add("worker", w.worker(f.Worker))
	}
	for i := range desc.Params {
		param := &desc.Params[i]
		set, text := false, ""
		switch param.Field {
		case faults.FieldFor, faults.FieldAmount:
			span := *param.Span(f)
			set, text = !span.Zero(), spanText(span)
		case faults.FieldCount:
			set, text = f.Count != 0, fmt.Sprint(f.Count)
		case faults.FieldWays:
			set, text = f.Ways != 0, faults.WaysWords[f.Ways]
		case faults.FieldReset:
			set = f.Reset
			text = faults.BreakWords[1]
		case faults.FieldSilent, faults.FieldSame:
			set, text = *param.Switch(f), "true"
		case faults.FieldBytes:
			set, text = f.Bytes != 0, bytesText(f.Bytes)
		}
		p.addIf(set || param.Required, param.Name, text)
	}
	// What stands alone stands without brackets.
	if len(p) == 1 && (target || desc.Params[0].Required && p[0].key == desc.Params[0].Name) {
		return desc.Name, p[0].value
	}
	return desc.Name, p.flow()
}

func (w *writer) expectations() {
	first := true
	for i := range w.s.Expect {
		e := &w.s.Expect[i]
		if e.Kind == ExpectAnswer { // said in its step
			continue
		}
		if first {
			w.b.WriteString("\nexpect:\n")
			first = false
		}
		lead := "  - "
		if e.Design != "" {
			fmt.Fprintf(&w.b, "  - under: %s\n", e.Design)
			lead = "    "
		}
		fmt.Fprintf(&w.b, "%s%s: %s\n", lead, e.Kind, w.expectation(e).flow())
	}
}

func (w *writer) expectation(e *Expectation) pairs {
	var p pairs
	switch e.Kind {
	case ExpectReaped, ExpectNotReaped, ExpectHolds, ExpectHealth, ExpectEnded:
		p.add("worker", w.who(e.Who))
	}
	switch e.Kind {
	case ExpectReaped:
		p.addIf(e.After != SinceLastStamp, "after", AnchorNames[e.After])
	case ExpectHolds:
		for h, name := range HoldingNames {
			if !e.Holds[h].Set {
				continue
			}
			one := decimal
			if Holding(h) == HeldBytes {
				one = bytesText
			}
			p.add(name, countText(e.Holds[h].Count, one))
		}
		p = append(p, w.moment(e)...)
	case ExpectHealth:
		p.add("is", [...]string{"unhealthy", "healthy"}[flagIndex(e.Healthy)])
		p = append(p, w.moment(e)...)
	case ExpectHappened:
		p = w.match(&e.Match)
		if e.Since != nil {
			p.add("since", w.match(e.Since).flow())
		}
	case ExpectOrder:
		p.add("each", w.match(&e.Match).flow())
		p.add("by", w.match(&e.By).flow())
	case ExpectTook:
		p.add("from", w.match(&e.From).flow())
		p.add("to", w.match(&e.Match).flow())
	case ExpectEnded:
		if len(e.Among) > 0 {
			words := make([]string, len(e.Among))
			for i, o := range e.Among {
				words[i] = o.String()
			}
			p.add("among", "["+strings.Join(words, ", ")+"]")
		}
	}
	if e.HasWithin {
		p.add("within", w.window(&e.Within))
	}
	if e.HasDuring {
		p.add("during", w.window(&e.During))
	}
	normal := Count{1, math.MaxUint64}
	if e.Kind == ExpectReaped {
		normal = Count{1, 1}
	}
	switch e.Kind {
	case ExpectNotReaped, ExpectHolds, ExpectHealth:
	default:
		p.addIf(e.Times != normal, "times", countText(e.Times, decimal))
	}
	return p
}

func flagIndex(v bool) int {
	if v {
		return 1
	}
	return 0
}

// moment is when a state is judged.
func (w *writer) moment(e *Expectation) pairs {
	switch {
	case e.At.End:
		return nil
	case e.At.When != nil:
		return pairs{{"when", w.match(e.At.When).flow()}}
	}
	return pairs{{"at", spanText(faults.Span{Low: e.At.From, High: e.At.To})}}
}

func (w *writer) covers() {
	if len(w.s.Covers) == 0 {
		return
	}
	w.b.WriteString("\ncovers:\n")
	for _, design := range append([]string{""}, Designs...) {
		var p pairs
		for kind, key := range coverKeys {
			var names []string
			for i := range w.s.Covers {
				if c := &w.s.Covers[i]; c.Design == design && c.Kind == CoverKind(kind) {
					names = append(names, c.Name)
				}
			}
			if len(names) > 0 {
				p.add(key, "["+strings.Join(names, ", ")+"]")
			}
		}
		switch {
		case len(p) == 0:
		case design != "":
			fmt.Fprintf(&w.b, "  %s: %s\n", design, p.flow())
		default:
			for _, pair := range p {
				fmt.Fprintf(&w.b, "  %s: %s\n", pair.key, pair.value)
			}
		}
	}
}

func (w *writer) breaks() {
	if len(w.s.Breaks) == 0 {
		return
	}
	w.b.WriteString("\nbreaks:\n")
	for _, design := range Designs {
		first := true
		for i := range w.s.Breaks {
			b := &w.s.Breaks[i]
			if b.Design != design {
				continue
			}
			if first {
				fmt.Fprintf(&w.b, "  %s:\n", design)
				first = false
			}
			p := pairs{{"invariant", b.Invariant}, {"seeds", [...]string{"some", "all"}[flagIndex(b.All)]}}
			if len(b.Actors) > 0 {
				names := make([]string, len(b.Actors))
				for k, a := range b.Actors {
					names[k] = word(w.s.WorkerName(a)) // WorkerName says server of the server
				}
				p.add("actors", "["+strings.Join(names, ", ")+"]")
			}
			fmt.Fprintf(&w.b, "    - %s\n", p.flow())
		}
	}
}
