package guard

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// A person chooses the target on the command line, so nothing that follows from it is blamed on the cloud.
func TestAnotherTargetIsTheCauseOfWhatItChanges(t *testing.T) {
	inv := inventory("standard", "fast")
	targets := []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane}
	for _, spec := range []string{"{metadata: {name: c}}", "{metadata: {name: c}, spec: {driver: {logLevel: 5}}}"} {
		for _, from := range targets {
			for _, to := range targets {
				if from == to {
					continue
				}
				refusals := Refused(compare(t, read(t, decide(t, inv, "{metadata: {name: c}}", from)), inv, spec, to), nil, true)
				if len(refusals) == 0 {
					t.Errorf("from %s to %s: want refusals, got none; the case shows nothing", from, to)
				}
				for _, c := range refusals {
					if c.Class != v1alpha1.ConfigChange {
						t.Errorf("from %s to %s, configuration %s: want the run as cause, got %s", from, to, spec, c.Message)
					}
				}
			}
		}
	}
}

func TestTheCloudIsTheCauseOfWhatItChangesUnderAnotherTarget(t *testing.T) {
	old := read(t, decide(t, inventory("standard", "fast"), "{metadata: {name: c}}", v1alpha1.Vanilla))
	found := false
	for _, c := range compare(t, old, inventory("standard"), "{metadata: {name: c}}", v1alpha1.Standalone) {
		found = found || c.Message == `cloud: volume type "fast" is gone: StorageClass fast is removed`
	}
	if !found {
		t.Error("want a line that names the cloud as the cause of the class that is gone, got none")
	}
}
