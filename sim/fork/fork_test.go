package fork

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// thing has one field of every sort that the project's states are made of.
type thing struct {
	Small  bool
	Number uint32
	Kept   uint8
	After  uint8
	Text   string
	Flat   []uint64
	Deep   []part
	Nested [2]struct{ List []int32 }
	Lists  [][]uint16
	Owner  *thing
	Back   *thing
	Any    any
	Same   []byte
}

type part struct {
	Name  []byte
	At    int64
	Parts []part
}

var rules = map[string]Rule{
	"thing.Kept": Keep, "thing.Owner": Share, "thing.Back": Keep, "thing.Any": Share, "thing.Same": Share,
}

func drawPart(t *rapid.T, depth int) part {
	p := part{Name: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "name"), At: rapid.Int64().Draw(t, "at")}
	if depth > 0 {
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			p.Parts = append(p.Parts, drawPart(t, depth-1))
		}
	}
	return p
}

func drawThing(t *rapid.T) *thing {
	x := &thing{
		Small: rapid.Bool().Draw(t, "small"), Number: rapid.Uint32().Draw(t, "number"), Kept: 7, After: rapid.Uint8().Draw(t, "after"),
		Text: rapid.String().Draw(t, "text"), Flat: rapid.SliceOfN(rapid.Uint64(), 0, 9).Draw(t, "flat"),
		Lists: rapid.SliceOfN(rapid.SliceOfN(rapid.Uint16(), 0, 4), 0, 4).Draw(t, "lists"),
		Owner: &thing{}, Any: 3, Same: []byte("same"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "deep") {
		x.Deep = append(x.Deep, drawPart(t, 2))
	}
	for i := range x.Nested {
		x.Nested[i].List = rapid.SliceOfN(rapid.Int32(), 0, 4).Draw(t, "nested")
	}
	return x
}

// spoil changes every element that v reaches by slices.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).Name != "Same" {
				spoil(f)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i))
		}
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() ^ 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() ^ 1)
	}
}

// same compares what a copy must have carried over.
func same(a, b *thing) bool {
	x, y := *a, *b
	x.Kept, y.Kept, x.Back, y.Back = 0, 0, nil, nil
	return reflect.DeepEqual(normal(x), normal(y))
}

// normal makes empty slices nil, which a copy may not tell apart.
func normal(v any) any {
	copied := reflect.New(reflect.TypeOf(v)).Elem()
	copied.Set(reflect.ValueOf(v))
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Slice:
			if v.Len() == 0 {
				v.SetZero()
				return
			}
			fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(fresh, v)
			v.Set(fresh)
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(copied)
	return copied.Interface()
}

// A copy is equal, whatever the target held before; what is done to either is
// not seen by the other.
func TestACopyIsEqualAndIndependent(t *testing.T) {
	c := Must[thing](rules)
	target := &thing{Kept: 9}
	rapid.Check(t, func(t *rapid.T) {
		from := drawThing(t)
		before := normal(*from)
		target.Back = target
		c.Copy(target, from)
		if !same(target, from) {
			t.Fatalf("copied %+v to %+v", from, target)
		}
		if target.Kept != 9 || target.Back != target {
			t.Fatalf("what was to be kept was overwritten: %+v", target)
		}
		spoil(reflect.ValueOf(target).Elem())
		target.Kept = 9
		if !reflect.DeepEqual(normal(*from), before) {
			t.Fatal("a change of the copy changed the original")
		}
	})
}

func TestWhatHasNoRuleIsRefused(t *testing.T) {
	for name, make := range map[string]func() error{
		"pointer":   func() error { _, err := Of[struct{ P *int }](nil); return err },
		"map":       func() error { _, err := Of[struct{ M map[int]int }](nil); return err },
		"interface": func() error { _, err := Of[struct{ I any }](nil); return err },
		"func":      func() error { _, err := Of[struct{ L []struct{ F func() } }](nil); return err },
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), "needs a rule") {
			t.Errorf("a %s without a rule: %v", name, err)
		}
	}
	if _, err := Of[part](map[string]Rule{"part.Nmae": Keep}); err == nil {
		t.Error("a rule for a field that is not there was taken")
	}
}

func TestACopyDoesNotAllocate(t *testing.T) {
	c := Must[thing](rules)
	from := &thing{Flat: make([]uint64, 5), Deep: make([]part, 3), Lists: [][]uint16{{1, 2}, {3}}}
	for i := range from.Deep {
		from.Deep[i].Name = []byte("a name")
	}
	to := new(thing)
	c.Copy(to, from)
	if n := testing.AllocsPerRun(100, func() { c.Copy(to, from) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
