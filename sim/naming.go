package sim

import "vigil/core"

// Naming says who is who when workers that are alike change places: the same
// world told with other names. A fingerprint that is the least over all namings
// is the same for worlds that differ only in which of their workers is which.
type Naming struct {
	place  []int32 // of each worker: its place
	worker []int32 // of each place: the worker
	lives  []core.InstanceID
}

// maxNamings bounds how many ways to change places are looked at: four workers.
const maxNamings = 24

// Namings returns every way in which the workers of each group can change
// places, none where no group has two. Workers of groups that would make it
// more than 24 ways keep their places.
func Namings(workers int, alike [][]int) []*Naming {
	plain := &Naming{place: make([]int32, workers), worker: make([]int32, workers)}
	for i := range plain.place {
		plain.place[i] = int32(i)
	}
	all := []*Naming{plain}
	for _, group := range alike {
		orders := permutations(len(group))
		if len(group) < 2 || len(all)*len(orders) > maxNamings {
			continue
		}
		var more []*Naming
		for _, n := range all {
			for _, order := range orders {
				m := &Naming{place: append([]int32(nil), n.place...), worker: make([]int32, workers)}
				for i, to := range order {
					m.place[group[i]] = int32(group[to])
				}
				more = append(more, m)
			}
		}
		all = more
	}
	if len(all) == 1 {
		return nil
	}
	for _, n := range all {
		for i, at := range n.place {
			n.worker[at] = int32(i)
		}
	}
	return all
}

func permutations(n int) [][]int {
	if n > 4 {
		return nil
	}
	all := [][]int{{}}
	for i := range n {
		var more [][]int
		for _, p := range all {
			for at := 0; at <= i; at++ {
				q := append(append(append([]int(nil), p[:at]...), i), p[at:]...)
				more = append(more, q)
			}
		}
		all = more
	}
	return all
}

// Of tells the naming which ids the workers of a world have now.
func (n *Naming) Of(w *World) { n.lives = w.identities }

// Worker returns the place of a worker.
func (n *Naming) Worker(i int) int {
	if n == nil || i < 0 || i >= len(n.place) {
		return i
	}
	return int(n.place[i])
}

// At returns the worker at a place.
func (n *Naming) At(place int) int {
	if n == nil {
		return place
	}
	return int(n.worker[place])
}

// Instance returns what stands for an id: the place of the worker whose id it
// is now, and the id itself where it is nobody's.
func (n *Naming) Instance(id core.InstanceID) uint64 {
	if n == nil || id == 0 {
		return uint64(id)
	}
	for i, is := range n.lives {
		if is == id {
			return uint64(n.place[i]) + 1
		}
	}
	return uint64(id)
}

// Request returns what stands for an engine's request: its number among those
// of its engine, where workers may change places.
func (n *Naming) Request(id core.RequestID) uint64 {
	if n == nil {
		return uint64(id)
	}
	who := int(id) % (len(n.place) + 1)
	return uint64(id)/uint64(len(n.place)+1)*uint64(len(n.place)+1) + uint64(n.Worker(who))
}
