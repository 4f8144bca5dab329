package core

import "time"

// Time is a reading of one process's monotonic clock, in nanoseconds since an
// arbitrary origin. Readings of different processes must never be compared.
type Time int64

// Never is later than every reading; an armed timer at Never does not fire.
const Never Time = 1<<63 - 1

// Add returns t shifted by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns how long after u the reading t is.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }
