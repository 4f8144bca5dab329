package loop

import "vigil/core"

// timers are the keys that a machine has armed, the earliest on top of a heap;
// of two for the same time the one armed first. Slots of keys are small
// (core.TimerKey), so a key's place is looked up in a table.
type timers struct {
	heap  []armed
	place [core.TimerKinds][]int32 // by kind and slot: index in heap + 1
	count uint64
}

type armed struct {
	at    core.Time
	order uint64
	key   core.TimerKey
}

func (a *armed) before(b *armed) bool {
	return a.at < b.at || a.at == b.at && a.order < b.order
}

// next is when the earliest timer is due, Never where there is none.
func (t *timers) next() core.Time {
	if len(t.heap) == 0 {
		return core.Never
	}
	return t.heap[0].at
}

// due takes out the earliest timer if it is due by now.
func (t *timers) due(now core.Time) (core.TimerKey, bool) {
	if len(t.heap) == 0 || t.heap[0].at > now {
		return core.TimerKey{}, false
	}
	key := t.heap[0].key
	t.disarm(key)
	return key, true
}

func (t *timers) arm(key core.TimerKey, at core.Time) {
	t.disarm(key)
	if at == core.Never {
		return
	}
	table := &t.place[key.Kind]
	for int(key.Slot) >= len(*table) {
		*table = append(*table, 0)
	}
	t.count++
	t.heap = append(t.heap, armed{at, t.count, key})
	t.up(len(t.heap) - 1)
}

func (t *timers) disarm(key core.TimerKey) {
	table := t.place[key.Kind]
	if int(key.Slot) >= len(table) || table[key.Slot] == 0 {
		return
	}
	at := int(table[key.Slot]) - 1
	table[key.Slot] = 0
	last := len(t.heap) - 1
	moved := t.heap[last]
	if t.heap = t.heap[:last]; at < last {
		t.put(at, moved)
		t.down(at)
		t.up(at)
	}
}

func (t *timers) put(at int, a armed) {
	t.heap[at] = a
	t.place[a.key.Kind][a.key.Slot] = int32(at + 1)
}

func (t *timers) up(at int) {
	a := t.heap[at]
	for at > 0 && a.before(&t.heap[(at-1)/2]) {
		t.put(at, t.heap[(at-1)/2])
		at = (at - 1) / 2
	}
	t.put(at, a)
}

func (t *timers) down(at int) {
	a := t.heap[at]
	for {
		child := 2*at + 1
		if child >= len(t.heap) {
			break
		}
		if child+1 < len(t.heap) && t.heap[child+1].before(&t.heap[child]) {
			child++
		}
		if !t.heap[child].before(&a) {
			break
		}
		t.put(at, t.heap[child])
		at = child
	}
	t.put(at, a)
}
