package monitor

// Description is what one monitor promises, for listings and reports.
type Description struct {
	ID        string
	Safety    bool
	Statement string
	Truth     string // what it judges, and against what
	Bound     string // liveness only: the deadline as a formula of the settings
}

var descriptions = [invariants]Description{
	one: {"ONE", true,
		"An instance id has at most one serving context of a kind; its context, strategy, mapping and layout share change in one step.",
		"contexts, strategies and shares as claimed, against the mappings that are open in the server", ""},
	converge: {"CONVERGE", false,
		"Once faults stop, every live connected worker that registered and is not leaving holds a serving context of its kind, or was told that its old mapping is stuck or that the device has no room.",
		"processes, links and what engines were told, against contexts as claimed; probers, version-skewed workers and workers whose first registration failed are not owed one",
		"2 x interval + 4 x network + (workers + 1) x open (divided by 8, rounded up, where registers run aside) + release + copy + 1 s, from the last of: faults over, server up, worker started, resumed, connected, its context lost; a register sent before that adds its time to end, at most the request timeout"},
	reclaim: {"RECLAIM", false,
		"What a dead worker held - mapped bytes, contexts, strategy, layout share, blend state - is given back in time, or its release is reported as stuck.",
		"deaths, messages that reached the host and mappings, against what the server still holds; nothing is owed with a reap timeout of 0",
		"window + scan + (most mappings open at once + 1) x release + copy + 1 s, from the last of: death, its last message reaching the host or being handled, its memory being open (an open that has begun cannot be taken back), its last transfer ending, server up; the window is the reap timeout if a ping reached the host since the context was inserted (and since it transferred, where a ping latches only then), else the registration grace; a copy under way keeps a context for 300 s where transfers keep it alive; a release that hangs is reported 30 s later at most where releases run on their own"},
	noFalseReap: {"NO-FALSE-REAP", true,
		"A live worker whose signal reached the server's host within its window is not reaped; where protections promise it, neither is a live idle one.",
		"processes and messages at the host, against the reaper's removals; the window is the registration grace until a ping of that id has reached the host (since it transferred, where a ping latches only then), then the reap timeout", ""},
	isolate: {"ISOLATE", false,
		"A release that runs past its bound delays no other instance's ping, register or reap.",
		"mappings in release, against the pings and registers of workers whose link and processes were undisturbed, and against reaps that are due",
		"ping: its reply deadline, half of it under the overdue release; register: 2 x network + (workers + 1) x open + 1 s under it; reap: the bound of RECLAIM"},
	terminal: {"TERMINAL", false,
		"Every request of an engine ends exactly once and in time, blocks that were held back are freed, and no half-written chunk of a context that is gone is left behind.",
		"what engines submitted and were told; reservations as claimed",
		"request timeout + 2 x interval + copy + (workers + 1) x open + 4 x network + 1 s, from the last of: submitted, worker resumed or connected, server up; an orderly exit leaves none; held blocks: as long again from when its engine was told, once no copy of the worker is under way; reservations: request timeout + copy + release + 1 s after the context went"},
	noUAF: {"NO-UAF", true,
		"No copy touches a mapping whose release has begun.",
		"copies and mappings in device memory", ""},
	fence: {"FENCE", true,
		"Work for incarnation k never changes incarnation k+1.",
		"incarnations of removals, closes, releases, fan-outs and chunks as claimed, against the incarnation each was decided or opened for", ""},
	once: {"ONCE", true,
		"Every open is matched by one close, every layout share by one release, when its context goes and when the server stops.",
		"opens and closes in device memory; shares as claimed", ""},
	quiet: {"QUIET", true,
		"After its owner sent its unregister nothing pings or registers for an instance, and no context of it appears once the server handled that; no register that waited is run for a worker long dead. No timer comes that nobody waits for.",
		"what a leaving worker sends, deaths and timers, against contexts as claimed", ""},
	integrity: {"INTEGRITY", true,
		"A retrieve delivers what a finished writer stored under that key, or a miss.",
		"every delivered block's tag in the worker's memory, and every copy's bounds; for engine-driven workers, whose bytes the server never sees: chunks that became readable after their writer's context had gone", ""},
	visible: {"VISIBLE", false,
		"A release past its bound is reported as stuck, and a ping of another protocol version is counted as refused.",
		"releases that hang in device memory and pings that the server took in, against the reports",
		"reap timeout (120 s where it is 0) + scan + release + 1 s, from the last of: release begun, server up; version skew: by the end of the run"},
	trueLog: {"TRUE-LOG", true,
		"What the server and the workers write of themselves is what happened, in its order, and nothing that matters is left out.",
		"every claim, against the claims before it and against device memory, messages and engines; in simulated runs only, and not in an exhaustive search", ""},
}

// Describe returns what each monitor judges, in the order of DESIGN.md.
func Describe() []Description {
	all := make([]Description, len(descriptions))
	copy(all, descriptions[:])
	return all
}

// Undecided is an invariant that a log could not decide, and why.
type Undecided struct{ Invariant, Reason string }

// Simulated reports whether an invariant is judged in simulated runs only: the
// log of a real one may begin and end anywhere.
func (d *Description) Simulated() bool { return d.ID == descriptions[trueLog].ID }

// Undecided lists what could not be judged because the log holds no such
// truth. Only a Real setup misses any: elsewhere the world writes all of it.
func (m *Set) Undecided() []Undecided {
	if !m.setup.Real {
		return nil
	}
	var list []Undecided
	miss := func(inv invariant, seen bool, what string) {
		if !seen {
			list = append(list, Undecided{descriptions[inv].ID, "the log does not say " + what})
		}
	}
	const (
		processes = "which processes lived and when"
		network   = "which messages reached the host"
		memory    = "which mappings were open"
		engines   = "what engines asked and were told"
	)
	miss(converge, m.saw.processes && m.saw.engines, processes+" and "+engines)
	miss(reclaim, m.saw.processes && m.saw.memory, processes+" and "+memory)
	miss(noFalseReap, m.saw.processes && m.saw.network, processes+" and "+network)
	miss(isolate, m.saw.memory, memory)
	miss(terminal, m.saw.engines, engines)
	miss(noUAF, m.saw.memory, "which mappings copies touched")
	miss(once, m.saw.memory, memory)
	miss(quiet, m.saw.processes, "when workers sent their unregister")
	miss(integrity, m.saw.engines, "what retrieves delivered")
	miss(visible, m.saw.memory, "which releases hung")
	return list
}
