package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// TestTheBaseIsForAMediumCluster holds manifests/ to the table: without spec.size nothing is patched.
func TestTheBaseIsForAMediumCluster(t *testing.T) {
	medium, _ := v1alpha1.SizeOf(v1alpha1.MediumCluster)
	for container, memory := range medium.Memory {
		if got := base().requests[v1alpha1.ControllerRole+"/"+container]["memory"]; got != memory {
			t.Errorf("%s: want %s, got %s", container, memory, got)
		}
	}
	settings := base().settings[v1alpha1.ControllerRole]
	got := settings["ATTACHER_API_QPS"] + " " + settings["ATTACHER_API_BURST"] + " " + settings["ATTACHER_RECONCILE_SYNC"]
	if want := "20 100 1m"; got != want || medium.Attacher != (v1alpha1.AttacherSettings{QPS: 20, Burst: 100, ReconcileSync: "1m"}) {
		t.Errorf("want %s in both, got %s and %+v", want, got, medium.Attacher)
	}
}

func TestTheSizeIsExplainedAndOnlyAPersonChoosesIt(t *testing.T) {
	small := decide(t, cloudOf("standard"), "", v1alpha1.Vanilla)
	if small.Size.Value != v1alpha1.MediumCluster || small.Size.Source != Default {
		t.Errorf("without spec.size: want medium by default, got %+v", small.Size)
	}
	large := decide(t, cloudOf("standard"), "spec: {size: large}", v1alpha1.Vanilla)
	want, _ := v1alpha1.SizeOf(v1alpha1.LargeCluster)
	if diff := cmp.Diff(want.Memory, large.Controller.Memory.Value); diff != "" || large.Attacher.Value != want.Attacher {
		t.Errorf("want the row of the table, got %+v (-want +got):\n%s", large.Attacher, diff)
	}
	for _, reason := range []string{large.Size.Reason, large.Attacher.Reason, large.Controller.Memory.Reason} {
		if !strings.Contains(reason, "spec.size is set") {
			t.Errorf("want spec.size in the reason, got %q", reason)
		}
	}
	if len(large.Node.Memory.Value) > 0 {
		t.Errorf("the pods of the nodes do not depend on the size, got %+v", large.Node.Memory)
	}
}
