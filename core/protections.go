package core

import "strings"

// Protections are the repairs of the document's design, each off in the
// document preset and on in the hardened one. A protection that no scenario
// needs does not belong here. The repairs themselves arrive one by one; what
// is listed here acts.
type Protections struct {
	// StampOnArrival: the document stamps an entry when a pool gets round to
	// the ping, so a full NORMAL pool makes a live worker look dead (B11). With
	// it, an entry is stamped with the time at which the ping reached the host.
	StampOnArrival bool
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
