package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"vigil/core"
	"vigil/core/loop"
)

// Why this file: what a fleet watches. Times are the server's own, so with
// --time-scale they keep their real values.

// meters holds what must be counted as it happens; everything else is read
// from the server when somebody asks.
type meters struct {
	registry  *prometheus.Registry
	pings     prometheus.Histogram
	stores    prometheus.Observer
	retrieves prometheus.Observer
	began     map[uint64]core.Time // transfers under way, by job; the owner's
}

func newMeters() *meters {
	m := &meters{registry: prometheus.NewRegistry(), began: map[uint64]core.Time{}}
	m.pings = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "vigil_ping_seconds", Help: "From a ping's arrival at the host to its answer.",
		Buckets: []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .02, .05, .1, .5, 1, 5, 10},
	})
	transfers := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "vigil_transfer_seconds", Help: "From the begin of a transfer to its end.",
		Buckets: []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120},
	}, []string{"operation"})
	m.stores, m.retrieves = transfers.WithLabelValues("store"), transfers.WithLabelValues("retrieve")
	m.registry.MustRegister(m.pings, transfers, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// ping and take run on the owner's goroutine.
func (m *meters) ping(took time.Duration) { m.pings.Observe(took.Seconds()) }

func (m *meters) take(r *core.Record) {
	switch r.Kind {
	case core.TransferBegan:
		if len(m.began) < core.MaxJobs { // the core bounds its jobs
			m.began[r.A] = r.At
		}
	case core.TransferEnded:
		began, ok := m.began[r.A]
		if !ok {
			return
		}
		delete(m.began, r.A)
		to := m.retrieves
		if r.Flag {
			to = m.stores
		}
		to.Observe(r.At.Sub(began).Seconds())
	}
}

// scrapeWait bounds how long a scrape waits for the server's owner.
const scrapeWait = 2 * time.Second

// gauges reads the server when it is asked.
type gauges struct{ v *service }

func (g *gauges) Describe(chan<- *prometheus.Desc) {} // unchecked: some labels come and go

type series struct {
	out chan<- prometheus.Metric
}

func (s series) put(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	s.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
}

func (s series) gauge(name, help string, value float64, labels ...string) {
	s.put(prometheus.GaugeValue, name, help, value, labels...)
}

func (s series) count(name, help string, value uint64, labels ...string) {
	s.put(prometheus.CounterValue, name, help, float64(value), labels...)
}

func (g *gauges) Collect(out chan<- prometheus.Metric) {
	s := series{out}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWait)
	defer cancel()
	v := g.v
	about := versionOf()
	s.gauge("vigil_build_info", "1; the labels say what runs.", 1, "version", about.Version, "commit", about.Commit, "libzmq", about.LibZMQ, "backend", v.backend.name, "design", v.config.core.Protections.String())
	status, err := v.server.Status(ctx)
	if err != nil {
		s.gauge("vigil_up", "1 where the server's owner answers in time.", 0)
		return
	}
	s.gauge("vigil_up", "1 where the server's owner answers in time.", 1)
	g.instances(ctx, s, &status)
	g.counts(s, &status)
	g.load(s, &status)
	g.transport(s, &status)
	v.meterDevices(s)
	held := v.memory.Stats()
	s.gauge("vigil_memory_mapped_bytes", "Bytes that the memory backend has mapped, whoever they are of.", float64(held.Charged))
	s.gauge("vigil_memory_mappings", "Mappings of the memory backend, those that open or close included.", float64(held.Mappings))
	for _, x := range []struct {
		name  string
		value int64
	}{{"open", held.Opening}, {"close", held.Closing}, {"copy", held.Copying}} {
		s.gauge("vigil_memory_operations", "Memory operations under way.", float64(x.value), "operation", x.name)
	}
	s.count("vigil_copied_bytes_total", "Bytes copied between workers and the store.", held.CopiedBytes)
	s.count("vigil_memory_faults_total", "Copies that met a page which was gone.", held.Faults)
	s.count("vigil_memory_overlaps_total", "Copies refused because their mapping's release had begun.", held.Overlaps)
}

func (g *gauges) instances(ctx context.Context, s series, status *loop.Status) {
	s.gauge("vigil_tracked_instances", "Contexts that liveness is tracked for.", float64(status.ServerDriven), "context", "server-driven")
	s.gauge("vigil_tracked_instances", "Contexts that liveness is tracked for.", float64(status.EngineDriven), "context", "engine-driven")
	s.gauge("vigil_rope_states", "Blend states held.", float64(status.Ropes))
	s.gauge("vigil_mapped_bytes", "Bytes mapped for contexts that serve.", float64(status.MappedBytes))
	oldest, share := g.v.oldest(ctx)
	s.gauge("vigil_last_seen_age_seconds_max", "Of all contexts, the longest time since one was last seen.", oldest.Seconds())
	s.gauge("vigil_last_seen_window_share_max", "The same as a share of the context's window: at 1 it is reaped.", share)
	s.gauge("vigil_reap_timeout_seconds", "The window of a context that has pinged; 0 reaps nothing.", status.Config.Reap.Seconds())
	s.gauge("vigil_registration_grace_seconds", "The window of a context that never pinged.", status.Config.Grace.Seconds())
	s.gauge("vigil_releases_in_progress", "Contexts that serve no more and are not released yet.", float64(status.ReleaseCount))
	s.gauge("vigil_release_bytes", "Their bytes.", float64(status.ReleaseBytes))
	s.gauge("vigil_releases_stuck", "Of those, the ones whose close takes too long.", float64(status.Stuck))
	s.gauge("vigil_release_stuck_bytes", "Their bytes.", float64(status.StuckBytes))
	s.gauge("vigil_lost_contexts", "Contexts that a failed close left behind.", float64(status.LostContexts))
	s.gauge("vigil_lost_bytes", "Their bytes.", float64(status.LostBytes))
}

func (g *gauges) counts(s series, status *loop.Status) {
	c := &status.Counts
	for _, x := range reapsOf(c) {
		s.count("vigil_reaps_total", "Contexts reaped: past the window after a ping, past the registration grace, or on proof of death.", x.count, "reason", x.reason)
	}
	for cause := range removalNames {
		s.count("vigil_contexts_removed_total", "Contexts that stopped serving.", c.Removed[cause], "reason", removalNames[cause])
	}
	for f, n := range c.Refused {
		if name := core.Failure(f).String(); n > 0 || f == int(core.FailNotRegistered) {
			s.count("vigil_refusals_total", "Requests refused.", n, "reason", name)
		}
	}
	requests := requestsOf(c)
	for _, name := range sortedKeys(requests) {
		s.count("vigil_requests_total", "Messages taken in.", requests[name], "type", name)
	}
	s.count("vigil_registrations_total", "Contexts inserted.", c.Records[core.ContextInserted])
	s.count("vigil_scans_total", "Scans of the reaper that ended.", c.Records[core.ScanEnded])
	for _, x := range []struct {
		result string
		count  uint64
	}{{"stored", c.Stored}, {"retrieved", c.Retrieved}, {"missed", c.Missed}} {
		s.count("vigil_transfers_total", "Transfers that ended.", x.count, "result", x.result)
	}
	for _, x := range []struct {
		operation string
		count     uint64
	}{{"open", c.FailedOpens}, {"close", c.FailedCloses}, {"copy", c.FailedCopies}} {
		s.count("vigil_memory_failures_total", "Memory operations that failed.", x.count, "operation", x.operation)
	}
}

func (g *gauges) load(s series, status *loop.Status) {
	l := &status.Load
	const busy, waiting = "Handlers that run, by pool.", "Messages that wait, by pool."
	held := 0.0
	if l.MainHeld {
		held = 1
	}
	s.gauge("vigil_pool_busy", busy, held, "pool", "main")
	s.gauge("vigil_pool_busy", busy, float64(l.NormalBusy), "pool", "normal")
	s.gauge("vigil_pool_busy", busy, float64(l.LanesBusy), "pool", "affinity")
	s.gauge("vigil_pool_waiting", waiting, float64(l.Inbox), "pool", "main")
	s.gauge("vigil_pool_waiting", waiting, float64(l.NormalWait), "pool", "normal")
	s.gauge("vigil_pool_waiting", waiting, float64(l.LanesWait), "pool", "affinity")
	s.gauge("vigil_mailbox_items", "Items that wait for the owner.", float64(status.Mailbox))
	s.gauge("vigil_decoding_connections", "Connections with messages that wait to be decoded.", float64(status.Decoding))
	s.gauge("vigil_decoding_bytes", "Bytes of messages from there on.", float64(status.DecodeBytes))
	s.gauge("vigil_sessions", "Look-up sessions open.", float64(l.Sessions))
	s.gauge("vigil_read_locks", "Read locks that sessions hold.", float64(l.Locks))
	s.gauge("vigil_store_chunks", "Chunks in the store.", float64(l.Chunks))
	s.gauge("vigil_store_bytes", "Bytes of those chunks.", float64(l.StoreBytes))
	s.gauge("vigil_store_budget_bytes", "The store's byte budget.", float64(status.Config.L1Bytes))
	s.gauge("vigil_store_mapped_bytes", "Memory behind the store.", float64(status.StoreMapped))
	s.count("vigil_store_out_of_memory_total", "Times that the system had no memory for a chunk.", status.StoreFailures)
	s.count("vigil_events_lost_total", "Records that the event log had no room for.", status.EventsLost)
	s.count("vigil_recording_inputs_total", "Inputs recorded.", status.Recording.Inputs)
	s.count("vigil_recording_lost_total", "Inputs not recorded since the disk did not keep up.", status.Recording.Lost)
}

func (g *gauges) transport(s series, status *loop.Status) {
	t := g.v.router.Stats()
	proof := g.v.proof(&t)
	on := 0.0
	if proof.State == proofOn {
		on = 1
	}
	s.gauge("vigil_proof_of_death", "1 where the end of a process behind an ipc connection is seen at once.", on)
	s.gauge("vigil_watched_connections", "Connections whose process is watched.", float64(proof.Watched))
	const unwatched = "Connections over ipc whose process is not watched: only their window decides."
	s.count("vigil_unwatched_connections_total", unwatched, proof.Beyond, "reason", "bound")
	s.count("vigil_unwatched_connections_total", unwatched, proof.Unknown, "reason", "no-descriptor")
	const help = "Messages dropped, by reason."
	for _, x := range droppedOf(&t, status) {
		s.count("vigil_messages_dropped_total", help, x.count, "reason", x.reason)
	}
	s.count("vigil_messages_received_total", "Messages received.", t.Received)
	s.count("vigil_received_bytes_total", "Bytes received.", t.ReceivedBytes)
	s.count("vigil_messages_sent_total", "Messages sent.", t.Sent)
	s.count("vigil_sent_bytes_total", "Bytes sent.", t.SentBytes)
	s.gauge("vigil_peers", "Connections that have spoken.", float64(t.Peers))
	s.count("vigil_peers_opened_total", "Connections so far.", t.Opened)
	s.count("vigil_peers_closed_total", "Connections that closed.", t.Closed)
	s.count("vigil_handshakes_failed_total", "Connections that did not speak ZeroMQ, or not in time, or without a key.", t.HandshakesFailed)
	s.count("vigil_clients_refused_total", "Connections whose key is not on the list.", t.Refused)
}
