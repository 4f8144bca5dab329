package scenarios

import (
	"fmt"
	"strings"
)

// Problem is what is wrong with a file, and where: one line.
type Problem struct {
	File         string
	Line, Column int // from 1; 0 where the file as a whole is meant
	Message      string
}

// Error is `file:line:column: message`.
func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// didYouMean ends an error about an unknown name with the nearest valid one,
// or with the list of them where none is near and the list is short.
func didYouMean(got string, valid []string) string {
	if near, ok := Nearest(got, valid); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(valid) > 0 && len(valid) <= 8 {
		return "; it is one of " + strings.Join(valid, ", ")
	}
	return ""
}

// Nearest returns the valid name with the smallest edit distance to got, the
// earliest of equals; false where all are too far to be meant.
func Nearest(got string, valid []string) (string, bool) {
	if len(got) > maxName {
		return "", false
	}
	best, found := "", false
	limit := max(2, (len(got)+1)/2)
	for _, v := range valid {
		if d := distance(strings.ToLower(got), strings.ToLower(v)); d <= limit && d < max(len(got), len(v)) {
			best, found, limit = v, true, d-1
		}
	}
	return best, found
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour, to come from a to b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
