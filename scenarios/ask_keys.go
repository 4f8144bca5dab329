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

// The keys of what a raw client asks: how each is read, and how it is written.

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
