package zmq

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vigil/core"
)

// A few long messages do not hold back the answers to those before them: a
// batch ends by its bytes as well as by its length.
func TestAnswersGoOutBetweenLongMessages(t *testing.T) {
	const messages = 8
	long := strings.Repeat("x", batchBytes/2)
	var r *Router
	all, ready := make(chan struct{}), make(chan struct{})
	answered := make(chan uint64, messages) // how many answers were out when each came
	held := false
	sink := &ear{}
	sink.do = func(p core.Peer, f *core.Frames) {
		<-ready
		if !held { // until all of them lie in the socket
			held = true
			<-all
		}
		answered <- r.Stats().Sent
		r.Send(p, message("yes"))
	}
	r = listen(t, Options{}, sink)
	close(ready)
	d := dial(t, Options{}, r.Endpoints()[0], &ear{})
	for n := range messages {
		d.Send(0, message(fmt.Sprint(n), long))
	}
	eventually(t, "all are sent", func() bool { return d.Stats().Sent == messages })
	time.Sleep(50 * time.Millisecond)
	close(all)
	last := uint64(0)
	for range messages {
		last = <-answered
	}
	if last == 0 {
		t.Errorf("%d long messages were received before the first answer went out", messages)
	}
}
