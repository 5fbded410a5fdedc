// Package cloudparity holds the simulated cloud to reality: one suite of cases that runs unchanged against the simulation and
// against a real OpenStack.
//
// A case asks one question on the wire, in plain HTTP, and says which status it expects. What a real cloud answered is recorded
// in testdata/shapes: status, headers and the whole body, with everything that differs from run to run (ids, times, addresses,
// names made by the suite) replaced by what it is. Every run, on either cloud, must give the recording; where the two clouds
// differ the simulation is wrong. Every call that the driver or the generator makes has a case for each status that its
// reference documents; states that the real cloud cannot be brought into are listed by name in testdata/simulatoronly.txt.
//
//	go test ./test/cloudparity                      the simulation
//	go test ./test/cloudparity -bed DIR             a real cloud; DIR holds its clouds.yaml
//	go test ./test/cloudparity -bed DIR -update     records what it answers
package cloudparity
