// Package gitops applies the bundles of examples/gitops with the controllers of Argo CD and of Flux, as processes, on a real API server. Its tests
// need the build tag gitops.
package gitops
