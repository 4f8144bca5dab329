package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vigil/core"
	"vigil/core/wire"
	"vigil/faults"
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

// asking is how a key of a request is read, and how it is written: "" where it
// is as it would be without the key.
type asking struct {
	read  func(d *decoder, n *node, key string, a *sim.Ask)
	write func(w *writer, a *sim.Ask) string
}

// whole is a key that holds a whole number.
func whole(into func(*sim.Ask) *int64, unset int64) asking {
	return asking{
		func(d *decoder, n *node, key string, a *sim.Ask) { *into(a) = d.signed(n, key) },
		func(_ *writer, a *sim.Ask) string {
			if v := *into(a); v != unset {
				return strconv.FormatInt(v, 10)
			}
			return ""
		},
	}
}

// letters is a key that holds text.
func letters(into func(*sim.Ask) *[]byte, unset string) asking {
	return asking{
		func(d *decoder, n *node, key string, a *sim.Ask) { *into(a) = []byte(d.word(n, key)) },
		func(_ *writer, a *sim.Ask) string {
			if v := string(*into(a)); v != unset {
				return word(v)
			}
			return ""
		},
	}
}

// toggle is a key that holds true or false.
func toggle(into func(*sim.Ask) *bool) asking {
	return asking{
		func(d *decoder, n *node, key string, a *sim.Ask) { *into(a) = d.boolean(n, key) },
		func(_ *writer, a *sim.Ask) string {
			if *into(a) {
				return "true"
			}
			return ""
		},
	}
}

// plainModel is the model that a request names where the file names none: the
// workers' own default.
var plainModel = core.DefaultWorkerConfig().Model

// keyed reports whether a request names its model and world in a key.
func keyed(a *sim.Ask) bool { return slices.Contains(requestOf(a.Request.Type).keys, "prompt") }

var askKeys map[string]asking

func init() { // the tables name each other
	r := func(a *sim.Ask) *wire.Request { return &a.Request }
	askKeys = map[string]asking{
		"model": letters(func(a *sim.Ask) *[]byte {
			if keyed(a) {
				return &r(a).Key.Model
			}
			return &r(a).Model
		}, plainModel),
		"world": whole(func(a *sim.Ask) *int64 {
			if keyed(a) {
				return &r(a).Key.WorldSize
			}
			return &r(a).WorldSize
		}, 1),
		"salt":       letters(func(a *sim.Ask) *[]byte { return &r(a).Key.Salt }, ""),
		"rank":       whole(func(a *sim.Ask) *int64 { return &r(a).Key.Worker }, 0),
		"from":       whole(func(a *sim.Ask) *int64 { return &r(a).Key.Start }, 0),
		"to":         whole(func(a *sim.Ask) *int64 { return &r(a).Key.End }, 0),
		"ranks":      whole(func(a *sim.Ask) *int64 { return &r(a).TPSize }, 1),
		"skip":       whole(func(a *sim.Ask) *int64 { return &r(a).Skip }, 0),
		"event":      letters(func(a *sim.Ask) *[]byte { return &r(a).Event }, ""),
		"engine":     letters(func(a *sim.Ask) *[]byte { return &r(a).Engine }, "vllm"),
		"layout":     letters(func(a *sim.Ask) *[]byte { return &r(a).Hints.KVLayout }, "NHD"),
		"heads":      whole(func(a *sim.Ask) *int64 { return &r(a).Hints.NumKVHeads }, 0),
		"tokens":     whole(func(a *sim.Ask) *int64 { return &r(a).Hints.TokensPerBlock }, 0),
		"head-dim":   whole(func(a *sim.Ask) *int64 { return &r(a).Hints.HeadDim }, 0),
		"block-size": whole(func(a *sim.Ask) *int64 { return &r(a).BlockSize }, 0),
		"layers":     whole(func(a *sim.Ask) *int64 { return &r(a).NumLayers }, 0),
		"hidden":     whole(func(a *sim.Ask) *int64 { return &r(a).HiddenDim }, 0),
		"dtype":      letters(func(a *sim.Ask) *[]byte { return &r(a).DType }, ""),
		"mla":        toggle(func(a *sim.Ask) *bool { return &r(a).UseMLA }),
		"head-size":  whole(func(a *sim.Ask) *int64 { return &r(a).HeadSize }, 1),
		"neox":       toggle(func(a *sim.Ask) *bool { return &r(a).Neox }),
		"old-number": toggle(func(a *sim.Ask) *bool { return &r(a).OldNumber }),
		"data":       letters(func(a *sim.Ask) *[]byte { return &r(a).Data }, ""),
		"called":     letters(func(a *sim.Ask) *[]byte { return &r(a).Name }, ""),
		"prompt": {
			func(d *decoder, n *node, key string, a *sim.Ask) { a.Prompt = int(d.number(n, key, 0, 1<<20)) },
			func(_ *writer, a *sim.Ask) string { return strconv.Itoa(a.Prompt) },
		},
		"records": {
			func(d *decoder, n *node, key string, a *sim.Ask) { r(a).Records = int(d.number(n, key, 0, maxListed)) },
			func(_ *writer, a *sim.Ask) string { return strconv.Itoa(r(a).Records) },
		},
		"before": {
			func(d *decoder, n *node, key string, a *sim.Ask) { r(a).Before = d.number(n, key, 0, maxNumber) },
			func(_ *writer, a *sim.Ask) string { return strconv.FormatUint(r(a).Before, 10) },
		},
		"timeout": {
			func(d *decoder, n *node, key string, a *sim.Ask) { r(a).Timeout = d.time(n, key) },
			func(_ *writer, a *sim.Ask) string { return timeText(r(a).Timeout) },
		},
		"memory": {
			func(d *decoder, n *node, key string, a *sim.Ask) { a.Memory = d.number(n, key, 1, maxNumber) },
			func(_ *writer, a *sim.Ask) string {
				if a.Memory == 0 {
					return ""
				}
				return strconv.FormatUint(a.Memory, 10)
			},
		},
		"request-id": { // an end of a session carries it by itself, a key within
			func(d *decoder, n *node, key string, a *sim.Ask) {
				id := []byte(d.word(n, key))
				r(a).RequestID, r(a).Key.RequestID = id, id
			},
			func(_ *writer, a *sim.Ask) string {
				if len(r(a).RequestID) == 0 {
					return ""
				}
				return word(string(r(a).RequestID))
			},
		},
		"instance": {readInstance, writeInstance},
		"blocks":   {readBlocks, writeBlocks},
		"exports":  {readExports, writeExports},
		"groups":   {readGroups, writeGroups},
	}
}

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

// answer reads what must be answered: words, or words for each design.
func (d *decoder) answer(n *node, s *Scenario, step int) {
	if n == nil || d.bad() {
		return
	}
	add := func(n *node, design string) {
		s.Expect = append(s.Expect, Expectation{
			Kind: ExpectAnswer, Line: n.line, Design: design, Who: Who{Worker: faults.Server}, Step: step, Answer: d.text(n, "answer", maxText),
		})
	}
	if n.kind != mapNode {
		add(n, "")
		return
	}
	if d.mapping(n, "answer", Designs...) {
		for i, k := range n.keys {
			add(n.items[i], k.text)
		}
	}
}

// Silence is the answer of whoever must not be answered.
const Silence = "silence"

// nothingMore is the clause of an answer that says no more than the others.
const nothingMore = "nothing more"

// AnswerFits reports whether an answer says all that is expected of it: its
// first clause is that of the expectation, and it has the others' too. A clause
// that says what is wrong must be expected; "nothing more" expects no other.
func AnswerFits(expected, got string) bool {
	want, have := strings.Split(expected, ";"), strings.Split(got, ";")
	trim := func(list []string) {
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
	}
	trim(want)
	trim(have)
	if want[0] != have[0] {
		return false
	}
	for _, clause := range want[1:] {
		if clause == nothingMore {
			if len(have) > len(want)-1 {
				return false
			}
		} else if !slices.Contains(have[1:], clause) {
			return false
		}
	}
	for _, clause := range have[1:] {
		if strings.Contains(clause, " other ") || strings.HasPrefix(clause, "another ") {
			if !slices.Contains(want[1:], clause) {
				return false
			}
		}
	}
	return true
}

func (d *decoder) signed(n *node, what string) int64 {
	got := d.word(n, what)
	if d.bad() {
		return 0
	}
	v, err := strconv.ParseInt(got, 10, 64)
	if err != nil || v > int64(maxBytes) || v < -int64(maxBytes) {
		d.fail(n, "%s must be a whole number, not %q", what, clip(got))
	}
	return v
}

func readInstance(d *decoder, n *node, key string, a *sim.Ask) {
	text := d.word(n, key)
	if d.bad() || text == "none" {
		a.Request.NoInstance = true
		return
	}
	if digit(text[0]) {
		a.Request.Instance = core.InstanceID(d.number(n, key, 1, uint64(core.MaxInstanceID)))
		return
	}
	a.Of = d.worker(n, key, false) + 1
}

func writeInstance(w *writer, a *sim.Ask) string {
	switch {
	case a.Of > 0:
		return w.worker(a.Of - 1)
	case a.Request.NoInstance:
		return "none"
	}
	return strconv.FormatUint(uint64(a.Request.Instance), 10)
}

// readBlocks reads the block ids of each group; one list is that of the only
// group.
func readBlocks(d *decoder, n *node, key string, a *sim.Ask) {
	items := d.list(n, key, maxListed)
	groups := items
	if len(items) == 0 || items[0].kind != listNode {
		groups = []*node{n}
	}
	r := &a.Request
	for _, g := range groups {
		for _, b := range d.list(g, "the blocks of a group", maxListed) {
			low, high := d.blockRange(b)
			for id := low; id <= high && !d.bad(); id++ {
				if len(r.Blocks) >= maxListed {
					d.fail(n, "a request may name %d blocks", maxListed)
				}
				r.Blocks = append(r.Blocks, uint32(id))
			}
		}
		r.BlockEnds = append(r.BlockEnds, len(r.Blocks))
	}
}

// blockRange reads `7` or `7..9`.
func (d *decoder) blockRange(n *node) (low, high uint64) {
	c := d.count(n, "a block", func(n *node, what string) uint64 { return d.number(n, what, 0, 1<<32-1) })
	if c.High == ^uint64(0) {
		d.fail(n, "a range of blocks needs both ends")
		return 0, 0
	}
	return c.Low, c.High
}

func writeBlocks(_ *writer, a *sim.Ask) string {
	return blocksText(a.Request.Blocks, a.Request.BlockEnds)
}

func blocksText(blocks []uint32, ends []int) string {
	first := 0
	var groups []string
	for _, end := range ends {
		var ids []string
		for i := first; i < end; {
			k := i + 1
			for k < end && blocks[k] == blocks[k-1]+1 {
				k++
			}
			if k-i > 2 {
				ids = append(ids, fmt.Sprintf("%d..%d", blocks[i], blocks[k-1]))
			} else {
				k = i + 1
				ids = append(ids, fmt.Sprint(blocks[i]))
			}
			i = k
		}
		groups = append(groups, "["+strings.Join(ids, ", ")+"]")
		first = end
	}
	if len(groups) == 0 {
		return ""
	}
	return "[" + strings.Join(groups, ", ") + "]"
}

var exportKeys = []string{"count", "blocks", "block-bytes", "dtype", "shape", "offset", "bytes", "kind", "device"}

var memoryKinds = []string{core.HostSHM.String(), core.CUDA.String()}

func readExports(d *decoder, n *node, key string, a *sim.Ask) {
	a.Request.Exports = d.exports(n, key)
}

// exports reads the tensors of a registration.
func (d *decoder) exports(n *node, key string) (list []core.Export) {
	for _, item := range d.list(n, key, maxListed) {
		if !d.mapping(item, "an export", exportKeys...) {
			return nil
		}
		x := core.Export{Kind: core.HostSHM, Device: []byte(simDevice), DType: []byte("uint8"), Blocks: 64, BlockBytes: 4096}
		count := uint64(1)
		if v := item.get("count"); v != nil {
			count = d.number(v, "count", 1, maxListed)
		}
		if v := item.get("blocks"); v != nil {
			x.Blocks = uint32(d.number(v, "blocks", 0, 1<<20))
		}
		if v := item.get("block-bytes"); v != nil {
			x.BlockBytes = uint32(min(d.bytes(v, "block-bytes"), 1<<32-1))
		}
		x.Bytes, x.Shape = uint64(x.Blocks)*uint64(x.BlockBytes), []int64{int64(x.Blocks), int64(x.BlockBytes)}
		if v := item.get("bytes"); v != nil {
			x.Bytes = d.bytes(v, "bytes")
		}
		if v := item.get("offset"); v != nil {
			x.Offset = d.bytes(v, "offset")
		}
		if v := item.get("dtype"); v != nil {
			x.DType = []byte(d.word(v, "dtype"))
		}
		if v := item.get("shape"); v != nil {
			x.Shape = d.numbers(v, "shape")
		}
		if v := item.get("kind"); v != nil {
			x.Kind = core.HostSHM + core.MemoryKind(d.choice(v, "kind", memoryKinds))
		}
		if v := item.get("device"); v != nil {
			x.Device = []byte(d.word(v, "device"))
		}
		for range count {
			if len(list) >= maxListed {
				d.fail(item, "a registration may have %d exports", maxListed)
				return nil
			}
			list = append(list, x)
		}
	}
	return list
}

// simDevice is the one device of a simulated world.
const simDevice = "sim-device-0"

func (d *decoder) numbers(n *node, what string) (list []int64) {
	for _, item := range d.list(n, what, maxListed) {
		list = append(list, d.signed(item, what))
	}
	return list
}

func writeExports(_ *writer, a *sim.Ask) string { return exportsText(a.Request.Exports) }

func exportsText(list []core.Export) string {
	var all []string
	for i := 0; i < len(list); {
		x := &list[i]
		n := 1
		for i+n < len(list) && x.Equal(&list[i+n]) {
			n++
		}
		var p pairs
		p.addIf(n > 1, "count", fmt.Sprint(n))
		p.add("blocks", fmt.Sprint(x.Blocks))
		p.add("block-bytes", bytesText(uint64(x.BlockBytes)))
		p.addIf(x.Bytes != uint64(x.Blocks)*uint64(x.BlockBytes), "bytes", bytesText(x.Bytes))
		p.addIf(x.Offset != 0, "offset", bytesText(x.Offset))
		p.addIf(string(x.DType) != "uint8", "dtype", word(string(x.DType)))
		p.addIf(x.Kind != core.HostSHM, "kind", x.Kind.String())
		p.addIf(string(x.Device) != simDevice, "device", word(string(x.Device)))
		p.addIf(!slices.Equal(x.Shape, []int64{int64(x.Blocks), int64(x.BlockBytes)}), "shape", numbersText(x.Shape))
		all = append(all, p.flow())
		i += n
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func numbersText(list []int64) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = strconv.FormatInt(v, 10)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

var groupKeys = []string{"count", "id", "layers", "tokens", "window", "physical"}

func readGroups(d *decoder, n *node, key string, a *sim.Ask) { a.Request.Groups = d.groups(n, key) }

// groups reads the engine groups of a registration.
func (d *decoder) groups(n *node, key string) (list []core.Group) {
	for _, item := range d.list(n, key, core.MaxGroups+1) {
		if !d.mapping(item, "a group", groupKeys...) {
			return nil
		}
		g := core.Group{ID: int64(len(list)), SlidingWindow: -1, Physical: 1}
		count := uint64(1)
		if v := item.get("count"); v != nil {
			count = d.number(v, "count", 1, core.MaxGroups+1)
		}
		if v := item.get("id"); v != nil {
			g.ID = d.signed(v, "id")
		}
		if v := item.get("layers"); v != nil {
			g.Layers = d.numbers(v, "layers")
		}
		if v := item.get("tokens"); v != nil {
			g.TokensPerBlock = d.signed(v, "tokens")
		}
		if v := item.get("window"); v != nil {
			g.SlidingWindow = d.signed(v, "window")
		}
		if v := item.get("physical"); v != nil {
			g.Physical = d.signed(v, "physical")
		}
		for range count {
			if len(list) > core.MaxGroups {
				d.fail(item, "a registration may have %d groups, and one too many", core.MaxGroups)
				return nil
			}
			list = append(list, g)
			g.ID++
		}
	}
	return list
}

func writeGroups(_ *writer, a *sim.Ask) string { return groupsText(a.Request.Groups) }

// follows reports whether the nth group after g is like it but for its number.
func follows(g, after *core.Group, n int) bool {
	return after.ID == g.ID+int64(n) && slices.Equal(g.Layers, after.Layers) &&
		g.TokensPerBlock == after.TokensPerBlock && g.SlidingWindow == after.SlidingWindow && g.Physical == after.Physical
}

func groupsText(list []core.Group) string {
	var all []string
	for i := 0; i < len(list); {
		g := &list[i]
		n := 1
		for i+n < len(list) && follows(g, &list[i+n], n) {
			n++
		}
		var p pairs
		p.addIf(n > 1, "count", fmt.Sprint(n))
		p.addIf(g.ID != int64(i), "id", fmt.Sprint(g.ID))
		p.addIf(len(g.Layers) > 0, "layers", numbersText(g.Layers))
		p.addIf(g.TokensPerBlock != 0, "tokens", fmt.Sprint(g.TokensPerBlock))
		p.addIf(g.SlidingWindow != -1, "window", fmt.Sprint(g.SlidingWindow))
		p.addIf(g.Physical != 1, "physical", fmt.Sprint(g.Physical))
		all = append(all, p.flow())
		i += n
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
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
