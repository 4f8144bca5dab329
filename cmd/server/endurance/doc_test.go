// Package endurance_test holds what the server must show of itself as a
// program: that nothing is left behind by workers that are killed, by a server
// that is killed, by strangers; and what it costs, beside the least that the
// same machine can do.
//
// Contract. Everything here runs the built program in processes of its own and
// judges it from outside: the wire, /proc, /dev/shm, its own pages. A figure is
// never compared with a number of another machine: what it is compared with
// runs in the same test, in turns with it, and the median of the turns' ratios
// counts, so that both sides meet the same noise.
//
// By default the counts are small, so that the package takes its place in
// go test ./... beside everything else; bounds on speed are then those of
// slack below, for other packages' tests run at the same time. VIGIL_FULL=1,
// which make nightly sets, means the full counts and the full bounds.
package endurance_test
