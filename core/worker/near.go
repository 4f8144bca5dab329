package worker

// NearBooks returns where the books on pending requests lie, for a simulator
// that knows what comes next and has the processor fetch it ahead of time: the
// entries, their index, and what each request carries: the names and the ends
// of its groups' blocks. nil where there are none. The addresses are for that alone; nothing is to be read or
// written through them.
func (w *Worker) NearBooks() (entries *entry, index *int32, names *byte, ends *int) {
	if t := &w.pending; cap(t.entries) > 0 {
		entries = &t.entries[:1][0]
		if len(t.index) > 0 {
			index = &t.index[0]
		}
	}
	if len(w.names) > 0 {
		names = &w.names[0]
	}
	if cap(w.ends) > 0 {
		ends = &w.ends[:1][0]
	}
	return entries, index, names, ends
}
