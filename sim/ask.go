package sim

import (
	"bytes"
	"fmt"
	"strings"

	"vigil/core"
	"vigil/core/wire"
)

// Ask is a request that a raw client sends as it stands: what a program does
// that speaks to the server without our worker, in any order and with any
// content. Its answer is kept in words, for whoever judges it (World.Answer).
type Ask struct {
	// Number tells it from the other asks of its story, through all that a
	// shrinker does to their steps.
	Number int
	// Client is which raw client asks; each has a connection of its own. The
	// first is also the one that looks prompts up for engines.
	Client int
	// Request is what is sent. Its uid, the handles of its exports and the
	// tokens of its key are put in when it is sent. Without a type nothing is
	// sent: the client's connection breaks, and it makes another.
	Request wire.Request
	// Of names a worker whose last id the request is about, by its index plus
	// one; 0 leaves the request's own id.
	Of int
	// Prompt is whose tokens the key gets; a range whose end is 0 ends with the
	// prompt.
	Prompt int
	// Memory names the allocation that is registered or moved, among those of
	// its client; 0 names it by the request's id. What is registered twice under
	// one name is the same memory.
	Memory uint64
}

// asker is what a raw client waits for, and what memory it exports. A story's
// steps bound both.
type asker struct {
	waits  []asked
	memory []exported
}

// asked is a request of a story whose answer is to come, or came: a second one
// is told as such.
type asked struct {
	uid  uint64
	step int32
	// Of a retrieve: the allocation that it delivers into; -1 for none.
	allocation int32
	answered   bool
}

// exported is one allocation of a raw client.
type exported struct {
	name       uint64
	allocation int32
}

// layAskers lays out the raw clients of a plan and returns how many there are.
func (w *World) layAskers(plan *Plan) int {
	n := clientsOf(plan)
	for len(w.askers) < n {
		w.askers = append(w.askers, asker{})
	}
	w.askers = w.askers[:n]
	for i := range w.askers {
		w.askers[i] = asker{w.askers[i].waits[:0], w.askers[i].memory[:0]}
	}
	w.answers = resized(w.answers, len(plan.Steps))
	return n
}

// ask has a raw client send what step says. It reports whether it did.
func (w *World) ask(step int, a *Ask) bool {
	c := &w.askers[a.Client]
	r := &w.asking
	*r = a.Request
	if r.Type == wire.NoType {
		return w.reconnect(a.Client)
	}
	if a.Of > 0 {
		if r.Instance = w.identities[a.Of-1]; r.Instance == 0 {
			return false
		}
	}
	name := a.Memory
	if name == 0 {
		name = uint64(r.Instance)
	}
	waits := asked{step: int32(step), allocation: -1}
	switch r.Type {
	case wire.RegisterKVCache, wire.RegisterQCache:
		w.export(a, name)
	case wire.Store, wire.StoreQ, wire.Retrieve:
		w.prompt(a)
		if waits.allocation = c.find(name); waits.allocation >= 0 {
			w.fillBlocks(waits.allocation)
		}
	case wire.Lookup, wire.FreeLookupLocks, wire.PrepareStore, wire.CommitStore, wire.PrepareRetrieve, wire.CommitRetrieve:
		w.prompt(a)
	}
	if !w.send(a.Client, r) {
		return false
	}
	waits.uid = w.clientUID
	c.waits = append(c.waits, waits)
	return true
}

// reconnect breaks a raw client's connection; what it waits for it no longer gets.
func (w *World) reconnect(client int) bool {
	who := len(w.engines) + client
	if w.net.links[who].peer == 0 {
		return false
	}
	w.askers[client].waits = w.askers[client].waits[:0]
	w.net.disconnect(who, false, true)
	w.net.connect(who, w.choices.Span(ForReconnect, who+1, connectTime, connectTime))
	return true
}

// prompt puts a prompt into the key of what is asked.
func (w *World) prompt(a *Ask) {
	k := &w.asking.Key
	k.Tokens = w.prompts[a.Prompt%len(w.prompts)].tokens
	if k.End == 0 {
		k.End = int64(len(k.Tokens))
	}
	k.End = min(k.End, int64(len(k.Tokens)))
	k.Start = min(k.Start, k.End)
}

// export gives a registration's exports their handles; all lie in one allocation.
func (w *World) export(a *Ask, name uint64) {
	c, r := &w.askers[a.Client], &w.asking
	who := len(w.engines) + a.Client
	at := c.find(name)
	if at < 0 {
		at = int32(w.memory.allocateAs(who, w.processes[who+1].life, a.Request.Exports, a.Request.Groups))
		c.memory = append(c.memory, exported{name, at})
	}
	r.Exports = w.handedOut(int(at), r.Exports)
}

func (c *asker) find(name uint64) int32 {
	for i := range c.memory {
		if c.memory[i].name == name {
			return c.memory[i].allocation
		}
	}
	return -1
}

// fillBlocks has the blocks of what is asked hold, for a store, what belongs to
// their tokens, and for a retrieve nothing.
func (w *World) fillBlocks(at int32) {
	store := w.asking.Type != wire.Retrieve
	w.eachBlock(at, &w.asking, func(tag *uint64, want uint64, _, _ int) {
		if *tag = unfilled; store {
			*tag = want
		}
	})
}

// unfilled stands for bytes that nobody stored.
const unfilled = 2

// eachBlock visits the blocks of a transfer that lie in its memory: what each
// holds, what belongs there, the block's number and the last of its tokens.
func (w *World) eachBlock(at int32, r *wire.Request, visit func(tag *uint64, want uint64, block, end int)) {
	m := &w.memory.allocations[at]
	k := &r.Key
	first := 0
	for g, stop := range r.BlockEnds {
		size := int(m.tokensOf(g, w.blockTokens))
		for i, b := range r.Blocks[first:stop] {
			end := int(k.Start) + (i+1)*size
			if tag := m.tag(g, b); tag != nil && end <= len(k.Tokens) {
				visit(tag, bytesOf(k, g, end), int(b), end)
			}
		}
		first = stop
	}
}

// bytesOf stands for the bytes of the block that ends before token end: those
// that an engine would have there.
func bytesOf(k *wire.Key, group, end int) uint64 {
	return tagOf(prefixOf(k.Tokens[:end]), uint64(max(0, k.Worker)), uint64(k.WorldSize), modelOf(k.Model, k.Salt), group)
}

// answered takes in a message to a raw client.
func (w *World) answered(who int, frames *core.Frames) {
	c := &w.askers[who]
	if wire.DecodeReply(frames, &w.reply) != core.NoFailure {
		return
	}
	for i := range c.waits {
		if c.waits[i].uid != w.reply.UIDNumber {
			continue
		}
		waits := &c.waits[i]
		text := w.inWords(waits)
		if waits.answered {
			text = w.answers[waits.step] + anotherAnswer
		}
		waits.answered = true
		w.answers[waits.step] = text
		d := core.Digest(1)
		d.Bytes([]byte(text))
		r := w.truth(core.AnswerCame, nil)
		r.A, r.B, r.Failure = uint64(waits.step), uint64(d), w.reply.Refusal
		w.emit()
		return
	}
}

// anotherAnswer is what the words of an answer end with whose request was
// answered before.
const anotherAnswer = "; another answer"

// Answer is what a raw client was answered, in words, to what a step of the
// present run asked; empty where no answer came yet.
func (w *World) Answer(step int) string { return w.answers[step] }

// inWords says what an answer says: clauses between semicolons, of which the
// first is the answer proper.
func (w *World) inWords(of *asked) string {
	r := &w.reply
	a := w.plan.Steps[of.step].Do.Ask
	if r.Refusal != core.NoFailure {
		return "refused: " + r.Refusal.String()
	}
	var b strings.Builder
	switch yes := [...]string{"no", "yes"}[flag(r.OK)]; {
	case r.Nil:
		b.WriteString("nothing")
	case r.Type == wire.Ping:
		b.WriteString(yes)
		if r.Ping.Aware {
			b.WriteString([...]string{"; not registered", "; registered"}[flag(r.Ping.Registered)])
		}
	case r.Type == wire.Store || r.Type == wire.Retrieve:
		b.WriteString(yes)
		if !bytes.Equal(r.Data, a.Request.Event) {
			b.WriteString("; another event")
		}
		if r.OK && r.Type == wire.Retrieve {
			w.delivered(&b, of, a)
		}
	case r.Type == wire.CommitStore || r.Type == wire.CommitRetrieve:
		b.WriteString(yes)
	case r.Type == wire.PrepareRetrieve:
		b.WriteString(yes)
		slots(&b, r)
		if len(r.Data) > 0 {
			fmt.Fprintf(&b, "; data %s", r.Data)
		}
	case r.Type == wire.PrepareStore && r.Inline:
		b.WriteString("inline")
	case r.Type == wire.PrepareStore:
		fmt.Fprintf(&b, "chunks %v", r.Indices)
		slots(&b, r)
	case r.Type == wire.RegisterEngineDriven:
		fmt.Fprintf(&b, "pool %q of %d", r.ShmName, r.Pool)
	case r.Type == wire.Settle:
		fmt.Fprintf(&b, "under way %v", w.stepsOf(r.Indices))
	case r.Type == wire.Noop:
		fmt.Fprintf(&b, "%s", r.Text)
	case r.Type == wire.GetExperimental:
		b.WriteString("[]")
	default:
		fmt.Fprintf(&b, "%d", r.Int)
	}
	if r.Window > 0 {
		fmt.Fprintf(&b, "; window %s", r.Window)
	}
	return b.String()
}

func flag(v bool) int {
	if v {
		return 1
	}
	return 0
}

// slots says where the slots of an answer lie, and what shape they have.
func slots(b *strings.Builder, r *wire.Reply) {
	for i := range r.Slots {
		s := &r.Slots[i]
		fmt.Fprintf(b, "; %d bytes at %d", s.Length, s.Offset)
		if i == len(r.Slots)-1 {
			fmt.Fprintf(b, "; %s %v", s.DType, s.Shape)
		}
	}
}

// stepsOf says which steps the transfers of an answer are of.
func (w *World) stepsOf(uids []int64) []string {
	var names []string
	for _, uid := range uids {
		name := "unknown"
		for i := range w.askers {
			for _, one := range w.askers[i].waits {
				if !one.answered && int64(one.uid) == uid {
					name = fmt.Sprint(one.step + 1)
				}
			}
		}
		names = append(names, name)
	}
	return names
}

// delivered says which blocks of a retrieve do not hold what they should: what
// was stored, or behind its skip nothing.
func (w *World) delivered(b *strings.Builder, of *asked, a *Ask) {
	if of.allocation < 0 {
		return
	}
	r := a.Request
	w.asking = r
	w.prompt(a)
	skip := int(r.Key.Start + r.Skip)
	w.eachBlock(of.allocation, &w.asking, func(tag *uint64, want uint64, block, end int) {
		if end <= skip {
			want = unfilled
		}
		if *tag != want {
			fmt.Fprintf(b, "; block %d holds other bytes", block)
		}
	})
}
