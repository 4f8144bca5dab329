package wire

// Why this file: the answers of the engine-driven path, which tell a worker
// where in the server's shared pool its data go or lie.

// context reads the answer to an engine-driven registration. Both fields have
// defaults.
func (r *Reply) context(outer *cursor) {
	c := *outer // the library's reader keeps a cursor; the caller's must stay off the heap
	m := c.composite()
	for n := m.dict(); n > 0 && !m.failed(); n-- {
		switch string(m.text(MaxText)) {
		case "shm_name":
			r.ShmName = m.text(MaxHandle)
		case "pool_size":
			r.Pool = m.int()
		default:
			m.skip()
		}
	}
	m.close()
	*outer = c
}

// prepared reads the answer to PREPARE_STORE or PREPARE_RETRIEVE.
func (r *Reply) prepared(outer *cursor, retrieve bool) {
	c := *outer
	const success, data, context = 1, 2, 4
	seen, want := 0, context
	if retrieve {
		want = success | data | context
	}
	for n := c.dict(); n > 0 && c.fail == 0; n-- {
		switch name := string(c.text(MaxText)); {
		case name == "context":
			m := c.composite()
			r.place(&m)
			m.close()
			seen |= context
		case name == "success" && retrieve:
			r.OK = c.bool()
			seen |= success
		case name == "data" && retrieve:
			r.Data = c.data(MaxReplyBytes)
			seen |= data
		default:
			c.skip()
		}
	}
	if seen != want {
		c.bad("is a map that lacks a field")
	}
	*outer = c
}

// place reads a context: empty where data travel inline.
func (r *Reply) place(m *composite) {
	n := m.dict()
	r.Inline = n == 0
	for ; n > 0 && !m.failed(); n-- {
		switch string(m.text(MaxText)) {
		case "slots":
			for k := m.array(MaxSlotsInReply); k > 0 && !m.failed(); k-- {
				r.slots = append(r.slots, r.slot(m))
			}
		case "chunk_indices":
			r.indices = m.ints(r.indices, MaxSlotsInReply)
		default:
			m.skip()
		}
	}
	r.Slots, r.Indices = r.slots, r.indices
}

func (r *Reply) slot(m *composite) PoolSlot {
	var s PoolSlot
	for n := m.dict(); n > 0 && !m.failed(); n-- {
		switch string(m.text(MaxText)) {
		case "offset":
			s.Offset = m.int()
		case "length":
			s.Length = m.int()
		case "shape":
			at := len(r.ints)
			r.ints = m.ints(r.ints, MaxDimensions)
			s.Shape = r.ints[at:len(r.ints):len(r.ints)]
		case "dtype":
			s.DType = m.text(MaxWord)
		default:
			m.skip()
		}
	}
	return s
}
