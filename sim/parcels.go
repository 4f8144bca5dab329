package sim

import (
	"vigil/core"
	"vigil/core/wire"
)

// The bytes that come inside messages, where engine-driven clients have no
// shared pool: the core names them by a number and never looks at them
// (core.Inline). Only raw clients send any.

// parcels are what came and is nobody's yet, and what is the content of a slot.
type parcels struct {
	world *World
	last  uint64
	came  []parcel
	slots []parcel
}

type parcel struct {
	name  uint64 // its number, or its slot
	bytes []byte
}

func (p *parcels) begin(w *World) { *p = parcels{world: w, came: p.came[:0], slots: p.slots[:0]} }

// take keeps the data of a commit that the server takes in.
func (p *parcels) take(r *wire.Request) {
	if r.Type != wire.CommitStore || r.Failure != core.NoFailure || len(r.Data) == 0 {
		return
	}
	if c := &p.world.plan.Server; !c.EngineDriven || c.PoolBytes > 0 {
		return // with a pool they are not looked at, as by the production shell
	}
	p.last++
	r.Parcel, r.ParcelBytes = p.last, uint64(len(r.Data))
	p.came = append(p.came, parcel{p.last, append([]byte(nil), r.Data...)})
}

// out takes a parcel that is nobody's yet.
func (p *parcels) out(number uint64) (one parcel, ok bool) {
	for i := range p.came {
		if p.came[i].name == number {
			one = p.came[i]
			p.came = append(p.came[:i], p.came[i+1:]...)
			return one, true
		}
	}
	return parcel{}, false
}

// Keep makes a parcel the content of a slot.
func (p *parcels) Keep(number uint64, slot core.Slot) {
	one, ok := p.out(number)
	if !ok {
		return
	}
	one.name = uint64(slot)
	for i := range p.slots {
		if p.slots[i].name == one.name {
			p.slots[i] = one
			return
		}
	}
	p.slots = append(p.slots, one)
}

// Drop forgets a parcel.
func (p *parcels) Drop(number uint64) { p.out(number) }

// Send answers a PREPARE_RETRIEVE with the content of a slot.
func (p *parcels) Send(peer core.Peer, frames *core.Frames, slot core.Slot) {
	r := wire.Reply{}
	for i := range p.slots {
		if p.slots[i].name == uint64(slot) {
			r.OK, r.Data = true, p.slots[i].bytes
		}
	}
	w := p.world
	w.outgoing.Reset()
	wire.EncodeReply(&w.outgoing, frames.Part(0), frames.Part(1), wire.PrepareRetrieve, &r)
	w.net.reply(peer, &w.outgoing)
}

// left tells of what is kept for nobody when a run ends.
func (p *parcels) left() {
	for i := range p.came {
		r := p.world.truth(core.ParcelLeft, nil)
		r.A, r.B = p.came[i].name, uint64(len(p.came[i].bytes))
		p.world.emit()
	}
}
