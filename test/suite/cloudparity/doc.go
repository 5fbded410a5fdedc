// Package cloudparity compares the simulated cloud with reality: one suite of cases runs unchanged against the simulation and against a
// real OpenStack.
//
// A case sends one HTTP request and says which status it expects. testdata/shapes has the recorded answers of a real cloud: status, headers
// and the whole body. Values that differ from run to run (IDs, times, addresses, names) are replaced by their kind. Every run, on either
// cloud, must give the recording. If the two clouds differ, the simulation is wrong.
//
// Every call of the driver or of the generator has a case for each status that its reference documents. testdata/simulatoronly.txt names the
// cases whose state the real cloud cannot reach.
//
//	go test ./test/suite/cloudparity                      the simulation
//	go test ./test/suite/cloudparity -bed DIR             a real cloud; DIR holds its clouds.yaml
//	go test ./test/suite/cloudparity -bed DIR -update     records what it answers
package cloudparity
