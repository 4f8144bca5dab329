package monitor

import (
	"testing"
	"time"

	"vigil/core"
	"vigil/core/wire"
)

func TestOne(t *testing.T) {
	run(t, []story{
		{name: "a second context of a kind", tell: func(s *tale) {
			s.up(0, 1).reap(200, 0, 1).release(200, 201, 0, 1)
			s.serve(210, 0, 2).open(220, 0, 3).insert(220, 0, 3).acquire(220, 0, 3, core.ServerDriven)
		}, end: 221, breaks: []string{"ONE"}},
		{name: "the second after the first went", tell: func(s *tale) {
			s.up(0, 1).reap(200, 0, 1).release(200, 201, 0, 1).serve(210, 0, 2)
		}},
		{name: "one in release is not serving", tell: func(s *tale) {
			s.up(0, 1).reap(200, 0, 1).serve(210, 0, 2).release(211, 212, 0, 1)
		}},
		{name: "two mappings and the core claims one context", tell: func(s *tale) {
			s.up(0, 1).open(220, 0, 3)
		}, breaks: []string{"ONE"}, end: 221},
		{name: "one id, two kinds", tell: func(s *tale) { s.up(0, 1).pair(3, 0, 2) }},
		{name: "a context over memory that is not open", tell: func(s *tale) {
			s.born(1, 0).insert(2, 0, 1).acquire(2, 0, 1, core.ServerDriven)
		}, breaks: []string{"ONE"}},
		{name: "an engine-driven context without its strategy", tell: func(s *tale) {
			s.born(1, 0).pairContext(2, 0, 1).acquire(2, 0, 1, core.EngineDriven)
		}, breaks: []string{"ONE"}},
		{name: "the strategy a moment later is too late", tell: func(s *tale) {
			s.born(1, 0).pairContext(2, 0, 1).acquire(2, 0, 1, core.EngineDriven)
			s.strategy(2.1, 0, 1, core.StrategyAdded)
		}, breaks: []string{"ONE"}},
		{name: "the strategy in the same instant but another step", tell: func(s *tale) {
			s.born(1, 0).pairContext(2, 0, 1).acquire(2, 0, 1, core.EngineDriven)
			s.reach(2, 1, wire.Ping).strategy(2, 0, 1, core.StrategyAdded)
		}, breaks: []string{"ONE"}},
		{name: "a second engine-driven context takes over the pair's other half", tell: func(s *tale) {
			s.born(1, 0).pair(2, 0, 1).pairContext(3, 0, 2).strategy(3, 0, 1, core.StrategyRemoved)
			s.strategy(3, 0, 2, core.StrategyAdded).giveBack(3, 0, 1, core.EngineDriven).acquire(3, 0, 2, core.EngineDriven)
		}, breaks: []string{"ONE"}},
		{name: "a context beside another incarnation's strategy", tell: func(s *tale) {
			s.born(1, 0).pairContext(2, 0, 1).acquire(2, 0, 1, core.EngineDriven).strategy(2, 0, 9, core.StrategyAdded)
		}, breaks: []string{"ONE"}},
		{name: "a pair, and it goes as a pair", tell: func(s *tale) {
			s.born(1, 0).pair(2, 0, 1).remove(3, 0, 1, core.EngineDriven, core.RemovedByClient)
			s.strategy(3, 0, 1, core.StrategyRemoved).giveBack(3, 0, 1, core.EngineDriven)
		}},
		{name: "the reaper forgets the strategy", tell: func(s *tale) {
			s.born(1, 0).pair(2, 0, 1).remove(3000, 0, 1, core.EngineDriven, core.RemovedByReaper)
			s.giveBack(3000, 0, 1, core.EngineDriven)
		}, breaks: []string{"ONE"}},
		{name: "a context without a layout share", tell: func(s *tale) {
			s.born(1, 0).open(2, 0, 1).insert(2, 0, 1)
		}, breaks: []string{"ONE"}},
		{name: "blend state goes with the other context of its id (B19)", tell: func(s *tale) {
			s.up(0, 1).pair(3, 0, 2).claim(4, 0, core.RopeAdded, 3, 0)
			s.remove(3700, 0, 2, core.EngineDriven, core.RemovedByReaper).strategy(3700, 0, 2, core.StrategyRemoved)
			s.giveBack(3700, 0, 2, core.EngineDriven).claim(3700, 0, core.RopeDropped, 3, 1)
		}, breaks: []string{"ONE"}},
		{name: "blend state goes with its context", tell: func(s *tale) {
			s.up(0, 1).claim(4, 0, core.RopeAdded, 3, 0)
			s.reap(200, 0, 1).release(200, 201, 0, 1).claim(201, 0, core.RopeDropped, 3, 1).serve(202, 0, 4)
		}},
	})
}

func TestConverge(t *testing.T) {
	run(t, []story{
		{name: "reaped and nothing makes it register again (A3, B1)", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1)
		}, breaks: []string{"CONVERGE"}},
		{name: "registered again within the bound", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1).serve(3720, 0, 2)
		}},
		{name: "registered again too late", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1).serve(3730, 0, 2)
		}, breaks: []string{"CONVERGE"}},
		{name: "the run ends before the bound", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1)
		}, end: 3720},
		{name: "faults never stop", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1)
		}, change: func(s *Setup) { s.FaultsOver = 0 }},
		{name: "the record of their end counts", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1).world(3800, core.Record{Kind: core.FaultsOver})
		}, change: func(s *Setup) { s.FaultsOver = 0 }, breaks: []string{"CONVERGE"}},
		{name: "its link is cut", tell: func(s *tale) {
			s.up(0, 1).link(100, 0, core.LinkCut).reap(240, 0, 1).release(240, 241, 0, 1)
		}},
		{name: "its link was cut and is whole", tell: func(s *tale) {
			s.up(0, 1).link(100, 0, core.LinkCut).reap(240, 0, 1).release(240, 241, 0, 1).link(300, 0, core.LinkHealed)
		}, breaks: []string{"CONVERGE"}},
		{name: "it is frozen", tell: func(s *tale) {
			s.up(0, 1).process(100, 0, core.ProcessPaused).reap(240, 0, 1).release(240, 241, 0, 1)
		}},
		{name: "it is dead", tell: func(s *tale) {
			s.up(0, 1).process(100, 0, core.ProcessKilled).reap(3700, 0, 1).release(3700, 3701, 0, 1)
		}},
		{name: "it leaves", tell: func(s *tale) {
			s.up(0, 1).does(99, 0, core.ShutdownBegan).remove(100, 0, 1, core.ServerDriven, core.RemovedByClient).release(100, 101, 0, 1)
		}},
		{name: "its first registration failed", tell: func(s *tale) { s.born(1, 0) }},
		{name: "a prober", tell: func(s *tale) { s.born(1, 0).registered(2, 0) },
			change: func(s *Setup) { s.Workers[0].Prober = true }},
		{name: "another version", tell: func(s *tale) { s.born(1, 0).registered(2, 0) },
			change: func(s *Setup) { s.Workers[0].Legacy = true }},
		{name: "the server restarts between two pings (B4)", tell: func(s *tale) {
			s.up(0, 1).process(97, -1, core.ProcessKilled).process(102, -1, core.ProcessStarted)
		}, breaks: []string{"CONVERGE"}},
		{name: "the server restarts and the worker comes back", tell: func(s *tale) {
			s.up(0, 1).process(97, -1, core.ProcessKilled).process(102, -1, core.ProcessStarted).serve(115, 0, 1)
		}},
		{name: "the server is away for longer than the bound", tell: func(s *tale) {
			s.up(0, 1).process(97, -1, core.ProcessKilled).process(130, -1, core.ProcessStarted).serve(140, 0, 1)
		}},
		{name: "the server stays away", tell: func(s *tale) { s.up(0, 1).process(97, -1, core.ProcessKilled) }},
		{name: "its heartbeat sat in a register lost to the faults", tell: func(s *tale) {
			s.up(0, 1).reap(150, 0, 1).release(150, 151, 0, 1).does(190, 0, core.RegisterSent)
			s.world(200, core.Record{Kind: core.FaultsOver})
			s.fails(490, 0, core.RegisterEnded).serve(501, 0, 2)
		}, change: func(s *Setup) { s.FaultsOver = 0 }},
		{name: "a register sent after the faults has no such excuse", tell: func(s *tale) {
			s.up(0, 1).reap(150, 0, 1).release(150, 151, 0, 1)
			s.world(200, core.Record{Kind: core.FaultsOver})
			s.does(201, 0, core.RegisterSent).fails(501, 0, core.RegisterEnded).serve(511, 0, 2)
		}, change: func(s *Setup) { s.FaultsOver = 0 }, breaks: []string{"CONVERGE"}},
		{name: "nor has one that still waits", tell: func(s *tale) {
			s.up(0, 1).reap(150, 0, 1).release(150, 151, 0, 1)
			s.world(200, core.Record{Kind: core.FaultsOver}).does(201, 0, core.RegisterSent)
		}, change: func(s *Setup) { s.FaultsOver = 0 }, breaks: []string{"CONVERGE"}, end: 400},
		{name: "refused while its old mapping is in release and not stuck", tell: func(s *tale) {
			s.up(0, 1).reap(200, 0, 1).closing(200, 0, 1).does(210, 0, core.RegisterSent)
			s.worker(211, 0, core.Record{Kind: core.RegisterEnded, Failure: core.FailOpen})
		}, breaks: []string{"CONVERGE"}, end: 260},
		{name: "told clearly that its old mapping is stuck", tell: func(s *tale) {
			s.up(0, 1).reap(200, 0, 1).closing(200, 0, 1).mapping(200, 0, 1, core.MappingHung)
			s.claim(205, 0, core.ReleaseStuck, 1, 1).does(210, 0, core.RegisterSent)
			s.worker(211, 0, core.Record{Kind: core.RegisterEnded, Failure: core.FailOpen})
		}},
		{name: "stuck and not told", tell: func(s *tale) {
			s.up(0, 1).reap(200, 0, 1).closing(200, 0, 1).mapping(200, 0, 1, core.MappingHung)
			s.claim(205, 0, core.ReleaseStuck, 1, 1)
		}, breaks: []string{"CONVERGE"}},
	})
}

func independent(s *Setup)  { s.Protections.IndependentReleases = true }
func needsTraffic(s *Setup) { s.Protections.LatchNeedsTraffic = true }
func keepsAlive(s *Setup)   { s.Protections.TransferKeepsAlive = true }

func TestReclaim(t *testing.T) {
	dead := func(s *tale) *tale { return s.up(0, 1).ping(90, 0).process(100, 0, core.ProcessKilled) }
	run(t, []story{
		{name: "released in time", tell: func(s *tale) { dead(s).reap(240, 0, 1).release(240, 241, 0, 1) }},
		{name: "its memory was still being opened when it died", tell: func(s *tale) {
			s.born(1, 0).process(10, 0, core.ProcessKilled).mapping(4000, 0, 1, core.MappingOpened).closing(4001, 0, 1).mapping(4002, 0, 1, core.MappingClosed)
		}},
		{name: "released too late", tell: func(s *tale) { dead(s).reap(256, 0, 1).release(256, 257, 0, 1) }, breaks: []string{"RECLAIM"}},
		{name: "never", tell: func(s *tale) { dead(s) }, breaks: []string{"RECLAIM"}},
		{name: "the entry went and its bytes did not", tell: func(s *tale) { dead(s).reap(240, 0, 1) },
			breaks: []string{"ONCE", "RECLAIM"}},
		{name: "never, and the run ends first", tell: func(s *tale) { dead(s) }, end: 250},
		{name: "it never pinged: the grace", tell: func(s *tale) {
			s.up(0, 1).process(100, 0, core.ProcessKilled).reap(3725, 0, 1).release(3725, 3726, 0, 1)
		}},
		{name: "it pinged before its last registration only: the grace", tell: func(s *tale) {
			s.up(0, 1).ping(50, 0).link(51, 0, core.LinkCut).reap(200, 0, 1).release(200, 201, 0, 1).link(210, 0, core.LinkHealed)
			s.reach(211, 0, wire.Ping).serve(212, 0, 2).process(213, 0, core.ProcessKilled).reap(3830, 0, 2).release(3830, 3831, 0, 2)
		}},
		{name: "its last words arrive after it", tell: func(s *tale) {
			dead(s).ping(140, 0).reap(285, 0, 1).release(285, 286, 0, 1)
		}},
		{name: "its last words arrive and refresh nothing yet", tell: func(s *tale) {
			dead(s).reach(140, 0, wire.Store).reap(285, 0, 1).release(285, 286, 0, 1)
		}},
		{name: "its last words wait in a queue", tell: func(s *tale) {
			dead(s).reach(100.1, 0, wire.Store).server(180, core.Record{Kind: core.Stamped, Instance: id(0)})
			s.reap(325, 0, 1).release(325, 326, 0, 1)
		}},
		{name: "the server refreshes a dead worker by itself", tell: func(s *tale) {
			dead(s).server(180, core.Record{Kind: core.Stamped, Instance: id(0)}).reap(325, 0, 1).release(325, 326, 0, 1)
		}, breaks: []string{"RECLAIM"}},
		{name: "its release hangs and is reported", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).mapping(240, 0, 1, core.MappingHung).claim(245, 0, core.ReleaseStuck, 1, 1)
		}},
		{name: "its release hangs in silence", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).mapping(240, 0, 1, core.MappingHung)
		}, breaks: []string{"RECLAIM", "VISIBLE"}},
		{name: "the server was frozen meanwhile", tell: func(s *tale) {
			dead(s).process(200, -1, core.ProcessPaused).process(330, -1, core.ProcessResumed).reap(480, 0, 1).release(480, 481, 0, 1)
		}},
		{name: "the server restarts: its mappings go with it", tell: func(s *tale) {
			dead(s).process(200, -1, core.ProcessKilled).process(202, -1, core.ProcessStarted)
		}},
		{name: "reap 0 owes nothing", tell: func(s *tale) { dead(s) }, change: func(s *Setup) { s.Reap, s.Scan = 0, 0 }},
		{name: "where releases run on their own: a hanging one is reported at their bound", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).mapping(240, 0, 1, core.MappingHung).claim(270, 0, core.ReleaseStuck, 1, 1)
		}, change: independent},
		{name: "the server is frozen under a hanging one, before it is reported", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).mapping(240, 0, 1, core.MappingHung)
			s.process(260, -1, core.ProcessPaused).process(290, -1, core.ProcessResumed).claim(291, 0, core.ReleaseStuck, 1, 1)
		}, change: independent},
		{name: "its release waits for a copy that hangs", tell: func(s *tale) {
			s.up(0, 1).ping(90, 0).claim(91, 0, core.CopyBegan, 1, 1).process(100, 0, core.ProcessKilled).reap(240, 0, 1)
			s.process(260, -1, core.ProcessPaused).process(290, -1, core.ProcessResumed).claim(291, 0, core.ReleaseStuck, 1, 1)
		}, change: independent},
		{name: "it is reported as stuck, and its close fails later", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).claim(270, 0, core.ReleaseStuck, 1, 1)
			s.server(300, core.Record{Kind: core.CloseEnded, Instance: id(0), Incarnation: 1, A: 1, Failure: core.FailClose})
			s.server(300, core.Record{Kind: core.ServerWarned, Failure: core.FailClose})
		}, change: independent},
		{name: "and later than their bound", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).mapping(240, 0, 1, core.MappingHung).claim(286, 0, core.ReleaseStuck, 1, 1)
		}, change: independent, breaks: []string{"RECLAIM"}},
		{name: "and never", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).mapping(240, 0, 1, core.MappingHung)
		}, change: independent, breaks: []string{"RECLAIM", "VISIBLE"}},
		{name: "its release fails, is counted and shown", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1)
			s.server(241, core.Record{Kind: core.CloseEnded, Instance: id(0), Incarnation: 1, A: 1, Failure: core.FailClose})
			s.server(241, core.Record{Kind: core.ServerWarned, Failure: core.FailClose}).giveBack(241, 0, 1, core.ServerDriven)
		}, change: independent},
		{name: "its release fails and nobody says so", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1)
			s.server(241, core.Record{Kind: core.CloseEnded, Instance: id(0), Incarnation: 1, A: 1, Failure: core.FailClose})
			s.giveBack(241, 0, 1, core.ServerDriven)
		}, change: independent, breaks: []string{"ONCE", "RECLAIM"}},
		{name: "where a ping latches only what transferred: it pinged and never did", tell: func(s *tale) {
			dead(s).reap(3725, 0, 1).release(3725, 3726, 0, 1)
		}, change: needsTraffic},
		{name: "it transferred and then pinged", tell: func(s *tale) {
			s.up(0, 1).reach(80, 0, wire.Store).served(80.1, 0).ping(90, 0).process(100, 0, core.ProcessKilled).reap(3725, 0, 1).release(3725, 3726, 0, 1)
		}, change: needsTraffic, breaks: []string{"RECLAIM"}},
		{name: "its transfer waited in a lane when it pinged", tell: func(s *tale) {
			s.up(0, 1).reach(80, 0, wire.Store).ping(90, 0).process(100, 0, core.ProcessKilled).served(150, 0).reap(3775, 0, 1).release(3775, 3776, 0, 1)
		}, change: needsTraffic},
		{name: "it pinged and then transferred", tell: func(s *tale) {
			s.up(0, 1).ping(80, 0).reach(90, 0, wire.Store).served(90.1, 0).process(100, 0, core.ProcessKilled).reap(3725, 0, 1).release(3725, 3726, 0, 1)
		}, change: needsTraffic},
		{name: "where transfers keep alive: its copy never ends", tell: func(s *tale) {
			s.up(0, 1).claim(85, 0, core.CopyBegan, 1, 1).ping(90, 0).process(100, 0, core.ProcessKilled).reap(410, 0, 1).release(410, 411, 0, 1)
		}, change: keepsAlive},
		{name: "and it is kept for ever", tell: func(s *tale) {
			s.up(0, 1).claim(85, 0, core.CopyBegan, 1, 1).ping(90, 0).process(100, 0, core.ProcessKilled)
		}, change: keepsAlive, breaks: []string{"RECLAIM"}},
		{name: "its copy ended long ago", tell: func(s *tale) {
			s.up(0, 1).claim(85, 0, core.CopyBegan, 1, 1).claim(86, 0, core.CopyEnded, 1, 1)
			s.ping(90, 0).process(100, 0, core.ProcessKilled).reap(410, 0, 1).release(410, 411, 0, 1)
		}, change: keepsAlive, breaks: []string{"RECLAIM"}},
		{name: "an engine-driven context stays", tell: func(s *tale) {
			s.born(1, 0).pair(2, 0, 1).ping(90, 0).process(100, 0, core.ProcessKilled)
		}, breaks: []string{"RECLAIM"}},
		{name: "its layout share stays", tell: func(s *tale) {
			dead(s).reap(240, 0, 1).closing(240, 0, 1).mapping(241, 0, 1, core.MappingClosed)
		}, breaks: []string{"ONCE", "RECLAIM"}},
		{name: "its blend state stays", tell: func(s *tale) {
			dead(s).claim(99, 0, core.RopeAdded, 2, 0).reap(240, 0, 1).release(240, 241, 0, 1)
		}, breaks: []string{"RECLAIM"}},
		{name: "a new process owns the id (A8)", tell: func(s *tale) {
			dead(s).bornAs(130, 1, id(0)).ping(4999, 0)
		}},
	})
}

func TestNoFalseReap(t *testing.T) {
	idle := func(s *Setup) { s.IdleNeverReaped = true }
	converges := func(s *Setup) { s.FaultsOver = 0 }
	run(t, []story{
		{name: "a ping reached the host within the window", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(150, 0, wire.Ping).reap(251, 0, 1).release(251, 252, 0, 1)
		}, breaks: []string{"NO-FALSE-REAP"}, change: converges},
		{name: "it reached the host before the window", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reap(221, 0, 1).release(221, 222, 0, 1)
		}, change: converges},
		{name: "exactly the window ago is not stale", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reap(220, 0, 1).release(220, 221, 0, 1)
		}, breaks: []string{"NO-FALSE-REAP"}, change: converges},
		{name: "it reached the host at the very instant of the reap", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(230, 0, wire.Ping).reap(230, 0, 1).release(230, 231, 0, 1)
		}, change: converges},
		{name: "two at that instant hide none before", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).ping(140, 0).reach(230, 0, wire.Ping).reach(230, 0, wire.Ping).reap(230, 0, 1).release(230, 231, 0, 1)
		}, breaks: []string{"NO-FALSE-REAP"}, change: converges},
		{name: "it was on its way from the host into the server", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(229.9, 0, wire.Ping).reap(230, 0, 1).release(230, 231, 0, 1)
		}, change: func(s *Setup) { converges(s); s.Handover = 300 * time.Millisecond }},
		{name: "two were on their way", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(229.8, 0, wire.Ping).reach(229.9, 0, wire.Ping).reap(230, 0, 1).release(230, 231, 0, 1)
		}, change: func(s *Setup) { converges(s); s.Handover = 300 * time.Millisecond }},
		{name: "it had the time to get there", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(229.5, 0, wire.Ping).reap(230, 0, 1).release(230, 231, 0, 1)
		}, change: func(s *Setup) { converges(s); s.Handover = 300 * time.Millisecond }, breaks: []string{"NO-FALSE-REAP"}},
		{name: "one had, another had not", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(150, 0, wire.Ping).reach(229.9, 0, wire.Ping).reap(230, 0, 1).release(230, 231, 0, 1)
		}, change: func(s *Setup) { converges(s); s.Handover = 300 * time.Millisecond }, breaks: []string{"NO-FALSE-REAP"}},
		{name: "decided, then frozen, then done though pings came (B3)", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).server(230, core.Record{Kind: core.ReapDecided, Instance: id(0), Incarnation: 1, Context: core.ServerDriven})
			s.process(230.1, -1, core.ProcessPaused).reach(240, 0, wire.Ping).process(330, -1, core.ProcessResumed)
			s.claim(330, 0, core.ContextRemoved, 1, uint64(core.RemovedByReaper)).release(330, 331, 0, 1)
		}, breaks: []string{"NO-FALSE-REAP"}, change: converges},
		{name: "traffic within the grace, and it latched on traffic", tell: func(s *tale) {
			s.up(0, 1).reach(100, 0, wire.Store).reap(230, 0, 1).release(230, 231, 0, 1)
		}, breaks: []string{"NO-FALSE-REAP"}, change: converges},
		{name: "traffic of the other kind refreshes nothing", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(150, 0, wire.PrepareStore).reap(230, 0, 1).release(230, 231, 0, 1)
		}, change: converges},
		{name: "a look-up is no signal", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).reach(150, 0, wire.ReportBlockAllocation).reap(230, 0, 1).release(230, 231, 0, 1)
		}, change: converges},
		{name: "dead within its window", tell: func(s *tale) {
			s.up(0, 1).ping(100, 0).process(101, 0, core.ProcessKilled).reap(150, 0, 1).release(150, 151, 0, 1)
		}},
		{name: "frozen past its window", tell: func(s *tale) {
			s.up(0, 1).ping(95, 0).process(96, 0, core.ProcessPaused).reap(240, 0, 1).release(240, 241, 0, 1)
		}},
		{name: "frozen within its window is alive", tell: func(s *tale) {
			s.up(0, 1).ping(95, 0).process(96, 0, core.ProcessPaused).reap(200, 0, 1).release(200, 201, 0, 1)
		}, breaks: []string{"NO-FALSE-REAP"}},
		{name: "removed as proven dead while alive", tell: func(s *tale) {
			s.up(0, 1).ping(95, 0).remove(3000, 0, 1, core.ServerDriven, core.RemovedByProof).release(3000, 3001, 0, 1)
		}, breaks: []string{"NO-FALSE-REAP"}, change: converges},
		{name: "removed as proven dead, and dead", tell: func(s *tale) {
			s.up(0, 1).ping(95, 0).process(96, 0, core.ProcessKilled)
			s.remove(97, 0, 1, core.ServerDriven, core.RemovedByProof).release(97, 98, 0, 1)
		}},
		{name: "reaped though reaping is off (A15)", tell: func(s *tale) {
			s.up(0, 1).ping(95, 0).process(96, 0, core.ProcessKilled).reap(300, 0, 1).release(300, 301, 0, 1)
		}, change: func(s *Setup) { s.Reap, s.Scan = 0, 0 }, breaks: []string{"NO-FALSE-REAP"}},
		{name: "idle past the grace, under document (A3)", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1)
		}, change: converges},
		{name: "idle past the grace, under hardened", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1)
		}, change: func(s *Setup) { idle(s); converges(s) }, breaks: []string{"NO-FALSE-REAP"}},
		{name: "frozen past the window, under hardened", tell: func(s *tale) {
			s.up(0, 1).ping(10, 0).process(20, 0, core.ProcessPaused).reap(160, 0, 1).release(160, 161, 0, 1)
		}, change: func(s *Setup) { idle(s); converges(s) }},
		{name: "away past the window, under hardened", tell: func(s *tale) {
			s.up(0, 1).ping(10, 0).link(20, 0, core.LinkCut).link(150, 0, core.LinkHealed).reap(160, 0, 1).release(160, 161, 0, 1)
		}, change: func(s *Setup) { idle(s); converges(s) }},
	})
}

func TestIsolate(t *testing.T) {
	hang := func(s *tale) *tale {
		return s.up(0, 1).up(1, 2).ping(90, 0).process(100, 0, core.ProcessKilled).
			reap(240, 0, 1).closing(240, 0, 1).mapping(240, 0, 1, core.MappingHung).claim(242, 0, core.ReleaseStuck, 1, 1)
	}
	run(t, []story{
		{name: "another's ping fails under a stuck release", tell: func(s *tale) {
			hang(s).does(250, 1, core.PingSent).fails(260, 1, core.PingFailed)
		}, breaks: []string{"ISOLATE"}, actor: 1},
		{name: "its own link was cut", tell: func(s *tale) {
			hang(s).does(250, 1, core.PingSent).link(251, 1, core.LinkCut).fails(260, 1, core.PingFailed)
		}},
		{name: "the server was frozen", tell: func(s *tale) {
			hang(s).does(250, 1, core.PingSent).process(251, -1, core.ProcessPaused).process(255, -1, core.ProcessResumed).fails(260, 1, core.PingFailed)
		}},
		{name: "no release was overdue", tell: func(s *tale) {
			s.up(0, 1).up(1, 2).does(250, 1, core.PingSent).fails(260, 1, core.PingFailed)
		}},
		{name: "the release was within its bound for most of the wait", tell: func(s *tale) {
			s.up(0, 1).up(1, 2).ping(90, 0).process(100, 0, core.ProcessKilled).reap(240, 0, 1).closing(240, 0, 1)
			s.does(236, 1, core.PingSent).mapping(245, 0, 1, core.MappingClosed).giveBack(245, 0, 1, core.ServerDriven)
			s.fails(246, 1, core.PingFailed)
		}},
		{name: "another's register waits under it", tell: func(s *tale) {
			hang(s).born(249, 2).does(250, 2, core.RegisterSent)
		}, breaks: []string{"ISOLATE"}, actor: 2},
		{name: "another's register is answered", tell: func(s *tale) {
			hang(s).born(249, 2).does(250, 2, core.RegisterSent).serve(250.2, 2, 3).does(250.3, 2, core.RegisterEnded).registered(250.3, 2)
		}},
		{name: "another's reap waits behind it", tell: func(s *tale) {
			hang(s).ping(250, 1).process(251, 1, core.ProcessKilled)
		}, breaks: []string{"ISOLATE", "RECLAIM"}, actor: 1},
		{name: "another's own release hangs too", tell: func(s *tale) {
			hang(s).ping(250, 1).process(251, 1, core.ProcessKilled).reap(390, 1, 2).closing(390, 1, 2).mapping(390, 1, 2, core.MappingHung)
		}, breaks: []string{"RECLAIM", "VISIBLE"}, actor: 1},
		{name: "its own ping fails under its own stuck release", tell: func(s *tale) {
			s.up(0, 1).ping(90, 0).link(91, 0, core.LinkCut).reap(240, 0, 1).closing(240, 0, 1).claim(242, 0, core.ReleaseStuck, 1, 1)
			s.link(245, 0, core.LinkHealed).does(250, 0, core.PingSent).fails(260, 0, core.PingFailed)
		}, change: func(s *Setup) { s.FaultsOver = 0 }},
		{name: "another's reap goes on", tell: func(s *tale) {
			hang(s).ping(250, 1).process(251, 1, core.ProcessKilled).reap(390, 1, 2).release(390, 391, 1, 2)
		}},
	})
}

func TestTerminal(t *testing.T) {
	reserve := func(s *tale, at float64, kind core.RecordKind, inc core.Incarnation) *tale {
		return s.server(at, core.Record{Kind: kind, Instance: id(0), Incarnation: inc, A: 0})
	}
	run(t, []story{
		{name: "told once", tell: func(s *tale) { s.up(0, 1).submit(10, 0, 7).tell(11, 0, 7) }},
		{name: "told twice", tell: func(s *tale) { s.up(0, 1).submit(10, 0, 7).tell(11, 0, 7).tell(12, 0, 7) }, breaks: []string{"TERMINAL"}},
		{name: "never told", tell: func(s *tale) { s.up(0, 1).submit(10, 0, 7) }, breaks: []string{"TERMINAL"}},
		{name: "never told, and the run ends first", tell: func(s *tale) { s.up(0, 1).submit(10, 0, 7) }, end: 300},
		{name: "told too late", tell: func(s *tale) { s.up(0, 1).submit(10, 0, 7).tell(400, 0, 7) }, breaks: []string{"TERMINAL"}},
		{name: "the other of two is told", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).submit(11, 0, 8).submit(12, 0, 9).tell(13, 0, 8)
		}, breaks: []string{"TERMINAL"}},
		{name: "in any order", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).submit(11, 0, 8).submit(12, 0, 9).tell(13, 0, 8).tell(13, 0, 7).tell(13, 0, 9).submit(20, 0, 10).tell(21, 0, 10)
		}},
		{name: "it was frozen meanwhile", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).process(11, 0, core.ProcessPaused).process(4700, 0, core.ProcessResumed).tell(4701, 0, 7)
		}},
		{name: "it died", tell: func(s *tale) {
			s.up(0, 1).ping(9, 0).submit(10, 0, 7).process(11, 0, core.ProcessKilled).reap(150, 0, 1).release(150, 151, 0, 1)
		}},
		{name: "it left in order and a request was left", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient).release(10, 11, 0, 1).process(12, 0, core.ProcessExited)
		}, breaks: []string{"TERMINAL"}},
		{name: "it left in order", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient).release(10, 11, 0, 1).tell(12, 0, 7).process(12, 0, core.ProcessExited)
		}},
		{name: "held and freed", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).end(310, 0, 7, core.OutcomeHeld).end(330, 0, 7, core.OutcomeFreed)
		}},
		{name: "held and never freed", tell: func(s *tale) { s.up(0, 1).submit(10, 0, 7).end(310, 0, 7, core.OutcomeHeld) }, breaks: []string{"TERMINAL"}},
		{name: "held while a copy of it runs", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).claim(10, 0, core.CopyBegan, 1, 1).end(310, 0, 7, core.OutcomeHeld)
		}},
		{name: "held, freed and then told its end", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).end(310, 0, 7, core.OutcomeHeld).end(330, 0, 7, core.OutcomeFreed).tell(331, 0, 7)
		}, breaks: []string{"TERMINAL"}},
		{name: "held and told its end", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).end(310, 0, 7, core.OutcomeHeld).tell(311, 0, 7)
		}, breaks: []string{"TERMINAL"}},
		{name: "freed and never held", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).end(11, 0, 7, core.OutcomeFreed).tell(12, 0, 7)
		}, breaks: []string{"TERMINAL"}},
		{name: "it left in order with blocks held", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).end(310, 0, 7, core.OutcomeHeld).remove(311, 0, 1, core.ServerDriven, core.RemovedByClient).release(311, 312, 0, 1).process(313, 0, core.ProcessExited)
		}},
		{name: "half-written chunks of a context that is gone", tell: func(s *tale) {
			reserve(s.up(0, 1).ping(9, 0), 10, core.ChunkReserved, 1).process(11, 0, core.ProcessKilled).reap(150, 0, 1).release(150, 151, 0, 1)
		}, breaks: []string{"TERMINAL"}},
		{name: "dropped with it", tell: func(s *tale) {
			reserve(s.up(0, 1).ping(9, 0), 10, core.ChunkReserved, 1).process(11, 0, core.ProcessKilled).reap(150, 0, 1).release(150, 151, 0, 1)
			reserve(s, 152, core.ChunkDropped, 1)
		}},
		{name: "a lock returned twice", tell: func(s *tale) {
			s.up(0, 1).claim(10, 0, core.LockTaken, 0, 3).claim(11, 0, core.LockReturned, 0, 3).claim(12, 0, core.LockReturned, 0, 3)
		}, breaks: []string{"TERMINAL"}, actor: -1},
		{name: "a lock returned once", tell: func(s *tale) {
			s.up(0, 1).claim(10, 0, core.LockTaken, 0, 3).claim(11, 0, core.LockReturned, 0, 3)
		}},
	})
}

func TestNoUAF(t *testing.T) {
	run(t, []story{
		{name: "a release begins under a copy", tell: func(s *tale) {
			s.up(0, 1).does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient).closing(10, 0, 1)
			s.mapping(10, 0, 1, core.CopyTouchedRelease).mapping(10.1, 0, 1, core.MappingClosed).giveBack(10.1, 0, 1, core.ServerDriven)
		}, breaks: []string{"NO-UAF"}},
		{name: "a release begins after it", tell: func(s *tale) {
			s.up(0, 1).does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient).release(10, 10.1, 0, 1)
		}},
		{name: "the memory went after the release", tell: func(s *tale) {
			s.up(0, 1).does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient).closing(10, 0, 1)
			s.mapping(10.05, 0, 1, core.CopyTouchedGone).mapping(10.1, 0, 1, core.MappingClosed).giveBack(10.1, 0, 1, core.ServerDriven)
		}, breaks: []string{"NO-UAF"}},
		{name: "the memory went with its owner", tell: func(s *tale) {
			s.up(0, 1).ping(9, 0).process(10, 0, core.ProcessKilled).mapping(10.1, 0, 1, core.CopyTouchedGone).reap(150, 0, 1).release(150, 151, 0, 1)
		}},
	})
}

func TestFence(t *testing.T) {
	overlap := func(s *tale) *tale { // B5
		return s.up(0, 1).claim(3, 0, core.RopeAdded, 2, 0).reap(240, 0, 1).serve(245, 0, 3)
	}
	run(t, []story{
		{name: "the fan-out drops the blend state of the new incarnation", tell: func(s *tale) {
			overlap(s).server(246, core.Record{Kind: core.RegisterNoop, Instance: id(0), Context: core.RopeState, Incarnation: 2})
			s.release(247, 260, 0, 1).claim(260, 0, core.RopeDropped, 2, 1)
		}, breaks: []string{"FENCE"}},
		{name: "the fan-out drops that of the old one", tell: func(s *tale) {
			overlap(s).release(246, 260, 0, 1).claim(260, 0, core.RopeDropped, 2, 1).claim(261, 0, core.RopeAdded, 4, 0)
		}},
		{name: "the fan-out of another's reap (A18)", tell: func(s *tale) {
			s.up(0, 1).claim(3, 0, core.RopeAdded, 2, 0).claim(260, 0, core.RopeDropped, 2, 1)
		}, breaks: []string{"FENCE"}},
		{name: "the client drops its own", tell: func(s *tale) {
			s.up(0, 1).claim(3, 0, core.RopeAdded, 2, 0).claim(260, 0, core.RopeDropped, 2, 0)
		}},
		{name: "the removal of the old one takes the new one's place", tell: func(s *tale) {
			s.up(0, 1).remove(100, 0, 1, core.ServerDriven, core.RemovedByReplace).release(100, 101, 0, 1).serve(101, 0, 2)
			s.remove(102, 0, 1, core.ServerDriven, core.RemovedByClient).closing(102, 0, 2)
		}, breaks: []string{"FENCE"}, end: 103},
		{name: "reaped without a decision on it", tell: func(s *tale) {
			s.up(0, 1).ping(90, 0).process(100, 0, core.ProcessKilled)
			s.claim(240, 0, core.ContextRemoved, 1, uint64(core.RemovedByReaper)).release(240, 241, 0, 1)
		}, breaks: []string{"FENCE"}},
		{name: "a close for the old one closes the new one's mapping", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1).serve(3702, 0, 2)
			s.claim(3703, 0, core.CloseBegan, 1, 2)
		}, breaks: []string{"FENCE"}},
		{name: "the mapping under a serving context is closed", tell: func(s *tale) {
			s.up(0, 1).closing(100, 0, 1)
		}, breaks: []string{"FENCE"}, end: 101},
		{name: "closed in the step that removes the context", tell: func(s *tale) {
			s.up(0, 1).closing(100, 0, 1).does(100, 0, core.ShutdownBegan)
		}, breaks: []string{"FENCE"}, end: 101},
		{name: "a late writer finishes a slot that is another's now", tell: func(s *tale) {
			s.up(0, 1).up(1, 2).claim(10, 0, core.ChunkReserved, 1, 0).claim(11, 0, core.ChunkDropped, 1, 0)
			s.claim(12, 1, core.ChunkReserved, 2, 0).claim(13, 0, core.ChunkReady, 1, 0)
		}, breaks: []string{"FENCE"}},
		{name: "each finishes its own", tell: func(s *tale) {
			s.up(0, 1).up(1, 2).claim(10, 0, core.ChunkReserved, 1, 0).claim(11, 0, core.ChunkReady, 1, 0)
			s.claim(12, 1, core.ChunkReserved, 2, 1).claim(13, 1, core.ChunkReady, 2, 1)
		}},
	})
}

func TestOnce(t *testing.T) {
	stop := func(s *tale) *tale { return s.server(200, core.Record{Kind: core.ServerStopping}) }
	stopped := func(s *tale) *tale {
		return s.server(202, core.Record{Kind: core.ServerStopped}).process(202, -1, core.ProcessExited)
	}
	run(t, []story{
		{name: "everything released at the stop", tell: func(s *tale) {
			stopped(stop(s.up(0, 1)).remove(200, 0, 1, core.ServerDriven, core.RemovedByStop).release(200, 201, 0, 1))
		}},
		{name: "a mapping is open at the stop", tell: func(s *tale) {
			stopped(stop(s.up(0, 1)).remove(200, 0, 1, core.ServerDriven, core.RemovedByStop).giveBack(201, 0, 1, core.ServerDriven))
		}, breaks: []string{"ONCE"}},
		{name: "an engine-driven share is held at the stop (A17)", tell: func(s *tale) {
			stopped(stop(s.born(1, 0).pair(2, 0, 1)).remove(200, 0, 1, core.EngineDriven, core.RemovedByStop).strategy(200, 0, 1, core.StrategyRemoved))
		}, breaks: []string{"ONCE"}},
		{name: "a close that hangs at the stop has begun", tell: func(s *tale) {
			stopped(stop(s.up(0, 1)).remove(200, 0, 1, core.ServerDriven, core.RemovedByStop).closing(200, 0, 1))
		}},
		{name: "killed, the server owes nothing", tell: func(s *tale) { s.up(0, 1).process(200, -1, core.ProcessKilled) }},
		{name: "opened over open memory (B5)", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).mapping(3701, 0, 2, core.MappingReopened).serve(3701, 0, 2).release(3702, 3703, 0, 1)
		}, breaks: []string{"ONCE"}},
		{name: "closed twice", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).release(3700, 3701, 0, 1).mapping(3702, 0, 1, core.MappingClosedTwice).serve(3703, 0, 2)
		}, breaks: []string{"ONCE"}},
		{name: "closed and never opened", tell: func(s *tale) {
			s.up(0, 1).mapping(3702, 0, 9, core.MappingUnknown)
		}, breaks: []string{"ONCE"}},
		{name: "a share returned twice", tell: func(s *tale) {
			s.up(0, 1).up(1, 2).reap(3700, 0, 1).release(3700, 3701, 0, 1).giveBack(3701, 0, 1, core.ServerDriven).serve(3702, 0, 3)
		}, breaks: []string{"ONCE"}},
		{name: "a share returned twice takes another holder's", tell: func(s *tale) {
			share := func(t float64, n int, kind core.RecordKind, holders uint64) {
				s.server(t, core.Record{Kind: kind, Instance: id(n), Incarnation: core.Incarnation(n + 1), Context: core.ServerDriven, A: 5, B: holders})
			}
			for n := range 2 {
				s.born(1, n).open(2, n, core.Incarnation(n+1)).insert(2, n, core.Incarnation(n+1))
				share(2, n, core.LayoutAcquired, uint64(n+1))
			}
			s.does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient)
			s.closing(10, 0, 1)
			share(11, 0, core.LayoutReleased, 1)
			share(12, 0, core.LayoutReleased, 0)
			s.mapping(13, 0, 1, core.MappingClosed)
		}, breaks: []string{"ONCE"}},
		{name: "the server's count of holders is off", tell: func(s *tale) {
			s.born(1, 0).open(2, 0, 1).insert(2, 0, 1)
			s.server(2, core.Record{Kind: core.LayoutAcquired, Instance: id(0), Incarnation: 1, Context: core.ServerDriven, A: 5, B: 2})
		}, breaks: []string{"ONCE"}},
		{name: "removed twice", tell: func(s *tale) {
			s.up(0, 1).does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient).release(10, 11, 0, 1)
			s.remove(12, 0, 1, core.ServerDriven, core.RemovedByClient)
		}, breaks: []string{"ONCE"}},
		{name: "a failed close is tried again", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).closing(3700, 0, 1)
			s.server(3701, core.Record{Kind: core.CloseEnded, Instance: id(0), Incarnation: 1, A: 1, Failure: core.FailClose})
			s.release(3702, 3703, 0, 1).serve(3704, 0, 2)
		}},
		{name: "a failed close is given up", tell: func(s *tale) {
			s.up(0, 1).reap(3700, 0, 1).closing(3700, 0, 1)
			s.server(3701, core.Record{Kind: core.CloseEnded, Instance: id(0), Incarnation: 1, A: 1, Failure: core.FailClose})
			s.serve(3704, 0, 2)
		}, breaks: []string{"ONCE"}},
	})
}

func TestQuiet(t *testing.T) {
	gone := func(s *tale) *tale {
		return s.up(0, 1).unregister(10, 0).remove(10.1, 0, 1, core.ServerDriven, core.RemovedByClient).release(10.1, 10.2, 0, 1)
	}
	run(t, []story{
		{name: "gone", tell: func(s *tale) { gone(s).process(11, 0, core.ProcessExited) }},
		{name: "a ping before the unregister", tell: func(s *tale) { gone(s.does(1, 0, core.PingSent)) }},
		{name: "a ping after the unregister", tell: func(s *tale) { gone(s).does(11, 0, core.PingSent) }, breaks: []string{"QUIET"}},
		{name: "a register after the unregister", tell: func(s *tale) { gone(s).does(11, 0, core.RegisterSent) }, breaks: []string{"QUIET"}},
		{name: "a ghost context (B8)", tell: func(s *tale) { gone(s).serve(12, 0, 2) }, breaks: []string{"QUIET"}},
		{name: "a register that the server runs before the unregister", tell: func(s *tale) {
			s.born(1, 0).does(9, 0, core.RegisterSent).does(9.1, 0, core.UnregisterSent).serve(9.2, 0, 1)
			s.server(9.3, core.Record{Kind: core.UnregisterCame, Instance: id(0), Context: core.ServerDriven})
			s.remove(9.3, 0, 1, core.ServerDriven, core.RemovedByClient).release(9.3, 9.4, 0, 1)
		}},
		{name: "a late unregister for a worker that died without one, and a late register (B8, B10)", tell: func(s *tale) {
			s.up(0, 1).process(9, 0, core.ProcessKilled)
			s.server(10, core.Record{Kind: core.UnregisterCame, Instance: id(0), Context: core.ServerDriven})
			s.remove(10, 0, 1, core.ServerDriven, core.RemovedByClient).release(10, 11, 0, 1).serve(12, 0, 2)
		}, end: 100},
		{name: "a new process of the same number, its end not recorded", tell: func(s *tale) {
			gone(s).bornAs(12, 0, id(0)).serve(13, 0, 2)
		}},
		{name: "the unregister removes nothing", tell: func(s *tale) { s.up(0, 1).unregister(10, 0) }, breaks: []string{"QUIET"}},
		{name: "a new process with the old id (A8)", tell: func(s *tale) {
			gone(s).process(11, 0, core.ProcessExited).bornAs(12, 1, id(0)).serve(13, 0, 2)
		}},
	})
}

func TestQuietOfTheDead(t *testing.T) {
	pairLate := func(s *tale, at float64) *tale {
		s.server(at, core.Record{Kind: core.RegisterArrived, Instance: id(0), Context: core.EngineDriven})
		s.pair(at, 0, 1).remove(at+3630, 0, 1, core.EngineDriven, core.RemovedByReaper)
		return s.strategy(at+3630, 0, 1, core.StrategyRemoved).giveBack(at+3630, 0, 1, core.EngineDriven)
	}
	run(t, []story{
		{name: "a register is run for nobody, long after its client died (B8)", tell: func(s *tale) {
			pairLate(s.born(1, 0).reach(5, 0, wire.RegisterEngineDriven).process(305, 0, core.ProcessExited), 320)
		}, breaks: []string{"QUIET"}},
		{name: "its client dies while it is run", tell: func(s *tale) {
			pairLate(s.born(1, 0).reach(5, 0, wire.RegisterEngineDriven).process(5.0001, 0, core.ProcessKilled), 5.1)
		}},
		{name: "it comes to the host after its client died", tell: func(s *tale) {
			pairLate(s.born(1, 0).process(100, 0, core.ProcessKilled).reach(120, 0, wire.RegisterEngineDriven), 120)
		}},
		{name: "the server stood still until then", tell: func(s *tale) {
			s.born(1, 0).process(2, -1, core.ProcessPaused).reach(5, 0, wire.RegisterEngineDriven).process(50, 0, core.ProcessKilled)
			pairLate(s.process(100, -1, core.ProcessResumed), 100.1)
		}},
	})
}

func TestIntegrity(t *testing.T) {
	run(t, []story{
		{name: "wrong bytes", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).tell(11, 0, 7).world(11, core.Record{Kind: core.BlocksWrong, Instance: id(0), A: 7, B: 3})
		}, breaks: []string{"INTEGRITY"}},
		{name: "right bytes", tell: func(s *tale) {
			s.up(0, 1).submit(10, 0, 7).tell(11, 0, 7).world(11, core.Record{Kind: core.BlocksRight, Instance: id(0), A: 7, B: 3})
		}},
		{name: "what a dead writer had half written becomes readable (B10)", tell: func(s *tale) {
			s.born(1, 0).pair(2, 0, 1).claim(3, 0, core.ChunkReserved, 1, 5)
			s.remove(3700, 0, 1, core.EngineDriven, core.RemovedByReaper).strategy(3700, 0, 1, core.StrategyRemoved)
			s.claim(3700, 0, core.ChunkReady, 1, 5).giveBack(3700, 0, 1, core.EngineDriven)
		}, breaks: []string{"INTEGRITY"}},
		{name: "it is dropped instead", tell: func(s *tale) {
			s.born(1, 0).pair(2, 0, 1).claim(3, 0, core.ChunkReserved, 1, 5)
			s.remove(3700, 0, 1, core.EngineDriven, core.RemovedByReaper).strategy(3700, 0, 1, core.StrategyRemoved)
			s.claim(3700, 0, core.ChunkDropped, 1, 5).giveBack(3700, 0, 1, core.EngineDriven)
		}},
		{name: "a commit while the context serves", tell: func(s *tale) {
			s.born(1, 0).pair(2, 0, 1).claim(3, 0, core.ChunkReserved, 1, 5).claim(4, 0, core.ChunkReady, 1, 5)
		}},
		{name: "a copy of the server's own that ends after its context went", tell: func(s *tale) {
			s.up(0, 1).claim(3, 0, core.ChunkReserved, 1, 5).reap(200, 0, 1)
			s.claim(200.5, 0, core.ChunkReady, 1, 5).release(200.6, 201, 0, 1).serve(202, 0, 2)
		}},
	})
}

func TestVisible(t *testing.T) {
	old := func(s *Setup) { s.Workers[0].Legacy = true }
	skewed := func(s *tale) *tale {
		return s.born(1, 0).world(2, core.Record{Kind: core.MessageHandled, A: 1, B: uint64(wire.Ping)})
	}
	run(t, []story{
		{name: "a hung release of a live worker is not reported", tell: func(s *tale) {
			s.up(0, 1).does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient)
			s.closing(10, 0, 1).mapping(10, 0, 1, core.MappingHung)
		}, breaks: []string{"VISIBLE"}},
		{name: "it is reported", tell: func(s *tale) {
			s.up(0, 1).does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient)
			s.closing(10, 0, 1).mapping(10, 0, 1, core.MappingHung).claim(40, 0, core.ReleaseStuck, 1, 1)
		}},
		{name: "it is reported too late", tell: func(s *tale) {
			s.up(0, 1).does(9, 0, core.UnregisterSent).remove(10, 0, 1, core.ServerDriven, core.RemovedByClient)
			s.closing(10, 0, 1).mapping(10, 0, 1, core.MappingHung).claim(170, 0, core.ReleaseStuck, 1, 1)
		}, breaks: []string{"VISIBLE"}},
		{name: "pings of another version are refused in silence", tell: func(s *tale) { skewed(s) }, change: old, breaks: []string{"VISIBLE"}},
		{name: "and counted", tell: func(s *tale) {
			skewed(s).server(2, core.Record{Kind: core.Refused, A: uint64(wire.Ping), B: 1, Failure: core.FailPayloadCount})
		}, change: old},
		{name: "one version needs no refusal", tell: func(s *tale) { skewed(s) }},
	})
}
