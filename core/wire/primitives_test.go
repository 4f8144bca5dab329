package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"vigil/core"
)

// library encodes through vmihailenco/msgpack with shortest integers, the
// reference for every primitive of ours.
func library(t interface{ Fatal(...any) }, write func(*msgpack.Encoder) error) []byte {
	var out bytes.Buffer
	enc := msgpack.NewEncoder(&out)
	enc.UseCompactInts(true)
	if err := write(enc); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Integers are drawn near the borders between msgpack's widths, where a
// mistake in a shortest form would be.
var edges = rapid.Custom(func(t *rapid.T) int64 {
	if rapid.Bool().Draw(t, "anywhere") {
		return rapid.Int64().Draw(t, "value")
	}
	at := int64(1) << rapid.IntRange(0, 62).Draw(t, "bit")
	v := at + rapid.Int64Range(-2, 2).Draw(t, "off")
	if rapid.Bool().Draw(t, "negative") {
		return -v
	}
	return v
})

func TestArraysOfIntegersAreTheLibrarysBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Custom(func(t *rapid.T) uint32 { return uint32(edges.Draw(t, "v")) })).Draw(t, "array")
		reference := library(t, func(e *msgpack.Encoder) error {
			if err := e.EncodeArrayLen(len(want)); err != nil {
				return err
			}
			for _, v := range want {
				if err := e.EncodeUint(uint64(v)); err != nil {
					return err
				}
			}
			return nil
		})
		if ours := appendUints(nil, want); !bytes.Equal(ours, reference) {
			t.Fatalf("encoded % x, library % x", ours, reference)
		}
		c := cursor{b: reference}
		got := c.uints(nil, MaxTokens)
		if c.end(); c.fail != core.NoFailure || len(got) != len(want) {
			t.Fatalf("decoded %d of %d: %s", len(got), len(want), c.why)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("element %d: got %d, want %d", i, got[i], want[i])
			}
		}
		var back []uint32
		if err := msgpack.Unmarshal(appendUints(nil, want), &back); err != nil {
			t.Fatal(err)
		}
		for i := range back {
			if back[i] != want[i] {
				t.Fatalf("library read element %d as %d, want %d", i, back[i], want[i])
			}
		}
	})
}

// A long array has each head that an array can have, and the wide integers of
// non-minimal writers are understood too.
func TestLongAndWideArrays(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 65535, 65536, 70000} {
		want := make([]uint32, n)
		for i := range want {
			want[i] = uint32(i) * 65537
		}
		reference := library(t, func(e *msgpack.Encoder) error { return e.Encode(want) })
		if n > 0 && want[n-1] > 1<<16 && len(reference) == 0 {
			t.Fatal("empty")
		}
		c := cursor{b: appendUints(nil, want)}
		got := c.uints(nil, MaxTokens)
		if c.end(); c.fail != core.NoFailure || len(got) != n {
			t.Errorf("%d: got %d, %s", n, len(got), c.why)
		}
	}
	wide := []byte{0x93, codeUint64, 0, 0, 0, 0, 0, 0, 0, 9, codeInt64, 0, 0, 0, 0, 0, 0, 0, 8, codeInt8, 7}
	c := cursor{b: wide}
	if got := c.uints(nil, 3); c.fail != core.NoFailure || got[0] != 9 || got[1] != 8 || got[2] != 7 {
		t.Errorf("wide integers: got %v, %s", got, c.why)
	}
}

func TestPrimitivesAreTheLibrarysBytes(t *testing.T) {
	check := func(t *rapid.T, ours []byte, write func(*msgpack.Encoder) error) {
		if reference := library(t, write); !bytes.Equal(ours, reference) {
			t.Fatalf("encoded % x, library % x", ours, reference)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := edges.Draw(t, "integer")
		check(t, appendInt(nil, v), func(e *msgpack.Encoder) error { return e.EncodeInt(v) })
		c := cursor{b: appendInt(nil, v)}
		if got := c.int(); got != v || c.fail != core.NoFailure {
			t.Fatalf("read %d as %d", v, got)
		}
		n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(250, 260), rapid.IntRange(65530, 65540)).Draw(t, "length")
		s := bytes.Repeat([]byte{'x'}, n)
		check(t, appendText(nil, s), func(e *msgpack.Encoder) error { return e.EncodeString(string(s)) })
		check(t, appendData(nil, s), func(e *msgpack.Encoder) error { return e.EncodeBytes(s) })
		check(t, appendArray(nil, n), func(e *msgpack.Encoder) error { return e.EncodeArrayLen(n) })
		check(t, appendDict(nil, n%256), func(e *msgpack.Encoder) error { return e.EncodeMapLen(n % 256) })
		check(t, appendExtHead(nil, 1, n), func(e *msgpack.Encoder) error { return e.EncodeExtHeader(1, n) })
		c = cursor{b: appendText(nil, s)}
		if got := c.text(1 << 20); !bytes.Equal(got, s) {
			t.Fatalf("read a text of %d bytes as %d", n, len(got))
		}
		c = cursor{b: appendData(nil, s)}
		if got := c.data(1 << 20); !bytes.Equal(got, s) {
			t.Fatalf("read data of %d bytes as %d", n, len(got))
		}
		c = cursor{b: append(appendExtHead(nil, 7, n), s...)}
		if kind, got := c.extension(); kind != 7 || !bytes.Equal(got, s) {
			t.Fatalf("read an extension of %d bytes as %d of type %d", n, len(got), kind)
		}
	})
}

// whatever draws any value that msgpack can carry.
func whatever(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), edges.AsAny(), rapid.Float64().AsAny(), rapid.Float32().AsAny(),
		rapid.StringN(0, 40, 300).AsAny(), rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(), rapid.Uint64().AsAny(),
	}
	if depth > 0 {
		leaves = append(leaves,
			rapid.SliceOfN(whatever(depth-1), 0, 20).AsAny(),
			rapid.MapOfN(rapid.String(), whatever(depth-1), 0, 20).AsAny())
	}
	return rapid.OneOf(leaves...)
}

func TestSkippingEndsWhereTheValueEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := library(t, func(e *msgpack.Encoder) error { return e.Encode(whatever(3).Draw(t, "value")) })
		c := cursor{b: append(bytes.Clone(value), 0x2a)}
		c.skip()
		if c.fail != core.NoFailure || len(c.b) != 1 {
			t.Fatalf("left %d bytes, want 1: %s", len(c.b), c.why)
		}
		if n := len(value); n > 1 {
			c = cursor{b: value[:rapid.IntRange(0, n-1).Draw(t, "cut")]}
			if c.skip(); c.fail == core.NoFailure {
				t.Fatalf("took a cut value for a whole one")
			}
		}
	})
}

// int() of Python, over everything that a client can send in an int's place.
func TestIntegersAreCoercedAsPythonDoes(t *testing.T) {
	text := func(s string) []byte { return appendWord(nil, s) }
	float := func(f float64) []byte { return binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(f)) }
	single := func(f float32) []byte { return binary.BigEndian.AppendUint32([]byte{codeFloat32}, math.Float32bits(f)) }
	cases := []struct {
		name string
		in   []byte
		want int64
		fail bool
	}{
		{"true", []byte{codeTrue}, 1, false},
		{"false", []byte{codeFalse}, 0, false},
		{"nil", []byte{codeNil}, 0, true},
		{"a whole float", float(12), 12, false},
		{"a float is cut", float(12.9), 12, false},
		{"a negative float is cut towards zero", float(-12.9), -12, false},
		{"a large float", float(1 << 62), 1 << 62, false},
		{"a float past the range", float(1 << 63), 0, true},
		{"a tiny float", float(5e-324), 0, false},
		{"NaN", float(math.NaN()), 0, true},
		{"infinity", float(math.Inf(1)), 0, true},
		{"a single float", single(-3.5), -3, false},
		{"a numeral", text("12"), 12, false},
		{"a numeral with blanks and sign", text(" \t-1_000\n"), -1000, false},
		{"a plus", text("+7"), 7, false},
		{"the largest numeral", text("9223372036854775807"), math.MaxInt64, false},
		{"a numeral past the range", text("9223372036854775808"), 0, true},
		{"a numeral far past the range", text("99999999999999999999999"), 0, true},
		{"two underscores", text("1__0"), 0, true},
		{"a last underscore", text("1_"), 0, true},
		{"a word", text("twelve"), 0, true},
		{"nothing", text(""), 0, true},
		{"a sign alone", text("-"), 0, true},
		{"a float's numeral", text("1.0"), 0, true},
		{"bytes", appendData(nil, []byte("42")), 42, false},
		{"an array", []byte{0x91, 1}, 0, true},
		{"past 63 bits", appendUint(nil, 1<<63), 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := cursor{b: c.in}
			got := in.coerceInt()
			in.end()
			if failed := in.fail != core.NoFailure; failed != c.fail || !failed && got != c.want {
				t.Errorf("got %d, %q; want %d, failing %v", got, in.why, c.want, c.fail)
			}
		})
	}
}

// bool() of Python: whatever is nothing, zero or empty is false.
func TestTruthIsPythons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := whatever(1).Draw(t, "value")
		want := true
		switch v := v.(type) {
		case nil:
			want = false
		case bool:
			want = v
		case int64:
			want = v != 0
		case uint64:
			want = v != 0
		case float64:
			want = v != 0
		case float32:
			want = v != 0
		case string:
			want = v != ""
		case []byte:
			want = len(v) > 0
		case []any:
			want = len(v) > 0
		case map[string]any:
			want = len(v) > 0
		}
		c := cursor{b: library(t, func(e *msgpack.Encoder) error { return e.Encode(v) })}
		got := c.truth()
		if c.end(); got != want || c.fail != core.NoFailure {
			t.Fatalf("%#v is %v, want %v (%s)", v, got, want, c.why)
		}
	})
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64} {
		c := cursor{b: binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(f))}
		if !c.truth() {
			t.Errorf("%v is false", f)
		}
	}
}

// The core computes with no floats, and still writes and reads the seconds
// that a client's float means.
func TestSecondsAreCorrectlyRounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(MaxTimeout)).Draw(t, "nanoseconds"))
		if rapid.Bool().Draw(t, "short") {
			d %= 10 * time.Second
		}
		ours := appendSeconds(nil, d)
		want, _ := new(big.Rat).SetFrac64(int64(d), int64(time.Second)).Float64()
		if got := math.Float64frombits(binary.BigEndian.Uint64(ours[1:])); got != want {
			t.Fatalf("%d ns written as %v, want %v", d, got, want)
		}
		c := cursor{b: ours}
		if got := c.seconds(); d < 1<<51 && got != d || c.fail != core.NoFailure {
			t.Fatalf("%d ns came back as %d", d, got)
		}
	})
	cases := []struct {
		in   []byte
		want time.Duration
		fail bool
	}{
		{[]byte{5}, 5 * time.Second, false},
		{[]byte{0xff}, 0, false},
		{appendUint(nil, 1<<40), MaxTimeout, false},
		{binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(math.Inf(1))), MaxTimeout, false},
		{binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(1e300)), MaxTimeout, false},
		{binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(1e17)), MaxTimeout, false},
		{binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(-1)), 0, false},
		{binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(1e-300)), 0, false},
		{binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(0.5)), time.Second / 2, false},
		{binary.BigEndian.AppendUint32([]byte{codeFloat32}, math.Float32bits(0.25)), time.Second / 4, false},
		{binary.BigEndian.AppendUint64([]byte{codeFloat64}, math.Float64bits(math.NaN())), 0, true},
		{[]byte{codeTrue}, 0, true},
	}
	for _, c := range cases {
		in := cursor{b: c.in}
		if got := in.seconds(); (in.fail != core.NoFailure) != c.fail || got != c.want {
			t.Errorf("% x: got %v (%s), want %v", c.in, got, in.why, c.want)
		}
	}
}

// A value nested without end is refused at a small depth, with no stack grown.
func TestDeepNestingIsRefused(t *testing.T) {
	c := cursor{b: bytes.Repeat([]byte{0x91}, 1<<20)}
	if c.skip(); c.fail != core.FailTooLarge {
		t.Errorf("got %v, want %v", c.fail, core.FailTooLarge)
	}
}

// A head that counts more than the bytes behind it could hold opens nothing: a
// count is never believed before its bytes are there. A pair takes two.
func TestAContainerNeedsItsBytes(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		k    container
		want int
	}{
		{[]byte{0x92, 1, 2}, anArray, 2}, {[]byte{0x93, 1, 2}, anArray, 0},
		{[]byte{0x81, 1, 2}, aMap, 1}, {[]byte{0x82, 1, 2, 3}, aMap, 0}, {[]byte{0x82, 1, 2, 3, 4}, aMap, 2},
		{[]byte{codeArray16, 0, 2, 1}, anArray, 0}, {[]byte{codeMap32, 0, 0, 0, 1, 1, 2}, aMap, 1},
		{[]byte{codeMap16, 0, 0}, anArray, 0}, {[]byte{0x90}, aMap, 0},
	} {
		r := cursor{b: c.b}
		n := r.open(c.k, 8)
		if failed := r.fail != core.NoFailure; n != c.want || failed != (c.want == 0) {
			t.Errorf("% x opened as a container of %d values each: %d, %q; want %d", c.b, c.k.values, n, r.why, c.want)
		}
	}
}
