package monitor

import "vigil/core"

// What one life of a worker has written so far.

type workerLog struct {
	started bool
	lastUID uint64 // plus one
	// The message of each kind that is on its way, its uid plus one; 0 is none.
	ping        uint64
	registers   [2]message // the engine's, the recovery's
	unregisters [2]message // memory, rope
	heartbeat   bool       // started
	stopped     bool       // the heartbeat
	recovering  bool
	recovered   bool // the last recovery ended well
	unhealthy   bool
	enrolled    bool // the engine's own register succeeded
	leaving     bool
	gone        bool
	requests    pool[requestLog] // by the engine's request
	told        core.Record      // the last finished-reported
	submitted   core.Record      // the last submit of the engine that is not claimed yet
}

type message struct {
	uid     uint64 // plus one; 0 is none
	context core.ContextKind
}

// requestLog is one request of an engine.
type requestLog struct {
	uid      uint64 // of the last message, plus one
	store    bool
	resolved bool
	good     bool // resolved with yes
	dropped  bool
	held     bool
}

func (w *workerLog) reset() {
	requests := w.requests
	requests.reset()
	*w = workerLog{requests: requests}
}

// sent notes a message's uid: they count up through a life.
func (w *workerLog) sent(l *Log, who int32, r *core.Record, uid uint64) {
	if uid+1 <= w.lastUID {
		l.wrong(r, who, "its message %d comes after message %d", uid, w.lastUID-1)
	}
	w.lastUID = uid + 1
}

func (w *workerLog) claim(l *Log, who int32, r *core.Record) {
	if w.gone || !w.started && r.Kind != core.WorkerStarted {
		l.wrong(r, who, "it has stopped, or it has not started")
		w.started = true
	}
	switch r.Kind {
	case core.WorkerStarted:
		w.reset()
		w.started = true
	case core.HeartbeatStarted:
		if w.heartbeat {
			l.wrong(r, who, "its heartbeat runs")
		}
		w.heartbeat = true
	case core.PingSent:
		if !w.heartbeat || w.stopped {
			l.wrong(r, who, "it has no heartbeat")
		}
		if w.ping != 0 {
			l.wrong(r, who, "of the ping before it nothing is told")
		}
		w.sent(l, who, r, r.A)
		w.ping = r.A + 1
	case core.PingAnswered, core.PingFailed:
		if w.ping != r.A+1 {
			l.wrong(r, who, "ping %d is not on its way", r.A)
		}
		if r.Kind == core.PingFailed && r.Failure == core.NoFailure {
			l.wrong(r, who, "it does not say why")
		}
		w.ping = 0
	case core.RegisterSent:
		m := &w.registers[index(r.Flag)]
		if m.uid != 0 {
			l.wrong(r, who, "of the one before it nothing is told")
		}
		w.sent(l, who, r, r.A)
		*m = message{r.A + 1, r.Context}
	case core.RegisterEnded:
		m := &w.registers[index(r.Flag)]
		if (*m != message{r.A + 1, r.Context}) {
			l.wrong(r, who, "register %d of %s is not on its way", r.A, r.Context)
		}
		*m = message{}
		w.enrolled = w.enrolled || !r.Flag && r.Failure == core.NoFailure
	case core.RecoveryBegan, core.RecoveryEnded:
		if w.recovering == (r.Kind == core.RecoveryBegan) {
			l.wrong(r, who, "the recovery before it has not ended, or there is none")
		}
		w.recovering, w.recovered = r.Kind == core.RecoveryBegan, r.Flag
	case core.HealthSet, core.HealthCleared:
		if w.unhealthy == (r.Kind == core.HealthCleared) {
			l.wrong(r, who, "it is so already")
		}
		if r.Kind == core.HealthSet && !w.recovered {
			l.wrong(r, who, "no recovery ended well before it")
		}
		w.unhealthy = r.Kind == core.HealthCleared
	case core.Submitted, core.RequestSent, core.RequestResolved, core.RequestDropped, core.FinishedReported:
		w.request(l, who, r)
	case core.ShutdownBegan:
		w.leaving = true
	case core.HeartbeatStopped:
		if !w.leaving || !w.heartbeat || w.stopped {
			l.wrong(r, who, "there is no heartbeat to stop")
		}
		w.stopped = true
	case core.UnregisterSent:
		if !w.leaving || w.heartbeat && !w.stopped {
			l.wrong(r, who, "it does not leave, or its heartbeat has not stopped")
		}
		w.sent(l, who, r, r.A)
		w.unregisters[index(r.Context == core.RopeState)] = message{r.A + 1, r.Context}
	case core.UnregisterEnded:
		m := &w.unregisters[index(r.Context == core.RopeState)]
		if (*m != message{r.A + 1, r.Context}) {
			l.wrong(r, who, "unregister %d of %s is not on its way", r.A, r.Context)
		}
		*m = message{}
	case core.WorkerStopped:
		if w.unregisters[0].uid != 0 || w.unregisters[1].uid != 0 {
			l.wrong(r, who, "of its goodbye nothing is told")
		}
		w.gone = true
	}
}

func index(second bool) int {
	if second {
		return 1
	}
	return 0
}

// request is a record about a request of the engine.
func (w *workerLog) request(l *Log, who int32, r *core.Record) {
	if r.Kind == core.Submitted {
		if e := &w.submitted; e.A != r.A || e.Flag != r.Flag {
			l.wrong(r, who, "its engine submitted nothing of the kind")
		}
		w.submitted = core.Record{}
		if at := w.requests.get(r.A); at < 0 {
			if at = w.requests.add(r.A, core.MaxPending); at >= 0 {
				w.requests.items[at].store = r.Flag
			}
		}
		return
	}
	at := w.requests.get(r.A)
	if at < 0 {
		l.wrong(r, who, "request %d was not submitted, or its end was told", r.A)
		return
	}
	q := &w.requests.items[at]
	switch r.Kind {
	case core.RequestSent:
		if r.Flag != q.store || q.resolved || q.dropped {
			l.wrong(r, who, "request %d is none of those", r.A)
		}
		w.sent(l, who, r, r.B)
		q.uid = r.B + 1
	case core.RequestResolved:
		if q.uid != r.B+1 || q.resolved && !q.held {
			l.wrong(r, who, "message %d of request %d is not on its way", r.B, r.A)
		}
		if r.Flag == (r.Failure != core.NoFailure) {
			l.wrong(r, who, "request %d is told to have ended well and not", r.A)
		}
		q.resolved, q.good = true, r.Flag
	case core.RequestDropped:
		if q.uid != 0 || r.Flag != q.store || r.Failure == core.NoFailure {
			l.wrong(r, who, "request %d was sent, or is none of those, or it does not say why", r.A)
		}
		q.dropped = true
	case core.FinishedReported:
		w.told = *r
		good := true
		switch core.Outcome(r.B) {
		case core.OutcomeLoaded:
			good = q.good && !q.store
		case core.OutcomeMissed:
			good = q.resolved && !q.good && !q.store
		case core.OutcomeStored:
			good = q.resolved && q.store
		case core.OutcomeDropped:
			good = q.dropped
		case core.OutcomeHeld:
			good = q.resolved && !q.good && !q.held
			q.held = true
		case core.OutcomeFreed:
			good = q.held
		}
		if !good || r.Flag != q.store {
			l.wrong(r, who, "request %d did not end as %s", r.A, core.Outcome(r.B))
		}
		if core.Outcome(r.B) != core.OutcomeHeld {
			w.requests.drop(r.A, at)
		}
	}
}

// engine takes what the engine did or was told.
func (w *workerLog) engine(l *Log, who int32, r *core.Record) {
	switch r.Kind {
	case core.EngineSubmitted:
		if w.submitted.Kind != core.RecordNone {
			l.wrong(r, who, "request %d of its engine is not in its log", w.submitted.A)
		}
		w.submitted = *r
	case core.EngineTold:
		if t := &w.told; t.A != r.A || t.B != r.B || t.Flag != r.Flag {
			l.wrong(r, who, "its engine was told of request %d what its log does not say", r.A)
		}
		w.told = core.Record{}
	case core.EngineRegistered:
		if r.Flag && !w.enrolled {
			l.wrong(r, who, "its engine was told that it is registered, and its log does not say so")
		}
	}
}

// exited is its process leaving in order.
func (w *workerLog) exited(l *Log, who int32, r *core.Record) {
	if w.leaving && (!w.gone || w.heartbeat && !w.stopped) {
		l.wrong(r, who, "it left, and its log does not say how")
	}
	w.reset()
}
