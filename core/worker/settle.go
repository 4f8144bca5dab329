package worker

import (
	"slices"

	"vigil/core"
	"vigil/core/wire"
)

// What was given up and may still be carried out (keep-blocks, B21). The engine
// is told at the deadline that such a request failed, and that its blocks stay
// taken; the server is asked what it still does, behind each ping until it does
// nothing (docs/protocol.md, vigil.settle).
//
// Engine-driven requests are never held: nobody but this process touches their
// blocks. A server that knows nothing of all this cannot be asked. Of it one
// thing is known: it carries the transfers of a connection out one after the
// other (PROTOCOL, section 3), so the answer to a later one ends all before it.

// settling is the vigil.settle on its way.
type settling struct {
	awaited bool
	uid     uint64
	before  uint64 // what it asked about: the held ones with a smaller uid
}

// mayStillRun reports whether the server may still touch the blocks of a
// request that is given up.
func (w *Worker) mayStillRun(slot int32) bool {
	return w.cfg.Protections.KeepBlocks && w.pending.at(slot).stage == stageTransfer
}

// passed takes in that a transfer was carried out, by a server that cannot be
// asked: those before it are over.
func (w *Worker) passed(uid uint64, out *core.Effects) {
	if w.unsettled && (w.mute || w.unasked) {
		w.freeHeld(uid, nil, out)
	}
}

// hold ends a request for the engine; its reply is still waited for.
func (w *Worker) hold(slot int32, out *core.Effects) {
	e := w.pending.at(slot)
	r := w.record(out, core.RequestResolved)
	r.A, r.B, r.Failure = uint64(e.request), e.uid, core.FailDeadline
	w.settle(slot, core.OutcomeHeld, out)
	w.unsettled = true
}

// askSettled asks the server what it still does of all that was given up. What
// is pending still counts on the server, and all of it was sent later.
func (w *Worker) askSettled(out *core.Effects) {
	if !w.unsettled || w.mute || w.unasked || w.stopping() {
		return
	}
	uid := w.takeUID()
	before := uid
	for slot := w.pending.active.head; slot != none; slot = w.pending.at(slot).next {
		if e := w.pending.at(slot); e.stage == stageTransfer {
			before = e.uid
			break
		}
	}
	w.asked = settling{true, uid, before}
	var req wire.Request
	req.UIDNumber, req.Type, req.Instance, req.Before = uid, wire.Settle, w.id, before
	send(out, &req)
}

// heardPing asks again behind a ping that was answered. An answer that says
// nothing is an old server's.
func (w *Worker) heardPing(out *core.Effects) {
	if !w.cfg.Protections.KeepBlocks {
		return
	}
	if w.reply.OK {
		w.mute = w.reply.Ping == wire.PingVerdict{}
	}
	w.askSettled(out)
}

// settleAnswered frees everything that was asked about and is not named in the
// answer. A refusal says that the server knows nothing of this, unless it says
// that it is only not up to it now.
func (w *Worker) settleAnswered(out *core.Effects) {
	before := w.asked.before
	w.asked = settling{}
	switch {
	case w.reply.Refusal == core.FailStopping, w.reply.Refusal == core.FailQueueFull:
	case w.reply.Refusal != core.NoFailure, w.reply.Nil:
		w.unasked = true
	default:
		w.freeHeld(before, w.reply.Indices, out)
	}
}

// freeHeld frees what is held and was sent before a uid, but for those named.
func (w *Worker) freeHeld(before uint64, still []int64, out *core.Effects) {
	left := false
	for _, l := range [...]*list{&w.pending.ready, &w.pending.held} {
		for slot := l.head; slot != none; {
			e := w.pending.at(slot)
			next := e.next
			switch {
			case e.outcome != core.OutcomeHeld:
			case e.uid >= before || slices.Contains(still, int64(e.uid)):
				left = true
			default:
				w.free(slot, out)
			}
			slot = next
		}
	}
	w.unsettled = left
}

// free ends what is held: nothing touches its blocks any more. An engine that
// was not told yet is told that it failed, and no more.
func (w *Worker) free(slot int32, out *core.Effects) {
	w.pending.forget(slot)
	if e := w.pending.at(slot); e.stage == stageReady {
		e.outcome = core.OutcomeFailed
		return
	}
	w.settle(slot, core.OutcomeFreed, out)
}
