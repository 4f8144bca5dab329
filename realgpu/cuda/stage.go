package cuda

import (
	"errors"

	"vigil/core"
)

// Why this file: a lane's stream, and the two stages of pinned memory through
// which it reaches slots that are not pinned themselves.

// stageBytes is the length of one stage. The longer, the better the device is
// used; two of them a lane are what idle lanes keep.
const stageBytes = 2 << 20

var errSlotShort = errors.New("the slot is too small for the chunk")

// stage is pinned memory on its way, with an event behind what was put on the
// stream for it.
type stage struct {
	memory pinnedMemory
	event  uintptr
	used   int
	pieces []piece // of a copy out: where the stage's bytes go
	busy   bool    // the event is recorded and was not waited for
}

type piece struct {
	to   []byte
	from int
}

// equip gives a lane its stream and stages; on its own thread.
func (w *lane) equip() error {
	v := w.device
	var stream uintptr
	if err := v.do(&v.driver.streamCreate, pointer(&stream), streamNonBlocking); err != nil {
		return err
	}
	w.stream = stream
	for i := range w.stages {
		s := &w.stages[i]
		var event uintptr
		if err := v.do(&v.driver.eventCreate, pointer(&event), eventBlocking|eventNoTiming); err != nil {
			return err
		}
		s.event = event
		var err error
		if s.memory, err = v.pin(stageBytes); err != nil {
			return err
		}
	}
	return nil
}

// strip gives them back. On a device that is lost this does nothing, and the
// process's end does.
func (w *lane) strip() {
	v := w.device
	for i := range w.stages {
		s := &w.stages[i]
		v.unpin(s.memory)
		if s.event != 0 {
			v.driver.eventDestroy.call(s.event)
		}
	}
	if w.stream != 0 {
		v.driver.streamDestroy.call(w.stream)
	}
}

// carry puts the copy of one piece on the stream.
func (w *lane) carry(memory uint64, slot []byte, way core.Direction, pinned bool) error {
	if pinned {
		return w.put(memory, slot, way)
	}
	for len(slot) > 0 {
		s := &w.stages[0]
		if s.used == stageBytes {
			if err := w.turn(way); err != nil {
				return err
			}
			s = &w.stages[0]
		}
		n := min(len(slot), stageBytes-s.used)
		place := s.memory[s.used : s.used+n]
		if way == core.CopyOut {
			s.pieces = append(s.pieces, piece{slot[:n], s.used})
		} else {
			copy(place, slot)
		}
		s.used += n
		if err := w.put(memory, place, way); err != nil {
			return err
		}
		memory, slot = memory+uint64(n), slot[n:]
	}
	return nil
}

// put puts one copy of the driver's on the stream.
func (w *lane) put(memory uint64, host []byte, way core.Direction) error {
	v := w.device
	if way == core.CopyOut {
		return v.do(&v.driver.toHost, addressOf(host), uintptr(memory), uintptr(len(host)), w.stream)
	}
	return v.do(&v.driver.toDevice, uintptr(memory), addressOf(host), uintptr(len(host)), w.stream)
}

// turn puts an event behind the full stage and goes on with the other one,
// once the device has finished with that.
func (w *lane) turn(way core.Direction) error {
	v, s := w.device, &w.stages[0]
	if err := v.do(&v.driver.eventRecord, s.event, w.stream); err != nil {
		return err
	}
	s.busy = true
	w.stages[0], w.stages[1] = w.stages[1], w.stages[0]
	return w.empty(&w.stages[0], way)
}

// empty waits for a stage and takes what a copy out brought.
func (w *lane) empty(s *stage, way core.Direction) error {
	if s.busy {
		if err := w.await(s.event); err != nil {
			return err
		}
		s.busy = false
	}
	if way == core.CopyOut {
		for _, p := range s.pieces {
			copy(p.to, s.memory[p.from:])
		}
	}
	clear(s.pieces)
	s.pieces, s.used = s.pieces[:0], 0
	return nil
}

// spins is how often an event is asked before the thread sleeps on it: a small
// copy is over sooner than a thread wakes.
const spins = 64

// await waits for an event.
func (w *lane) await(event uintptr) error {
	v := w.device
	for range spins {
		switch r := v.driver.eventQuery.call(event); r {
		case Success:
			return nil
		case NotReady:
		default:
			return v.failed(&v.driver.eventQuery, r)
		}
	}
	return v.do(&v.driver.eventWait, event)
}

// settle waits for all that was put on the stream and empties both stages, the
// older one first. After an error it waits for the stream and leaves the
// stages empty.
func (w *lane) settle(way core.Direction) error {
	v, s := w.device, &w.stages[0]
	err := v.do(&v.driver.eventRecord, s.event, w.stream)
	if err == nil {
		s.busy = true
		if err = w.empty(&w.stages[1], way); err == nil {
			err = w.empty(s, way)
		}
	}
	if err != nil {
		if e := v.do(&v.driver.streamWait, w.stream); e != nil {
			err = e
		}
		for i := range w.stages {
			s := &w.stages[i]
			clear(s.pieces)
			s.pieces, s.used, s.busy = s.pieces[:0], 0, false
		}
	}
	return err
}
