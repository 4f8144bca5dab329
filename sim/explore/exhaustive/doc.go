// Package exhaustive tries every order of what can happen, depth first: it
// forks the world wherever several events can come next, at one instant of a
// world in ticks, and wherever a decision has several values. A state that was
// met before is not gone into again. Of two orders of events that touch nothing
// in common only one is tried (sleep sets, kept with each state so that both
// savings hold together). Workers that are alike may change places.
//
// What it decides and what it leaves at the plainest is the scope of its claim:
//
//   - every order of events of one tick, but for those that a real system
//     keeps: messages of one connection, and a connection's close behind them;
//   - the times of a plan that are ranges, in ticks: when a step strikes, how
//     long a fault lasts, a message travels, a memory operation takes;
//   - what a broken connection loses or repeats, and when it is made anew;
//   - not: what an engine's own traffic asks for (the first prompt, stores
//     before retrieves) and when within its range, what entropy gives, and
//     whether a thread is held up for longer than its next step.
//
// A state is told by 64 bits of fingerprint. Of ten million states two fall
// together by chance with a probability of about 3 in a million; then a part is
// not gone into, and nothing else goes wrong.
//
// Contract. What a search covers and finds is a function of the plan and the
// bounds, but for a deadline. It belongs to one goroutine.
package exhaustive
