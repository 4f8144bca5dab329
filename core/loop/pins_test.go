package loop

import (
	"syscall"
	"testing"
	"unsafe"
)

// pinsSeen is a backend that wants to know where slots lie.
type pinsSeen struct{ took, gave []*byte }

func (p *pinsSeen) Took(b []byte) { p.took = append(p.took, unsafe.SliceData(b)) }

func (p *pinsSeen) Gave(b []byte) {
	p.gave = append(p.gave, unsafe.SliceData(b))
	syscall.Munmap(b)
}

// A backend that pins memory is told of each slab before a slot lies in it, and
// gets each back once, to unmap it when it is done.
func TestABackendIsToldWhereSlotsLie(t *testing.T) {
	p := new(pinsSeen)
	s := slots{pins: p, sizes: map[uint64]*sizeClass{}}
	one := &sizeClass{stride: 1 << 20, chunk: 1 << 20, per: 16}
	two := &sizeClass{stride: 1 << 21, chunk: 1 << 21, per: 8}
	s.sizes[one.chunk], s.sizes[two.chunk] = one, two
	if !s.grow(one) || !s.grow(two) || len(p.took) != 2 {
		t.Fatalf("told of %d slabs", len(p.took))
	}
	s.release(one.open[0])
	if len(p.gave) != 1 || p.gave[0] != p.took[0] {
		t.Errorf("given back: %v of %v", p.gave, p.took)
	}
	s.close()
	if len(p.gave) != 2 || p.gave[1] != p.took[1] {
		t.Errorf("given back: %v of %v", p.gave, p.took)
	}
}
