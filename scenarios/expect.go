package scenarios

import (
	"math"

	"vigil/core"
	"vigil/faults"
)

// The expectations of a file: each item of `expect` has one key that says its
// kind, and may be tied to one design with `under`.

var someTimes = Count{1, math.MaxUint64}

func (d *decoder) expectations(root *node, s *Scenario) {
	items := d.list(root.get("expect"), "expect", MaxExpect)
	items = append(items[:len(items):len(items)], d.list(root.get("more-expect"), "more-expect", MaxExpect)...)
	if len(items) > MaxExpect {
		d.fail(items[MaxExpect], "a scenario may have %d expectations", MaxExpect)
	}
	valid := append([]string{"under"}, ExpectNames...)
	for _, item := range items {
		if d.bad() {
			return
		}
		if item.kind != mapNode {
			d.fail(item, "an expectation must be a mapping such as `reaped: {worker: w1}`, not %s", item.kind)
			return
		}
		kind := -1
		for i, k := range item.keys {
			switch {
			case k.text == "under":
			case !contains(ExpectNames, k.text):
				d.fail(k, "there is no expectation %q%s", clip(k.text), didYouMean(k.text, valid))
				return
			case kind >= 0:
				d.fail(k, "an expectation has one kind; this one has %s and %s", item.keys[kind].text, k.text)
				return
			default:
				kind = i
			}
		}
		if kind < 0 {
			d.fail(item, "an expectation needs a kind such as reaped, holds or happened")
			return
		}
		e := Expectation{Line: item.line, Who: Who{Worker: faults.Everyone}}
		if v := item.get("under"); v != nil {
			e.Design = Designs[d.choice(v, "under", Designs)]
		}
		for k, name := range ExpectNames {
			if name == item.keys[kind].text {
				e.Kind = ExpectKind(k)
			}
		}
		d.expectation(item.items[kind], &e, s)
		s.Expect = append(s.Expect, e)
	}
}

func (d *decoder) expectation(n *node, e *Expectation, s *Scenario) {
	what := e.Kind.String()
	if n.kind == scalarNode && (e.Kind == ExpectReaped || e.Kind == ExpectNotReaped || e.Kind == ExpectEnded) {
		e.Who = d.who(n, what)
		n = &node{kind: mapNode, line: n.line, column: n.column}
	}
	e.Times = someTimes
	switch e.Kind {
	case ExpectReaped:
		e.Times = Count{1, 1}
		if !d.mapping(n, what, "worker", "after", "within", "times") {
			return
		}
		if v := n.get("after"); v != nil {
			e.After = Anchor(d.choice(v, "after", AnchorNames))
		}
	case ExpectNotReaped:
		if !d.mapping(n, what, "worker") {
			return
		}
	case ExpectHolds:
		if !d.mapping(n, what, append([]string{"worker", "at", "when"}, HoldingNames...)...) {
			return
		}
		d.at(n, e, s)
		some := false
		for h, name := range HoldingNames {
			v := n.get(name)
			if v == nil {
				continue
			}
			some, e.Holds[h].Set = true, true
			if Holding(h) == HeldBytes {
				e.Holds[h].Count = d.count(v, name, d.bytes)
			} else {
				e.Holds[h].Count = d.times(v, name)
			}
		}
		if !some {
			d.fail(n, "holds needs what is held, such as contexts: 1")
		}
	case ExpectHealth:
		if !d.mapping(n, what, "worker", "is", "at", "when") {
			return
		}
		d.at(n, e, s)
		e.Healthy = d.choice(d.need(n, what, "is"), "is", []string{"unhealthy", "healthy"}) == 1
	case ExpectHappened:
		e.Match = d.match(n, what, "times", "during", "since")
		if v := n.get("since"); v != nil && !d.bad() {
			m := d.match(v, "since")
			e.Since = &m
		}
	case ExpectOrder:
		if !d.mapping(n, what, "each", "by", "times") {
			return
		}
		e.Match = d.match(d.need(n, what, "each"), "each")
		if !d.bad() {
			e.By = d.match(d.need(n, what, "by"), "by")
		}
	case ExpectTook:
		if !d.mapping(n, what, "from", "to", "within", "times") {
			return
		}
		e.From = d.match(d.need(n, what, "from"), "from")
		if !d.bad() {
			e.Match = d.match(d.need(n, what, "to"), "to")
		}
		d.need(n, what, "within")
	case ExpectEnded:
		if !d.mapping(n, what, "worker", "among", "within", "during", "times") {
			return
		}
		if v := n.get("among"); v != nil {
			for _, item := range d.list(v, "among", 16) {
				e.Among = append(e.Among, core.Outcome(d.choice(item, "an outcome", outcomeNames())))
			}
		}
	}
	if d.bad() {
		return
	}
	switch e.Kind {
	case ExpectReaped, ExpectNotReaped, ExpectHolds, ExpectHealth, ExpectEnded:
		if v := n.get("worker"); v != nil {
			e.Who = d.who(v, "worker")
		}
	}
	if v := n.get("within"); v != nil {
		e.HasWithin, e.Within = true, d.window(v, "within")
	}
	if v := n.get("during"); v != nil {
		e.HasDuring, e.During = true, d.window(v, "during")
		if !d.bad() && e.During.Low > s.Plan.Until {
			d.fail(v, "during begins after until (%s)", Seconds(s.Plan.Until))
		}
	}
	if v := n.get("times"); v != nil {
		e.Times = d.times(v, "times")
	}
}

// at reads when a state is judged.
func (d *decoder) at(n *node, e *Expectation, s *Scenario) {
	at, when := n.get("at"), n.get("when")
	switch {
	case at != nil && when != nil:
		d.fail(when, "%s has either `at` or `when`", e.Kind)
	case when != nil:
		m := d.match(when, "when")
		e.At.When = &m
	case at == nil || at.kind == scalarNode && at.text == "end":
		e.At.End = true
	default:
		span := d.span(at, "at")
		if e.At.From, e.At.To = span.Low, span.High; !d.bad() && span.High >= s.Plan.Until {
			d.fail(at, "at (%s) is not before until (%s); the end itself is `end`", Seconds(span.High), Seconds(s.Plan.Until))
		}
	}
}
