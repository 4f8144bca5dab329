package run

import (
	"fmt"
	"strings"

	"vigil/core"
	"vigil/core/wire"
	"vigil/scenarios"
	"vigil/sim"
)

// The story of one run: its records as lines that a person reads.

// MaxStory bounds the lines of one story; what comes after is counted only.
const MaxStory = 200_000

// Line is one record in words.
type Line struct {
	At     core.Time
	Actor  string // who says so: a worker's name, server, world
	Words  string
	Record core.Record
	About  int // the worker that it is about, -1 for none
}

// Story collects the lines of one run. It is an observer.
type Story struct {
	// Everything keeps each record; else the traffic of messages and stamps that
	// repeats all through a run is left out.
	Everything bool
	Lines      []Line
	Left       int // lines that did not fit

	s     *scenarios.Scenario
	lives lives
	built map[servedKey]int32 // of each context in the server: the life that it was built for
	dead  map[int32]bool      // lives whose process has ended
	// answers is what a raw client was answered in this run; nil where nobody asks.
	answers func(step int) string
}

// servedKey is where the server looks a context up.
type servedKey struct {
	id   core.InstanceID
	kind core.ContextKind
}

// Tell plays one seed of a scenario and returns its story and what it came to.
func (p *Player) Tell(s *scenarios.Scenario, seed uint64, everything bool) (*Story, Run) {
	st := NewStory(s, everything)
	st.answers = p.answer
	return st, p.Play(s, seed, st)
}

// TellTape is Tell by a tape of the caller's.
func (p *Player) TellTape(s *scenarios.Scenario, seed uint64, tape *sim.Choices, everything bool) (*Story, Run) {
	st := NewStory(s, everything)
	st.answers = p.answer
	return st, p.PlayTape(s, seed, tape, st)
}

// Action is what a step of the story's scenario does, nil where there is no
// such step.
func (st *Story) Action(step int) *sim.Action {
	if step < 0 || step >= len(st.s.Plan.Steps) {
		return nil
	}
	return &st.s.Plan.Steps[step].Do
}

// NewStory returns an empty story of a scenario.
func NewStory(s *scenarios.Scenario, everything bool) *Story {
	st := &Story{Everything: everything, s: s}
	st.lives.reset(len(s.Plan.Workers))
	return st
}

// routine are the records that repeat all through a run and say nothing new.
var routine = [256]bool{
	core.MessageSent: true, core.MessageReached: true, core.MessageHandled: true, core.Stamped: true,
	core.RequestSent: true, core.TransferBegan: true, core.TransferEnded: true, core.CopyBegan: true, core.CopyEnded: true,
	core.LockTaken: true, core.LockReturned: true, core.ChunkReserved: true, core.ChunkReady: true,
	core.Submitted: true, core.RequestResolved: true, core.FinishedReported: true,
	core.PingSent: true, core.PingAnswered: true, core.BlocksRight: true,
	core.ScanBegan: true, core.ScanEnded: true,
	core.EngineSubmitted: true, core.EngineTold: true,
}

// Observe takes one record of the run.
func (st *Story) Observe(r *core.Record) {
	st.enter(r)
	if !st.Everything && routine[r.Kind] && !(r.Kind == core.ScanEnded && r.A > 0) {
		return
	}
	if len(st.Lines) >= MaxStory {
		st.Left++
		return
	}
	worker, _ := st.lives.find(r)
	st.Lines = append(st.Lines, Line{At: r.At, Actor: st.actor(r), Words: st.WordsOf(r, int(worker)), Record: *r, About: int(worker)})
}

// Say takes the next record of the run and returns its words; it keeps none. A
// story is told by Observe or by Say, not by both.
func (st *Story) Say(r *core.Record) string {
	st.enter(r)
	worker, _ := st.lives.find(r)
	return st.WordsOf(r, int(worker))
}

// enter keeps what the words of later records need.
func (st *Story) enter(r *core.Record) {
	if r.Kind == core.WorkerStarted {
		st.lives.begin(int(r.Actor)-int(core.FirstWorker), r.Instance)
	}
	st.follow(r)
}

// follow keeps whose context the server holds under each id. An id that two
// processes had, one after the other, is a story only with that.
func (st *Story) follow(r *core.Record) {
	switch r.Kind {
	case core.ContextInserted:
		if _, life := st.lives.find(r); life >= 0 {
			if st.built == nil {
				st.built = map[servedKey]int32{}
			}
			st.built[servedKey{r.Instance, r.Context}] = life
		}
	case core.ContextRemoved:
		delete(st.built, servedKey{r.Instance, r.Context})
	case core.ProcessKilled, core.ProcessExited:
		if r.A == 0 {
			clear(st.built) // the server's own process: nothing is held any more
			return
		}
		if w := int(r.A) - 1; w < len(st.lives.current) && st.lives.current[w] >= 0 {
			if st.dead == nil {
				st.dead = map[int32]bool{}
			}
			st.dead[st.lives.current[w]] = true
		}
	}
}

// another says whose context a register found, where that is not the context
// of the process that registers; empty where it is.
func (st *Story) another(r *core.Record) string {
	owner, known := st.built[servedKey{r.Instance, r.Context}]
	_, life := st.lives.find(r)
	if !known || life < 0 || owner == life {
		return ""
	}
	text := "the context of " + st.worker(int(st.lives.all[owner].worker))
	if st.lives.all[owner].worker == st.lives.all[life].worker {
		text += "'s earlier process"
	}
	if st.dead[owner] {
		text += ", which is dead"
	}
	return text
}

// actor is who wrote a record.
func (st *Story) actor(r *core.Record) string {
	switch {
	case r.Actor == core.ActorWorld:
		return "world"
	case r.Actor == core.ActorServer:
		return "server"
	}
	return st.worker(int(r.Actor) - int(core.FirstWorker))
}

func (st *Story) worker(i int) string {
	if i >= 0 && i < len(st.s.Plan.Workers) {
		return st.s.WorkerName(i)
	}
	if i == len(st.s.Plan.Workers) {
		return "client"
	}
	return "somebody"
}

func seconds(v uint64) string { return scenarios.Seconds(core.Time(v).Sub(0)) }

// process names the process that a world's record numbers: 0 the server.
func (st *Story) process(a uint64) string {
	if a == 0 {
		return "the server"
	}
	return st.worker(int(a) - 1)
}

var (
	removals = []string{"by its client", "by the reaper", "to be replaced", "because the server stops", "on proof of its process's death"}
	causes   = []string{"a register", "a register that changed nothing", "a ping", "a transfer"}
	ways     = []string{"both ways", "towards the server", "towards the worker"}
)

func pick(words []string, i uint64) string {
	if i < uint64(len(words)) {
		return words[i]
	}
	return "for a reason that has no name"
}

// WordsOf says what a record says; worker is whom it is about, -1 for nobody.
func (st *Story) WordsOf(r *core.Record, worker int) string {
	who := ""
	if worker >= 0 {
		who = st.worker(worker)
	} else if r.Instance != 0 {
		who = fmt.Sprintf("instance %d", uint64(r.Instance))
	}
	what := "context"
	if r.Context != core.NoContext {
		what = r.Context.String() + " context"
	}
	if r.Incarnation != 0 {
		what += fmt.Sprintf(" (incarnation %d)", uint64(r.Incarnation))
	}
	request := "retrieve"
	if r.Flag {
		request = "store"
	}
	failed := ""
	if r.Failure != core.NoFailure {
		failed = ": " + r.Failure.String()
	}
	switch r.Kind {
	case core.ServerStarted:
		return fmt.Sprintf("starts, with a reap timeout of %s and a grace of %s", seconds(r.A), seconds(r.B))
	case core.ServerStopping:
		return "is asked to stop"
	case core.ServerStopped:
		return fmt.Sprintf("has stopped; still held: %d contexts, %d bytes", r.A, r.B)
	case core.RegisterArrived:
		return "takes up a register of " + who
	case core.OpenBegan:
		return fmt.Sprintf("begins to open the memory of %s (mapping %d)", who, r.A)
	case core.OpenEnded:
		return fmt.Sprintf("opened mapping %d of %s%s", r.A, who, failed)
	case core.ContextInserted:
		return fmt.Sprintf("serves %s from now on: %s, %d bytes", who, what, r.B)
	case core.RegisterNoop:
		if whose := st.another(r); whose != "" {
			return fmt.Sprintf("finds id %d registered already: %s; %s is answered as a success and bound to it, %s refreshed, nothing built", uint64(r.Instance), whose, who, what)
		}
		return fmt.Sprintf("has %s already: %s refreshed, nothing built", who, what)
	case core.StrategyAdded, core.StrategyRemoved:
		return fmt.Sprintf("%s the strategy of %s", lastWord(r.Kind), who)
	case core.RopeAdded:
		return "keeps blend state of " + who
	case core.RopeDropped:
		return fmt.Sprintf("drops the blend state of %s, for %s", who, [...]string{"its client", "the reaper", "the stop"}[min(r.A, 2)])
	case core.LayoutAcquired:
		return fmt.Sprintf("takes a layout share for %s; %d holders", who, r.B)
	case core.LayoutReleased:
		return fmt.Sprintf("gives the layout share of %s back; %d holders", who, r.B)
	case core.Stamped:
		return fmt.Sprintf("stamps the %s of %s, for %s", what, who, pick(causes, r.B))
	case core.Latched:
		return fmt.Sprintf("has heard %s ping: from now on judged by the reap timeout", who)
	case core.ScanBegan:
		return fmt.Sprintf("scans %d entries", r.A)
	case core.ScanEnded:
		return fmt.Sprintf("ends its scan; %d reaped", r.A)
	case core.ReapDecided:
		return fmt.Sprintf("finds the %s of %s silent for more than %s", what, who, seconds(r.B))
	case core.ContextRemoved:
		if core.RemovalCause(r.A) == core.RemovedByReaper {
			return fmt.Sprintf("WARNING: %s of %s is reaped, %d times so far", what, who, r.B)
		}
		return fmt.Sprintf("takes the %s of %s away %s", what, who, pick(removals, r.A))
	case core.CloseBegan:
		return fmt.Sprintf("begins to close mapping %d of %s", r.A, who)
	case core.CloseEnded:
		return fmt.Sprintf("closed mapping %d of %s, %d bytes back%s", r.A, who, r.B, failed)
	case core.ReleaseStuck:
		return fmt.Sprintf("reports mapping %d of %s as stuck in release, with %d bytes", r.A, who, r.B)
	case core.DropFannedOut:
		return "tells every module to drop the state of " + who
	case core.UnregisterCame:
		return "takes up an unregister of " + who
	case core.Refused:
		answer := "without an answer"
		if r.Flag {
			answer = "with an answer"
		}
		return fmt.Sprintf("refuses a %s %s%s", wire.Type(r.A), answer, failed)
	case core.PoolFull:
		return fmt.Sprintf("has no room for a %s%s", wire.Type(r.A), failed)
	case core.ServerWarned, core.WorkerWarned:
		return "WARNING" + failed

	case core.WorkerStarted:
		return fmt.Sprintf("starts as PID %d with id %d", r.A, uint64(r.Instance))
	case core.RegisterSent:
		if r.Flag {
			return "registers again: recovery"
		}
		return "registers"
	case core.RegisterEnded:
		return "has the answer to its register" + orWell(failed)
	case core.HeartbeatStarted:
		return "starts its heartbeat"
	case core.PingSent:
		return fmt.Sprintf("pings (request %d)", r.A)
	case core.PingAnswered:
		return fmt.Sprintf("has its ping answered: %t", r.Flag)
	case core.PingFailed:
		return "has a ping fail" + failed
	case core.RecoveryBegan:
		return "sees the server again and recovers"
	case core.RecoveryEnded:
		return fmt.Sprintf("ends its recovery; healthy: %t", r.Flag)
	case core.HealthCleared:
		return "is UNHEALTHY: degraded mode"
	case core.HealthSet:
		return "is healthy again"
	case core.RequestDropped:
		return fmt.Sprintf("drops %s %d: unhealthy", request, r.A)
	case core.Submitted, core.EngineSubmitted:
		return fmt.Sprintf("%s %d is submitted by %s", request, r.A, who)
	case core.RequestSent:
		return fmt.Sprintf("sends %s %d", request, r.A)
	case core.RequestResolved:
		return fmt.Sprintf("has the answer to request %d%s", r.A, orWell(failed))
	case core.FinishedReported, core.EngineTold:
		return fmt.Sprintf("%s %d of %s ended: %s", request, r.A, who, core.Outcome(r.B))
	case core.ShutdownBegan:
		return "begins its shutdown"
	case core.HeartbeatStopped:
		return "has stopped its heartbeat"
	case core.UnregisterSent:
		return "says goodbye (" + r.Context.String() + ")"
	case core.UnregisterEnded:
		return "has the answer to its goodbye" + orWell(failed)
	case core.WorkerStopped:
		return "has stopped"

	case core.FaultStruck:
		text := st.s.Words(int(r.A))
		if !r.Flag {
			text += " (nothing to strike yet)"
		}
		return "STEP: " + text
	case core.AnswerCame:
		text := "the answer to " + st.s.Words(int(r.A))
		if st.answers == nil {
			return text
		}
		return text + ": " + st.answers(int(r.A))
	case core.ProcessStarted:
		return fmt.Sprintf("%s starts as PID %d", st.process(r.A), r.B)
	case core.ProcessKilled:
		return st.process(r.A) + " is killed"
	case core.ProcessExited:
		return st.process(r.A) + " exits"
	case core.ProcessPaused:
		return st.process(r.A) + " stands still"
	case core.ProcessResumed:
		return st.process(r.A) + " goes on"
	case core.ConnectionOpened:
		return fmt.Sprintf("%s is connected (peer %d)", st.process(r.B), r.A)
	case core.ConnectionClosed:
		return fmt.Sprintf("the connection of %s closes (peer %d)", st.process(r.B), r.A)
	case core.LinkCut:
		return fmt.Sprintf("the link of %s is cut, %s", st.process(r.A), pick(ways, r.B))
	case core.LinkHealed:
		return fmt.Sprintf("the link of %s is back", st.process(r.A))
	case core.MappingOpened:
		return fmt.Sprintf("mapping %d of %s is open: %d bytes charged to the server", r.A, who, r.B)
	case core.MappingClosing:
		return fmt.Sprintf("mapping %d of %s is being closed", r.A, who)
	case core.MappingClosed:
		return fmt.Sprintf("mapping %d of %s is closed: %d bytes back", r.A, who, r.B)
	case core.MappingHung:
		return fmt.Sprintf("closing mapping %d of %s will not return", r.A, who)
	case core.MappingReopened:
		return fmt.Sprintf("WRONG: mapping %d of %s opens memory that is open already", r.A, who)
	case core.MappingClosedTwice:
		return fmt.Sprintf("WRONG: mapping %d of %s is closed twice", r.A, who)
	case core.MappingUnknown:
		return fmt.Sprintf("WRONG: mapping %d was never opened", r.A)
	case core.CopyTouchedRelease:
		return fmt.Sprintf("WRONG: a copy uses mapping %d of %s while it is released", r.A, who)
	case core.CopyTouchedGone:
		return fmt.Sprintf("WRONG: a copy uses memory of %s that is gone", who)
	case core.CopyMisfit:
		return fmt.Sprintf("WRONG: a copy on mapping %d of %s goes beyond its blocks, or does not fill its slot: %d", r.A, who, r.B)
	case core.TimerInVain:
		return fmt.Sprintf("WRONG: the timer %s comes for nobody, or is armed when its process leaves", core.TimerKind(r.B))
	case core.ParcelLeft:
		return fmt.Sprintf("WRONG: %d bytes that came in a message are kept for nobody", r.B)
	case core.BlocksRight:
		return fmt.Sprintf("retrieve %d of %s delivered %d right blocks", r.A, who, r.B)
	case core.BlocksWrong:
		if r.Flag {
			return fmt.Sprintf("WRONG: the engine of %s is told to keep away from other blocks of request %d than it should, first block %d", who, r.A, r.B)
		}
		return fmt.Sprintf("WRONG: retrieve %d of %s delivered other bytes than were stored, first in block %d", r.A, who, r.B)
	case core.EngineRegistered:
		return fmt.Sprintf("the engine of %s is told that it is registered: %t%s", who, r.Flag, failed)
	case core.EngineWarned:
		return fmt.Sprintf("the engine of %s is warned%s", who, failed)
	case core.EngineLeaving:
		return fmt.Sprintf("the engine of %s asks for an orderly shutdown", who)
	case core.FaultsOver:
		if r.At < 1000 { // in the first microsecond: there is no fault to wait for
			return "no fault acts in this run: whatever is owed is owed from the start"
		}
		return "no fault acts from here on: whatever is owed must now come within its bound"
	case core.WorldEnded:
		return "the run ends"
	}
	text := strings.ReplaceAll(r.Kind.String(), "-", " ")
	if who != "" {
		text += ", " + who
	}
	return fmt.Sprintf("%s (%d, %d)%s", text, r.A, r.B, failed)
}

func lastWord(k core.RecordKind) string {
	if k == core.StrategyAdded {
		return "keeps"
	}
	return "drops"
}

func orWell(failed string) string {
	if failed == "" {
		return ": well"
	}
	return failed
}
