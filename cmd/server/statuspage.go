package main

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"os"
	"time"

	"vigil/core"
	"vigil/core/loop"
	"vigil/core/server"
)

// Why this file: the shape of /status, which server status and other people's
// scripts read. Times are seconds of the server's own clock. Names do not
// change; new ones may come. Ids are text, because they have 63 bits.
//
//	/status?limit=100&server_driven=CURSOR&engine_driven=CURSOR
//
// A page's next is the cursor of the page after it, -1 at the end. A cursor of
// -1 leaves that kind's instances out.

type statusPage struct {
	Version  int          `json:"version"`
	State    string       `json:"state"` // serving, or stopping
	Server   serverStatus `json:"server"`
	Liveness liveness     `json:"liveness"`
	Memory   memoryStatus `json:"memory"`
	Releases releases     `json:"releases"`
	Pools    poolStatus   `json:"pools"`
	Store    storeStatus  `json:"store"`

	Refusals map[string]uint64 `json:"refusals"`
	Dropped  map[string]uint64 `json:"messages_dropped"`
	Requests map[string]uint64 `json:"requests"`

	Transport transportStatus `json:"transport"`
	Logs      logStatus       `json:"logs"`

	// Of a backend with devices only.
	Devices []deviceStatus `json:"devices,omitempty"`
	Watch   *watchStatus   `json:"device_watch,omitempty"`

	ServerDriven instancePage `json:"server_driven"`
	EngineDriven instancePage `json:"engine_driven"`
}

type serverStatus struct {
	Version   string   `json:"version"`
	Commit    string   `json:"commit"`
	PID       int      `json:"pid"`
	Started   string   `json:"started"`
	Uptime    float64  `json:"uptime_seconds"` // by the server's clock
	Backend   string   `json:"backend"`
	Reason    string   `json:"backend_reason"`
	Design    string   `json:"design"`
	Bind      []string `json:"bind"`
	Curve     bool     `json:"curve"`
	TimeScale int      `json:"time_scale"`
	TestHooks bool     `json:"test_hooks"`
	Chunk     int      `json:"chunk_tokens"`
}

type liveness struct {
	Enabled bool              `json:"enabled"`
	Reap    float64           `json:"reap_timeout_seconds"`
	Grace   float64           `json:"registration_grace_seconds"`
	Tracked int               `json:"tracked_instances"`
	Oldest  float64           `json:"last_seen_age_seconds_max"`
	Share   float64           `json:"last_seen_window_share_max"` // at 1 it is reaped
	Reaps   map[string]uint64 `json:"reaps"`                      // by reason
	Removed map[string]uint64 `json:"contexts_removed"`           // by reason
	Scans   uint64            `json:"scans"`
	Proof   proofStatus       `json:"proof_of_death"`
	Recent  []reapStatus      `json:"recent_reaps"` // the latest first
}

type memoryStatus struct {
	Serving  uint64 `json:"serving_bytes"` // mapped for contexts that serve
	Mapped   uint64 `json:"mapped_bytes"`  // by the backend, all together
	Mappings int    `json:"mappings"`
	Opening  int64  `json:"opening"`
	Closing  int64  `json:"closing"`
	Copying  int64  `json:"copying"`
	Copied   uint64 `json:"copied_bytes"`
	Failed   uint64 `json:"failed_operations"`
}

type releases struct {
	InProgress int             `json:"in_progress"`
	Bytes      uint64          `json:"bytes"`
	Stuck      int             `json:"stuck"`
	StuckBytes uint64          `json:"stuck_bytes"`
	Lost       int             `json:"lost"` // a failed close left them behind
	LostBytes  uint64          `json:"lost_bytes"`
	List       []releaseStatus `json:"list"`
}

type releaseStatus struct {
	Instance    string  `json:"instance"`
	Incarnation uint64  `json:"incarnation"`
	Mapping     uint64  `json:"mapping"`
	Bytes       uint64  `json:"bytes"`
	By          string  `json:"by"`
	Closing     bool    `json:"closing"` // else it waits
	For         float64 `json:"for_seconds"`
	Stuck       bool    `json:"stuck"`
}

type poolStatus struct {
	Main     poolLoad `json:"main"`
	Normal   poolLoad `json:"normal"`
	Affinity poolLoad `json:"affinity"`
	Mailbox  int      `json:"mailbox"`
	Decoding int      `json:"decoding"`
	Scanning bool     `json:"scanning"`
}

type poolLoad struct {
	Busy    int `json:"busy"`
	Waiting int `json:"waiting"`
	Bound   int `json:"bound"`
}

type storeStatus struct {
	Chunks    int    `json:"chunks"`
	Bytes     uint64 `json:"bytes"`
	Budget    uint64 `json:"budget_bytes"`
	Sessions  int    `json:"sessions"`
	Locks     int    `json:"locks"`
	Pool      string `json:"pool,omitempty"`
	PoolBytes uint64 `json:"pool_bytes"`
	Stored    uint64 `json:"stored"` // transfers
	Retrieved uint64 `json:"retrieved"`
	Missed    uint64 `json:"missed"`
}

type transportStatus struct {
	Peers            int64  `json:"peers"`
	Received         uint64 `json:"received"`
	Sent             uint64 `json:"sent"`
	HandshakesFailed uint64 `json:"handshakes_failed"`
	Refused          uint64 `json:"clients_refused"`
}

type logStatus struct {
	EventsLost     uint64 `json:"events_lost"`
	Recorded       uint64 `json:"inputs_recorded"`
	RecordingLost  uint64 `json:"inputs_not_recorded"`
	RecordingError string `json:"recording_error,omitempty"`
}

type instancePage struct {
	Total int              `json:"total"`
	Next  int              `json:"next"`
	List  []instanceStatus `json:"instances"`
}

type instanceStatus struct {
	Instance    string  `json:"instance"`
	Incarnation uint64  `json:"incarnation"`
	Model       string  `json:"model"`
	World       int64   `json:"world_size"`
	Bytes       uint64  `json:"bytes"`
	Mapping     uint64  `json:"mapping,omitempty"`
	Age         float64 `json:"last_seen_age_seconds"`
	Window      float64 `json:"window_seconds"`
	Pinged      bool    `json:"has_liveness_signal"`
	Transferred bool    `json:"has_transferred"`
	Progress    float64 `json:"progress_age_seconds"` // since its last transfer; 0 where it has not transferred
	Reaped      uint64  `json:"times_reaped"`
}

var releaseBy = map[server.ReleaseBy]string{
	server.ByUnregister: "unregister", server.ByReaper: "reaper", server.ByShutdown: "shutdown", server.ByReplace: "replaced",
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e3) / 1e3 }

// defaultPage is how many instances a page has unless it is asked for.
const defaultPage = 100

func (v *service) statusAnswer(ctx context.Context, q url.Values) (*statusPage, error) {
	limit, err := number(q.Get("limit"), defaultPage, 1, loop.MaxPage)
	if err != nil {
		return nil, err
	}
	for name := range q {
		if name != "limit" && name != "server_driven" && name != "engine_driven" {
			return nil, &problem{http.StatusBadRequest, "there is no parameter " + name + "; there are limit, server_driven and engine_driven"}
		}
	}
	s, err := v.server.Status(ctx)
	if err != nil {
		return nil, err
	}
	p := &statusPage{Version: 1, State: "serving", Refusals: map[string]uint64{}, Dropped: map[string]uint64{}}
	if s.Stopping || v.isStopping() {
		p.State = "stopping"
	}
	c, a := v.config, versionOf()
	p.Server = serverStatus{
		Version: a.Version, Commit: a.Commit, PID: os.Getpid(), Started: v.started.Format(time.RFC3339), Uptime: seconds(time.Duration(s.Now)),
		Backend: v.backend.name, Reason: v.backend.reason, Design: s.Config.Protections.String(), Bind: v.router.Endpoints(), Curve: c.keys.Enabled(),
		TimeScale: c.timeScale, TestHooks: c.testHooks, Chunk: s.Config.ChunkTokens,
	}
	oldest, share := v.oldest(ctx)
	p.Liveness = liveness{
		Enabled: s.Config.Reap > 0, Reap: s.Config.Reap.Seconds(), Grace: s.Config.Grace.Seconds(), Tracked: s.ServerDriven + s.EngineDriven,
		Oldest: seconds(oldest), Share: math.Round(share*1e4) / 1e4, Reaps: map[string]uint64{}, Removed: map[string]uint64{}, Scans: s.Counts.Records[core.ScanEnded],
	}
	t := v.router.Stats()
	p.Liveness.Proof, p.Liveness.Recent = v.proof(&t), v.journal.recent.latest()
	for _, x := range reapsOf(&s.Counts) {
		p.Liveness.Reaps[x.reason] = x.count
	}
	for cause, name := range removalNames {
		p.Liveness.Removed[name] = s.Counts.Removed[cause]
	}
	m := v.memory.Stats()
	p.Memory = memoryStatus{s.MappedBytes, m.Charged, m.Mappings, m.Opening, m.Closing, m.Copying, m.CopiedBytes, m.Failed}
	p.Devices, p.Watch = v.deviceList()
	p.Releases = releases{s.ReleaseCount, s.ReleaseBytes, s.Stuck, s.StuckBytes, s.LostContexts, s.LostBytes, []releaseStatus{}}
	for _, r := range s.Releases {
		p.Releases.List = append(p.Releases.List, releaseStatus{
			instanceText(r.Instance), uint64(r.Incarnation), uint64(r.Mapping), r.Bytes, releaseBy[r.By], r.Closing, seconds(r.For), r.Stuck,
		})
	}
	l := &s.Load
	main := 0
	if l.MainHeld {
		main = 1
	}
	p.Pools = poolStatus{
		poolLoad{main, l.Inbox, 1}, poolLoad{l.NormalBusy, l.NormalWait, s.Config.NormalSlots}, poolLoad{l.LanesBusy, l.LanesWait, s.Config.AffinityLanes},
		s.Mailbox, s.Decoding, l.Scanning,
	}
	p.Store = storeStatus{l.Chunks, l.StoreBytes, s.Config.L1Bytes, l.Sessions, l.Locks, s.Config.PoolName, s.Config.PoolBytes, s.Counts.Stored, s.Counts.Retrieved, s.Counts.Missed}
	for f, n := range s.Counts.Refused {
		if n > 0 {
			p.Refusals[core.Failure(f).String()] += n
		}
	}
	p.Requests = requestsOf(&s.Counts)
	for _, x := range droppedOf(&t, &s) {
		p.Dropped[x.reason] = x.count
	}
	p.Transport = transportStatus{t.Peers, t.Received, t.Sent, t.HandshakesFailed, t.Refused}
	p.Logs = logStatus{s.EventsLost, s.Recording.Inputs, s.Recording.Lost, s.Recording.Err}
	for _, x := range []struct {
		to    *instancePage
		kind  core.ContextKind
		name  string
		total int
	}{{&p.ServerDriven, core.ServerDriven, "server_driven", s.ServerDriven}, {&p.EngineDriven, core.EngineDriven, "engine_driven", s.EngineDriven}} {
		x.to.Total, x.to.Next, x.to.List = x.total, -1, []instanceStatus{}
		cursor, err := number(q.Get(x.name), 0, -1, math.MaxInt32)
		if err != nil {
			return nil, err
		}
		if cursor < 0 {
			continue
		}
		page, next, err := v.server.Instances(ctx, x.kind, cursor, limit)
		if err != nil {
			return nil, err
		}
		x.to.Next = next
		for _, i := range page {
			x.to.List = append(x.to.List, instanceStatus{
				instanceText(i.Instance), uint64(i.Incarnation), i.Model, i.WorldSize, i.Bytes, uint64(i.Mapping),
				seconds(i.Age), i.Window.Seconds(), i.Latched, i.Transferred, seconds(i.Still), i.Reaped,
			})
		}
	}
	return p, nil
}
