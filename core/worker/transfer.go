package worker

import (
	"vigil/core"
	"vigil/core/wire"
)

// Stores and retrieves: the books on what the engine submitted, so that it is
// told of the end of each exactly once, at a get_finished (PROTOCOL, 5.4).
//
// Known holes of the document, kept on purpose. A request whose reply never
// comes is not timed out while the worker is healthy (B7; deadline.go has the
// repair), and a worker that was reaped while it felt healthy is told nothing
// (B1; verdict.go has the repair).
//
// Our choice where the facts are silent. A store that is dropped because the
// server is away is reported too, once, as OutcomeDropped: upstream forgets
// it, but an engine that waits for the end of everything it submitted would
// then wait for ever (invariant TERMINAL). A drop for want of room in the
// books is reported at once, because there is no room to remember it.

// submit takes one store or retrieve. The heartbeat is started first, before
// anything can drop the request, so that a worker that only ever meets an
// unhealthy server is seen to live.
func (w *Worker) submit(now core.Time, c *core.Call, out *core.Effects) {
	store := c.Kind == core.CallStore
	r := w.record(out, core.Submitted)
	r.A, r.Flag = uint64(c.Request), store
	r.B = uint64(max(0, c.End-c.Start) / w.cfg.ChunkTokens)
	w.startHeartbeat(now, out)
	if failure := w.refuseTransfer(c); failure != core.NoFailure {
		w.drop(c, store, failure, out)
		return
	}
	slot := w.pending.add(c.Request, store)
	w.watch(now, slot, out)
	e := w.pending.at(slot)
	if !store {
		e.blocks = append(e.blocks[:0], c.Blocks...)
	}
	if w.cfg.Mode == core.ModeEngineDriven {
		// The COMMIT names the same range again.
		e.tokens = append(e.tokens[:0], c.Tokens...)
		e.start, e.end = c.Start, c.End
		e.stage = stagePrepare
		w.sendKeyed(slot, prepareOf(store), out)
		return
	}
	e.stage = stageTransfer
	uid := w.trackUID(slot, out)
	var req wire.Request
	req.UIDNumber, req.Instance = uid, w.id
	req.Type = wire.Store
	if !store {
		req.Type, req.Skip = wire.Retrieve, int64(c.Skip)
	}
	w.fillKey(&req.Key, c.Request, c.Tokens, c.Start, c.End)
	req.Blocks, req.BlockEnds = c.Blocks, w.blockEnds(len(c.Blocks), int64(c.End-c.Start))
	send(out, &req)
}

// refuseTransfer says why a submit is not sent, NoFailure where it is.
func (w *Worker) refuseTransfer(c *core.Call) core.Failure {
	switch {
	case w.stopping():
		return core.FailStopping
	case w.cfg.Prober:
		return core.FailUnsupported
	case !w.healthy:
		return core.FailUnhealthy
	case w.pending.count() >= core.MaxPending:
		return core.FailQueueFull
	case c.Start < 0 || c.End < c.Start || c.End > len(c.Tokens):
		return core.FailBadBlocks
	}
	return core.NoFailure
}

// drop ends a submit that was never sent. A retrieve's blocks hold nothing.
func (w *Worker) drop(c *core.Call, store bool, failure core.Failure, out *core.Effects) {
	r := w.record(out, core.RequestDropped)
	r.A, r.Flag, r.Failure = uint64(c.Request), store, failure
	if w.pending.count() >= core.MaxPending {
		var blocks []uint32
		if !store {
			blocks = c.Blocks
		}
		w.report(c.Request, store, core.OutcomeDropped, blocks, out)
		return
	}
	slot := w.pending.add(c.Request, store)
	e := w.pending.at(slot)
	if !store {
		e.blocks = append(e.blocks[:0], c.Blocks...)
	}
	w.settle(slot, core.OutcomeDropped, out)
}

// resolve takes the reply that a pending request waited for.
func (w *Worker) resolve(now core.Time, slot int32, out *core.Effects) {
	e := w.pending.at(slot)
	if w.reply.Refusal == core.NoFailure {
		w.passed(e.uid, out) // nothing where the engine moves the bytes: none of that is held
	}
	if e.stage == stageHeld || e.stage == stageReady { // given up, and carried out after all
		w.free(slot, out)
		return
	}
	w.pending.forget(slot)
	if why := w.reply.Refusal; why != core.NoFailure {
		if why == core.FailNotRegistered {
			w.refusedUnregistered(now, e.uid, out)
		}
		w.failRequest(slot, why, out)
		return
	}
	ok := w.reply.OK
	if e.stage == stagePrepare {
		more := ok
		if e.store { // one without slots says that all is stored already
			ok, more = true, len(w.reply.Slots) > 0
		}
		if more {
			e.stage = stageCommit
			w.sendKeyed(slot, commitOf(e.store), out)
			return
		}
	}
	r := w.record(out, core.RequestResolved)
	r.A, r.B, r.Flag = uint64(e.request), e.uid, ok
	if !ok {
		r.Failure = core.FailUnknownVerdict
	}
	switch {
	case e.store:
		w.settle(slot, core.OutcomeStored, out)
	case ok:
		w.settle(slot, core.OutcomeLoaded, out)
	default:
		w.settle(slot, core.OutcomeMissed, out)
	}
}

// failRequest ends a request whose reply is refused or will not come: it was
// not served, which is more than a miss says.
func (w *Worker) failRequest(slot int32, why core.Failure, out *core.Effects) {
	e := w.pending.at(slot)
	r := w.record(out, core.RequestResolved)
	r.A, r.B, r.Failure = uint64(e.request), e.uid, why
	w.settle(slot, core.OutcomeFailed, out)
}

// settle makes a request reportable and knocks at the engine.
func (w *Worker) settle(slot int32, outcome core.Outcome, out *core.Effects) {
	w.pending.settle(slot, outcome)
	w.wake(out)
}

// wake asks the engine to call get_finished, once until it does.
func (w *Worker) wake(out *core.Effects) {
	if !w.woken {
		w.woken = true
		out.Tell(core.TellWake, 0)
	}
}

// reportFinished is get_finished. While the server is away it gives up on
// everything pending: the futures are forgotten, and what had resolved without
// being asked about counts as failed with the rest, because this branch does
// not look at the futures at all.
func (w *Worker) reportFinished(out *core.Effects) {
	w.woken = false
	w.reportReady(!w.healthy, out)
	if !w.healthy && !w.cfg.Protections.KeepBlocks {
		w.reportUnresolved(out)
	}
}

// reportReady reports what ended, in the order in which it ended; as failed
// where giveUp is set, but for what was dropped or is held, which stays what it
// is.
func (w *Worker) reportReady(giveUp bool, out *core.Effects) {
	for slot := w.pending.ready.head; slot != none; slot = w.pending.ready.head {
		e := w.pending.at(slot)
		outcome := e.outcome
		if giveUp && outcome < core.OutcomeDropped {
			outcome = core.OutcomeFailed
		}
		w.reportSlot(slot, outcome, out)
	}
}

// reportUnresolved reports what did not end as failed, in the order of
// submission, and forgets the futures: a reply that still comes finds nobody.
func (w *Worker) reportUnresolved(out *core.Effects) {
	for slot := w.pending.active.head; slot != none; slot = w.pending.active.head {
		w.pending.forget(slot)
		w.reportSlot(slot, core.OutcomeFailed, out)
	}
}

func (w *Worker) reportSlot(slot int32, outcome core.Outcome, out *core.Effects) {
	e := w.pending.at(slot)
	blocks := e.blocks
	if outcome == core.OutcomeLoaded || outcome == core.OutcomeFreed {
		blocks = nil
	}
	w.report(e.request, e.store, outcome, blocks, out)
	if outcome == core.OutcomeHeld {
		w.pending.hold(slot)
		return
	}
	w.pending.release(slot)
}

// report tells the engine how one request ended.
func (w *Worker) report(request core.RequestID, store bool, outcome core.Outcome, invalid []uint32, out *core.Effects) {
	r := w.record(out, core.FinishedReported)
	r.A, r.B, r.Flag = uint64(request), uint64(outcome), store
	t := out.Tell(core.TellFinished, request)
	t.Outcome, t.Store = outcome, store
	t.Blocks = append(t.Blocks, invalid...)
}

// trackUID numbers the message that a pending request sends next.
func (w *Worker) trackUID(slot int32, out *core.Effects) uint64 {
	uid := w.takeUID()
	w.pending.track(slot, uid)
	e := w.pending.at(slot)
	r := w.record(out, core.RequestSent)
	r.A, r.B, r.Flag = uint64(e.request), uid, e.store
	return uid
}

// sendKeyed sends a PREPARE or COMMIT of a pending request. A COMMIT_STORE
// carries no bytes: they lie in the pool that the slots named.
func (w *Worker) sendKeyed(slot int32, t wire.Type, out *core.Effects) {
	uid := w.trackUID(slot, out)
	e := w.pending.at(slot)
	var req wire.Request
	req.UIDNumber, req.Type, req.Instance = uid, t, w.id
	w.fillKey(&req.Key, e.request, e.tokens, e.start, e.end)
	send(out, &req)
}

func prepareOf(store bool) wire.Type {
	if store {
		return wire.PrepareStore
	}
	return wire.PrepareRetrieve
}

func commitOf(store bool) wire.Type {
	if store {
		return wire.CommitStore
	}
	return wire.CommitRetrieve
}

func (w *Worker) fillKey(k *wire.Key, request core.RequestID, tokens []uint32, start, end int) {
	k.Model, k.WorldSize, k.Worker = w.model(), int64(w.cfg.WorldSize), int64(w.cfg.Rank)
	k.Tokens, k.Start, k.End = tokens, int64(start), int64(end)
	k.RequestID, k.Salt = w.requestText(request), w.salt()
}

// blockEnds cuts a range's block list into its groups. Each group has as many
// blocks as its block size asks for, and the last one what is left: the server
// refuses a list that does not add up that way.
func (w *Worker) blockEnds(blocks int, tokens int64) []int {
	w.ends = w.ends[:0]
	at := 0
	for i := range w.memory.groups {
		if t := w.memory.groups[i].TokensPerBlock; t > 0 {
			at += int((tokens + t - 1) / t)
		}
		w.ends = append(w.ends, min(at, blocks))
	}
	w.ends = append(w.ends[:max(0, len(w.ends)-1)], blocks)
	return w.ends
}
