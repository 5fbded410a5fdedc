package verify_test

import "github.com/cinder-csi/cinder-csi/generator/verify"

// differences lists where the two forms of a plane differ.
func differences(kustomize, helm []verify.Object) []string {
	return verify.Differences(kustomize, helm, "kustomize", "helm")
}
