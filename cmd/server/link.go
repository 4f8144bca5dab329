package main

import (
	"context"
	"errors"
	"sync/atomic"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/wire"
	"vigil/core/zmq"
)

// Why this file: a worker's socket. What arrives goes to the worker's core,
// but for two things: the answer to what is asked before there is a core, and
// the replies that tell an engine-driven worker to copy (pool.go).

type link struct {
	dealer *zmq.Dealer
	worker atomic.Pointer[loop.Worker]
	chunk  chan int64
	pool   *sharedPool // engine-driven workers only
}

// prefaceUID is out of the way of the core's, which count from 0.
const prefaceUID = 1 << 62

func dial(c *workerConfig, shared *zmq.Context, pool *sharedPool) (*link, error) {
	l := &link{chunk: make(chan int64, 1), pool: pool}
	d, err := zmq.Dial(zmq.Options{Connect: c.connect, Curve: c.keys, Context: shared, Now: l.now}, l)
	if err != nil {
		return nil, err
	}
	l.dealer = d
	return l, nil
}

func (l *link) now() core.Time {
	if w := l.worker.Load(); w != nil {
		return w.Now()
	}
	return 0
}

// Message implements zmq.Sink.
func (l *link) Message(peer core.Peer, arrived core.Time, frames *core.Frames) {
	w := l.worker.Load()
	if w == nil {
		var r wire.Reply
		if wire.DecodeReply(frames, &r) == core.NoFailure && r.UIDNumber == prefaceUID && r.Type == wire.GetChunkSize {
			select {
			case l.chunk <- r.Int:
			default:
			}
		}
		return
	}
	if l.pool != nil && l.pool.take(w, peer, arrived, frames) {
		return
	}
	w.Message(peer, arrived, frames)
}

// Closed implements zmq.Sink.
func (l *link) Closed(peer core.Peer) {
	if w := l.worker.Load(); w != nil {
		w.Closed(peer)
	}
}

// errNoAnswer is a server that is not there, or not one of ours.
var errNoAnswer = errors.New("the server did not answer GET_CHUNK_SIZE in time; is it running at that address? (--chunk-tokens does without asking)")

// askChunk is GET_CHUNK_SIZE, the first thing that a real worker asks.
func (l *link) askChunk(ctx context.Context) (int, error) {
	var f core.Frames
	wire.EncodeRequest(&f, &wire.Request{UIDNumber: prefaceUID, Type: wire.GetChunkSize})
	l.dealer.Send(0, &f)
	select {
	case n := <-l.chunk:
		if n < 1 || n > core.MaxChunkTokens {
			return 0, errors.New("the server's chunk size is none that can be served")
		}
		return int(n), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
