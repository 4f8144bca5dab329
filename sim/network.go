package sim

import (
	"time"

	"vigil/core"
	"vigil/faults"
)

// maxQueued bounds what waits for a peer that is away, or in a cut that
// stalls: ZeroMQ's default high-water mark. What comes on top is lost.
const maxQueued = 1000

// message is one multipart message under way.
type message struct {
	frames core.Frames
	peer   core.Peer // of the connection that it travels on
	next   int32     // in its lane's queue, -1 at the end
	gen    uint32    // tells a reused slot from the message an event was for
	due    bool      // its time came while an earlier one, or a cut, held it up
	loose  bool      // its connection closed behind it: it is in no queue any more
	print  uint64    // fold of what it says but for its uid, 0 before it is asked for
}

// lane is one direction of a connection. Its messages arrive in order.
type lane struct {
	last       core.Time // when the last one is due to arrive
	head, tail int32     // queue of messages under way, -1 is empty
	length     int32     // of the queue
	handling   int16     // how many reached their host and are not taken in yet
	cut        bool      // nothing arrives
}

// link is a worker's socket: at most one connection to the server at a time.
// It is one cache line.
type link struct {
	peer     core.Peer // of the connection; 0 while there is none
	up, down lane      // towards the server, towards the worker
	broken   bool      // a cut that resets: no connection can be made
	slow     bool      // delay is set
}

// socket is what most messages of a link do not touch.
type socket struct {
	epoch    uint64  // counts the attempts to connect
	connects uint64  // how many connections it had
	waiting  []int32 // messages for a server that is away, in order
	delay    faults.Span
	// When the last message that reached its host is taken in, each way.
	upHandled, downHandled core.Time
}

// network is every worker's socket, and the messages under way.
type network struct {
	world    *World
	links    []link
	sockets  []socket
	messages []message
	free     []int32
}

func (n *network) reset(links int) {
	if cap(n.links) < links {
		n.links = make([]link, links)
		n.sockets = make([]socket, links)
	}
	n.links = n.links[:links]
	for i := range n.links {
		l := &n.links[i]
		*l = link{}
		n.sockets[i] = socket{waiting: n.sockets[i].waiting[:0]}
		l.up.head, l.up.tail, l.down.head, l.down.tail = -1, -1, -1, -1
	}
	n.free = n.free[:0]
	n.messages = n.messages[:0] // their buffers are found again by take
}

// take copies frames into a message of its own.
func (n *network) take(frames *core.Frames) int32 {
	var m int32
	if last := len(n.free) - 1; last >= 0 {
		m = n.free[last]
		n.free = n.free[:last]
	} else {
		m = int32(len(n.messages))
		n.messages = extended(n.messages)
		n.messages[m].gen = 0
	}
	msg := &n.messages[m]
	msg.frames.CopyFrom(frames)
	msg.next, msg.due, msg.loose, msg.print = -1, false, false, 0
	return m
}

// extended grows s by one element. What lay there in an earlier run is still
// there, so that its buffers are used again; the caller sets every field.
func extended[T any](s []T) []T {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var zero T
	return append(s, zero)
}

func (n *network) drop(m int32) {
	n.messages[m].gen++
	n.free = append(n.free, m)
}

// lose drops a message and says so.
func (n *network) lose(who int, m int32, toServer bool) {
	r := n.world.truth(core.MessageLost, nil)
	r.A, r.B, r.Flag = uint64(who+1), uint64(len(n.messages[m].frames.Bytes)), toServer
	n.world.emit()
	n.drop(m)
}

func (n *network) key(m int32) uint64 { return uint64(n.messages[m].gen)<<32 | uint64(m) }

// find returns the message of an event, -1 where it is gone.
func (n *network) find(what uint64) int32 {
	m := int32(uint32(what))
	if n.messages[m].gen != uint32(what>>32) {
		return -1
	}
	return m
}

// lane returns one direction of a link and the event kind of arriving there.
func (l *link) lane(toServer bool) (*lane, eventKind) {
	if toServer {
		return &l.up, evReach
	}
	return &l.down, evReply
}

// launch puts a message on the wire, behind those before it.
func (n *network) launch(who int, m int32, toServer bool) {
	l := &n.links[who]
	n.messages[m].peer = l.peer
	ln, kind := l.lane(toServer)
	if ln.cut && ln.length >= maxQueued {
		n.lose(who, m, toServer)
		return
	}
	if ln.tail >= 0 {
		n.messages[ln.tail].next = m
	} else {
		ln.head = m
	}
	ln.tail = m
	ln.length++
	travel := n.world.choices.Span(ForLatency, who+1, n.world.latency, latencyTime)
	if l.slow {
		travel += n.world.choices.Span(ForLatency, who+1, n.sockets[who].delay, faults.Span{})
	}
	ln.last = max(n.world.behind(ln.last), n.world.onTick(n.world.now.Add(travel)))
	n.world.push(kind, who, ln.last, n.key(m))
}

// request sends a worker's message, or keeps it while the server is away.
func (n *network) request(who int, frames *core.Frames) {
	m := n.take(frames)
	l := &n.links[who]
	if l.peer != 0 {
		n.launch(who, m, true)
		return
	}
	k := &n.sockets[who]
	if len(k.waiting) >= maxQueued {
		n.lose(who, m, true)
		return
	}
	k.waiting = append(k.waiting, m)
}

// reply sends the server's message; towards a connection that is gone it is
// dropped in silence, as a ROUTER does.
func (n *network) reply(peer core.Peer, frames *core.Frames) {
	who := int(uint32(peer)) - 1
	if who < 0 || who >= len(n.links) || n.links[who].peer != peer {
		return
	}
	n.launch(who, n.take(frames), false)
}

// arrive is a message reaching a host. It reports whether anything happened.
func (n *network) arrive(e event, toServer bool) bool {
	m := n.find(e.what)
	if m < 0 {
		return false
	}
	who := int(e.who)
	l := &n.links[who]
	ln, _ := l.lane(toServer)
	msg := &n.messages[m]
	if msg.loose { // sent before its connection closed behind it
		n.reached(who, m, toServer)
		return true
	}
	if ln.cut || ln.head != m {
		msg.due = true
		return false
	}
	n.unlink(ln)
	n.reached(who, m, toServer)
	if ln.head >= 0 && n.messages[ln.head].due && !ln.cut {
		n.messages[ln.head].due = false
		_, kind := l.lane(toServer)
		n.world.push(kind, who, n.world.now, n.key(ln.head))
	}
	return true
}

// unlink takes the first message out of a lane.
func (n *network) unlink(ln *lane) {
	msg := &n.messages[ln.head]
	ln.head = msg.next
	if ln.head < 0 {
		ln.tail = -1
	}
	msg.next = -1
	ln.length--
}

// reached is a message at its host: taken in at once by a running process, kept
// in the socket for a paused one, gone where there is none.
func (n *network) reached(who int, m int32, toServer bool) {
	w := n.world
	p, kind := &w.processes[0], evHandle
	if !toServer {
		p, kind = &w.processes[who+1], evTake
	}
	if p.state == absent {
		n.lose(who, m, toServer)
		return
	}
	decoded := false
	if toServer {
		w.decode(&n.messages[m].frames)
		decoded = true
		r := w.truth(core.MessageReached, nil)
		r.A, r.B, r.Instance = uint64(n.messages[m].peer), uint64(w.request.Type), w.request.Instance
		w.emit()
	}
	ln, _ := n.links[who].lane(toServer)
	if p.state == paused || ln.handling > 0 {
		ln.handling++
		e := event{kind: kind, who: int32(who), what: n.key(m)}
		if p.state == paused {
			p.held = append(p.held, e)
		} else {
			n.enqueue(e, w.now)
		}
		return
	}
	n.deliver(who, m, toServer, decoded)
}

// enqueue has a message taken in at or after at, behind those before it.
func (n *network) enqueue(e event, at core.Time) {
	k := &n.sockets[e.who]
	handled := &k.upHandled
	if e.kind == evTake {
		handled = &k.downHandled
	}
	*handled = max(n.world.behind(*handled), at)
	n.world.push(e.kind, int(e.who), *handled, e.what)
}

// handle is a process taking in a message that had waited for it.
func (n *network) handle(e event) bool {
	m := n.find(e.what)
	if m < 0 {
		return false
	}
	toServer := e.kind == evHandle
	who := int(e.who)
	p := &n.world.processes[0]
	if !toServer {
		p = &n.world.processes[who+1]
	}
	if p.state == paused { // paused again before it got round to it
		p.held = append(p.held, e)
		return false
	}
	ln, _ := n.links[who].lane(toServer)
	if ln.handling > 0 {
		ln.handling--
	}
	n.deliver(who, m, toServer, false)
	return true
}

// deliver feeds a message to its process.
func (n *network) deliver(who int, m int32, toServer, decoded bool) {
	w := n.world
	msg := &n.messages[m]
	in := &w.input
	*in = core.Input{Kind: core.InputFrames, Frames: &msg.frames}
	p := &w.processes[who+1]
	if toServer {
		p = &w.processes[0]
		if !decoded {
			w.decode(&msg.frames)
		}
		w.parcels.take(&w.request)
		in.Peer, in.Decoded = msg.peer, &w.request
		r := w.truth(core.MessageHandled, nil)
		r.A, r.B, r.Instance = uint64(msg.peer), uint64(w.request.Type), w.request.Instance
		w.emit()
	}
	in.Arrived = p.Now()
	// The step may send, and so grow the list that msg lies in; the frames' own
	// buffers stay where they are.
	w.current = msg.frames
	in.Frames = &w.current
	switch {
	case p.state == running && p.machine != nil:
		p.feed(in)
	case who >= len(w.engines) && !toServer:
		w.answered(who-len(w.engines), &w.current)
	}
	n.drop(m)
}

// connect starts to connect a link after a delay.
func (n *network) connect(who int, after time.Duration) {
	k := &n.sockets[who]
	k.epoch++
	n.world.push(evConnect, who, n.world.now.Add(after), k.epoch)
}

// connected is a connection coming up, if both ends can.
func (n *network) connected(e event) bool {
	who := int(e.who)
	l, k := &n.links[who], &n.sockets[who]
	w := n.world
	if k.epoch != e.what || l.peer != 0 || w.processes[who+1].state == absent {
		return false
	}
	if w.processes[0].state != running || l.broken || l.up.cut || l.down.cut {
		// Never at once: time would stand still until the server is back.
		n.connect(who, max(time.Duration(w.grain), w.choices.Span(ForReconnect, who+1, backoffTime, backoffTime)))
		return false
	}
	k.connects++
	l.peer = core.Peer(k.connects<<32 | uint64(who+1))
	r := w.truth(core.ConnectionOpened, nil)
	r.A, r.B = uint64(l.peer), uint64(who+1)
	w.emit()
	for _, m := range k.waiting {
		n.launch(who, m, true)
	}
	k.waiting = k.waiting[:0]
	return true
}

// disconnect breaks a link's connection. What was in flight is lost; where
// graceful, what the worker had sent before it died still arrives. The
// server's host learns of it unless told is false.
func (n *network) disconnect(who int, graceful, told bool) {
	l, k := &n.links[who], &n.sockets[who]
	w := n.world
	k.epoch++
	if l.peer == 0 {
		return
	}
	closed := w.now
	for l.up.head >= 0 {
		m := l.up.head
		n.unlink(&l.up)
		switch {
		case graceful && !l.up.cut && !n.messages[m].due:
			n.messages[m].loose = true
			closed = max(closed, l.up.last)
		case w.choices.Chance(ForLoss, who+1, 16):
			// ZeroMQ may write a message again after a reconnect: the same one
			// twice is possible across connections and only there.
			copied := n.take(&n.messages[m].frames)
			k.waiting = append(k.waiting, copied)
			n.messages[m].loose = true
			w.push(evReach, who, max(l.up.last, w.now), n.key(m))
		default:
			n.lose(who, m, true)
		}
	}
	for l.down.head >= 0 {
		m := l.down.head
		n.unlink(&l.down)
		n.lose(who, m, false)
	}
	if told && w.processes[0].state != absent {
		at := closed.Add(w.choices.Span(ForReconnect, who+1, noticeTime, noticeTime))
		w.push(evPeerClosed, who, at, uint64(l.peer))
	}
	r := w.truth(core.ConnectionClosed, nil)
	r.A, r.B = uint64(l.peer), uint64(who+1)
	w.emit()
	l.peer = 0
}

// peerClosed tells the server's process that a connection closed, or that the
// process behind it is proven dead.
func (n *network) peerClosed(e event) bool {
	p := &n.world.processes[0]
	switch p.state {
	case absent:
		return false
	case paused:
		p.held = append(p.held, e)
		return false
	}
	in := &n.world.input
	*in = core.Input{Kind: core.InputClosed, Peer: core.Peer(e.what)}
	if e.kind == evExited {
		in.Kind = core.InputExited
	}
	p.feed(in)
	return true
}

// cut stops a link: messages wait, or with reset the connection breaks.
func (n *network) cut(who int, ways core.CutWays, reset bool) {
	l := &n.links[who]
	r := n.world.truth(core.LinkCut, nil)
	r.A, r.B, r.Flag = uint64(who+1), uint64(ways), reset
	n.world.emit()
	if ways != core.CutToWorker {
		l.up.cut = true
	}
	if ways != core.CutToServer {
		l.down.cut = true
	}
	if reset {
		l.broken = true
		n.disconnect(who, false, true)
		l.up.cut, l.down.cut = false, false
		n.connect(who, n.world.choices.Span(ForReconnect, who+1, backoffTime, backoffTime))
	}
}

// heal ends a cut. A stalled stream goes on where it stood; after a reset the
// worker's socket reconnects by itself.
func (n *network) heal(who int) bool {
	l := &n.links[who]
	if !l.up.cut && !l.down.cut && !l.broken {
		return false
	}
	r := n.world.truth(core.LinkHealed, nil)
	r.A = uint64(who + 1)
	n.world.emit()
	l.broken = false
	for _, toServer := range [2]bool{true, false} {
		ln, kind := l.lane(toServer)
		if !ln.cut {
			continue
		}
		ln.cut = false
		if ln.head >= 0 && n.messages[ln.head].due {
			n.messages[ln.head].due = false
			at := n.world.now.Add(n.world.choices.Span(ForReconnect, who+1, healTime, healTime))
			n.world.push(kind, who, at, n.key(ln.head))
		}
	}
	return true
}

// dropHeld frees the messages that a dead process had waiting.
func (n *network) dropHeld(held []event) {
	for _, e := range held {
		if e.kind != evHandle && e.kind != evTake {
			continue
		}
		if m := n.find(e.what); m >= 0 {
			ln, _ := n.links[e.who].lane(e.kind == evHandle)
			ln.handling = max(0, ln.handling-1)
			n.lose(int(e.who), m, e.kind == evHandle)
		}
	}
}

// decode reads a message the way the production shell does before it enters
// the core.
func (w *World) decode(frames *core.Frames) {
	w.decoder.Decode(frames, &w.request)
}
