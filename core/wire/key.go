package wire

import (
	"unicode/utf8"

	"vigil/core"
)

// Why this file: the key of a transfer is the largest and commonest composite
// value on the wire. Its fields come as a map by name, in any order; unknown
// ones are a newer client's and ignored.

// The fields of a key that have no default.
const (
	keyModel = 1 << iota
	keyWorld
	keyWorker
	keyTokens
	keyStart
	keyEnd
	keyRequest
	keyComplete = 1<<iota - 1
)

func (p *payloads) key(chunkTokens int) {
	c := p.next()
	r := p.r
	k := &r.Key
	k.Worker = -1
	seen := 0
	for n := c.dict(); n > 0 && c.fail == core.NoFailure; n-- {
		switch string(c.text(MaxText)) {
		case "model_name":
			k.Model = c.text(MaxText)
			seen |= keyModel
		case "world_size":
			k.WorldSize = c.int()
			seen |= keyWorld
		case "worker_id":
			k.Worker = -1
			if !c.isNil() {
				k.Worker = c.int()
				if k.Worker < 0 || k.Worker > 1<<31-1 {
					c.bad("has a worker_id outside 0 to 2147483647")
				}
			}
			seen |= keyWorker
		case "token_ids":
			p.buf.tokens = c.uints(p.buf.tokens[:0], MaxTokens)
			k.Tokens = p.buf.tokens
			seen |= keyTokens
		case "start":
			k.Start = c.int()
			seen |= keyStart
		case "end":
			k.End = c.int()
			seen |= keyEnd
		case "request_id":
			k.RequestID = c.text(MaxText)
			seen |= keyRequest
		case "cache_salt":
			k.Salt = c.text(4 * MaxSalt)
			if !validSalt(k.Salt) {
				c.bad("has a cache_salt over 128 characters or with @ / \\ or NUL in it")
			}
		default:
			c.skip()
		}
	}
	switch {
	case seen != keyComplete:
		c.bad("is a key without all of model_name, world_size, worker_id, token_ids, start, end, request_id")
	case k.Start < 0 || k.Start > k.End || k.End > int64(len(k.Tokens)):
		c.bad("is a key whose range does not lie in its tokens")
	case chunkTokens > 0 && k.Start%int64(chunkTokens) != 0:
		c.bad("is a key whose start is not a multiple of the chunk size")
	}
	p.done(&c)
	if r.Failure == core.NoFailure && chunkTokens > 0 {
		p.buf.chunks = p.buf.hasher.Chunks(p.buf.chunks, k, chunkTokens)
		k.Chunks = p.buf.chunks
	}
}

// validSalt keeps a salt from reaching outside its own part of a name.
func validSalt(s []byte) bool {
	for _, b := range s {
		if b == '@' || b == '/' || b == '\\' || b == 0 {
			return false
		}
	}
	return len(s) <= MaxSalt || utf8.RuneCount(s) <= MaxSalt
}

// append writes the key with its fields in their declared order.
func (k *Key) append(b []byte) []byte {
	b = append(b, 0x88)
	b = append(b, "\xaamodel_name"...)
	b = appendText(b, k.Model)
	b = append(b, "\xaaworld_size"...)
	b = appendInt(b, k.WorldSize)
	b = append(b, "\xa9worker_id"...)
	if k.Worker < 0 {
		b = append(b, codeNil)
	} else {
		b = appendInt(b, k.Worker)
	}
	b = append(b, "\xa9token_ids"...)
	b = appendUints(b, k.Tokens)
	b = append(b, "\xa5start"...)
	b = appendInt(b, k.Start)
	b = append(b, "\xa3end"...)
	b = appendInt(b, k.End)
	b = append(b, "\xaarequest_id"...)
	b = appendText(b, k.RequestID)
	b = append(b, "\xaacache_salt"...)
	return appendText(b, k.Salt)
}
