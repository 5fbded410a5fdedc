// Package histories plays whole histories of a cluster against the driver and checks that nothing is lost: several replicas of the
// controller, models of the CSI sidecars, faults of the network, the cloud and the process, all in virtual time.
//
// The package sees the driver from outside only: CSI over gRPC on one side, the HTTP requests to OpenStack on the other.
package histories
