package real

import (
	"bytes"
	"testing"

	"vigil/core"
)

// What is read along comes out the same however the bytes are cut.
func TestReadingAlong(t *testing.T) {
	stream := greeting()
	stream = append(stream, flagCommand, 5)
	stream = append(stream, "READY"...)
	long := bytes.Repeat([]byte{7}, 300)
	stream = append(stream, flagMore, 1, 0x00, flagMore, 1, 0x16, 0, 1, 0xc0) // a ping of nobody
	stream = append(stream, flagMore, 1, 0x01, flagLong, 0, 0, 0, 0, 0, 0, 1, 44)
	stream = append(stream, long...)
	for _, step := range []int{1, 2, 7, 63, 64, 65, len(stream)} {
		var got [][][]byte
		r := newReader(func(f *core.Frames) {
			var parts [][]byte
			for i := range f.Len() {
				parts = append(parts, bytes.Clone(f.Part(i)))
			}
			got = append(got, parts)
		})
		for at := 0; at < len(stream); at += step {
			r.feed(stream[at:min(at+step, len(stream))])
		}
		if len(got) != 2 || len(got[0]) != 3 || got[0][1][0] != 0x16 || len(got[1]) != 2 || !bytes.Equal(got[1][1], long) {
			t.Errorf("in pieces of %d: %d messages %v", step, len(got), got)
		}
	}
}

// What is no ZMTP 3 is passed over, not read.
func TestForeignBytesAreNotRead(t *testing.T) {
	r := newReader(func(*core.Frames) { t.Error("a message came out of nothing") })
	r.feed([]byte("GET / HTTP/1.1\r\n\r\n"))
	if !r.lost {
		t.Error("it was taken for ZMTP")
	}
	r = newReader(func(*core.Frames) { t.Error("a message came out of nothing") })
	r.feed(append(greeting(), flagLong, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3)) // a length that no memory holds
	if len(r.frames.Bytes) != 0 {
		t.Error("it keeps what it should pass over")
	}
}

func FuzzReadingAlong(f *testing.F) {
	f.Add(append(greeting(), flagMore, 1, 0, 0, 1, 0x16), 3)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		r := newReader(func(*core.Frames) {})
		step = max(step&0xff, 1)
		for at := 0; at < len(b); at += step {
			r.feed(b[at:min(at+step, len(b))])
		}
	})
}
