package run

import (
	"fmt"
	"strings"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
)

// finding is one expectation that came out wrong, or never came.
type finding struct {
	line   int
	kind   scenarios.ExpectKind
	missed bool // it never came to be judged, or not often enough
	at     core.Time
	actors []int
	text   string
}

// check is one expectation while a run goes on.
type check struct {
	e      *scenarios.Expectation
	counts []uint64    // of each worker (or one for all): how often it came
	last   []core.Time // of each worker: the anchor of took; whether order's By came
	since  bool        // happened: its Since came
	nth    int         // records that its When has still to see
	due    core.Time   // a state is judged once time passes this; Never before it is known
	until  core.Time   // and all through to this
	active bool
	judged bool
	failed bool // it is told once a run
}

// request is one request of an engine, as the world knows it.
type request struct {
	state  requestState
	worker int32
	at     core.Time
}

type requestState uint8

const (
	requestNone requestState = iota
	requestOpen
	requestEnded
	requestGone // its process died; nobody waits for it
)

// Judge decides the expectations of one scenario, run after run. It belongs to
// one goroutine; it allocates nothing at steady state but for what it finds.
type Judge struct {
	s        *scenarios.Scenario
	design   string
	arrivals bool // stamps are of arrival: the record's own time is too late

	lives    lives
	checks   []check
	wants    [256]bool
	byKind   [256][]int32 // checks that look at a kind of record
	states   []int32      // checks of a state
	requests []request
	ends     bool                  // some check looks at requests
	twice    bool                  // the request told of now was told of before
	answers  func(step int) string // what a raw client was answered in this run
	due      core.Time
	offset   core.Time // the world's time less the server's clock, as far as stamps tell

	findings []finding
	measures []Measure // of each check that has a window
}

// NewJudge returns the judge of a scenario under a design.
func NewJudge(s *scenarios.Scenario, design string, p core.Protections) *Judge {
	j := &Judge{s: s, design: design, arrivals: p.StampOnArrival && !s.Plan.PlainServer}
	want := func(kinds ...core.RecordKind) {
		for _, k := range kinds {
			j.wants[k] = true
		}
	}
	want(core.WorkerStarted, core.ProcessKilled, core.ProcessExited, core.Stamped, core.RegisterArrived, core.ContextInserted)
	holds := false
	for i := range s.Expect {
		e := &s.Expect[i]
		if e.Design != "" && e.Design != design {
			continue
		}
		n := int32(len(j.checks))
		look := func(kinds ...core.RecordKind) {
			want(kinds...)
			for _, k := range kinds {
				if l := j.byKind[k]; len(l) == 0 || l[len(l)-1] != n {
					j.byKind[k] = append(j.byKind[k], n)
				}
			}
		}
		switch e.Kind {
		case scenarios.ExpectReaped, scenarios.ExpectNotReaped:
			look(core.ContextRemoved)
		case scenarios.ExpectHolds, scenarios.ExpectHealth:
			holds = holds || e.Kind == scenarios.ExpectHolds
			j.states = append(j.states, n)
			if e.At.When != nil {
				look(e.At.When.Record)
			}
			if e.Kind == scenarios.ExpectHealth {
				want(core.HealthCleared, core.HealthSet)
			}
		case scenarios.ExpectHappened:
			if look(e.Match.Record); e.Since != nil {
				look(e.Since.Record)
			}
		case scenarios.ExpectOrder:
			look(e.By.Record, e.Match.Record)
		case scenarios.ExpectTook:
			look(e.From.Record, e.Match.Record)
		case scenarios.ExpectEnded:
			j.ends = true
			look(core.EngineTold)
			want(core.EngineSubmitted)
		case scenarios.ExpectAnswer:
			look(core.AnswerCame)
		}
		workers := 1
		if j.who(e).Worker == faults.Everyone {
			workers = len(s.Plan.Workers)
		}
		j.checks = append(j.checks, check{e: e, counts: make([]uint64, workers), last: make([]core.Time, workers)})
		j.measures = append(j.measures, Measure{Line: e.Line, Kind: e.Kind.String()})
	}
	if holds {
		want(holdKinds...)
	}
	j.Reset()
	return j
}

// who is whom an expectation is about.
func (j *Judge) who(e *scenarios.Expectation) scenarios.Who {
	switch e.Kind {
	case scenarios.ExpectHappened, scenarios.ExpectOrder, scenarios.ExpectTook:
		return e.Match.Who
	}
	return e.Who
}

// Reset forgets the run.
func (j *Judge) Reset() {
	j.lives.reset(len(j.s.Plan.Workers))
	j.requests, j.findings = j.requests[:0], j.findings[:0]
	j.offset = core.Never
	for i := range j.checks {
		c := &j.checks[i]
		clear(c.counts)
		for k := range c.last {
			c.last[k] = never
		}
		c.since, c.active, c.judged, c.failed = false, false, false, false
		c.due, c.until = core.Never, core.Never
		if c.e.At.When != nil {
			c.nth = max(1, c.e.At.When.Nth)
		} else if !c.e.At.End {
			c.due, c.until = core.Time(c.e.At.From), core.Time(c.e.At.To)
		}
	}
	j.next()
}

// next finds the earliest time at which a state has to be judged.
func (j *Judge) next() {
	j.due = core.Never
	for _, n := range j.states {
		if c := &j.checks[n]; !c.judged {
			j.due = min(j.due, c.due)
		}
	}
}

// slot is where a check counts for a worker.
func (c *check) slot(worker int32) int {
	if len(c.counts) == 1 || worker < 0 {
		return 0
	}
	return int(worker)
}

func (j *Judge) find(c *check, missed bool, at core.Time, actors []int, format string, args ...any) {
	if c.failed {
		return
	}
	c.failed = true
	j.findings = append(j.findings, finding{c.e.Line, c.e.Kind, missed, at, actors, fmt.Sprintf(format, args...)})
}

func is(who scenarios.Who, worker, number int32) bool {
	return (who.Worker == faults.Everyone || int32(who.Worker) == worker) && (who.Life == 0 || int32(who.Life) == number)
}

// matches reports whether a record is one that m picks.
func (j *Judge) matches(m *scenarios.Match, r *core.Record, worker, number int32) bool {
	return r.Kind == m.Record && is(m.Who, worker, number) &&
		(m.Context == core.NoContext || m.Context == r.Context) &&
		(!m.HasFlag || m.Flag == r.Flag) && (!m.HasFailure || m.Failure == r.Failure) &&
		(!m.HasA || m.A == r.A) && (!m.HasB || m.B == r.B)
}

// Observe takes one record of a run.
func (j *Judge) Observe(r *core.Record) {
	if r.At > j.due {
		j.passed(r.At)
	} else if r.At == j.due && (r.Kind == core.ProcessKilled || r.Kind == core.ProcessExited) {
		j.passed(r.At + 1) // what a process did last is judged before it takes all with it
	}
	if !j.wants[r.Kind] {
		return
	}
	if r.Kind == core.WorkerStarted {
		j.lives.begin(int(r.Actor)-int(core.FirstWorker), r.Instance)
	}
	worker, at := j.lives.find(r)
	number := int32(0)
	if at >= 0 {
		number = j.lives.all[at].number
	}
	j.follow(r, worker, at)
	for _, n := range j.byKind[r.Kind] {
		j.look(&j.checks[n], int(n), r, worker, at, number)
	}
	for _, n := range j.states {
		if c := &j.checks[n]; c.active {
			j.state(c, r.At)
		}
	}
}

// follow keeps the picture of the world that the expectations are judged on.
func (j *Judge) follow(r *core.Record, worker, at int32) {
	switch r.Kind {
	case core.Stamped:
		j.stamped(r, at)
	case core.RegisterArrived:
		if at >= 0 {
			j.lives.all[at].register = r.At
		}
	case core.ProcessKilled, core.ProcessExited:
		if r.A == 0 {
			j.lives.serverGone()
			j.offset = core.Never
			return
		}
		if at >= 0 {
			j.lives.all[at].died = r.At
		}
		for i := range j.requests {
			if q := &j.requests[i]; q.worker == worker && q.state == requestOpen {
				q.state = requestGone
			}
		}
	case core.HealthCleared, core.HealthSet:
		if worker >= 0 {
			j.lives.healthy[worker] = r.Kind == core.HealthSet
		}
	case core.EngineSubmitted:
		if j.ends && r.A < 1<<24 {
			for uint64(len(j.requests)) <= r.A {
				j.requests = append(j.requests, request{})
			}
			j.requests[r.A] = request{requestOpen, worker, r.At}
		}
	case core.EngineTold:
		if r.A < uint64(len(j.requests)) && core.Outcome(r.B) != core.OutcomeFreed {
			q := &j.requests[r.A]
			if j.twice = q.state == requestEnded; q.state == requestOpen {
				q.state = requestEnded
			}
		}
	default:
		j.lives.hold(r)
	}
}

// stamped keeps an entry's last stamp in the world's time. Where stamps are of
// arrival, the record comes later than its stamp, and the server's clock is
// told from the stamp that was written soonest.
func (j *Judge) stamped(r *core.Record, at int32) {
	if at < 0 {
		return
	}
	l := &j.lives.all[at]
	switch {
	case core.StampCause(r.B) == core.StampRegister && l.register != never:
		l.stamp = l.register
	case !j.arrivals:
		l.stamp = r.At
	default:
		j.offset = min(j.offset, r.At-core.Time(r.A))
		l.stamp = core.Time(r.A) + j.offset
	}
}

// look shows one record to one check that asked for its kind.
func (j *Judge) look(c *check, n int, r *core.Record, worker, at, number int32) {
	e := c.e
	switch e.Kind {
	case scenarios.ExpectReaped:
		if byReaper(r) && is(e.Who, worker, number) {
			c.counts[c.slot(worker)]++
			j.reaped(c, n, r, worker, at)
		}
	case scenarios.ExpectNotReaped:
		if byReaper(r) && is(e.Who, worker, number) {
			j.find(c, false, r.At, []int{int(worker)}, "%s was reaped", j.s.WorkerName(int(worker)))
		}
	case scenarios.ExpectHolds, scenarios.ExpectHealth:
		if c.nth > 0 && j.matches(e.At.When, r, worker, number) {
			if c.nth--; c.nth == 0 {
				c.due, c.until = r.At, r.At
				j.next()
			}
		}
	case scenarios.ExpectHappened:
		if e.Since != nil && !c.since {
			if c.since = j.matches(e.Since, r, worker, number); c.since || e.Since.Record == r.Kind {
				return
			}
		}
		if (e.Since == nil || c.since) && j.matches(&e.Match, r, worker, number) &&
			(!e.HasDuring || e.During.Contains(r.At.Sub(0))) {
			c.counts[0]++
			if c.counts[0] > e.Times.High {
				j.find(c, false, r.At, known(worker), "%s came %d times, %s are expected", describe(&e.Match, j.s), c.counts[0], times(e.Times))
			}
		}
	case scenarios.ExpectOrder:
		s := c.slot(worker)
		if j.matches(&e.By, r, worker, number) {
			c.last[s] = r.At
		}
		if j.matches(&e.Match, r, worker, number) {
			if c.counts[s]++; c.last[s] == never {
				j.find(c, false, r.At, known(worker), "%s came without %s before it", describe(&e.Match, j.s), describe(&e.By, j.s))
			}
			c.last[s] = never
		}
	case scenarios.ExpectTook:
		s := c.slot(worker)
		if j.matches(&e.Match, r, worker, number) && c.last[s] != never {
			c.counts[s]++
			took := r.At - c.last[s]
			j.measure(n, took)
			if c.last[s] = never; !e.Within.Contains(took.Sub(0)) {
				j.find(c, false, r.At, known(worker), "%s came %s after %s; within %s is expected",
					describe(&e.Match, j.s), scenarios.Seconds(took.Sub(0)), describe(&e.From, j.s), e.Within.String())
			}
		}
		if j.matches(&e.From, r, worker, number) {
			c.last[s] = r.At
		}
	case scenarios.ExpectEnded:
		j.ended(c, n, r)
	case scenarios.ExpectAnswer:
		if int(r.A) != e.Step {
			return
		}
		c.counts[0]++
		if got := j.answers(e.Step); !scenarios.AnswerFits(e.Answer, got) {
			j.find(c, false, r.At, nil, "%s was answered %q; %q is expected", j.s.Words(e.Step), got, e.Answer)
		}
	}
}

func byReaper(r *core.Record) bool {
	return core.RemovalCause(r.A) == core.RemovedByReaper || core.RemovalCause(r.A) == core.RemovedByProof
}

func (j *Judge) reaped(c *check, n int, r *core.Record, worker, at int32) {
	e := c.e
	if !e.HasWithin || at < 0 {
		return
	}
	l := &j.lives.all[at]
	since := [...]core.Time{scenarios.SinceLastStamp: l.stamp, scenarios.SinceRegister: l.register, scenarios.SinceDeath: l.died}[e.After]
	name := j.s.WorkerName(int(worker))
	if since == never {
		j.find(c, false, r.At, []int{int(worker)}, "%s was reaped without a %s before it", name, scenarios.AnchorNames[e.After])
		return
	}
	took := r.At - since
	j.measure(n, took)
	if !e.Within.Contains(took.Sub(0)) {
		j.find(c, false, r.At, []int{int(worker)}, "%s was reaped %s after its %s; within %s is expected",
			name, scenarios.Seconds(took.Sub(0)), scenarios.AnchorNames[e.After], e.Within.String())
	}
}

func (j *Judge) measure(n int, took core.Time) {
	m := &j.measures[n]
	if m.Count == 0 || took < m.Min {
		m.Min = took
	}
	if m.Count == 0 || took > m.Max {
		m.Max = took
	}
	m.Count++
}

// ended is an engine being told of a request.
func (j *Judge) ended(c *check, n int, r *core.Record) {
	e := c.e
	if r.A >= uint64(len(j.requests)) || core.Outcome(r.B) == core.OutcomeFreed {
		return // that is no end
	}
	q := &j.requests[r.A]
	if q.state == requestNone || q.state == requestGone || e.Who.Worker != faults.Everyone && int32(e.Who.Worker) != q.worker ||
		e.HasDuring && !e.During.Contains(q.at.Sub(0)) {
		return
	}
	name := j.s.WorkerName(int(q.worker))
	if j.twice {
		j.find(c, false, r.At, []int{int(q.worker)}, "%s was told twice of its request %d", name, r.A)
	}
	c.counts[c.slot(q.worker)]++
	took := r.At - q.at
	if e.HasWithin {
		j.measure(n, took)
		if !e.Within.Contains(took.Sub(0)) {
			j.find(c, false, r.At, []int{int(q.worker)}, "%s: request %d ended after %s; within %s is expected",
				name, r.A, scenarios.Seconds(took.Sub(0)), e.Within.String())
		}
	}
	if len(e.Among) > 0 {
		for _, o := range e.Among {
			if o == core.Outcome(r.B) {
				return
			}
		}
		j.find(c, false, r.At, []int{int(q.worker)}, "%s: request %d ended as %s, which is not expected", name, r.A, core.Outcome(r.B))
	}
}

// passed judges the states whose time has passed.
func (j *Judge) passed(now core.Time) {
	for _, n := range j.states {
		c := &j.checks[n]
		if c.judged {
			continue
		}
		if !c.active && now > c.due {
			c.active = true
			j.state(c, c.due)
		}
		if c.active && now > c.until {
			c.active, c.judged = false, true
		}
	}
	j.next()
	for _, n := range j.states {
		if c := &j.checks[n]; c.active {
			j.due = min(j.due, c.until)
		}
	}
}

// state judges one state as it is now.
func (j *Judge) state(c *check, at core.Time) {
	e := c.e
	for w := range j.s.Plan.Workers {
		if e.Who.Worker != faults.Everyone && e.Who.Worker != w || e.Who.Worker == faults.Everyone && j.s.Plan.Workers[w].Config.Prober {
			continue
		}
		name := j.s.WorkerName(w)
		if e.Kind == scenarios.ExpectHealth {
			if j.lives.healthy[w] != e.Healthy {
				j.find(c, false, at, []int{w}, "%s is %s at %s", name, healthWord(!e.Healthy), scenarios.Seconds(at.Sub(0)))
			}
			continue
		}
		for h := scenarios.Holding(0); h < scenarios.Holdings; h++ {
			if !e.Holds[h].Set {
				continue
			}
			if held := j.lives.held(int32(w), int32(e.Who.Life), h); held < 0 || !e.Holds[h].Count.Contains(uint64(held)) {
				j.find(c, false, at, []int{w}, "%s has %d %s at %s; %s are expected",
					name, held, scenarios.HoldingNames[h], scenarios.Seconds(at.Sub(0)), times(e.Holds[h].Count))
			}
		}
	}
}

func healthWord(healthy bool) string {
	if healthy {
		return "healthy"
	}
	return "unhealthy"
}

// Finish judges what was still open when the run ended.
func (j *Judge) Finish(end core.Time) {
	j.passed(end)
	if j.ends {
		j.unended(end)
	}
	for i := range j.checks {
		c := &j.checks[i]
		e := c.e
		switch e.Kind {
		case scenarios.ExpectHolds, scenarios.ExpectHealth:
			switch {
			case e.At.End:
				j.state(c, end)
			case c.due != core.Never && !c.judged && !c.active:
				j.state(c, end)
			case c.due == core.Never:
				j.find(c, true, end, nil, "%s never came, so that nothing was judged", describe(e.At.When, j.s))
			}
		case scenarios.ExpectAnswer:
			if c.counts[0] == 0 && e.Answer != scenarios.Silence {
				j.find(c, true, end, nil, "%s got no answer; %q is expected", j.s.Words(e.Step), e.Answer)
			}
		case scenarios.ExpectNotReaped:
			j.hadContext(c, end)
		case scenarios.ExpectHappened:
			if e.Since != nil && !c.since {
				j.find(c, true, end, nil, "%s never came, so that nothing was judged", describe(e.Since, j.s))
			} else if c.counts[0] < e.Times.Low {
				j.find(c, true, end, nil, "%s came %d times, %s are expected", describe(&e.Match, j.s), c.counts[0], times(e.Times))
			}
		case scenarios.ExpectReaped:
			j.often(c, end, "was reaped")
		case scenarios.ExpectOrder, scenarios.ExpectTook:
			j.total(c, end)
		case scenarios.ExpectEnded:
			j.often(c, end, "had requests that ended")
		}
	}
}

// hadContext sees that what was never reaped was there to be reaped.
func (j *Judge) hadContext(c *check, end core.Time) {
	for w := range j.s.Plan.Workers {
		if !j.asked(c, w) {
			continue
		}
		had := false
		for i := range j.lives.all {
			if l := &j.lives.all[i]; int(l.worker) == w && is(c.e.Who, l.worker, l.number) {
				had = had || l.had
			}
		}
		if !had {
			j.find(c, true, end, []int{w}, "%s never had a context that could have been reaped", j.s.WorkerName(w))
		}
	}
}

// asked reports whether a check is about a worker; probers hold nothing, so
// `everyone` leaves them out.
func (j *Judge) asked(c *check, worker int) bool {
	if c.e.Who.Worker == faults.Everyone {
		return !j.s.Plan.Workers[worker].Config.Prober
	}
	return c.e.Who.Worker == worker
}

// often sees that something came as often as it should for each worker.
func (j *Judge) often(c *check, end core.Time, what string) {
	for w := range j.s.Plan.Workers {
		if !j.asked(c, w) {
			continue
		}
		if n := c.counts[c.slot(int32(w))]; !c.e.Times.Contains(n) {
			j.find(c, n < c.e.Times.Low, end, []int{w}, "%s %s %d times, %s are expected", j.s.WorkerName(w), what, n, times(c.e.Times))
		}
	}
}

// total sees that something came as often as it should, all together.
func (j *Judge) total(c *check, end core.Time) {
	var n uint64
	for _, k := range c.counts {
		n += k
	}
	if !c.e.Times.Contains(n) {
		j.find(c, n < c.e.Times.Low, end, nil, "%s came %d times, %s are expected", describe(&c.e.Match, j.s), n, times(c.e.Times))
	}
}

// unended finds the requests that nobody was told of.
func (j *Judge) unended(end core.Time) {
	for id := range j.requests {
		q := &j.requests[id]
		if q.state != requestOpen {
			continue
		}
		for i := range j.checks {
			c := &j.checks[i]
			e := c.e
			if e.Kind != scenarios.ExpectEnded || e.Who.Worker != faults.Everyone && int32(e.Who.Worker) != q.worker ||
				e.HasDuring && !e.During.Contains(q.at.Sub(0)) || e.HasWithin && end.Sub(q.at) <= e.Within.High {
				continue
			}
			j.find(c, true, end, []int{int(q.worker)}, "%s was never told of its request %d, submitted at %s",
				j.s.WorkerName(int(q.worker)), id, scenarios.Seconds(q.at.Sub(0)))
		}
	}
}

func known(worker int32) []int {
	if worker < 0 {
		return nil
	}
	return []int{int(worker)}
}

// times writes a count as files do.
func times(c scenarios.Count) string {
	switch {
	case c.Low == c.High:
		return fmt.Sprint(c.Low)
	case c.High == ^uint64(0):
		return fmt.Sprintf("%d..", c.Low)
	}
	return fmt.Sprintf("%d..%d", c.Low, c.High)
}

// describe says what a match picks: "context-removed of w1".
func describe(m *scenarios.Match, s *scenarios.Scenario) string {
	var b strings.Builder
	b.WriteString(m.Record.String())
	if m.Who.Worker != faults.Everyone {
		b.WriteString(" of " + s.WorkerName(m.Who.Worker))
	}
	if m.Who.Life > 0 {
		fmt.Fprintf(&b, "#%d", m.Who.Life)
	}
	if m.HasFailure {
		b.WriteString(" (" + m.Failure.String() + ")")
	}
	return b.String()
}
