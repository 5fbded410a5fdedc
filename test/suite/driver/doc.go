// Package driver plays stories of a cluster against the whole driver, in one process and in virtual time. The sidecars and kubelet are on
// one side, a simulated cloud on the other. Each story proves that the packages of the driver keep a promise together.
//
// The domain packages prove their own rules. Package histories finds the stories that nobody thought of.
package driver
