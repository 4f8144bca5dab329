package wire

import (
	"vigil/core"
)

// Why this file: the way from a message to a request, with every check in one
// order: size, shape, type, payload count, then each payload in turn. The
// count comes before any payload is looked at, because two versions of one
// request differ in it and a mix of them must be refused as such (design
// document, section 7).

// firstPayload is the part in which a request's payloads begin.
const firstPayload = 2

// wholeMessage stands for a part where no single one is at fault.
const wholeMessage = -1

// Decode reads one message as a server sees it (without the identity) into r.
// What is wrong with it is said in r.Failure, and in words by Explain; Type is
// set where the type frame was read. For a request whose key decoded, the
// chunks of its range are hashed. Named operations decode to their Name only:
// their payloads are read by whoever serves them.
func (d *Decoder) Decode(frames *core.Frames, r *Request) {
	r.Reset()
	parts := frames.Len()
	if parts < firstPayload {
		r.refuse(core.FailShortMessage, wholeMessage, "")
		return
	}
	r.UID = frames.Part(0)
	r.RawType = frames.Part(1)
	switch {
	case parts > MaxFrames:
		r.refuse(core.FailTooLarge, wholeMessage, "has more parts than any request")
		return
	case len(r.UID) > MaxUIDBytes:
		// It is not kept for an echo either: what is echoed is bounded.
		r.UID = r.UID[:0]
		r.refuse(core.FailTooLarge, 0, "is longer than an integer")
		return
	case len(r.RawType) > MaxTypeBytes:
		r.RawType = r.RawType[:0]
		r.refuse(core.FailTooLarge, 1, "is longer than an operation's name")
		return
	}
	uid := cursor{b: r.UID}
	if v, negative, ok := uid.integer(); ok && !negative {
		r.UIDNumber = v // only echoed, so an odd uid is the client's own affair
	}
	r.payloads = parts - firstPayload
	if !d.decodeType(r) {
		return
	}
	limit := MaxMessageBytes
	if r.Type == CommitStore {
		limit = MaxInlineBytes
	}
	if len(frames.Bytes) > limit {
		r.refuse(core.FailTooLarge, wholeMessage, "is over its bound on bytes")
		return
	}
	if r.Type == Named {
		return
	}
	if want := d.payloadsOf(r.Type); r.payloads != want {
		r.refuse(core.FailPayloadCount, wholeMessage, "")
		return
	}
	p := payloads{r: r, frames: frames, part: firstPayload}
	if r.Type == Ping {
		p.ping(d.Legacy)
		return
	}
	p.buf = r.buffers()
	d.decodePayloads(&p, r)
}

// decodeType reads frame 1; it reports whether decoding goes on.
func (d *Decoder) decodeType(r *Request) bool {
	c := cursor{b: r.RawType}
	number, negative, ok := c.integer()
	if !ok && c.fail == core.NoFailure {
		r.Name = c.text(MaxNameBytes)
		if c.end(); c.fail == core.FailTooLarge {
			r.refuse(core.FailTooLarge, 1, c.why)
			return false
		} else if c.fail != core.NoFailure {
			r.Name = nil
			r.refuse(core.FailUnknownType, 1, "is neither a number nor a name")
			return false
		}
		r.Type = named(r.Name)
		return true
	}
	if c.end(); c.fail != core.NoFailure {
		r.refuse(core.FailUnknownType, 1, "is neither a number nor a name")
		return false
	}
	if negative || number == 0 || number > lastType {
		r.refuse(core.FailUnknownType, 1, "names no request")
		return false
	}
	if number < firstDisputed {
		r.Type = Type(number)
		return true
	}
	var served bool
	r.Type, r.OldNumber, served = normalize(number, r.payloads)
	if !served {
		r.refuse(core.FailUnsupported, 1, "")
	}
	return served
}

// payloadsOf returns how many payload frames this server expects.
func (d *Decoder) payloadsOf(t Type) int {
	if t == Ping && d.Legacy {
		return 0
	}
	return len(entryOf(t).payloads)
}

// payloads walks over a request's payload frames.
type payloads struct {
	r      *Request
	frames *core.Frames
	buf    *buffers
	part   int
}

// next returns a cursor over the next payload; an empty one after a failure.
func (p *payloads) next() cursor {
	if p.r.Failure != core.NoFailure {
		return cursor{fail: p.r.Failure}
	}
	return cursor{b: p.frames.Part(p.part)}
}

// done ends the payload that c read.
func (p *payloads) done(c *cursor) {
	if p.r.Failure != core.NoFailure {
		return
	}
	c.end()
	if c.fail != core.NoFailure {
		p.r.refuse(c.fail, p.part, c.why)
		return
	}
	p.part++
}

func (p *payloads) id() {
	c := p.next()
	p.r.Instance = c.coerceID()
	p.done(&c)
}

func (p *payloads) int(v *int64) {
	c := p.next()
	*v = c.coerceInt()
	p.done(&c)
}

func (p *payloads) text(s *[]byte) {
	c := p.next()
	*s = c.text(MaxText)
	p.done(&c)
}

func (p *payloads) data(s *[]byte, max int) {
	c := p.next()
	*s = c.data(max)
	p.done(&c)
}

// ping reads the id, or nil, which is not coerced (PROTOCOL, section 1.4).
func (p *payloads) ping(legacy bool) {
	if legacy {
		p.r.Legacy, p.r.NoInstance = true, true
		return
	}
	c := p.next()
	if c.isNil() {
		p.r.NoInstance = true
	} else {
		p.r.Instance = core.InstanceID(c.natural())
	}
	p.done(&c)
}

func (d *Decoder) decodePayloads(p *payloads, r *Request) {
	switch r.Type {
	case RegisterKVCache, RegisterQCache:
		p.id()
		p.exports()
		p.text(&r.Model)
		p.int(&r.WorldSize)
		p.engine()
		p.hints()
		p.groups()
	case UnregisterKVCache, UnregisterQCache, UnregisterEngineDriven, UnregisterRope:
		p.id()
	case Store, StoreQ:
		p.key(d.ChunkTokens)
		p.id()
		p.blocks()
		p.data(&r.Event, MaxEvent)
	case Retrieve:
		p.key(d.ChunkTokens)
		p.id()
		p.blocks()
		p.data(&r.Event, MaxEvent)
		p.int(&r.Skip)
	case Lookup, FreeLookupLocks:
		p.key(d.ChunkTokens)
		p.int(&r.TPSize)
	case QueryPrefetchStatus, QueryPrefetchLookupHits, EndSession:
		p.text(&r.RequestID)
	case WaitPrefetchStatus:
		p.text(&r.RequestID)
		c := p.next()
		r.Timeout = c.seconds()
		p.done(&c)
	case RegisterEngineDriven:
		p.engineDriven()
	case PrepareStore, PrepareRetrieve, CommitRetrieve:
		p.key(d.ChunkTokens)
		p.id()
	case CommitStore:
		p.key(d.ChunkTokens)
		p.id()
		p.data(&r.Data, MaxInlineBytes)
	case ReportBlockAllocation:
		p.id()
		p.text(&r.Model)
		p.records()
	case Settle:
		p.id()
		c := p.next()
		r.Before = c.natural()
		p.done(&c)
	case RegisterRope:
		p.id()
		p.exports()
		p.int(&r.HeadSize)
		c := p.next()
		r.Neox = c.truth()
		p.done(&c)
		p.skipInts()
		p.skipIntLists()
	}
}

// engine reads the engine's name, one of a closed list.
func (p *payloads) engine() {
	c := p.next()
	s := c.text(MaxWord)
	switch string(s) {
	case "vllm", "sglang", "trtllm", "mock", "atom":
		p.r.Engine = s
	default:
		c.bad("is not the name of an engine")
	}
	p.done(&c)
}

// blocks reads block ids per group into one list.
func (p *payloads) blocks() {
	c := p.next()
	b := p.buf
	for n := c.array(core.MaxGroups); n > 0 && c.fail == core.NoFailure; n-- {
		b.blocks = c.uints(b.blocks, MaxBlocks-len(b.blocks))
		b.blockEnds = append(b.blockEnds, len(b.blocks))
	}
	p.r.Blocks, p.r.BlockEnds = b.blocks, b.blockEnds
	p.done(&c)
}

// skipInts checks a list of integers of which nothing is kept.
func (p *payloads) skipInts() {
	c := p.next()
	c.passInts(MaxLayers)
	p.done(&c)
}

// skipIntLists checks a list of such lists.
func (p *payloads) skipIntLists() {
	c := p.next()
	for n := c.array(core.MaxGroups); n > 0 && c.fail == core.NoFailure; n-- {
		c.passInts(MaxLayers)
	}
	p.done(&c)
}

func (c *cursor) passInts(max int) {
	for n := c.array(max); n > 0 && c.fail == core.NoFailure; n-- {
		c.int()
	}
}

// records counts the records of REPORT_BLOCK_ALLOCATION; each must have its
// three fields, of which nothing is kept.
func (p *payloads) records() {
	c := p.next()
	n := c.array(MaxRecords)
	for i := 0; i < n && c.fail == core.NoFailure; i++ {
		c.record()
	}
	p.r.Records = n
	p.done(&c)
}

func (c *cursor) record() {
	const id, blocks, tokens = 1, 2, 4
	seen := 0
	for n := c.dict(); n > 0 && c.fail == core.NoFailure; n-- {
		switch string(c.text(MaxText)) {
		case "req_id":
			c.text(MaxText)
			seen |= id
		case "new_block_ids":
			c.passInts(MaxBlocks)
			seen |= blocks
		case "new_token_ids":
			c.passInts(MaxTokens)
			seen |= tokens
		default:
			c.skip()
		}
	}
	if seen != id|blocks|tokens {
		c.bad("is a record without req_id, new_block_ids or new_token_ids")
	}
}
