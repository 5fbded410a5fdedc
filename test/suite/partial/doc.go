// Package partial plays lasting faults of one kind of request, while the rest of the cloud works, against the whole driver in virtual time.
//
// A cell is one path through an RPC, one kind of request of that path, one fault, and a number of calls in flight. The suite finds the kinds
// by running each RPC on a healthy cloud, so a new request brings its cells along. The rules are in rule_test.go. A layer that saves requests
// may fail alone: then the RPC still succeeds. An RPC that cannot succeed says which request fails, and its code lets the sidecar retry.
//
// `make test-full SUITE=partial` plays every cell and compares the outcomes with RESULTS.md; -update writes them there.
package partial
