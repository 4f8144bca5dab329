// Package fork copies the state of a value into another one of its type,
// without allocating once the other is as large. It exists for the exhaustive
// search, which forks a world at every choice, a hundred thousand times a
// second.
//
// Contract. A copy goes by the type's layout, so a field that is new tomorrow
// is copied tomorrow: numbers by value, strings by sharing, slices element by
// element into the other's own buffers. What cannot be copied by layout alone
// (a pointer, an interface, a map, a function) must have a rule of its own, and
// Of refuses a type with such a field and no rule. After a copy no step of one
// value is seen by the other, but through what a rule shares.
package fork

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Rule says what a copy does with one field.
type Rule uint8

// The rules.
const (
	// Keep leaves the target's field as it is: scratch, or what the caller puts
	// right by hand.
	Keep Rule = iota + 1
	// Share gives the target the same pointer, interface or slice: for what
	// never changes.
	Share
)

// Copier copies values of one type. It may be shared by goroutines.
type Copier[T any] struct{ program program }

// program is what to do with one type's layout, in the order of its fields.
type program struct {
	steps []step
	size  uintptr
	flat  bool // no pointer in it: one move of its bytes is a copy
	// fenced: a field that is kept lies before the next one, so that no move
	// may go over it.
	fenced bool
}

type stepKind uint8

const (
	moveBytes   stepKind = iota // size bytes without pointers
	movePointer                 // one pointer, shared
	moveTwo                     // two words, of which any may be a pointer: an interface
	moveString                  // a string
	moveHeader                  // a slice, shared
	deepSlice                   // a slice, element by element
)

type step struct {
	kind   stepKind
	offset uintptr
	size   uintptr
	slice  reflect.Type // deepSlice
	each   *program     // deepSlice: of an element
}

// slice is the layout of every slice.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

// Of makes the copier of a type. Rules are named "Type.field", by the type that
// declares the field; one that fits no field is an error, as is a field that
// needs a rule and has none.
func Of[T any](rules map[string]Rule) (*Copier[T], error) {
	b := builder{rules: rules, used: map[string]bool{}, seen: map[reflect.Type]*program{}}
	p, err := b.compile(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	for name := range rules {
		if !b.used[name] {
			return nil, fmt.Errorf("fork: there is no field %s in %v", name, reflect.TypeFor[T]())
		}
	}
	return &Copier[T]{*p}, nil
}

// Must is Of for rules that are written into the program.
func Must[T any](rules map[string]Rule) *Copier[T] {
	c, err := Of[T](rules)
	if err != nil {
		panic(err)
	}
	return c
}

// Copy makes to equal to from.
func (c *Copier[T]) Copy(to, from *T) {
	c.program.run(unsafe.Pointer(to), unsafe.Pointer(from))
}

type builder struct {
	rules map[string]Rule
	used  map[string]bool
	seen  map[reflect.Type]*program
}

func (b *builder) compile(t reflect.Type) (*program, error) {
	if p := b.seen[t]; p != nil {
		return p, nil
	}
	p := &program{size: t.Size(), flat: b.flat(t)}
	b.seen[t] = p
	if err := b.add(p, t, 0, t.String(), 0); err != nil {
		return nil, err
	}
	return p, nil
}

// add appends what copies a value of type t that lies at offset.
func (b *builder) add(p *program, t reflect.Type, offset uintptr, name string, rule Rule) error {
	if rule == Keep {
		p.fenced = true
		return nil
	}
	if b.flat(t) {
		// One move for neighbours, over the gap that their alignment leaves.
		if last := len(p.steps) - 1; last >= 0 && p.steps[last].kind == moveBytes {
			if s := &p.steps[last]; !p.fenced && offset-(s.offset+s.size) < 8 {
				s.size = offset + t.Size() - s.offset
				return nil
			}
		}
		p.steps, p.fenced = append(p.steps, step{kind: moveBytes, offset: offset, size: t.Size()}), false
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			key := t.Name() + "." + f.Name
			r := b.rules[key]
			if r != 0 {
				b.used[key] = true
			}
			if err := b.add(p, f.Type, offset+f.Offset, key, r); err != nil {
				return err
			}
		}
		return nil
	case reflect.Array:
		for i := range t.Len() {
			if err := b.add(p, t.Elem(), offset+uintptr(i)*t.Elem().Size(), name, rule); err != nil {
				return err
			}
		}
		return nil
	case reflect.String:
		p.steps = append(p.steps, step{kind: moveString, offset: offset})
		return nil
	case reflect.Slice:
		if rule == Share {
			p.steps = append(p.steps, step{kind: moveHeader, offset: offset})
			return nil
		}
		each, err := b.compile(t.Elem())
		if err != nil {
			return err
		}
		p.steps = append(p.steps, step{kind: deepSlice, offset: offset, slice: t, each: each})
		return nil
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if rule != Share {
			return fmt.Errorf("fork: %s is a %s and needs a rule", name, t.Kind())
		}
		p.steps = append(p.steps, step{kind: movePointer, offset: offset})
		return nil
	case reflect.Interface:
		if rule != Share {
			return fmt.Errorf("fork: %s is an interface and needs a rule", name)
		}
		p.steps = append(p.steps, step{kind: moveTwo, offset: offset})
		return nil
	}
	return fmt.Errorf("fork: %s is a %s, which nothing copies", name, t.Kind())
}

// flat reports whether a value of t has no pointer in it and no rule.
func (b *builder) flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if b.rules[t.Name()+"."+f.Name] != 0 || !b.flat(f.Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return b.flat(t.Elem())
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	}
	return false
}

func (p *program) run(to, from unsafe.Pointer) {
	for i := range p.steps {
		s := &p.steps[i]
		d, f := unsafe.Add(to, s.offset), unsafe.Add(from, s.offset)
		switch s.kind {
		case moveBytes:
			copy(unsafe.Slice((*byte)(d), s.size), unsafe.Slice((*byte)(f), s.size))
		case movePointer:
			*(*unsafe.Pointer)(d) = *(*unsafe.Pointer)(f)
		case moveTwo:
			*(*[2]unsafe.Pointer)(d) = *(*[2]unsafe.Pointer)(f)
		case moveString:
			*(*string)(d) = *(*string)(f)
		case moveHeader:
			*(*slice)(d) = *(*slice)(f)
		case deepSlice:
			if to, from := (*slice)(d), (*slice)(f); from.len == 0 {
				to.len = 0
			} else {
				s.deep(to, from)
			}
		}
	}
}

// deep copies a slice into the target's own buffer. What lies behind its length
// stays there: buffers of elements that come back when it grows again.
func (s *step) deep(to, from *slice) {
	n := from.len
	if n > to.cap {
		s.grow(to, n)
	}
	to.len = n
	if s.each.flat {
		size := s.each.size * uintptr(n)
		copy(unsafe.Slice((*byte)(to.data), size), unsafe.Slice((*byte)(from.data), size))
		return
	}
	for i := range uintptr(n) { // no pointer is ever made past the last element
		s.each.run(unsafe.Add(to.data, i*s.each.size), unsafe.Add(from.data, i*s.each.size))
	}
}

// grow gives the target room, keeping the buffers of the elements that it has.
func (s *step) grow(to *slice, n int) {
	fresh := reflect.MakeSlice(s.slice, n+n/2+1, n+n/2+1)
	old := reflect.NewAt(s.slice, unsafe.Pointer(to)).Elem()
	if to.cap > 0 {
		reflect.Copy(fresh, old.Slice3(0, to.cap, to.cap))
	}
	to.data, to.cap = fresh.UnsafePointer(), fresh.Cap()
}
