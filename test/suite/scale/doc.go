// Package scale runs a cluster of up to ten thousand volumes and a thousand nodes on one machine. It measures what the driver and the
// sidecars cost there.
//
// These are real: etcd, the API server, the scheduler, the controllers of Kubernetes, and the driver with two replicas. So are the sidecars,
// with the flags of the bundle. The cloud is simulated, with the latencies that were measured on a real one. The nodes are hollow: one process
// writes what a thousand kubelets write about volumes and pods, and mounts nothing. The cloud and the nodes live in the process of the test.
//
// Most volumes are there from the start. The suite writes them into the cloud and the cluster as the driver would have left them. The stories
// create, move and delete further ones through the real parts.
package scale
