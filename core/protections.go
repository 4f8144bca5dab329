package core

import "strings"

// Protections are the repairs of the document's design, each off in the
// document preset and on in the hardened one. Each closes one hole that a
// scenario shows open without it; one that no scenario needs does not belong
// here. The fields say what acts, and where: at the server, at the worker, or
// at both, in which case each side copes with a peer that lacks it.
type Protections struct {
	// StampOnArrival (server, B11). The document stamps an entry when a pool
	// gets round to the ping, so a full NORMAL pool makes a live worker look
	// dead. With it, an entry is stamped when the ping is taken in.
	StampOnArrival bool
	// RegistrationAwarePing (both, B1). The document answers true for an id
	// that it does not know, so a worker that was reaped while it slept never
	// registers again. With it, the answer says whether the id is registered,
	// and a worker that is told "no" registers again at once. A document peer
	// reads the answer as true.
	RegistrationAwarePing bool
	// BootToken (both, B4). A server that restarts between two good pings takes
	// every request in flight with it and nobody learns. With it, the answer to
	// a ping names the server's life, and a worker that sees another life ends
	// what it had sent to the last one.
	BootToken bool
	// EagerHeartbeat (worker, A3, B12). The document's heartbeat starts at the
	// first transfer, so a rank that idles past the grace is reaped alive. With
	// it, the heartbeat starts when the registration succeeded.
	EagerHeartbeat bool
	// LatchNeedsTraffic (server, B12). An early heartbeat would put a worker
	// that is still warming up, and may stall in it, on the short window. With
	// it, a ping latches only an entry that has transferred.
	LatchNeedsTraffic bool
	// TerminalAnswers (both, B7). The document is silent on every failure, and
	// the client waits for ever. With it, every request ends in a refusal that
	// an old client survives, and a worker that has it too reads the reason.
	TerminalAnswers bool
	// RequestDeadlines (worker, B7). A reply that was lost is waited for without
	// end. With it, the worker ends what has waited for its timeout.
	RequestDeadlines bool
	// KeepBlocks (both, B21). A document worker that turns unhealthy reports
	// what it has sent as ended, and its engine uses the blocks again; the
	// server carries the request out late, and stores or overwrites what is in
	// them by then. With it, a request that was sent ends by its reply or by its
	// deadline, never by the health; one that ends by its deadline keeps its
	// blocks until the server says that it does not carry it out any more; and
	// the server refuses what was sent before the register of its context.
	KeepBlocks bool
	// PingThroughRecovery (worker, B20). The document's recovery blocks the
	// heartbeat, so a slow register starves its own liveness. With it, pings go
	// on while the register is under way.
	PingThroughRecovery bool
	// AgreedWindow (both, B22). A worker pings by its own interval and is judged
	// by a window that it does not know; one whose interval does not fit is only
	// warned, and reaped alive. With it, the answer to a register says the window,
	// and a worker whose interval is more than a third of it warns, and pings
	// three times a window.
	AgreedWindow bool
	// MirrorWithContext (server, B19, B5). The document fans drop_instance_state
	// out by id, after the release: it takes the blend state of the next
	// incarnation, or of a context that lives on. With it, blend state goes in
	// the step in which the context that it mirrors goes, and with no other.
	MirrorWithContext bool
	// RegisterAside (server, B15, B17). A register holds the main loop while it
	// opens memory, and every ping waits. With it, opens run aside, bounded,
	// and the main loop goes on.
	RegisterAside bool
	// OpenAfterRelease (server, B5). A register may open memory that the last
	// incarnation of the same id still has open. With it, the open waits for
	// that release, or is refused with its reason where the release is stuck.
	OpenAfterRelease bool
	// StampWhenReady (server, B17). The document stamps a fresh context with
	// the time at which its build began: after a long build it is born stale.
	// With it, the stamp is taken when the context is ready.
	StampWhenReady bool
	// RegisterDeadline (server, B8). A register that waited longer than its
	// client does is run all the same, for nobody. With it, it is refused, and
	// an unregister or a closed connection takes back a register under way.
	RegisterDeadline bool
	// ReplaceOtherMemory (server, B9, A8). A register of a known id is a no-op
	// whatever memory it names. With it, other memory replaces the context
	// under a new incarnation; equal memory stays a no-op.
	ReplaceOtherMemory bool
	// TransferKeepsAlive (server, B6). A transfer stamps its context only when
	// it begins, so one that outlasts the window is reaped under its own copy.
	// With it, a context with a copy under way is not stale, and the end of the
	// transfer stamps it too.
	TransferKeepsAlive bool
	// ReleaseAfterCopies (server, B6, A10, A17). A release closes a mapping
	// under the copies that use it. With it, it waits for them.
	ReleaseAfterCopies bool
	// IndependentReleases (server, B2, B18). A release that hangs holds the
	// reaper, or the main loop, for good; one that fails takes its batch with
	// it. With it, each release runs on its own; one that passes its bound is
	// parked, counted and shown.
	IndependentReleases bool
	// LookBeforeReap (server, B3). After a stall of the server itself the scan
	// may run before the pings that waited are read. With it, a scan only marks
	// what looks stale, lets a second pass, and reaps what still is; a scan or
	// a confirmation that runs late starts over.
	LookBeforeReap bool
	// DropHalfWritten (server, B10). The sweep of a dead engine-driven worker
	// finishes its pending writes, so what it had half written is readable.
	// With it, they are dropped.
	DropHalfWritten bool
	// ProofOfDeath (server, A1). Silence is the document's only sign of death,
	// so a dead worker's memory stays taken for a window. With it, a process
	// that the host proves dead - by a descriptor of the process, never by a
	// PID or a closed connection - is released at once.
	ProofOfDeath bool
	// OrderlyStop (server, A17). A shutdown forgets engine-driven contexts with
	// their layout shares and pending slots. With it, it releases them.
	OrderlyStop bool
}

// protection names one field, so that flags, listings and the matrix share
// one table.
type protection struct {
	name, hole, scenario string
	field                func(*Protections) *bool
}

var protectionTable = []protection{
	{"stamp-on-arrival", "a ping that waits in a full pool does not refresh its worker", "B11",
		func(p *Protections) *bool { return &p.StampOnArrival }},
	{"registration-aware-ping", "a ping of an unknown id is answered like any other, so a reaped worker never learns", "B1",
		func(p *Protections) *bool { return &p.RegistrationAwarePing }},
	{"boot-token", "a server that restarts between two good pings takes what is in flight with it unseen", "B4",
		func(p *Protections) *bool { return &p.BootToken }},
	{"eager-heartbeat", "a worker without traffic never pings and is reaped alive by its grace", "B12",
		func(p *Protections) *bool { return &p.EagerHeartbeat }},
	{"latch-needs-traffic", "an early ping puts a worker that still warms up on the short window", "B12",
		func(p *Protections) *bool { return &p.LatchNeedsTraffic }},
	{"terminal-answers", "a request that fails at the server is never answered", "B7",
		func(p *Protections) *bool { return &p.TerminalAnswers }},
	{"request-deadlines", "a reply that was lost is waited for without end", "B7",
		func(p *Protections) *bool { return &p.RequestDeadlines }},
	{"keep-blocks", "blocks of a request that was given up are used again while the server may still carry it out", "B21",
		func(p *Protections) *bool { return &p.KeepBlocks }},
	{"ping-through-recovery", "a slow re-register blocks the heartbeat, so the worker is reaped by its own recovery", "B20",
		func(p *Protections) *bool { return &p.PingThroughRecovery }},
	{"agreed-window", "a worker whose heartbeat interval does not fit the server's window is reaped alive", "B22",
		func(p *Protections) *bool { return &p.AgreedWindow }},
	{"mirror-with-context", "a late fan-out by id drops the blend state of the next incarnation, or of a context that lives on", "B19",
		func(p *Protections) *bool { return &p.MirrorWithContext }},
	{"register-aside", "a slow register holds the main loop, and pings wait behind it", "B15",
		func(p *Protections) *bool { return &p.RegisterAside }},
	{"open-after-release", "memory is opened again while the last incarnation still has it open", "B5",
		func(p *Protections) *bool { return &p.OpenAfterRelease }},
	{"stamp-when-ready", "a context that took long to build is stale when it is inserted", "B17",
		func(p *Protections) *bool { return &p.StampWhenReady }},
	{"register-deadline", "a register is run after its client has given up", "B8",
		func(p *Protections) *bool { return &p.RegisterDeadline }},
	{"replace-other-memory", "a register with other memory is bound to the old one", "B9",
		func(p *Protections) *bool { return &p.ReplaceOtherMemory }},
	{"transfer-keeps-alive", "a transfer longer than the window is reaped under its own copy", "B6",
		func(p *Protections) *bool { return &p.TransferKeepsAlive }},
	{"release-after-copies", "a release closes memory that a copy still uses", "B6",
		func(p *Protections) *bool { return &p.ReleaseAfterCopies }},
	{"independent-releases", "one release that hangs or fails holds up or spoils every other", "B2",
		func(p *Protections) *bool { return &p.IndependentReleases }},
	{"look-before-reap", "after a stall of the server the scan runs before the waiting pings are read", "B3",
		func(p *Protections) *bool { return &p.LookBeforeReap }},
	{"drop-half-written", "what a dead worker had half written becomes readable", "B10",
		func(p *Protections) *bool { return &p.DropHalfWritten }},
	{"proof-of-death", "a process known to be dead keeps its memory until its window is over", "A1",
		func(p *Protections) *bool { return &p.ProofOfDeath }},
	{"orderly-stop", "a shutdown forgets the shares of engine-driven contexts", "A17",
		func(p *Protections) *bool { return &p.OrderlyStop }},
}

// Document is the design document's own behaviour: no protection.
func Document() Protections { return Protections{} }

// Hardened is every protection.
func Hardened() Protections {
	var p Protections
	for i := range protectionTable {
		*protectionTable[i].field(&p) = true
	}
	return p
}

// ProtectionNames lists the protections in their fixed order.
func ProtectionNames() []string {
	names := make([]string, len(protectionTable))
	for i := range protectionTable {
		names[i] = protectionTable[i].name
	}
	return names
}

// DescribeProtection returns the hole that a protection closes and the
// scenario that shows it.
func DescribeProtection(name string) (hole, scenario string, ok bool) {
	for i := range protectionTable {
		if protectionTable[i].name == name {
			return protectionTable[i].hole, protectionTable[i].scenario, true
		}
	}
	return "", "", false
}

// Set switches the protection of that name; it reports whether there is one.
func (p *Protections) Set(name string, on bool) bool {
	for i := range protectionTable {
		if protectionTable[i].name == name {
			*protectionTable[i].field(p) = on
			return true
		}
	}
	return false
}

// String lists the protections that are on, or says "document" or "hardened".
func (p Protections) String() string {
	switch p {
	case Document():
		return "document"
	case Hardened():
		return "hardened"
	}
	var on []string
	for i := range protectionTable {
		if *protectionTable[i].field(&p) {
			on = append(on, protectionTable[i].name)
		}
	}
	return strings.Join(on, "+")
}
