package spacetime

import (
	"fmt"
	"strconv"
	"strings"
)

// The words of records are mostly the same but for their numbers. Each is kept
// as a pattern and the numbers in it, which takes a twentieth of the space and
// needs no second place that knows how a record is worded.

// mostDigits is how many digits of a number are kept as one: JavaScript's
// numbers are exact up to there.
const mostDigits = 15

// The places of numbers in a pattern. Words cannot hold these bytes: what does
// is cut to a space.
const (
	plainNumber  = 0x01 // one argument
	paddedNumber = 0x02 // two: the value, and the digits that it is padded to
)

type words struct {
	pattern  []int32 // of each record
	args     []uint64
	patterns []string
	arity    []int // how many arguments each pattern has
	byText   map[string]int32
	scratch  []byte
}

// maxPatterns bounds the patterns; words beyond it are said by the last one.
const maxPatterns = 50_000

// text is the words of one record again.
func (w *words) text(record int) string {
	at := 0
	for _, p := range w.pattern[:record] {
		at += w.arity[p]
	}
	var b strings.Builder
	for _, c := range []byte(w.patterns[w.pattern[record]]) {
		switch c {
		case plainNumber:
			b.WriteString(strconv.FormatUint(w.args[at], 10))
			at++
		case paddedNumber:
			fmt.Fprintf(&b, "%0*d", int(w.args[at+1]), w.args[at])
			at += 2
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (w *words) add(text string) {
	if w.byText == nil {
		w.byText = map[string]int32{}
	}
	first := len(w.args)
	b := w.scratch[:0]
	for i := 0; i < len(text); {
		c := text[i]
		if c < '0' || c > '9' {
			if c < 0x20 {
				c = ' '
			}
			b = append(b, c)
			i++
			continue
		}
		j := i
		var value uint64
		for j < len(text) && j-i < mostDigits && text[j] >= '0' && text[j] <= '9' {
			value = value*10 + uint64(text[j]-'0')
			j++
		}
		if c == '0' && j-i > 1 {
			b = append(b, paddedNumber)
			w.args = append(w.args, value, uint64(j-i))
		} else {
			b = append(b, plainNumber)
			w.args = append(w.args, value)
		}
		i = j
	}
	w.scratch = b
	at, known := w.byText[string(b)]
	if !known {
		if len(w.patterns) >= maxPatterns {
			at = int32(len(w.patterns) - 1)
			w.args = w.args[:first]
			for range w.arity[at] {
				w.args = append(w.args, 0)
			}
		} else {
			at = int32(len(w.patterns))
			w.patterns = append(w.patterns, string(b))
			w.arity = append(w.arity, len(w.args)-first)
			w.byText[string(b)] = at
		}
	}
	w.pattern = append(w.pattern, at)
}
