package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vigil/core"
	"vigil/core/wire"
	"vigil/sim"
)

// The verb `ask`: a raw client sends one request, in the file's words, and the
// file says what is answered. One table says of every request which keys it
// has; another how each key is read and written.

// request is a request that a file can ask for.
type request struct {
	name string
	kind wire.Type
	keys []string
}

var (
	ofKey      = []string{"model", "salt", "world", "rank", "prompt", "from", "to", "request-id"}
	ofRegister = []string{"instance", "memory", "exports", "model", "world", "engine", "layout", "heads", "tokens", "head-dim", "groups"}
	ofTransfer = append([]string{"instance", "memory", "blocks", "event"}, ofKey...)
	ofPooled   = append([]string{"instance"}, ofKey...)
	ofInstance = []string{"instance"}
	ofSession  = []string{"request-id"}
)

// requests are what a file can ask for. The names are those of the wire, the
// long two shortened; "reconnect" is none, but its client's connection that
// breaks and is made anew.
var requests = []request{
	{"register-kv-cache", wire.RegisterKVCache, ofRegister},
	{"unregister-kv-cache", wire.UnregisterKVCache, ofInstance},
	{"register-q-cache", wire.RegisterQCache, ofRegister},
	{"unregister-q-cache", wire.UnregisterQCache, ofInstance},
	{"store-q", wire.StoreQ, ofTransfer},
	{"store", wire.Store, ofTransfer},
	{"retrieve", wire.Retrieve, append([]string{"skip"}, ofTransfer...)},
	{"lookup", wire.Lookup, append([]string{"ranks"}, ofKey...)},
	{"query-prefetch-status", wire.QueryPrefetchStatus, ofSession},
	{"wait-prefetch-status", wire.WaitPrefetchStatus, []string{"request-id", "timeout"}},
	{"query-prefetch-lookup-hits", wire.QueryPrefetchLookupHits, ofSession},
	{"free-lookup-locks", wire.FreeLookupLocks, append([]string{"ranks"}, ofKey...)},
	{"end-session", wire.EndSession, ofSession},
	{"register-engine-driven", wire.RegisterEngineDriven, []string{"instance", "model", "world", "block-size", "layers", "hidden", "dtype", "mla"}},
	{"unregister-engine-driven", wire.UnregisterEngineDriven, ofInstance},
	{"prepare-store", wire.PrepareStore, ofPooled},
	{"commit-store", wire.CommitStore, append([]string{"data"}, ofPooled...)},
	{"prepare-retrieve", wire.PrepareRetrieve, ofPooled},
	{"commit-retrieve", wire.CommitRetrieve, ofPooled},
	{"clear", wire.Clear, nil},
	{"get-chunk-size", wire.GetChunkSize, nil},
	{"ping", wire.Ping, ofInstance},
	{"report-block-allocation", wire.ReportBlockAllocation, []string{"instance", "model", "records"}},
	{"noop", wire.Noop, nil},
	{"register-rope", wire.RegisterRope, []string{"instance", "head-size", "neox", "old-number"}},
	{"unregister-rope", wire.UnregisterRope, []string{"instance", "old-number"}},
	{"get-experimental", wire.GetExperimental, []string{"old-number"}},
	{"settle", wire.Settle, []string{"instance", "before"}},
	{"operation", wire.Named, []string{"called"}},
	{"reconnect", wire.NoType, nil},
}

func requestNames() []string {
	names := make([]string, len(requests))
	for i := range requests {
		names[i] = requests[i].name
	}
	return names
}

// The bounds on what one request of a file may hold, all far below the wire's.
const (
	maxAskers = 64                  // raw clients
	maxListed = core.MaxExports + 1 // exports, blocks of a group, layers, numbers of a shape: one too many is a story
)

func requestOf(kind wire.Type) *request {
	for i := range requests {
		if requests[i].kind == kind {
			return &requests[i]
		}
	}
	return &requests[0]
}

// ask reads what a raw client asks, and what it must be answered.
func (d *decoder) ask(n *node, s *Scenario, step int) *sim.Ask {
	a := &sim.Ask{Number: step + 1}
	if n.kind != mapNode {
		d.fail(n, "ask must be a mapping such as {request: ping, instance: 7}, not %s", n.kind)
		return a
	}
	kind := &requests[d.choice(d.need(n, "ask", "request"), "request", requestNames())]
	if d.bad() || !d.mapping(n, kind.name, append([]string{"client", "request", "answer"}, kind.keys...)...) {
		return a
	}
	r := &a.Request
	r.Type, r.TPSize, r.HeadSize = kind.kind, 1, 1
	r.Model, r.Key.Model, r.WorldSize, r.Key.WorldSize = []byte(plainModel), []byte(plainModel), 1, 1
	r.Engine, r.Hints.KVLayout = []byte("vllm"), []byte("NHD")
	if v := n.get("client"); v != nil {
		a.Client = d.asker(v)
	} else {
		a.Client = d.askerNamed(n, "") // whoever has no name is one client
	}
	for _, key := range kind.keys {
		v := n.get(key)
		if v != nil {
			askKeys[key].read(d, v, key, a)
			continue
		}
		if key == "instance" && kind.kind != wire.Ping { // of a ping it says that no worker sends it
			d.fail(n, "%s needs an instance: a number, or a worker's name", kind.name)
		}
		if key == "prompt" {
			d.fail(n, "%s needs a prompt, by its number", kind.name)
		}
	}
	if n.get("instance") == nil {
		r.NoInstance = true
	}
	d.answer(n.get("answer"), s, step)
	return a
}

// asker reads which raw client asks. A name gets the next number when it is met
// first; clientN is the number itself, so that a story that lost the first ones
// to a shrinker has the same connections as before.
func (d *decoder) asker(n *node) int {
	return d.askerNamed(n, d.name(n, "client"))
}

// numberedAsker is what the names of raw clients begin with that are numbers.
const numberedAsker = "client"

func (d *decoder) askerNamed(n *node, name string) int {
	if name == "" {
		if name = numberedAsker + "0"; len(d.askers) > 0 && d.askers[0] != "" && d.askers[0] != name {
			name = "(unnamed)"
		}
	}
	at := slices.Index(d.askers, name)
	if digits, ok := strings.CutPrefix(name, numberedAsker); ok && at < 0 {
		if v, err := strconv.ParseUint(digits, 10, 16); err == nil && strconv.FormatUint(v, 10) == digits {
			at = int(v)
			for len(d.askers) <= at && len(d.askers) < maxAskers {
				d.askers = append(d.askers, "")
			}
			if at < len(d.askers) && d.askers[at] != "" {
				d.fail(n, "%s is the raw client that is called %s; give all of them names, or numbers", name, d.askers[at])
			}
		}
	}
	if at < 0 {
		if at = slices.Index(d.askers, ""); at < 0 {
			at = len(d.askers)
			d.askers = append(d.askers, "")
		}
	}
	if at >= maxAskers {
		d.fail(n, "a story may have %d raw clients", maxAskers)
		return 0
	}
	d.askers[at] = name
	return at
}

// ask writes what a raw client asks in step.
func (w *writer) ask(step int) string {
	a := w.s.Plan.Steps[step].Do.Ask
	kind := requestOf(a.Request.Type)
	var p pairs
	p.addIf(a.Client > 0, "client", fmt.Sprintf("%s%d", numberedAsker, a.Client))
	p.add("request", kind.name)
	for _, key := range kind.keys {
		text := askKeys[key].write(w, a)
		p.addIf(text != "", key, text)
	}
	var answers pairs
	for i := range w.s.Expect {
		e := &w.s.Expect[i]
		switch {
		case e.Kind != ExpectAnswer || e.Step != step:
		case e.Design == "":
			p.add("answer", quoted(e.Answer))
		default:
			answers.add(e.Design, quoted(e.Answer))
		}
	}
	p.addIf(len(answers) > 0, "answer", answers.flow())
	return p.flow()
}
