package main

import "os"

// Why this file: a run leaves little behind and keeps less, so that the heap of
// a campaign is a few megabytes and the collector, which lets a heap double,
// would run for every seventy runs. That took one part in fifteen of all jobs'
// time, and gave nothing back that was short.

// roomBytes is how much rubbish may lie about before the collector runs, beside
// what it allows by itself. It is added to a heap and not multiplied with it:
// an exhaustive search may keep gigabytes of states.
const roomBytes = 32 << 20

// heapRoom is never read or written. The collector takes it for live; the
// system gives memory to pages only once they are touched.
var heapRoom []byte

// makeRoom makes room on the heap, but where the caller has said how the
// collector is to run, as simrun doctor does.
func makeRoom() {
	if _, said := os.LookupEnv("GOGC"); !said {
		heapRoom = make([]byte, roomBytes)
	}
}
