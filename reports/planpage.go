package reports

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"vigil/reports/page"
)

//go:embed planpage.css
var planStyle string

// WritePlanPage writes a plan as a page of its own: the setting to take, the
// chart, the table, and what the figures rest on.
func WritePlanPage(w io.Writer, p *Plan) error {
	var b strings.Builder
	b.WriteString(`<header class="top"><h1>vigil plan</h1><nav><span class="dim">design ` + page.Text(p.Design) + `</span> <button data-theme>theme</button></nav></header><main>`)
	verdict := planVerdict(p)
	class := "good"
	if !p.Within {
		class = "warn"
	}
	fmt.Fprintf(&b, `<p class="banner %s">%s</p>`, class, page.Text(verdict[0]))
	b.WriteString(`<section class="card"><h2>False reaps against how soon a death is noticed</h2>`)
	planPicture(&b, p)
	b.WriteString(`</section><section class="card"><h2>Settings</h2><div class="scroll"><table class="grid"><tr><th></th><th class="n">window</th><th class="n">ping each</th>` +
		`<th class="n">false reaps a worker-year</th><th class="n">all workers, a year</th><th>mostly by</th><th class="n">death noticed after</th><th class="n">99th percentile</th><th class="n">leaked GiB-hours a worker-year</th></tr>`)
	for i := range p.Settings {
		s := &p.Settings[i]
		chip := ""
		switch {
		case s.Unsafe != "":
			chip = `<span class="chip bad" title="` + page.Text(s.Unsafe) + `">unsafe</span>`
		case i == p.Recommended:
			chip = `<span class="chip good">take this</span>`
		}
		leaked := "without end"
		if s.LeakedByteHours != nil {
			leaked = figure(*s.LeakedByteHours / (1 << 30))
		}
		fmt.Fprintf(&b, `<tr><td>%s</td><td class="n">%s</td><td class="n">%s</td><td class="n">%s</td><td class="n">%s</td><td>%s</td><td class="n">%s</td><td class="n">%s</td><td class="n">%s</td></tr>`,
			chip, planTime(s.Window), planTime(s.Interval), page.Text(figure(s.FalseReaps)), page.Text(figure(s.Fleet)), page.Text(s.Mostly), planSpan(s.Detection), planSpan(s.Detection99), leaked)
	}
	b.WriteString(`</table></div>`)
	for _, line := range verdict[1:] {
		fmt.Fprintf(&b, `<p class="dim">%s</p>`, page.Text(line))
	}
	b.WriteString(`</section><section class="card"><h2>What the figures rest on</h2><dl class="facts">`)
	for _, f := range p.Deployment {
		assumed := ""
		if f.Assumed {
			assumed = ` <span class="chip">assumed</span>`
		}
		fmt.Fprintf(&b, `<dt>%s</dt><dd>%s%s</dd>`, page.Text(f.Name), page.Text(f.Value), assumed)
	}
	b.WriteString(`</dl></section></main>`)
	out := page.Page{Title: "vigil plan", Styles: []string{planStyle}, Body: func(w io.Writer) error {
		_, err := io.WriteString(w, b.String())
		return err
	}}
	return out.Write(w)
}

// The chart's size, in its own units.
const (
	pictureWide, pictureHigh = 860.0, 380.0
	pictureLeft, pictureLow  = 64.0, 44.0
)

// planPicture draws a point for each setting: across, the time after which a
// death is noticed; up, the false reaps, each line ten times the one below.
func planPicture(b *strings.Builder, p *Plan) {
	longest, soonest, most, least := 1.0, math.Inf(1), p.Budget, math.Inf(1)
	for i := range p.Settings {
		s := &p.Settings[i]
		if s.Detection != nil {
			longest, soonest = max(longest, *s.Detection), min(soonest, *s.Detection)
		}
		most = max(most, s.FalseReaps)
		if s.FalseReaps > 0 {
			least = min(least, s.FalseReaps)
		}
	}
	top := math.Ceil(math.Log10(max(most, chartFloor*10)))
	bottom := math.Floor(math.Log10(max(min(least, most), chartFloor)))
	if bottom >= top {
		bottom = top - 1
	}
	longest, soonest = longest*1.3, min(soonest, longest)/1.3
	x := func(v float64) float64 {
		return pictureLeft + math.Log(max(v, soonest)/soonest)/math.Log(longest/soonest)*(pictureWide-pictureLeft-16)
	}
	y := func(v float64) float64 {
		share := (math.Log10(max(v, math.Pow(10, bottom))) - bottom) / (top - bottom)
		return pictureHigh - pictureLow - share*(pictureHigh-pictureLow-16)
	}
	fmt.Fprintf(b, `<svg class="plan" viewBox="0 0 %g %g" role="img" aria-label="false reaps a worker-year against detection time">`, pictureWide, pictureHigh)
	for e := bottom; e <= top; e++ {
		at := y(math.Pow(10, e))
		fmt.Fprintf(b, `<line class="rule" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			pictureLeft, pictureWide-16, at, at, pictureLeft-6, at+4, html.EscapeString(powerOfTen(e)))
	}
	for _, v := range roundTimes {
		if v >= soonest && v <= longest {
			fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">%gs</text>`, x(v), pictureHigh-pictureLow+18, v)
		}
	}
	fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%.1f" text-anchor="middle">a death is noticed after, on average (log scale)</text>`, (pictureLeft+pictureWide)/2, pictureHigh-6)
	if p.Budget > 0 && math.Log10(p.Budget) >= bottom {
		fmt.Fprintf(b, `<line class="budget" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" x="%.1f" y="%.1f" text-anchor="end">accepted: %s a worker-year</text>`,
			pictureLeft, pictureWide-16, y(p.Budget), y(p.Budget), pictureWide-18, y(p.Budget)-5, html.EscapeString(figure(p.Budget)))
	}
	for i := range p.Settings {
		s := &p.Settings[i]
		if s.Detection == nil {
			continue
		}
		class := "point"
		switch {
		case i == p.Recommended:
			class += " take"
		case s.Unsafe != "":
			class += " unsafe"
		case s.FalseReaps > p.Budget:
			class += " over"
		}
		label := "" // one for all intervals of a window: their points lie close
		if last := i+1 == len(p.Settings) || p.Settings[i+1].Window != s.Window; last {
			label = planTime(s.Window)
		}
		fmt.Fprintf(b, `<g class="%s"><circle cx="%.1f" cy="%.1f" r="6"><title>window %s, ping each %s: %s false reaps a worker-year, a death noticed after %s</title></circle><text x="%.1f" y="%.1f">%s</text></g>`,
			class, x(*s.Detection), y(s.FalseReaps), planTime(s.Window), planTime(s.Interval), html.EscapeString(figure(s.FalseReaps)), planSpan(s.Detection), x(*s.Detection)+9, y(s.FalseReaps)-7, label)
	}
	b.WriteString(`</svg>`)
}

func powerOfTen(e float64) string {
	if e >= -3 && e <= 4 {
		return fmt.Sprintf("%g", math.Pow(10, e))
	}
	return fmt.Sprintf("1e%d", int(e))
}

// roundTimes are the ticks of the time's axis, in seconds.
var roundTimes = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600, 7200, 18000, 36000, 86400}
