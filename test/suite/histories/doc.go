// Package histories plays whole histories of a cluster against the driver and checks that the driver loses and damages nothing.
//
// A history has several replicas of the controller, models of the CSI sidecars, and faults of network, cloud and process, in virtual time.
//
// The package sees the driver from outside only: CSI over gRPC on one side, the HTTP requests to OpenStack on the other.
package histories
