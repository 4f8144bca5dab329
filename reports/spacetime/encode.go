package spacetime

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"vigil/core"
)

// The data of a page: one raw deflate stream of
//
//	"VST1", the length of a JSON object, the object (what is few), and columns
//	of unsigned varints (what is many), each as long as the object says:
//
//	records     since the record before, ns; lane+1; kind; flags; pattern
//	arguments   of the patterns, in the records' order
//	messages    lane; class; fate; name+1; record; sent, reached, handled, ended,
//	            each as 0 for never, else its distance from the record's time,
//	            zigzag, plus 1
//	stamps      of each bar in turn: since the stamp before, ns, zigzag
//	flights     of each lane in turn: since the change before, ns; then the values
//	scans       since the scan before, ns
//
// Columns stand one after the other, not interleaved: they deflate to a third.

// object is the JSON part.
type object struct {
	Head
	End      core.Time   `json:"end"`
	Records  int         `json:"records"`
	Left     int         `json:"left"`
	Kinds    []string    `json:"kinds"` // names by number
	Groups   []string    `json:"groups"`
	GroupOf  []int       `json:"group_of"` // by kind
	Patterns []string    `json:"patterns"`
	Arity    []int       `json:"arity"`
	Args     int         `json:"args"`
	Messages int         `json:"messages"`
	Types    []string    `json:"types"`
	Lanes    []lane      `json:"lanes"`
	Bars     []bar       `json:"bars"`
	Stamps   []int       `json:"stamps"` // how many of each bar
	Flights  []int       `json:"flights"`
	Bands    []band      `json:"bands"`
	Marks    []mark      `json:"marks"`
	Scans    int         `json:"scans"`
	Broken   []Violation `json:"broken"`
}

type columns struct{ b []byte }

func (c *columns) put(v uint64) { c.b = binary.AppendUvarint(c.b, v) }

func (c *columns) signed(v int64) { c.put(uint64(v)<<1 ^ uint64(v>>63)) }

// Data is the diagram as the page reads it.
func (d *Diagram) Data() ([]byte, error) {
	d.settle()
	o := object{
		Head: d.Head, End: d.end, Records: len(d.at), Left: d.Left,
		Groups: groupNames[:], Stamps: []int{}, Flights: []int{}, Patterns: d.words.patterns, Arity: d.words.arity, Args: len(d.words.args),
		Messages: len(d.messages.all), Types: d.messages.named, Lanes: d.lanes, Bars: d.contexts.bars,
		Bands: d.bands, Marks: d.marks, Scans: len(d.scans), Broken: []Violation{},
	}
	o.SeedIs = strconv.FormatUint(d.Head.Seed, 10)
	for k := core.RecordNone; k < core.RecordKinds; k++ {
		o.Kinds = append(o.Kinds, k.String())
		o.GroupOf = append(o.GroupOf, int(GroupOf(k)))
	}
	for _, v := range d.broken {
		d.trace(&v)
		o.Broken = append(o.Broken, v)
	}
	for i := range d.contexts.bars {
		o.Stamps = append(o.Stamps, len(d.contexts.bars[i].stamps))
	}
	for i := range d.lanes {
		o.Flights = append(o.Flights, len(d.lanes[i].flight))
	}
	text, err := json.Marshal(&o)
	if err != nil {
		return nil, err
	}
	c := &columns{b: append([]byte("VST1"), 0)[:4]}
	c.put(uint64(len(text)))
	c.b = append(c.b, text...)
	d.columns(c)

	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(c.b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (d *Diagram) columns(c *columns) {
	before := core.Time(0)
	for _, at := range d.at {
		c.put(uint64(max(at-before, 0)))
		before = max(before, at)
	}
	for _, lane := range d.on {
		c.put(uint64(lane + 1))
	}
	for _, k := range d.kinds {
		c.put(uint64(k))
	}
	for _, f := range d.about {
		c.put(uint64(f))
	}
	for _, p := range d.words.pattern {
		c.put(uint64(p))
	}
	for _, a := range d.words.args {
		c.put(a)
	}
	all := d.messages.all
	for i := range all {
		c.put(uint64(all[i].lane))
	}
	for i := range all {
		c.put(uint64(all[i].class))
	}
	for i := range all {
		c.put(uint64(all[i].fate))
	}
	for i := range all {
		c.put(uint64(all[i].name + 1))
	}
	record := int32(0)
	for i := range all {
		c.signed(int64(all[i].record - record))
		record = all[i].record
	}
	for _, moment := range []func(*message) core.Time{
		func(m *message) core.Time { return m.sent }, func(m *message) core.Time { return m.reached },
		func(m *message) core.Time { return m.handled }, func(m *message) core.Time { return m.ended },
	} {
		for i := range all {
			at := moment(&all[i])
			if at == none {
				c.put(0)
				continue
			}
			from := int64(at - d.at[all[i].record])
			c.put(uint64(from)<<1 ^ uint64(from>>63) + 1)
		}
	}
	for i := range d.contexts.bars {
		before := core.Time(0)
		for _, s := range d.contexts.bars[i].stamps {
			c.signed(int64(s - before))
			before = s
		}
	}
	for i := range d.lanes {
		before := core.Time(0)
		for _, f := range d.lanes[i].flight {
			c.put(uint64(f.At - before))
			before = f.At
		}
		for _, f := range d.lanes[i].flight {
			c.put(uint64(f.Is))
		}
	}
	before = 0
	for _, s := range d.scans {
		c.put(uint64(s - before))
		before = s
	}
}
