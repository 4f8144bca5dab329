package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Bench is what simrun bench measured on this machine.
type Bench struct {
	Version int        `json:"version"`
	Machine string     `json:"machine"` // processors and Go release
	Cores   int        `json:"cores"`   // how many the bench used at most
	Rows    []BenchRow `json:"rows"`
}

// BenchRow is one measured thing.
type BenchRow struct {
	Name  string  `json:"name"`  // stable, for scripts
	What  string  `json:"what"`  // in words
	Value float64 `json:"value"` // in Unit
	Unit  string  `json:"unit"`
	Cores int     `json:"cores"` // that worked on it
}

// BenchTable writes the bench for a person.
func BenchTable(w io.Writer, b *Bench, width int, colour bool) error {
	g := &grid{
		head:  []string{"MEASURED", "CORES", "VALUE", "UNIT"},
		right: []bool{1: true, 2: true, 3: false},
		give:  []int{0},
		floor: []int{20},
	}
	for _, r := range b.Rows {
		g.rows = append(g.rows, []string{r.What, fmt.Sprint(r.Cores), amount(r.Value), r.Unit})
	}
	var out bytes.Buffer
	g.write(&out, width, ink(colour))
	fmt.Fprintf(&out, "\n%s\n", strings.TrimSpace(b.Machine))
	_, err := w.Write(out.Bytes())
	return err
}
