package main

// Why this file: a long prompt is a message of half a megabyte, and the
// library that receives it makes a new buffer for each. On the small heap of a
// server whose store lies outside of it the collector would run many times a
// second, and every ping waits for its pauses and helps it along. A block that
// is never touched, and so takes no memory, has it run after so many bytes more.

const collectorFloor = 64 << 20

// collectorBlock is that block; whoever makes it keeps it alive.
func collectorBlock() []byte { return make([]byte, collectorFloor) }
