package core

// Clock is one process's monotonic time and its timers.
type Clock interface {
	// Now is read once per step.
	Now() Time
	// Arm asks for an InputTimer of key at or after at; it moves an armed key.
	Arm(key TimerKey, at Time)
	// Disarm takes key back: no InputTimer of it follows.
	Disarm(key TimerKey)
}

// Transport sends messages. It promises what ZeroMQ promises: order on one
// connection, a bounded queue while the peer is away, and silence about loss.
type Transport interface {
	// Send must copy what it keeps of the frames before it returns.
	Send(peer Peer, frames *Frames)
}

// Memory is the device memory as the server sees it. Every call begins
// something and returns at once; the end comes as an input, or never.
type Memory interface {
	Open(o *OpenOrder)
	Close(o *CloseOrder)
	// Copy must copy what it keeps of the order before it returns.
	Copy(o *CopyOrder)
}

// Engine is what a worker adapter answers to.
type Engine interface {
	// Tell must copy what it keeps of the answer before it returns.
	Tell(t *Tell)
}

// Inline keeps the data that engine-driven workers send and get inside their
// messages, where there is no shared pool. The core names them and never looks
// at them.
type Inline interface {
	// Keep makes a parcel the content of a slot, until the slot's chunk is
	// dropped.
	Keep(parcel uint64, slot Slot)
	// Drop forgets a parcel.
	Drop(parcel uint64)
	// Send sends a reply with a slot's content as its data; it must copy what
	// it keeps of the frames before it returns.
	Send(peer Peer, frames *Frames, slot Slot)
}

// Recorder takes event records.
type Recorder interface {
	// Record must copy what it keeps of the record before it returns.
	Record(r *Record)
}

// Leaver is told that a machine is done.
type Leaver interface {
	Leave(code ExitCode)
}

// Machine is a pure state machine: the same state, time and input give the
// same effects and the same next state.
type Machine interface {
	Step(now Time, in *Input, out *Effects)
}

// Driver binds a machine to a world. It belongs to one goroutine. Interfaces
// that a machine never uses may be nil: a server has no Engine, a worker no
// Memory.
type Driver struct {
	Machine   Machine
	Clock     Clock
	Transport Transport
	Memory    Memory
	Inline    Inline // nil where no message carries data
	Engine    Engine
	Recorder  Recorder
	Leaver    Leaver
	Actor     Actor
	// Effects is the buffer of each step. Drivers that one goroutine owns may
	// share one, so that 100,000 simulated workers do not each keep their own.
	Effects *Effects
}

// Feed gives the machine one input at the clock's time and carries out what it
// asked for, in the order of asking. No interface of the driver may call Feed
// again before it returns.
func (d *Driver) Feed(in *Input) {
	now := d.Clock.Now()
	if d.Effects == nil {
		d.Effects = new(Effects)
	}
	e := d.Effects
	e.Reset()
	d.Machine.Step(now, in, e)
	for _, ref := range e.Order {
		switch ref.Kind {
		case EffectRecord:
			r := &e.Records[ref.Index]
			r.At, r.Actor = now, d.Actor
			d.Recorder.Record(r)
		case EffectSend:
			s := e.Sends[ref.Index]
			if s.Filled && d.Inline != nil {
				d.Inline.Send(s.Peer, e.Message(s), s.Slot)
			} else {
				d.Transport.Send(s.Peer, e.Message(s))
			}
		case EffectArm:
			a := e.Arms[ref.Index]
			d.Clock.Arm(a.Key, a.At)
		case EffectDisarm:
			d.Clock.Disarm(e.Disarms[ref.Index])
		case EffectOpen:
			d.Memory.Open(&e.Opens[ref.Index])
		case EffectClose:
			d.Memory.Close(&e.Closes[ref.Index])
		case EffectCopy:
			d.Memory.Copy(e.CopyAt(ref.Index))
		case EffectTell:
			d.Engine.Tell(&e.Tells[ref.Index])
		case EffectExit:
			d.Leaver.Leave(e.Exit)
		case EffectInline:
			if i := e.Inlines[ref.Index]; d.Inline == nil {
				continue
			} else if i.Keep {
				d.Inline.Keep(i.Parcel, i.Slot)
			} else {
				d.Inline.Drop(i.Parcel)
			}
		}
	}
}
