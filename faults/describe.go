package faults

// The table of the faults: names, parameters, meanings. The loader of scenario
// files, `simrun list faults`, docs/faults.md and both worlds read this one
// table, so that a word in a file means the same thing everywhere.

// Target says what a fault strikes.
type Target uint8

// The targets.
const (
	OnWorker Target = iota // one worker, or every worker
	OnServer               // the server's process, its pools or its device
	OnHost                 // the host: the server and every worker on it
)

var targetNames = [...]string{"worker", "server", "host"}

// String is the target's name in listings.
func (t Target) String() string {
	if int(t) < len(targetNames) {
		return targetNames[t]
	}
	return "unknown"
}

// Field says which field of a Fault a parameter sets.
type Field uint8

// The fields of a Fault that a parameter can set. Their units are the fields'.
const (
	FieldFor    Field = iota // Span, time
	FieldAmount              // Span, time
	FieldCount               // operations, from 1
	FieldWays                // one of WaysWords
	FieldReset               // one of BreakWords
	FieldSilent              // true or false
	FieldSame                // true or false
	FieldBytes               // bytes, with a unit such as GiB
)

// Param is one parameter of a fault.
type Param struct {
	Name     string // its key in a scenario file
	Field    Field
	Required bool
	Unit     string // "time or range of times", "bytes", ...
	Meaning  string
}

// Description is what there is to know about one fault.
type Description struct {
	Kind      Kind
	Name      string
	Target    Target
	Params    []Param
	Brief     string // one line
	Simulator string // what the simulated world does
	Real      string // what the runner of real processes does
	// Setting is true for a fault that is a property of its target all through
	// the run, whatever time its step has: the loader lays it into the plan.
	Setting bool
}

// The words of FieldWays, indexed by core.CutWays.
var WaysWords = []string{"both", "to-server", "to-worker"}

// The words of FieldReset: false, true.
var BreakWords = []string{"stall", "reset"}

const (
	unitSpan  = "time or range of times"
	unitCount = "operations"
	unitBool  = "true or false"
)

func lasts(meaning string) Param {
	return Param{Name: "for", Field: FieldFor, Unit: unitSpan, Meaning: meaning}
}

var (
	untilCounter = lasts("how long it acts; unset: until its counterpart, or the end")
	struck       = Param{Name: "count", Field: FieldCount, Unit: unitCount, Meaning: "how many operations it strikes; unset: every one"}
	by           = Param{Name: "by", Field: FieldAmount, Required: true, Unit: unitSpan, Meaning: "time added to each operation"}
)

var table = [Kinds]Description{
	Kill: {
		Kind: Kill, Name: "kill", Target: OnWorker,
		Params: []Param{{Name: "silent", Field: FieldSilent, Unit: unitBool, Meaning: "the node is lost, so that nobody is told that the connection closed"}},
		Brief:  "the process dies at once, without a word",
		Simulator: "the process ends between two steps; what it had sent and not yet put on the wire is lost; its exports stay charged to whoever opened them; " +
			"the host closes its connection, unless silent",
		Real: "SIGKILL to the process; silent: the proxy keeps its side of the connection open",
	},
	Pause: {
		Kind: Pause, Name: "pause", Target: OnWorker, Params: []Param{untilCounter},
		Brief:     "the process stands still; its clock runs on",
		Simulator: "no input reaches the process; timers that fall due wait and fire once on resume; the connection stays open and fills",
		Real:      "SIGSTOP, and SIGCONT when the time is over",
	},
	Resume: {
		Kind: Resume, Name: "resume", Target: OnWorker,
		Brief:     "ends a pause",
		Simulator: "overdue timers and waiting messages enter, in an order that the tape chooses",
		Real:      "SIGCONT",
	},
	Restart: {
		Kind: Restart, Name: "restart", Target: OnWorker,
		Params: []Param{
			{Name: "for", Field: FieldAmount, Unit: unitSpan, Meaning: "how long nothing runs between the two lives; unset: half a second to five"},
			{Name: "same-pid", Field: FieldSame, Unit: unitBool, Meaning: "the new process gets the PID of the old one"},
		},
		Brief:     "the process is killed, if it still lives, and a new one starts in its place",
		Simulator: "as kill, then a new process with fresh entropy and fresh memory in the same PID namespace",
		Real:      "SIGKILL and a new process; same-pid: a new PID namespace, in which it is PID 1 again",
	},
	Cut: {
		Kind: Cut, Name: "cut", Target: OnWorker,
		Params: []Param{
			untilCounter,
			{Name: "ways", Field: FieldWays, Unit: "both, to-server or to-worker", Meaning: "which directions are cut; unset: both"},
			{Name: "how", Field: FieldReset, Unit: "stall or reset", Meaning: "stall: bytes wait and none is lost; reset: the connection breaks and what is in flight is lost; unset: stall"},
		},
		Brief:     "the link between a worker and the server is cut",
		Simulator: "stall: messages wait in the link, in order; reset: what is in flight is lost, the peer is closed at the host, and both queues are bounded until it reconnects",
		Real:      "the proxy in front of the server stops forwarding; reset: it closes both sides and refuses new connections",
	},
	Heal: {
		Kind: Heal, Name: "heal", Target: OnWorker,
		Brief:     "ends a cut",
		Simulator: "what waited is delivered as a burst, in order; after a reset the worker reconnects as a new peer",
		Real:      "the proxy forwards again, first what it holds",
	},
	Delay: {
		Kind: Delay, Name: "delay", Target: OnWorker, Params: []Param{by, untilCounter},
		Brief:     "each message takes longer, both ways",
		Simulator: "the time is added to the latency of each message; order on the connection holds",
		Real:      "the proxy holds each chunk of bytes back for that time",
	},
	StarveHeartbeat: {
		Kind: StarveHeartbeat, Name: "starve-heartbeat", Target: OnWorker, Params: []Param{untilCounter},
		Brief:     "the heartbeat thread alone gets no processor",
		Simulator: "timers of the heartbeat are held back until the time is over; the engine's requests go on",
		Real:      "a worker of ours is told to hold its heartbeat back; a foreign worker cannot be struck, and the run says so",
	},
	StickEngine: {
		Kind: StickEngine, Name: "stick-engine", Target: OnWorker, Params: []Param{untilCounter},
		Brief:     "the engine's own thread is stuck; the heartbeat goes on",
		Simulator: "the engine submits nothing and does not ask what ended until the time is over; the adapter and its heartbeat run",
		Real:      "a worker of ours is told to hold its engine back; a foreign worker cannot be struck, and the run says so",
	},
	BusyPool: {
		Kind: BusyPool, Name: "busy-pool", Target: OnServer,
		Params:    []Param{{Name: "for", Field: FieldFor, Required: true, Unit: unitSpan, Meaning: "how long the pool is full"}},
		Brief:     "the NORMAL pool is full of waiting look-ups",
		Simulator: "a raw client beside the workers sends WAIT_PREFETCH_STATUS calls that hold every slot for that long",
		Real:      "the same calls by a raw client",
	},
	SlowOpen:  slow(SlowOpen, "slow-open", "opening the worker's memory", "opens"),
	HangOpen:  hang(HangOpen, "hang-open", "opening the worker's memory", "opens"),
	FailOpen:  fail(FailOpen, "fail-open", "opening the worker's memory", "opens"),
	SlowClose: slow(SlowClose, "slow-close", "closing a mapping of the worker's memory", "closes"),
	HangClose: hang(HangClose, "hang-close", "closing a mapping of the worker's memory", "closes"),
	FailClose: fail(FailClose, "fail-close", "closing a mapping of the worker's memory", "closes"),
	SlowCopy:  slow(SlowCopy, "slow-copy", "copying from or to the worker's memory", "copies"),
	HangCopy:  hang(HangCopy, "hang-copy", "copying from or to the worker's memory", "copies"),
	FailCopy:  fail(FailCopy, "fail-copy", "copying from or to the worker's memory", "copies"),
	ServerRestart: {
		Kind: ServerRestart, Name: "server-restart", Target: OnServer,
		Params:    []Param{lasts("how long nothing listens; unset: the world's server-start time")},
		Brief:     "the server's process dies and a new one starts with nothing in its memory",
		Simulator: "every connection closes; mappings end with the process; workers reconnect when it listens again",
		Real:      "SIGKILL to the server, and the same command again",
	},
	ServerFreeze: {
		Kind: ServerFreeze, Name: "server-freeze", Target: OnServer,
		Params:    []Param{{Name: "for", Field: FieldFor, Required: true, Unit: unitSpan, Meaning: "how long it stands still"}},
		Brief:     "the server's process stands still; its clock runs on and its host takes messages in",
		Simulator: "no input reaches the server; messages reach its host and wait; overdue timers fire on waking, in an order that the tape chooses",
		Real:      "SIGSTOP and SIGCONT to the server",
	},
	ServerStop: {
		Kind: ServerStop, Name: "server-stop", Target: OnServer,
		Brief:     "the server is asked to leave in order",
		Simulator: "the stop input; the process exits when the server says that it is done",
		Real:      "SIGTERM to the server",
	},
	HostSuspend: {
		Kind: HostSuspend, Name: "host-suspend", Target: OnHost,
		Params:    []Param{{Name: "for", Field: FieldFor, Required: true, Unit: unitSpan, Meaning: "how long the host sleeps"}},
		Brief:     "the server's host and all on it sleep; their monotonic clocks stand still",
		Simulator: "processes, clocks and the host's network stop together; on waking no process sees that time passed; with `worker`, one worker's own host",
		Real:      "cannot be done to real processes; the run says so",
	},
	OldClient: {
		Kind: OldClient, Name: "old-client", Target: OnWorker, Setting: true,
		Brief:     "the worker is from before liveness: its PING has no payload",
		Simulator: "the process speaks the old form all through the run",
		Real:      "a worker of ours is started in its legacy form",
	},
	OldServer: {
		Kind: OldServer, Name: "old-server", Target: OnServer, Setting: true,
		Brief:     "the server is from before liveness: its PING takes no payload, and nothing is reaped",
		Simulator: "the process speaks the old form all through the run",
		Real:      "the server is started in its legacy form",
	},
	PIDIdentity: {
		Kind: PIDIdentity, Name: "pid-identity", Target: OnWorker, Setting: true,
		Brief:     "the worker's instance id is its PID in its own namespace",
		Simulator: "the process uses its PID as its id all through the run",
		Real:      "a worker of ours is started with its PID as its id",
	},
	DeviceOutOfMemory: {
		Kind: DeviceOutOfMemory, Name: "device-out-of-memory", Target: OnServer,
		Params: []Param{
			{Name: "room", Field: FieldBytes, Required: true, Unit: "bytes", Meaning: "what the device has room for, all mappings together"},
			untilCounter,
		},
		Brief:     "the device has no room for another mapping",
		Simulator: "an open that would pass the room fails with out-of-memory",
		Real:      "only where the backend can be given a budget (hostshm)",
	},
}

func slow(k Kind, name, what, ops string) Description {
	return Description{
		Kind: k, Name: name, Target: OnWorker, Params: []Param{by, struck, untilCounter},
		Brief:     what + " takes longer",
		Simulator: "the time is added to each of the " + ops + " that begin while it acts",
		Real:      "the server's hostshm backend is told to wait that long before each of the " + ops,
	}
}

func hang(k Kind, name, what, ops string) Description {
	return Description{
		Kind: k, Name: name, Target: OnWorker, Params: []Param{struck, untilCounter},
		Brief:     what + " never returns",
		Simulator: "the " + ops + " that begin while it acts have no end",
		Real:      "the server's hostshm backend never ends those " + ops,
	}
}

func fail(k Kind, name, what, ops string) Description {
	return Description{
		Kind: k, Name: name, Target: OnWorker, Params: []Param{struck, untilCounter},
		Brief:     what + " fails",
		Simulator: "the " + ops + " that begin while it acts end with an error",
		Real:      "the server's hostshm backend ends those " + ops + " with an error",
	}
}

// Describe returns the description of a fault; false for what is none.
func Describe(k Kind) (*Description, bool) {
	if k == None || k >= Kinds {
		return nil, false
	}
	return &table[k], true
}

// Named returns the description of the fault of that name; false where there
// is none.
func Named(name string) (*Description, bool) {
	for k := None + 1; k < Kinds; k++ {
		if table[k].Name == name {
			return &table[k], true
		}
	}
	return nil, false
}

// Names lists the faults' names in their fixed order.
func Names() []string {
	names := make([]string, 0, Kinds-1)
	for k := None + 1; k < Kinds; k++ {
		names = append(names, table[k].Name)
	}
	return names
}

// String is the fault's name in files and listings.
func (k Kind) String() string {
	if d, ok := Describe(k); ok {
		return d.Name
	}
	return "none"
}

// Param returns the parameter of that name; false where the fault has none.
func (d *Description) Param(name string) (*Param, bool) {
	for i := range d.Params {
		if d.Params[i].Name == name {
			return &d.Params[i], true
		}
	}
	return nil, false
}

// ParamNames lists the fault's parameters.
func (d *Description) ParamNames() []string {
	names := make([]string, len(d.Params))
	for i := range d.Params {
		names[i] = d.Params[i].Name
	}
	return names
}

// Span returns the span that the parameter sets in f, nil where it sets none.
func (p *Param) Span(f *Fault) *Span {
	switch p.Field {
	case FieldFor:
		return &f.For
	case FieldAmount:
		return &f.Amount
	}
	return nil
}

// Switch returns the truth that the parameter sets in f, nil where it sets none.
func (p *Param) Switch(f *Fault) *bool {
	switch p.Field {
	case FieldSilent:
		return &f.Silent
	case FieldSame:
		return &f.Same
	}
	return nil
}
