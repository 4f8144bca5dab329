package reports

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Plan is what a deployment's settings come to: simrun plan.
type Plan struct {
	Version    int           `json:"version"`
	Design     string        `json:"design"`
	Deployment []PlanFact    `json:"deployment"` // what the figures rest on
	Budget     float64       `json:"false_reaps_per_worker_year_accepted"`
	Settings   []PlanSetting `json:"settings"`
	// Recommended is the number of a setting, from 0; -1 where none is safe.
	Recommended int    `json:"recommended"`
	Within      bool   `json:"within_budget"`
	Why         string `json:"why"`
}

// PlanFact is one thing that was given or assumed.
type PlanFact struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Assumed bool   `json:"assumed"` // a default, not the operator's own
}

// PlanSetting is one setting and what it comes to. With a window of 0 nobody is
// ever reaped, and the figures of detection are null.
type PlanSetting struct {
	Window   float64 `json:"window_seconds"`
	Grace    float64 `json:"grace_seconds"`
	Interval float64 `json:"interval_seconds"`

	FalseReaps float64 `json:"false_reaps_per_worker_year"`
	Fleet      float64 `json:"false_reaps_per_year"` // of all workers
	By         PlanBy  `json:"by_cause"`
	Mostly     string  `json:"mostly_by"`

	Detection       *float64 `json:"detection_seconds_mean"`
	Detection99     *float64 `json:"detection_seconds_p99"`
	LeakedByteHours *float64 `json:"leaked_byte_hours_per_worker_year"`
	Unsafe          string   `json:"unsafe,omitempty"`
}

// PlanBy is the false reaps a worker-year by what causes them.
type PlanBy struct {
	Losses    float64 `json:"lost_pings"`
	Pauses    float64 `json:"pauses"`
	Together  float64 `json:"lost_pings_and_pauses_together"`
	Stalls    float64 `json:"server_stalls"`
	IdleFirst float64 `json:"waiting_for_first_request"`
}

// causeWords are what a cause is called in a narrow table.
var causeWords = map[string]string{
	"pauses of workers": "pauses", "lost pings": "lost pings", "pauses and lost pings together": "both together",
	"stalls of the server": "stalls", "workers that wait for their first request": "idle start",
}

// WritePlan writes a plan for a person: what it rests on, the table, the chart
// and the setting to take.
func WritePlan(w io.Writer, p *Plan, width int, colour bool) error {
	on := ink(colour)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", on.paint(bold, "Design "+p.Design+". The figures rest on:"))
	long := 0
	for _, f := range p.Deployment {
		long = max(long, len(f.Name))
	}
	for _, f := range p.Deployment {
		value := f.Value
		if f.Assumed {
			value += on.paint(dim, "  (assumed)")
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", long, f.Name, value)
	}
	b.WriteByte('\n')
	planGrid(p, width, on).write(&b, width, on)
	b.WriteByte('\n')
	planChart(&b, p, width, on)
	b.WriteByte('\n')
	for _, line := range planVerdict(p) {
		for _, l := range wrap(line, width) {
			b.WriteString(l + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func planGrid(p *Plan, width int, on ink) *grid {
	g := &grid{
		head:  []string{"", "WINDOW", "PING", "FALSE REAPS", "ALL WORKERS", "MOSTLY BY", "DEATH NOTICED", "P99", "LEAKED"},
		right: []bool{1: true, 2: true, 3: true, 4: true, 6: true, 7: true, 8: true},
		tight: true,
	}
	// The units have a line of their own: 80 columns have no room for both.
	g.rows = append(g.rows, []string{"", "", "each", "/worker-year", "/year", "", "after", "", "GiB-hours/worker-year"})
	for i := range p.Settings {
		s := &p.Settings[i]
		mark := ""
		switch {
		case i == p.Recommended:
			mark = "►"
		case s.Unsafe != "":
			mark = "✗"
		}
		leaked := "without end"
		if s.LeakedByteHours != nil {
			leaked = figure(*s.LeakedByteHours / (1 << 30))
		}
		g.rows = append(g.rows, []string{mark, planTime(s.Window), planTime(s.Interval), figure(s.FalseReaps), figure(s.Fleet),
			causeWords[s.Mostly], planSpan(s.Detection), planSpan(s.Detection99), leaked})
	}
	if width > 0 && total(g.widths(), wideGap) > width {
		const allWorkers = 4
		g.head, g.right = slices.Delete(g.head, allWorkers, allWorkers+1), slices.Delete(g.right, allWorkers, allWorkers+1)
		for i := range g.rows {
			g.rows[i] = slices.Delete(g.rows[i], allWorkers, allWorkers+1)
		}
		g.rows[0][len(g.rows[0])-1] = "GiB-h/w-year"
	}
	g.styles = make([]func(int, string) string, len(g.rows))
	g.styles[0] = func(_ int, text string) string { return on.paint(dim, text) }
	for i := range p.Settings {
		switch {
		case i == p.Recommended:
			g.styles[i+1] = func(_ int, text string) string { return on.paint(green, text) }
		case p.Settings[i].Unsafe != "":
			g.styles[i+1] = func(_ int, text string) string { return on.paint(dim, text) }
		}
	}
	return g
}

// The chart: a bar per setting, its length the logarithm of the false reaps,
// in the order in which a death is noticed.
const (
	chartFloor = 1e-6 // fewer false reaps a worker-year look alike
	chartLeft  = 27   // columns before the bars
	chartRight = 22   // and after them: a figure and a mark
)

func planChart(b *bytes.Buffer, p *Plan, width int, on ink) {
	if width == 0 {
		width = 100
	}
	most := chartFloor * 10
	for i := range p.Settings {
		most = max(most, p.Settings[i].FalseReaps)
	}
	room := max(10, min(60, width-chartLeft-chartRight))
	scale := float64(room) / math.Log10(most/chartFloor)
	length := func(v float64) int {
		return max(0, min(room, int(math.Round(scale*math.Log10(max(v, chartFloor)/chartFloor)))))
	}
	accepted := length(p.Budget)
	fmt.Fprintf(b, "%s\n", on.paint(bold, "False reaps a worker-year (log scale), by how soon a death is noticed"))
	for _, i := range p.byDetection() {
		s := &p.Settings[i]
		n := length(s.FalseReaps)
		bar := []rune(strings.Repeat("█", n) + strings.Repeat(" ", room-n+1))
		if p.Budget > chartFloor && accepted < len(bar) && n <= accepted {
			bar[accepted] = '┊'
		}
		text := string(bar)
		switch {
		case s.Unsafe != "":
			text = on.paint(dim, text)
		case s.FalseReaps > p.Budget:
			text = on.paint(red, text)
		default:
			text = on.paint(green, text)
		}
		tail := ""
		if i == p.Recommended {
			tail = "  ◄ take this"
		} else if s.Unsafe != "" {
			tail = "  ✗ unsafe"
		}
		fmt.Fprintf(b, "%8s  (%s, %s)%s %s %s%s\n", planSpan(s.Detection), planTime(s.Window), planTime(s.Interval),
			strings.Repeat(" ", max(0, 12-len(planTime(s.Window))-len(planTime(s.Interval)))), text, figure(s.FalseReaps), tail)
	}
	if p.Budget > chartFloor && accepted < room {
		fmt.Fprintf(b, "%s┊ accepted: %s\n", strings.Repeat(" ", chartLeft+accepted), figure(p.Budget))
	}
}

// byDetection lists the settings by how soon they notice a death.
func (p *Plan) byDetection() []int {
	order := make([]int, len(p.Settings))
	for i := range order {
		order[i] = i
	}
	at := func(i int) float64 {
		if d := p.Settings[i].Detection; d != nil {
			return *d
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at(a), at(b)) })
	return order
}

// planVerdict says which setting to take and why, and what is wrong with the
// unsafe ones.
func planVerdict(p *Plan) []string {
	var lines []string
	if p.Recommended >= 0 {
		s := &p.Settings[p.Recommended]
		word := "Take"
		if !p.Within {
			word = "The least bad is"
		}
		lines = append(lines, fmt.Sprintf("%s --worker-reap-timeout-seconds %s with a heartbeat each %s: %s false reaps a worker-year, %s a year over all workers. %s",
			word, trimmed(s.Window), planTime(s.Interval), figure(s.FalseReaps), figure(s.Fleet), p.Why))
	} else {
		lines = append(lines, p.Why)
	}
	rules := map[string][]string{}
	var order []string
	for i := range p.Settings {
		if s := &p.Settings[i]; s.Unsafe != "" {
			if rules[s.Unsafe] == nil {
				order = append(order, s.Unsafe)
			}
			rules[s.Unsafe] = append(rules[s.Unsafe], planTime(s.Window)+" with "+planTime(s.Interval))
		}
	}
	for _, rule := range order {
		lines = append(lines, fmt.Sprintf("✗ %s: %s.", strings.Join(rules[rule], ", "), rule))
	}
	return lines
}

// Reason says why the recommended setting is the one to take.
func (p *Plan) Reason() string {
	if p.Recommended < 0 {
		return "none of these settings is safe: " + p.Settings[0].Unsafe
	}
	s := &p.Settings[p.Recommended]
	var b strings.Builder
	switch next := p.shorter(); {
	case p.Within && next == nil:
		fmt.Fprintf(&b, "Of the settings with at most %s false reaps a worker-year it notices a death soonest. No shorter window that is safe was compared.", figure(p.Budget))
	case p.Within:
		fmt.Fprintf(&b, "Of the settings with at most %s false reaps a worker-year it notices a death soonest. The next shorter window, %gs, would make it %s a worker-year",
			figure(p.Budget), next.Window, figure(next.FalseReaps))
		if next.Mostly != "" {
			fmt.Fprintf(&b, ", mostly by %s", next.Mostly)
		}
		b.WriteString(".")
	default:
		fmt.Fprintf(&b, "No setting here keeps to %s false reaps a worker-year; this one has the fewest.", figure(p.Budget))
		if s.Mostly != "" {
			fmt.Fprintf(&b, " What is left comes mostly from %s", s.Mostly)
			if s.By.Stalls+s.By.IdleFirst > s.FalseReaps/2 && p.Design != "hardened" {
				b.WriteString(", which the hardened design survives")
			} else {
				b.WriteString("; compare longer windows (--window)")
			}
			b.WriteString(".")
		}
	}
	return b.String()
}

// shorter is the safe setting with the next shorter window and the same
// interval as the recommended one, nil where there is none.
func (p *Plan) shorter() *PlanSetting {
	for i := p.Recommended - 1; i >= 0; i-- {
		if s := &p.Settings[i]; s.Interval == p.Settings[p.Recommended].Interval && s.Unsafe == "" && s.Window > 0 {
			return s
		}
	}
	return nil
}

func planTime(seconds float64) string {
	if seconds == 0 {
		return "off"
	}
	return trimmed(seconds) + "s"
}

// trimmed writes seconds without a fraction of zeros.
func trimmed(seconds float64) string {
	text := fmt.Sprintf("%.3f", seconds)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

func planSpan(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	d := time.Duration(*seconds * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return fmt.Sprintf("%.0fs", *seconds)
}

// figure writes a figure with the two or three digits that count.
func figure(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1e-9:
		return "<1e-9"
	case v < 0.001:
		return fmt.Sprintf("%.1e", v)
	case v < 1:
		return fmt.Sprintf("%.2g", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return grouped(uint64(math.Round(v)))
}
