// Package fieldtest changes the fields of a value one by one and looks whether a
// fold of it notices. It is for the tests of fingerprints: a field that is new
// tomorrow and that nobody folds turns them red.
package fieldtest

import (
	"reflect"
	"slices"
	"unsafe"
)

// most bounds how many elements of one slice are looked at.
const most = 48

// Noticed changes each field that v points at, through structs, arrays and
// slices but not through pointers, and reports under "Type.field" whether fold
// came out otherwise for any value of it. Each change is taken back. ends are
// the values that end a chain: a field named there is set to that value and no
// other, so that a fold that follows it comes to an end. A fold that panics has
// noticed. What skip names is not gone into.
func Noticed(v any, ends map[string]int64, skip []string, fold func() uint64) map[string]bool {
	w := walker{ends: ends, skip: skip, fold: fold, before: fold(), noticed: map[string]bool{}}
	w.walk(reflect.ValueOf(v).Elem(), "")
	return w.noticed
}

// Merge adds what another state showed.
func Merge(into, from map[string]bool) {
	for field, yes := range from {
		into[field] = into[field] || yes
	}
}

type walker struct {
	ends    map[string]int64
	skip    []string
	fold    func() uint64
	before  uint64
	noticed map[string]bool
}

func (w *walker) walk(v reflect.Value, name string) {
	if slices.Contains(w.skip, name) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
			w.walk(f, v.Type().Name()+"."+v.Type().Field(i).Name)
		}
	case reflect.Array:
		for i := range min(v.Len(), most) {
			w.walk(v.Index(i), name)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			if _, chain := w.ends[name]; !chain {
				v.Set(v.Slice(0, v.Len()-1))
				w.look(name)
				v.Set(old)
			}
		}
		for i := range min(v.Len(), most) {
			w.walk(v.Index(i), name)
		}
	case reflect.Bool:
		w.change(v, name, func() { v.SetBool(!v.Bool()) })
	case reflect.String:
		w.change(v, name, func() { v.SetString(v.String() + "?") })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if end, chain := w.ends[name]; chain {
			if v.Int() != end {
				w.change(v, name, func() { v.SetInt(end) })
			}
			return
		}
		w.change(v, name, func() { v.SetInt(v.Int() + 1) })
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.change(v, name, func() { v.SetUint(v.Uint() + 1) })
	}
}

func (w *walker) change(v reflect.Value, name string, do func()) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	do()
	w.look(name)
	v.Set(old)
}

func (w *walker) look(name string) {
	defer func() {
		if recover() != nil {
			w.noticed[name] = true
		}
	}()
	w.noticed[name] = w.fold() != w.before || w.noticed[name]
}
