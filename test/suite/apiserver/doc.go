// Package apiserver applies generated bundles to a real API server, as their README says, and removes them. There are no nodes: no pod runs.
// make test-apiserver runs it.
package apiserver
