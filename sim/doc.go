// Package sim is the simulated world: virtual time, an event heap, a network
// with ZeroMQ's promises over TCP, processes that are killed, paused and
// restarted, device memory that catches misuse, and the engines that submit
// work. It runs the production server and worker cores and nothing else of
// them is simulated: each message is encoded and decoded by core/wire.
//
// Contract. A run is a function of the plan and the tape: World.Run reads no
// clock, starts no goroutine and ranges over no map. Every decision of the
// world is asked of Choices, by purpose and actor. A World is reused from run
// to run and belongs to one goroutine; plans are read only and may be shared.
package sim
