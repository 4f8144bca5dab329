package scenarios

import (
	"slices"
	"strings"

	"vigil/faults"
)

// What a raw client must be answered, in words.

// answer reads what must be answered: words, or words for each design.
func (d *decoder) answer(n *node, s *Scenario, step int) {
	if n == nil || d.bad() {
		return
	}
	add := func(n *node, design string) {
		s.Expect = append(s.Expect, Expectation{
			Kind: ExpectAnswer, Line: n.line, Design: design, Who: Who{Worker: faults.Server}, Step: step, Answer: d.text(n, "answer", maxText),
		})
	}
	if n.kind != mapNode {
		add(n, "")
		return
	}
	if d.mapping(n, "answer", Designs...) {
		for i, k := range n.keys {
			add(n.items[i], k.text)
		}
	}
}

// Silence is the answer of whoever must not be answered.
const Silence = "silence"

// nothingMore is the clause of an answer that says no more than the others.
const nothingMore = "nothing more"

// AnswerFits reports whether an answer says all that is expected of it: its
// first clause is that of the expectation, and it has the others' too. A clause
// that says what is wrong must be expected; "nothing more" expects no other.
func AnswerFits(expected, got string) bool {
	want, have := strings.Split(expected, ";"), strings.Split(got, ";")
	trim := func(list []string) {
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
	}
	trim(want)
	trim(have)
	if want[0] != have[0] {
		return false
	}
	for _, clause := range want[1:] {
		if clause == nothingMore {
			if len(have) > len(want)-1 {
				return false
			}
		} else if !slices.Contains(have[1:], clause) {
			return false
		}
	}
	for _, clause := range have[1:] {
		if strings.Contains(clause, " other ") || strings.HasPrefix(clause, "another ") {
			if !slices.Contains(want[1:], clause) {
				return false
			}
		}
	}
	return true
}
