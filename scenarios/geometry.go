package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vigil/core"
	"vigil/sim"
)

// The shape of memory in a file: the tensors that a worker or a raw client
// exports, and the groups that their blocks make.

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
