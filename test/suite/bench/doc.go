// Package bench measures what waiting costs: the driver with its hub against a baseline, on a simulated cloud in virtual time. The
// baseline is the same controller, but it polls every volume by itself with the timings of upstream's plugin.
//
// Durations are log-normal: the 99th percentile is four times the median. A listing takes longer for each row, and a server does one
// thing at a time, as with nova-compute.
//
// The cloud's own time for an operation comes from a second run of the simulation. There a client sends every request at once, in the
// same order, and reads nothing. The rest of the duration of an RPC is what the driver adds: its reads before, and the time until it
// notices the end.
//
//	go test ./test/suite/bench                            a small run
//	go test ./test/suite/bench -run Results -results FILE    the whole comparison (make measure WHAT=waiting); RESULTS.md is its output
package bench
