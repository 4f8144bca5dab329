package loop

import (
	"sync"
	"sync/atomic"
	"syscall"

	"vigil/core"
	"vigil/core/wire"
)

// The bytes that travel inside messages, where engine-driven workers have no
// shared pool. The core names them: a parcel came with a COMMIT_STORE and is
// nobody's yet, then it is the content of a slot or forgotten. They are never
// looked at, and never copied by the owner: whoever decodes a commit puts its
// data into a parcel, and whoever sends a large reply copies them out again.

const (
	// parcelHeap is the length up to which a parcel is of the Go heap; larger
	// ones have pages of their own, as the store's slabs do.
	parcelHeap = 64 << 10
	// inlineSend is the length up to which the owner sends a parcel itself:
	// about 20 microseconds.
	inlineSend = 128 << 10
	// courierQueue bounds the replies that wait for the courier. One beyond it
	// is dropped and counted, as a transport drops what it has no room for.
	courierQueue = 1024
)

// parcel is bytes that do not change any more. Who holds one may read it.
type parcel struct {
	bytes  []byte
	paged  bool
	holder atomic.Int32
}

// newParcel copies data into a parcel with one holder; nil where the system
// has no memory.
func newParcel(data []byte) *parcel {
	p := new(parcel)
	p.holder.Store(1)
	if len(data) <= parcelHeap {
		p.bytes = append(p.bytes, data...)
		return p
	}
	b, err := syscall.Mmap(-1, 0, len(data), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	copy(b, data)
	p.bytes, p.paged = b, true
	return p
}

func (p *parcel) hold() *parcel {
	p.holder.Add(1)
	return p
}

func (p *parcel) release() {
	if p.holder.Add(-1) > 0 {
		return
	}
	if p.paged {
		syscall.Munmap(p.bytes)
	}
	p.bytes = nil
}

// inline is a core.Inline. All of it but the courier is the owner's.
type inline struct {
	transport core.Transport
	last      uint64             // number of the newest parcel
	came      map[uint64]*parcel // with a message, and nobody's yet
	slots     map[core.Slot]*parcel
	bytes     uint64 // of both
	scratch   core.Frames
	courier   courier
}

func (i *inline) init() {
	i.came, i.slots = make(map[uint64]*parcel), make(map[core.Slot]*parcel)
}

// pack makes the data of a commit a parcel; it runs where messages are decoded.
func (m *message) pack() {
	r := &m.request
	if r.Type != wire.CommitStore || r.Failure != core.NoFailure || len(r.Data) == 0 {
		return
	}
	if m.parcel = newParcel(r.Data); m.parcel == nil {
		r.Failure = core.FailNoSpace
	}
}

// arrive takes a message's parcel over, before the message's step.
func (i *inline) arrive(m *message) {
	if m.parcel == nil {
		return
	}
	i.last++
	m.request.Parcel, m.request.ParcelBytes = i.last, uint64(len(m.parcel.bytes))
	i.came[i.last] = m.parcel
	i.bytes += m.request.ParcelBytes
	m.parcel = nil
}

// Keep makes a parcel the content of a slot.
func (i *inline) Keep(number uint64, slot core.Slot) {
	if p := i.came[number]; p != nil {
		delete(i.came, number)
		i.drop(slot)
		i.slots[slot] = p
	}
}

// Drop forgets a parcel.
func (i *inline) Drop(number uint64) {
	if p := i.came[number]; p != nil {
		delete(i.came, number)
		i.gone(p)
	}
}

// drop forgets the content of a slot, if it is one of ours.
func (i *inline) drop(slot core.Slot) {
	if p := i.slots[slot]; p != nil {
		delete(i.slots, slot)
		i.gone(p)
	}
}

func (i *inline) gone(p *parcel) {
	i.bytes -= uint64(len(p.bytes))
	p.release()
}

// Send sends the answer to a PREPARE_RETRIEVE with a slot's content as its
// data. A slot without content, which there is none of, is answered as a miss.
func (i *inline) Send(peer core.Peer, frames *core.Frames, slot core.Slot) {
	p := i.slots[slot]
	if p != nil && len(p.bytes) > inlineSend {
		i.courier.take(peer, frames, p)
		return
	}
	fill(&i.scratch, frames, p)
	i.transport.Send(peer, &i.scratch)
}

// fill writes a reply with a parcel in it.
func fill(to, reply *core.Frames, p *parcel) {
	to.Reset()
	r := wire.Reply{OK: p != nil}
	if p != nil {
		r.Data = p.bytes
	}
	wire.EncodeReply(to, reply.Part(0), reply.Part(1), wire.PrepareRetrieve, &r)
}

// close gives everything back, after the courier has sent what it has.
func (i *inline) close() {
	i.courier.stop()
	for n := range i.came {
		i.Drop(n)
	}
	for slot := range i.slots {
		i.drop(slot)
	}
}

// courier sends replies that are long to copy, so that no ping waits for them.
type courier struct {
	transport core.Transport
	dropped   atomic.Uint64
	jobs      chan delivery
	ended     sync.WaitGroup
}

type delivery struct {
	peer   core.Peer
	reply  core.Frames // without its data
	parcel *parcel     // held
}

func (c *courier) start(t core.Transport) {
	c.transport, c.jobs = t, make(chan delivery, courierQueue)
	c.ended.Add(1)
	go c.run()
}

func (c *courier) take(peer core.Peer, reply *core.Frames, p *parcel) {
	d := delivery{peer: peer, parcel: p.hold()}
	d.reply.CopyFrom(reply)
	select {
	case c.jobs <- d:
	default:
		c.dropped.Add(1)
		p.release()
	}
}

func (c *courier) run() {
	defer c.ended.Done()
	var frames core.Frames
	for d := range c.jobs {
		fill(&frames, &d.reply, d.parcel)
		d.parcel.release()
		c.transport.Send(d.peer, &frames)
		if cap(frames.Bytes) > keptMessage {
			frames.Bytes = nil
		}
	}
}

// stop returns when everything that was taken is sent.
func (c *courier) stop() {
	if c.jobs != nil {
		close(c.jobs)
		c.ended.Wait()
		c.jobs = nil
	}
}
