package inspect

import "github.com/cinder-csi/cinder-csi/generator/v1alpha1"

// StateOf returns what an error of a request to the cloud means for the fact that was asked for, and the reason. A nil error means known.
func StateOf(err error) (v1alpha1.State, string) {
	if err == nil {
		return v1alpha1.Known, ""
	}
	state, reason := classify(err)
	if state == v1alpha1.Failed {
		reason = oneLine(err.Error()) // the caller names the request
	}
	return state, reason
}
