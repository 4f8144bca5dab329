// Package faults is the fault vocabulary as data: what each fault is called,
// what parameters it takes in which units, what it means in the simulator and
// what it means for real processes.
//
// Contract. A Fault is plain data; nothing here acts. The simulator (sim) and
// the runner of real processes (scenarios/real) carry a fault out, each in its
// own world, with the meaning that the table in describe.go states.
package faults

import (
	"time"

	"vigil/core"
)

// Kind names a fault.
type Kind uint8

// The faults. What each means is in the table of describe.go.
const (
	None Kind = iota
	Kill
	Pause
	Resume
	Restart
	Cut
	Heal
	Delay
	StarveHeartbeat
	StickEngine
	BusyPool
	SlowOpen
	HangOpen
	FailOpen
	SlowClose
	HangClose
	FailClose
	SlowCopy
	HangCopy
	FailCopy
	ServerRestart
	ServerFreeze
	ServerStop
	HostSuspend
	OldClient
	OldServer
	PIDIdentity
	DeviceOutOfMemory
	Kinds // how many there are; not a fault
)

// Targets that are not one worker.
const (
	Everyone = -1 // every worker
	Server   = -2 // the server
)

// Span is a time that the tape chooses from [Low, High].
type Span struct{ Low, High time.Duration }

// Fixed is a span of one time.
func Fixed(d time.Duration) Span { return Span{d, d} }

// Zero reports whether the span is unset.
func (s Span) Zero() bool { return s == Span{} }

// Fault is one fault with its parameters. Which count depends on Kind.
type Fault struct {
	Kind   Kind
	Worker int  // index of the worker it strikes, or Everyone, or Server
	For    Span // how long it acts; unset: until its counterpart or the end
	Amount Span // slow-*, delay: time added to each
	Count  int  // slow, hang, fail: how many operations it strikes; 0 is all
	Ways   core.CutWays
	Reset  bool   // cut: the connection breaks and what is in flight is lost, else it stalls and nothing is lost
	Silent bool   // kill: the node is lost, so nobody is told that the connection closed
	Same   bool   // restart: in the same PID as before
	Bytes  uint64 // device-out-of-memory: what the device has room for
}
