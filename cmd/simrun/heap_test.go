package main

import (
	"os"
	"runtime"
	"testing"
)

var rubbish []byte

// collections is how often the collector ran while so many bytes went through
// the heap.
func collections(bytes int) uint32 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range bytes >> 12 {
		rubbish = make([]byte, 1<<12)
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

// The rubbish of a few hundred runs is no reason to collect, unless the caller
// says so: simrun doctor shows that runs are the same with a collector that
// never rests.
func TestTheCollectorRestsUnlessItIsTold(t *testing.T) {
	defer func() { heapRoom = nil }()
	t.Setenv("GOGC", "100")
	makeRoom()
	if heapRoom != nil {
		t.Error("GOGC is set, and there is room all the same")
	}
	os.Unsetenv("GOGC") // t.Setenv puts back what was
	makeRoom()
	if n := collections(roomBytes * 3 / 4); n > 0 {
		t.Errorf("the collector ran %d times for less rubbish than there is room for", n)
	}
}
