package spacetime

import "vigil/core"

// A message is a request of a worker and its answer, put together from the
// records of both ends. Records name no message: a ping is matched by its uid
// on the worker's side and by its place in the connection's order on the
// server's side.

// none is a moment of a message that never came.
const none core.Time = -1

type message struct {
	lane  int32
	class uint8
	name  int32 // of the request's type, -1 unknown
	fate  uint8
	// The moments, none where they never came: the worker sent it, it reached the
	// server's host, the server took it in, the worker had its answer or gave up.
	sent, reached, handled, ended core.Time
	record                        int32 // the first record of it
}

// The classes of messages: what a filter can hide.
const (
	classPing = iota
	classRegister
	classLeave
	classRequest
	classes
)

// The fates of messages.
const (
	fateOpen     = iota // under way at the end of the run, or one that no end tells of
	fateAnswered        // the worker had the answer
	fateFailed          // the worker gave it up, or the answer was a refusal
	fateLost            // it never reached the server
	fateSilent          // it reached the server, and whoever sent it waits for ever
)

// patience is how long before the end of a run a message must have been sent
// to be called unanswered; later ones are under way.
const patience = core.Time(2e9)

// mostWaiting bounds the messages of one sender that wait for their match;
// the oldest is given up.
const mostWaiting = 4096

type messages struct {
	all     []message
	byUID   map[uidKey]int32
	unseen  map[int32][]int32   // by lane: sent and not yet seen at the server, in order
	waiting map[core.Peer]queue // by connection: at the host and not yet taken in
	names   map[string]int32
	named   []string
}

type queue []int32

// uidKey names what an end tells of: a request by the engine's number, since
// its second half on the wire has another uid, everything else by its uid.
type uidKey struct {
	lane    int32
	request bool
	uid     uint64
}

func (m *messages) init() {
	m.byUID, m.unseen, m.waiting, m.names = map[uidKey]int32{}, map[int32][]int32{}, map[core.Peer]queue{}, map[string]int32{}
}

func (m *messages) name(n string) int32 {
	i, known := m.names[n]
	if !known {
		i = int32(len(m.named))
		m.names[n] = i
		m.named = append(m.named, n)
	}
	return i
}

// classOf is the class of a request type of the wire, by its number there.
func classOf(number uint64) uint8 {
	switch number {
	case 22:
		return classPing
	case 1, 3, 14, 33:
		return classRegister
	case 2, 4, 15, 34:
		return classLeave
	}
	return classRequest
}

// pair follows the messages.
func (d *Diagram) pair(r *core.Record, lane, index int32) {
	m := &d.messages
	switch r.Kind {
	case core.PingSent:
		m.send(lane, classPing, r.A, r.At, index)
	case core.RegisterSent:
		m.send(lane, classRegister, r.A, r.At, index)
	case core.UnregisterSent:
		m.send(lane, classLeave, r.A, r.At, index)
	case core.RequestSent:
		m.send(lane, classRequest, r.A, r.At, index)
	case core.PingAnswered:
		m.end(lane, false, r.A, r.At, !r.Flag)
	case core.PingFailed:
		m.end(lane, false, r.A, r.At, true)
	case core.RegisterEnded, core.UnregisterEnded:
		m.end(lane, false, r.A, r.At, r.Failure != core.NoFailure)
	case core.RequestResolved:
		// A no without a reason is how a miss is said.
		m.end(lane, true, r.A, r.At, r.Failure != core.NoFailure && r.Failure != core.FailUnknownVerdict)
	case core.MessageReached:
		d.reach(r, lane, index)
	case core.MessageHandled:
		peer := core.Peer(r.A)
		if q := m.waiting[peer]; len(q) > 0 {
			m.all[q[0]].handled = r.At
			m.waiting[peer] = q[1:]
		}
	case core.MessageLost:
		if !r.Flag {
			return
		}
		if q := m.unseen[lane]; len(q) > 0 {
			m.all[q[0]].fate = fateLost
			m.unseen[lane] = q[1:]
		}
	case core.ConnectionClosed:
		delete(m.waiting, core.Peer(r.A)) // the host drops what it had not taken in
	case core.ProcessKilled, core.ProcessExited:
		if lane == 0 {
			clear(m.waiting)
		} else {
			delete(m.unseen, lane)
		}
	}
}

func (m *messages) send(lane int32, class uint8, uid uint64, at core.Time, index int32) {
	if lane < 0 {
		return
	}
	i := int32(len(m.all))
	m.all = append(m.all, message{lane: lane, class: class, name: -1, sent: at, reached: none, handled: none, ended: none, record: index})
	key := uidKey{lane, class == classRequest, uid}
	if first, known := m.byUID[key]; known && class == classRequest {
		// The second half of a request follows on the answer to the first.
		m.all[first].ended, m.all[first].fate = at, fateAnswered
	}
	m.byUID[key] = i
	q := append(m.unseen[lane], i)
	if len(q) > mostWaiting {
		q = q[1:]
	}
	m.unseen[lane] = q
}

func (m *messages) end(lane int32, request bool, uid uint64, at core.Time, failed bool) {
	key := uidKey{lane, request, uid}
	i, known := m.byUID[key]
	if !known {
		return
	}
	delete(m.byUID, key)
	msg := &m.all[i]
	msg.ended = at
	switch {
	case msg.fate == fateLost:
	case failed:
		msg.fate = fateFailed
	default:
		msg.fate = fateAnswered
	}
}

// reach is a message at the server's host. The one it is was sent first of
// those of its class: what was sent before that and is of another class is
// still under way on another socket, or is lost, and stays without an arrival.
func (d *Diagram) reach(r *core.Record, lane, index int32) {
	m := &d.messages
	class := classOf(r.B)
	if r.Instance == 0 || lane <= 0 {
		lane = d.laneOfPeer(core.Peer(r.A), lane)
	}
	if lane < 0 {
		return
	}
	found := int32(-1)
	q := m.unseen[lane]
	for k, i := range q {
		if m.all[i].class == class {
			found = i
			m.unseen[lane] = append(q[:k:k], q[k+1:]...)
			break
		}
	}
	if found < 0 { // a client that says nothing of itself
		found = int32(len(m.all))
		m.all = append(m.all, message{lane: lane, class: class, sent: none, handled: none, ended: none, record: index})
	}
	msg := &m.all[found]
	msg.reached, msg.name = r.At, -1
	if d.TypeName != nil {
		msg.name = m.name(d.TypeName(r.B))
	}
	peer := core.Peer(r.A)
	if q := m.waiting[peer]; len(q) < mostWaiting {
		m.waiting[peer] = append(q, found)
	}
}

// settle tells what was never answered from what is under way at the end.
func (d *Diagram) settle() {
	for i := range d.messages.all {
		m := &d.messages.all[i]
		until := d.end
		if over := d.lanes[m.lane].Ended; over >= 0 {
			until = over
		}
		if m.fate == fateOpen && m.sent != none && m.reached != none && m.ended == none && until-m.sent > patience {
			m.fate = fateSilent
		}
	}
}

// laneOfPeer is who is behind a connection: the simulator numbers it in the
// low half, from 1.
func (d *Diagram) laneOfPeer(p core.Peer, otherwise int32) int32 {
	if w := int(uint32(p)) - 1; w >= 0 && w < len(d.current) && d.current[w] >= 0 {
		return d.current[w]
	}
	return otherwise
}
