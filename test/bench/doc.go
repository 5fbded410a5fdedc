// Package bench measures what waiting costs: the driver with its hub against a baseline, on a simulated cloud in virtual time. The
// baseline is the same controller, but it polls every volume by itself with the timings of upstream's plugin.
//
// Durations are log-normal (the 99th percentile is four times the median), listings take longer per row, and a server does one
// thing at a time, as nova-compute has it. The cloud's own time for an operation is what the simulation spends on it when
// every request is sent at once, in the same order, by a client that looks at nothing; whatever an RPC takes beyond is added by
// the driver: what it reads before, when it notices, and the answers of the API in between.
//
//	go test ./test/bench                            a small run
//	go test ./test/bench -run Results -results FILE    the whole comparison (make bench); RESULTS.md is its output
package bench
