// Package plan forecasts what a deployment's settings cost: how often a live
// worker is reaped (a false reap), how long a dead one is noticed after its
// death, and how many byte-hours of device memory that wait leaks.
//
// A run of the simulator cannot answer that: a good setting reaps a live worker
// once in thousands of worker-years. So the package computes with the same
// cycle that core/worker and core/server run - wait an interval, ping, wait for
// the reply at most an interval; a scan each window/4 reaps what is silent for
// strictly more than the window - as a renewal process on a grid of time. Its
// tests hold it against closed forms, and against the production core in the
// simulator where false reaps are frequent enough to be counted.
//
// Contract: a Forecast is a pure function of a Deployment and a Setting. What it
// leaves out makes it pessimistic: stamps by transfers are not counted, so a
// worker with traffic fares better.
package plan
