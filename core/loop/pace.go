package loop

import (
	"time"

	"github.com/benbjohnson/clock"

	"vigil/core"
)

// MaxTimeScale is the most that time may run faster than it does.
const MaxTimeScale = 1 << 20

// pace is the process's monotonic time as the core counts it: from 0 at the
// start, and times as fast as the clock's. It is not a clock.Clock that wraps
// another, because a Timer's Reset would go past such a wrapper.
type pace struct {
	clock  clock.Clock
	origin time.Time
	times  int64
}

func newPace(c clock.Clock, times int) pace {
	if c == nil {
		c = clock.New()
	}
	return pace{c, c.Now(), int64(min(max(times, 1), MaxTimeScale))}
}

func (p *pace) now() core.Time {
	return core.Time(int64(p.clock.Since(p.origin)) * p.times)
}

// wait is how long the clock must run until a span of ours has passed,
// rounded up, so that a timer does not find that it came too early.
func (p *pace) wait(d time.Duration) time.Duration {
	if p.times == 1 {
		return d
	}
	return d/time.Duration(p.times) + 1
}
