package reports

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is the time between two drawings: a terminal over a slow line
// must not slow a run down.
const progressEvery = 100 * time.Millisecond

// Progress is a line that is rewritten in place while a long run goes on. A
// nil Progress does nothing, so that callers need not ask whether there is a
// terminal. It may be used from many goroutines.
type Progress struct {
	mu     sync.Mutex
	lasts  time.Duration // where the time is the bound; 0 where the work is
	w      io.Writer
	width  int
	now    func() time.Time
	began  time.Time
	drawn  time.Time
	shown  bool
	closed bool
}

// NewProgress starts a progress line on a live terminal and returns nil where
// the terminal is none.
func NewProgress(w io.Writer, t Terminal) *Progress {
	if !t.Live {
		return nil
	}
	return newProgress(w, t.Width, time.Now)
}

func newProgress(w io.Writer, width int, now func() time.Time) *Progress {
	return &Progress{w: w, width: width, now: now, began: now()}
}

// Lasts says that the work goes on for a time, not to an amount.
func (p *Progress) Lasts(d time.Duration) {
	if p != nil {
		p.lasts = d
	}
}

// Update says how far the work is. What is the thing under way; total 0 is an
// unknown amount of work.
func (p *Progress) Update(what string, done, total int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.closed || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn, p.shown = now, true
	fmt.Fprintf(p.w, "\r\x1b[K%s", shorten(progressLine(what, done, total, now.Sub(p.began), p.lasts), p.width-1))
}

func progressLine(what string, done, total int, passed, lasts time.Duration) string {
	line := grouped(uint64(done))
	if total > 0 {
		line = fmt.Sprintf("%3d%%  %s of %s", 100*done/total, line, grouped(uint64(total)))
	}
	line += " runs"
	if s := passed.Seconds(); s > 0.5 && done > 0 {
		perSecond := float64(done) / s
		line += fmt.Sprintf(", %s/s", amount(perSecond))
		if left := total - done; left > 0 {
			line += fmt.Sprintf(", %s left", clock(time.Duration(float64(left)/perSecond*float64(time.Second))))
		}
	}
	if lasts > 0 {
		line += fmt.Sprintf(", %s left", clock(max(0, lasts-passed)))
	}
	if what != "" {
		line += "  " + what
	}
	return line
}

// Close wipes the line, so that what follows starts on a clean one.
func (p *Progress) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
