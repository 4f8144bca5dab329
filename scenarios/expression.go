package scenarios

import (
	"fmt"
	"strings"
	"time"

	"vigil/faults"
)

// Times in a file may use the configuration's own windows:
//
//	sum     = product { ("+" | "-") product }
//	product = factor { "*" factor }
//	factor  = number [unit] | name | "(" sum ")"
//	span    = sum [ ".." sum ]
//	window  = ("(" | "[") sum "," sum (")" | "]")
//
// A number without a unit is a factor and must meet a time. Arithmetic is on
// integers of nanoseconds, so that a file means the same on every machine.

// windows are the names that time arithmetic knows, with their values.
type windows struct {
	names  []string
	values []time.Duration
}

func (w *windows) set(name string, v time.Duration) {
	w.names, w.values = append(w.names, name), append(w.values, v)
}

var units = []struct {
	name string
	unit time.Duration
}{
	{"ns", 1}, {"us", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second},
	{"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

func unitNames() []string {
	out := make([]string, len(units))
	for i := range units {
		out[i] = units[i].name
	}
	return out
}

// quantity is a time or, before it met one, a bare number.
type quantity struct {
	v    int64 // nanoseconds, or a number
	time bool
}

// expression parses one text. A failure keeps the offset at which it stands.
type expression struct {
	text  string
	at    int
	terms int
	names *windows
	err   string
	errAt int
}

func (e *expression) fail(at int, format string, args ...any) {
	if e.err == "" {
		e.err, e.errAt = fmt.Sprintf(format, args...), at
	}
}

func (e *expression) space() {
	for e.at < len(e.text) && (e.text[e.at] == ' ' || e.text[e.at] == '\t') {
		e.at++
	}
}

func (e *expression) take(s string) bool {
	e.space()
	if strings.HasPrefix(e.text[e.at:], s) {
		e.at += len(s)
		return true
	}
	return false
}

func (e *expression) end() {
	e.space()
	if e.at < len(e.text) {
		e.fail(e.at, "%q is left over after a time", clip(e.text[e.at:]))
	}
}

func (e *expression) sum(depth int) quantity {
	total := e.product(depth)
	for e.err == "" {
		e.space()
		sign := int64(0)
		switch {
		case e.take("+"):
			sign = 1
		case strings.HasPrefix(e.text[e.at:], "-"):
			e.at++
			sign = -1
		default:
			return total
		}
		e.space()
		start := e.at
		next := e.product(depth)
		if e.err == "" && next.time != total.time {
			e.fail(start, "a number and a time cannot be added; give the number a unit (%s)", strings.Join(unitNames(), ", "))
		}
		total.v += sign * next.v
		e.check(start, total)
	}
	return total
}

func (e *expression) product(depth int) quantity {
	total := e.factor(depth)
	for e.err == "" && e.take("*") {
		e.space()
		start := e.at
		next := e.factor(depth)
		if e.err != "" {
			break
		}
		if total.time && next.time {
			e.fail(start, "two times cannot be multiplied")
			break
		}
		if next.v != 0 && (total.v > int64(MaxTime)/max(next.v, -next.v) || total.v < -int64(MaxTime)/max(next.v, -next.v)) {
			e.fail(start, "the time passes the limit of %s", limitText())
			break
		}
		total = quantity{total.v * next.v, total.time || next.time}
	}
	return total
}

func (e *expression) factor(depth int) quantity {
	e.space()
	start := e.at
	if e.terms++; e.terms > maxTerms || depth > MaxNesting {
		e.fail(start, "the expression has more than %d terms", maxTerms)
		return quantity{}
	}
	if e.take("(") {
		q := e.sum(depth + 1)
		if e.err == "" && !e.take(")") {
			e.fail(e.at, "a ) is missing")
		}
		return q
	}
	if e.at < len(e.text) && digit(e.text[e.at]) {
		return e.number()
	}
	for e.at < len(e.text) && letter(e.text[e.at]) {
		e.at++
	}
	name := e.text[start:e.at]
	// A name may hold a dash, as in server-start; a minus needs a space before it.
	for e.at+1 < len(e.text) && e.text[e.at] == '-' && letter(e.text[e.at+1]) {
		end := e.at + 1
		for end < len(e.text) && letter(e.text[end]) {
			end++
		}
		name, e.at = e.text[start:end], end
	}
	if name == "" {
		if start == len(e.text) {
			e.fail(start, "a time is missing")
		} else {
			e.fail(start, "a time such as 10s, reap or reap + scan must stand here, not %q", clip(e.text[start:]))
		}
		return quantity{}
	}
	for i, n := range e.names.names {
		if n == name {
			return quantity{int64(e.names.values[i]), true}
		}
	}
	e.fail(start, "there is no time called %s%s", clip(name), didYouMean(name, e.names.names))
	return quantity{}
}

func (e *expression) number() quantity {
	start := e.at
	var whole, frac, scale int64 = 0, 0, 1
	for e.at < len(e.text) && digit(e.text[e.at]) {
		if whole > int64(MaxTime)/10 {
			e.fail(start, "the number is too large")
			return quantity{}
		}
		whole = whole*10 + int64(e.text[e.at]-'0')
		e.at++
	}
	if e.at+1 < len(e.text) && e.text[e.at] == '.' && digit(e.text[e.at+1]) {
		for e.at++; e.at < len(e.text) && digit(e.text[e.at]); e.at++ {
			if scale < 1_000_000_000 { // digits past the nanosecond of a second count nothing
				frac, scale = frac*10+int64(e.text[e.at]-'0'), scale*10
			}
		}
	}
	unitAt := e.at
	for e.at < len(e.text) && letter(e.text[e.at]) {
		e.at++
	}
	name := e.text[unitAt:e.at]
	if name == "" {
		if scale > 1 {
			e.fail(start, "%s has no unit (%s)", e.text[start:e.at], strings.Join(unitNames(), ", "))
		}
		return quantity{whole, false}
	}
	for _, u := range units {
		if u.name != name {
			continue
		}
		if whole > int64(MaxTime/u.unit) {
			e.fail(start, "the time passes the limit of %s", limitText())
			return quantity{}
		}
		return quantity{whole*int64(u.unit) + fraction(frac, scale, int64(u.unit)), true}
	}
	e.fail(unitAt, "there is no unit %s%s", clip(name), didYouMean(name, unitNames()))
	return quantity{}
}

// fraction is frac/scale of a unit, without overflow for units up to a day.
func fraction(frac, scale, unit int64) int64 {
	var out int64
	for scale > 1 {
		scale /= 10
		unit0 := unit
		digit := frac / scale
		frac %= scale
		out += digit * unit0 / 10
		unit /= 10
	}
	return out
}

func (e *expression) check(at int, q quantity) {
	if q.v > int64(MaxTime) || q.v < -int64(MaxTime) {
		e.fail(at, "the time passes the limit of %s", limitText())
	}
}

func (e *expression) time() time.Duration {
	e.space()
	start := e.at
	q := e.sum(0)
	if e.err == "" && !q.time && q.v != 0 {
		e.fail(start, "%d has no unit (%s)", q.v, strings.Join(unitNames(), ", "))
	}
	if e.err == "" && q.v < 0 {
		e.fail(start, "the time is negative: %s", Seconds(time.Duration(q.v)))
	}
	e.check(start, q)
	return time.Duration(q.v)
}

// span reads `a` or `a..b`.
func (e *expression) span() faults.Span {
	low := e.time()
	if e.err != "" || !e.take("..") {
		e.end()
		return faults.Fixed(low)
	}
	at := e.at
	high := e.time()
	e.end()
	if e.err == "" && high < low {
		e.fail(at, "the range is empty: it ends at %s, before it begins at %s", Seconds(high), Seconds(low))
	}
	return faults.Span{Low: low, High: high}
}

// Window is a range of times with its ends open or closed.
type Window struct {
	Low, High         time.Duration
	OpenLow, OpenHigh bool // the end itself is outside
}

// Contains reports whether d lies in the window.
func (w *Window) Contains(d time.Duration) bool {
	return !(d < w.Low || d > w.High || w.OpenLow && d == w.Low || w.OpenHigh && d == w.High)
}

// String is the window as files spell it, in seconds.
func (w *Window) String() string {
	left, right := "[", "]"
	if w.OpenLow {
		left = "("
	}
	if w.OpenHigh {
		right = ")"
	}
	return left + Seconds(w.Low) + ", " + Seconds(w.High) + right
}

// window reads `(a, b]` and its like, or `a..b`, which has both ends inside.
func (e *expression) window() Window {
	e.space()
	begin := e.at
	open := strings.HasPrefix(e.text[e.at:], "(")
	closed := strings.HasPrefix(e.text[e.at:], "[")
	if !closed && !(open && strings.Contains(e.text, ",")) {
		s := e.span()
		return Window{Low: s.Low, High: s.High}
	}
	e.at++
	w := Window{OpenLow: open}
	w.Low = e.time()
	if e.err == "" && !e.take(",") {
		e.fail(e.at, "a window has two ends, as in (reap, reap + scan]")
	}
	w.High = e.time()
	switch {
	case e.err != "":
	case e.take("]"):
	case e.take(")"):
		w.OpenHigh = true
	default:
		e.fail(e.at, "a window ends with ] (that end inside) or ) (outside)")
	}
	e.end()
	if e.err == "" && (w.High < w.Low || w.High == w.Low && (w.OpenLow || w.OpenHigh)) {
		e.fail(begin, "the window is empty: %s", w.String())
	}
	return w
}

func digit(c byte) bool  { return c >= '0' && c <= '9' }
func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// clip keeps an error one short line whatever the file holds.
func clip(s string) string {
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return strings.ToValidUTF8(strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(s), "?")
}

func limitText() string { return fmt.Sprintf("%dd", int64(MaxTime/(24*time.Hour))) }

// Seconds writes a time in seconds as files and reports spell it: 96s, 0.25s.
func Seconds(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	whole, rest := d/time.Second, d%time.Second
	if rest == 0 {
		return fmt.Sprintf("%s%ds", sign, int64(whole))
	}
	return fmt.Sprintf("%s%d.%ss", sign, int64(whole), strings.TrimRight(fmt.Sprintf("%09d", int64(rest)), "0"))
}
