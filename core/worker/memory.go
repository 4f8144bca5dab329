package worker

import (
	"slices"

	"vigil/core"
)

// The engine's memory as it was registered, kept because a recovery registers
// it again without the engine's help (section 6.2).
//
// What an engine passes is valid during its call only, so it is copied, all
// byte strings into one buffer and all numbers into another: a registration
// has few shapes and many tensors, and an idle worker must stay small.
type memory struct {
	kept    bool
	exports []core.Export
	groups  []core.Group
	bytes   []byte
	numbers []int64
}

func (m *memory) reset() {
	m.kept = false
	m.exports, m.groups = m.exports[:0], m.groups[:0]
}

// keep replaces what is kept by a copy of exports and groups.
func (m *memory) keep(exports []core.Export, groups []core.Group) {
	bytes, numbers := 0, 0
	for i := range exports {
		e := &exports[i]
		bytes += len(e.Handle) + len(e.Device) + len(e.DType)
		numbers += len(e.Shape)
	}
	for i := range groups {
		numbers += len(groups[i].Layers)
	}
	// The buffers are grown first: slices into them must not be left behind.
	m.bytes = slices.Grow(m.bytes[:0], bytes)
	m.numbers = slices.Grow(m.numbers[:0], numbers)
	m.exports = append(m.exports[:0], exports...)
	m.groups = append(m.groups[:0], groups...)
	for i := range m.exports {
		e := &m.exports[i]
		e.Handle, e.Device, e.DType = m.text(e.Handle), m.text(e.Device), m.text(e.DType)
		e.Shape = m.list(e.Shape)
	}
	for i := range m.groups {
		m.groups[i].Layers = m.list(m.groups[i].Layers)
	}
	m.kept = true
}

// text copies a byte string behind the others.
func (m *memory) text(b []byte) []byte {
	from := len(m.bytes)
	m.bytes = append(m.bytes, b...)
	return m.bytes[from:len(m.bytes):len(m.bytes)]
}

// list copies numbers behind the others.
func (m *memory) list(n []int64) []int64 {
	from := len(m.numbers)
	m.numbers = append(m.numbers, n...)
	return m.numbers[from:len(m.numbers):len(m.numbers)]
}

// blockTokens is how many tokens one block holds, by what the groups say;
// 0 where they say nothing.
func (m *memory) blockTokens() int64 {
	for i := range m.groups {
		if t := m.groups[i].TokensPerBlock; t > 0 {
			return t
		}
	}
	return 0
}

// tail is the product of the last n dimensions of the first tensor; 1 where
// there is none, because the wire's sizes count from one.
func (m *memory) tail(n int) int64 {
	if len(m.exports) == 0 {
		return 1
	}
	shape := m.exports[0].Shape
	product := int64(1)
	for _, dim := range shape[max(0, len(shape)-n):] {
		product *= dim
	}
	return product
}

// dtype is the element type of the first tensor.
func (m *memory) dtype() []byte {
	if len(m.exports) == 0 {
		return nil
	}
	return m.exports[0].DType
}
