package explain

import (
	"slices"
	"strings"

	"vigil/core"
	"vigil/faults"
	"vigil/scenarios"
	"vigil/scenarios/run"
	"vigil/sim"
)

// Weight says how much a scene says.
type Weight uint8

// The weights.
const (
	Everyday Weight = iota // a ping, a transfer that ends well: counted, the last one shown
	Telling
	Turning // a context comes or goes, a process stops or dies, health flips
)

// Scene is one thing of the story that matters to the violation.
type Scene struct {
	At     core.Time
	Actor  string
	Words  string
	Record core.Record
	Weight Weight
	// Lane is whose column it stands in: 0 the server, worker number + 1, -1
	// the world.
	Lane int
	// To is where a message goes, -1 where the scene is none. Lost says that it
	// does not arrive, or is not known to.
	To   int
	Lost bool
	// Label is the message in a word or two.
	Label string
	// Skipped are how many everyday things came before it and are not shown.
	Skipped map[string]int
}

// World is the lane of what happens to everybody.
const World = -1

// Server is the server's lane.
const Server = 0

// cast is who matters to a violation: whom it happened to, and whom its reason
// names.
func cast(s *scenarios.Scenario, v *run.Violation) (list []int) {
	for _, name := range v.Actors {
		for i := range s.Plan.Workers {
			if s.Plan.Workers[i].Name == name && !slices.Contains(list, i) {
				list = append(list, i)
			}
		}
	}
	words := strings.FieldsFunc(v.Message, func(r rune) bool {
		return !(r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	for i := range s.Plan.Workers {
		if slices.Contains(words, s.Plan.Workers[i].Name) && !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	if len(list) == 0 && len(s.Plan.Workers) <= 4 {
		for i := range s.Plan.Workers {
			list = append(list, i)
		}
	}
	return list
}

// everyday are the words under which what repeats is counted.
func everyday(r *core.Record) string {
	switch r.Kind {
	case core.PingAnswered:
		return "pings answered"
	case core.EngineTold:
		switch o := core.Outcome(min(r.B, 255)); {
		case o == core.OutcomeStored:
			return "stores done"
		case o == core.OutcomeLoaded:
			return "retrieves loaded"
		case o == core.OutcomeMissed && !r.Flag:
			return "retrieves missed"
		}
	}
	return ""
}

// weigh says how much a record says to whoever looks for a cause.
func weigh(r *core.Record) (Weight, bool) {
	switch r.Kind {
	case core.FaultStruck, core.ContextInserted, core.ContextRemoved, core.ProcessKilled, core.ProcessExited, core.ProcessPaused, core.ProcessResumed,
		core.LinkCut, core.LinkHealed, core.ReapDecided, core.ReleaseStuck, core.MappingHung, core.MappingReopened, core.MappingClosedTwice,
		core.MappingUnknown, core.CopyTouchedRelease, core.CopyTouchedGone, core.CopyMisfit, core.ParcelLeft, core.TimerInVain, core.BlocksWrong, core.ServerStopping:
		return Turning, true
	case core.HealthCleared, core.HealthSet, core.PingFailed, core.RegisterSent, core.RegisterEnded, core.RegisterNoop, core.RecoveryBegan, core.RecoveryEnded,
		core.WorkerStarted, core.ServerStarted, core.CloseBegan, core.CloseEnded, core.Latched, core.HeartbeatStarted, core.Refused, core.RequestDropped,
		core.UnregisterSent, core.UnregisterCame, core.RopeDropped, core.RopeAdded, core.StrategyRemoved, core.LayoutReleased, core.PoolFull,
		core.ShutdownBegan, core.WorkerStopped, core.ServerStopped, core.MessageLost, core.ServerWarned:
		return Telling, true
	case core.OpenEnded, core.CopyEnded, core.TransferEnded:
		return Telling, r.Failure != core.NoFailure
	case core.EngineTold:
		return Telling, true
	case core.PingAnswered:
		return Telling, true
	}
	return Everyday, false
}

// maxScenes bounds an explanation; the latest are kept, since what is close to
// the violation says most.
const maxScenes = 400

// repeats is how often the same kind of thing is told of one actor one by one.
const repeats = 4

// scenes picks what matters out of a story, up to shortly after the violation.
func scenes(story *run.Story, cast []int, v *run.Violation) (list []Scene) {
	last := v.At
	type told struct {
		kind core.RecordKind
		lane int
	}
	count := map[told]int{}
	skipped := map[string]int{}
	var pending *Scene // the last everyday thing, shown before what follows it
	flush := func() {
		if pending == nil {
			return
		}
		word := everyday(&pending.Record)
		if skipped[word]--; skipped[word] == 0 {
			delete(skipped, word)
		}
		pending.Skipped = skipped
		list = append(list, *pending)
		pending, skipped = nil, map[string]int{}
	}
	for i := range story.Lines {
		l := &story.Lines[i]
		if l.At > last {
			break
		}
		r := &l.Record
		lane, matters := laneOf(story, l, cast)
		if !matters {
			continue
		}
		weight, shown := weigh(r)
		if !shown {
			continue
		}
		s := Scene{At: l.At, Actor: l.Actor, Words: l.Words, Record: *r, Weight: weight, Lane: lane, To: -1}
		s.message(l.About)
		if word := everyday(r); word != "" {
			s.Weight = Everyday
			skipped[word]++
			pending = &s
			continue
		}
		if weight == Telling {
			key := told{r.Kind, lane}
			if count[key]++; count[key] > repeats && r.At < last {
				skipped[strings.ReplaceAll(r.Kind.String(), "-", " ")]++
				continue
			}
		}
		flush()
		if len(skipped) > 0 {
			s.Skipped, skipped = skipped, map[string]int{}
		}
		// What a step does is recorded before the step itself: its cause goes first.
		at := len(list)
		if r.Kind == core.FaultStruck {
			for at > 0 && list[at-1].At == s.At && list[at-1].Record.Kind != core.FaultStruck && list[at-1].Weight != Everyday {
				at--
			}
		}
		list = slices.Insert(list, at, s)
	}
	flush()
	if over := len(list) - maxScenes; over > 0 {
		list = slices.Delete(list, 0, over)
	}
	return list
}

// message says where a scene's message goes.
func (s *Scene) message(about int) {
	worker := about + 1
	switch s.Record.Kind {
	case core.RegisterSent:
		s.To, s.Label = Server, "register"
	case core.RegisterEnded:
		s.Lane, s.To, s.Label = Server, worker, "registered"
		if s.Record.Failure != core.NoFailure {
			s.Label = "refused"
			if s.Record.Failure == core.FailDeadline {
				s.Label, s.Lost = "no answer", true
			}
		}
	case core.PingAnswered:
		s.Lane, s.To, s.Label = Server, worker, "ping: yes"
		if !s.Record.Flag {
			s.Label = "ping: no"
		}
	case core.PingFailed:
		s.Lane, s.To, s.Label, s.Lost = worker, Server, "ping", true
	case core.UnregisterSent:
		s.To, s.Label = Server, "unregister"
	case core.EngineTold:
		s.Label = "retrieve"
		if s.Record.Flag {
			s.Label = "store"
		}
	case core.MessageLost:
		s.Label, s.Lost = "lost", true
		if s.Lane, s.To = Server, worker; s.Record.Flag {
			s.Lane, s.To = worker, Server
		}
	}
}

// laneOf says in which column a line stands, and whether it matters: what the
// cast does and has done to it, what the server does for everybody, and every
// fault.
func laneOf(story *run.Story, l *run.Line, cast []int) (lane int, matters bool) {
	r := &l.Record
	ours := l.About >= 0 && slices.Contains(cast, l.About)
	switch {
	case r.Kind == core.FaultStruck:
		return World, stepMatters(story, int(r.A), cast)
	case r.Actor == core.ActorServer:
		switch r.Kind {
		case core.ServerStarted, core.ServerStopping, core.ServerStopped, core.ServerWarned:
			return Server, true
		}
		return Server, ours
	case r.Actor == core.ActorWorld:
		switch r.Kind {
		case core.ProcessKilled, core.ProcessPaused, core.ProcessResumed, core.ProcessExited:
			if r.A == 0 {
				return Server, true
			}
			return int(r.A), ours
		case core.MappingReopened, core.MappingClosedTwice, core.MappingUnknown, core.MappingHung, core.CopyTouchedRelease, core.CopyTouchedGone, core.CopyMisfit:
			return Server, ours // it is the server that does this to memory
		}
		if ours {
			return l.About + 1, true
		}
		return World, false
	}
	return l.About + 1, ours
}

// stepMatters says whether a step strikes the server, everybody, or the cast.
func stepMatters(story *run.Story, step int, cast []int) bool {
	do := story.Action(step)
	if do == nil {
		return false
	}
	who := do.Worker
	if do.Kind == sim.ActFault {
		who = do.Fault.Worker
	}
	return who == faults.Server || who == faults.Everyone || slices.Contains(cast, who)
}
