package sim

import (
	"time"

	"vigil/core"
	"vigil/faults"
)

// Plan is a world to run: data, read only, shared by any number of runs.
type Plan struct {
	Server  core.ServerConfig
	Workers []WorkerPlan
	Steps   []Step
	Until   time.Duration // the run ends here
	// FaultsOver is when the last fault has ceased to act at the latest: from
	// here on liveness is owed. 0 is never.
	FaultsOver time.Duration

	Latency     faults.Span // of one message one way; unset is 50us to 1ms
	OpenTime    faults.Span // of opening a worker's memory; unset is 1ms to 20ms
	CloseTime   faults.Span // of closing a mapping; unset is 1ms to 10ms
	CopyTime    faults.Span // of one transfer's copy; unset is 100us to 3ms
	ServerStart faults.Span // of a server coming back; unset is 1s to 2s
	DeviceBytes uint64      // room on the device for mappings; 0 is boundless
	Prompts     int         // how many prompts the engines share; 0 is 32
	PromptLow   int         // tokens of the shortest prompt; 0 is one chunk
	PromptHigh  int         // tokens of the longest prompt; 0 is four chunks
	BlockTokens int         // tokens in one KV block; 0 is 16
	// Proof: the server's host can watch the workers' processes, and tells the
	// server of one that died. Where it cannot, silence is the only sign.
	Proof bool
	// PlainServer: the server is the design document's, whatever the workers are.
	PlainServer bool
}

// WorkerPlan is one worker of a plan.
type WorkerPlan struct {
	Name   string
	Config core.WorkerConfig // Instance 0: the id comes from the tape
	Start  faults.Span       // when its process starts
	// Warmup is the time from its start to its register call.
	Warmup faults.Span
	Pod    int  // PID namespace; every first process of a pod has PID 1
	Idle   bool // registers by an explicit step only
	// PIDIdentity makes its id its PID (fault pid-identity).
	PIDIdentity bool
	Traffic     Traffic
	Blocks      int // KV blocks of its memory; 0 is 64
	BlockBytes  int // bytes of one block; 0 is 4096
	// Memory, where set, is the shape of its memory in the place of Blocks and
	// BlockBytes.
	Memory *Memory
	// Plain: its worker is the design document's, whatever the others are.
	Plain bool
}

// Memory is the shape of an engine's memory: several tensors, in groups whose
// blocks are of different sizes. It is read only.
type Memory struct {
	Exports []core.Export // without their handles
	Groups  []core.Group
}

// Part is what of a prompt an engine asks for. It is read only.
type Part struct {
	From, To int // tokens; a To of 0 is the prompt's end
	Skip     int // of a retrieve: so many of the range's first tokens stay as they are
	// Blocks, where set, are the blocks that the engine names, group after group,
	// whether they fit or not; otherwise it takes free ones.
	Blocks []uint32
}

// Traffic is what an engine submits by itself.
type Traffic struct {
	Every    faults.Span   // from one request to the next; unset is none
	From     time.Duration // no request before this time
	To       time.Duration // none from this time on; 0 is the end
	Stores   int           // share of stores, of Stores+Retrieves; both 0 is 1:1
	Retrieve int           // share of retrieves
}

// ActionKind says what a step does.
type ActionKind uint8

// The actions of a step.
const (
	ActFault      ActionKind = iota // a fault strikes
	ActRegister                     // the engine registers its memory
	ActStore                        // the engine submits one store
	ActRetrieve                     // the engine submits one retrieve
	ActLookup                       // a look-up of a prompt by a raw client beside the engine
	ActShutdown                     // the engine leaves in order
	ActTraffic                      // the engine's traffic starts (On) or stops
	ActReallocate                   // the engine takes other memory and registers that
	ActUnregister                   // a raw client unregisters the worker's id in its name, alive or dead
	ActAsk                          // a raw client asks something: Ask
)

// Action is what one step does.
type Action struct {
	Kind   ActionKind
	Worker int
	Fault  faults.Fault
	Prompt int   // store, retrieve, look-up: which prompt; -1 lets the tape choose
	Part   *Part // store, retrieve: what of the prompt; nil is all of it
	On     bool
	Ask    *Ask // of ActAsk, which has no worker
}

// Trigger is a moment named by what happens, not by the clock.
type Trigger struct {
	Record core.RecordKind
	Worker int // the worker that it is about, or faults.Everyone, or faults.Server for any
	Nth    int // which one, from 1; 0 is the first
}

// Step is one line of a story.
type Step struct {
	At faults.Span // since the start of the run; with When or After, since that
	// When, where set, starts the step's time at a record instead.
	When *Trigger
	// After is the number of the step whose striking starts this step's time,
	// plus one; 0 is none.
	After int
	Do    Action
}

// Settled is when the last fault of a story has ceased to act at the latest,
// at least a second; 0 where nothing says when: an operation that hangs, hangs
// for good, and what waits for a record may come at any time.
func (p *Plan) Settled() time.Duration {
	steps := p.Steps
	over := time.Second
	var full time.Duration // of all busy pools: one may wait for the other
	latest := make([]time.Duration, len(steps))
	for i := range steps {
		step := &steps[i]
		f := &step.Do.Fault
		switch {
		case step.When != nil:
			latest[i] = -1
		case step.After > i:
			return 0 // follows a later step: no story that a file can tell
		case step.After > 0 && latest[step.After-1] < 0:
			latest[i] = -1
		case step.After > 0:
			latest[i] = latest[step.After-1] + step.At.High
		default:
			latest[i] = step.At.High
		}
		if step.Do.Kind != ActFault {
			if latest[i] >= 0 {
				over = max(over, latest[i])
			}
			continue
		}
		if latest[i] < 0 || f.Kind == faults.HangOpen || f.Kind == faults.HangCopy {
			return 0
		}
		if f.Kind == faults.BusyPool {
			full += f.For.High
		}
		if f.Kind == faults.ServerRestart && f.For.Zero() {
			latest[i] += orSpan(p.ServerStart, bootTime).High
		}
		over = max(over, latest[i]+f.For.High+f.Amount.High*time.Duration(max(1, f.Count)))
	}
	return over + full
}
