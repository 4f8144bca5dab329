package main

import (
	"context"
	"strings"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/wire"
	"vigil/core/zmq"
)

// Why this file: what both the status and the metrics say of a server is put
// together once.

// counted is a number with its reason.
type counted struct {
	reason string
	count  uint64
}

func reapsOf(c *loop.Counts) []counted {
	return []counted{{"window", c.ReapedWindow}, {"grace", c.ReapedGrace}, {"proof", c.Removed[core.RemovedByProof]}}
}

// droppedOf lists the messages that went nowhere.
func droppedOf(t *zmq.Stats, status *loop.Status) []counted {
	return []counted{
		{"too-many-frames", t.TooManyFrames}, {"too-large", t.TooLarge},
		{"send-queue-full", t.QueueFull}, {"peer-gone", t.UnknownPeer}, {"peer-full", t.PeerFull}, {"unsent", t.Unsent},
		{"decoders-full", status.Overflowed}, {"stopped", status.Dropped},
	}
}

// requestsOf counts the messages taken in by name; several numbers may share
// one, such as that of what is no request.
func requestsOf(c *loop.Counts) map[string]uint64 {
	requests := map[string]uint64{}
	for t, n := range c.Requests {
		if n > 0 {
			requests[strings.ReplaceAll(strings.ToLower(wire.Type(t).String()), " ", "_")] += n
		}
	}
	return requests
}

// maxWalk bounds the contexts that one question walks over.
const maxWalk = 200_000

// walk visits the contexts of a kind a page at a time, so that the owner is
// never held for long.
func (v *service) walk(ctx context.Context, kind core.ContextKind, visit func(*loop.Instance)) error {
	for cursor, seen := 0, 0; cursor >= 0 && seen < maxWalk; {
		page, next, err := v.server.Instances(ctx, kind, cursor, loop.MaxPage)
		if err != nil {
			return err
		}
		for i := range page {
			visit(&page[i])
		}
		cursor, seen = next, seen+len(page)
	}
	return nil
}

// oldest is the longest silence, and the largest share of its window that a
// context has been silent for.
func (v *service) oldest(ctx context.Context) (age time.Duration, share float64) {
	for _, kind := range []core.ContextKind{core.ServerDriven, core.EngineDriven} {
		v.walk(ctx, kind, func(i *loop.Instance) {
			age = max(age, i.Age)
			if i.Window > 0 {
				share = max(share, float64(i.Age)/float64(i.Window))
			}
		})
	}
	return age, share
}
