// Package openshift asks OpenShift's admission for the pods of bundles: which security context constraint admits them, and which words refuse them.
//
// make test-apiserver runs it on an API server of Kubernetes with a stand-in for that admission, standin.yaml. There the controllers of Kubernetes
// make the pods. make test-openshift runs the same cases on a cluster of somebody. There each pod is a dry run with the accounts of those controllers,
// and none ever starts.
package openshift
