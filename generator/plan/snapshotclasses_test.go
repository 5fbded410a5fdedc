package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestFurtherSnapshotClasses(t *testing.T) {
	inv := cloudOf("fast")
	inv.Services.Value["block-storage"] = v1alpha1.Service{MaxMicroversion: "3.70"}
	r := decide(t, inv, "spec: {snapshots: {classes: {weekly: {deletionPolicy: Retain, default: true, parameters: {type: backup}}, a: {}}}}", v1alpha1.Vanilla)
	want := []FurtherSnapshotClass{
		{Name: "a", DeletionPolicy: "Delete"},
		{Name: "weekly", DeletionPolicy: "Retain", Default: true, Parameters: map[string]string{"type": "backup"}},
	}
	var got []FurtherSnapshotClass
	for _, d := range r.SnapshotClasses {
		got = append(got, d.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.SnapshotClass.Value.Default || !strings.Contains(r.SnapshotClass.Reason, "spec.snapshots.classes.weekly is the default class") {
		t.Errorf("want the class of the bundle to give way, got %+v", r.SnapshotClass)
	}
}

func TestFurtherSnapshotClassesForceWhereTheCloudNeedsIt(t *testing.T) {
	inv := cloudOf("fast")
	inv.Services.Value["block-storage"] = v1alpha1.Service{MaxMicroversion: "3.60"}
	r := decide(t, inv, "spec: {snapshots: {classes: {a: {}, b: {parameters: {force-create: 'false'}}}}}", v1alpha1.Vanilla)
	for i, want := range []string{"true", "false"} {
		if got := r.SnapshotClasses[i].Value.Parameters["force-create"]; got != want {
			t.Errorf("%s: want force-create %s, got %q", r.SnapshotClasses[i].ID, want, got)
		}
	}
}

func TestSnapshotClassesThatCannotBeAreRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"{classes: {a: {default: true}, b: {default: true}}}":                                      "spec.snapshots.classes: a, b are default classes of one driver; keep one",
		"{classes: {cinder-csi: {}}}":                                                              "spec.snapshots.classes.cinder-csi: the bundle has a class of this name already",
		"{classes: {cinder-csi-backup: {}}}":                                                       "spec.snapshots.classes.cinder-csi-backup: the bundle has a class of this name already",
		"{classes: {Weekly: {}}}":                                                                  `spec.snapshots.classes: "Weekly" is not a class name`,
		"{classes: {a: {deletionPolicy: Keep}}}":                                                   `spec.snapshots.classes.a.deletionPolicy: "Keep" is not one of Delete, Retain`,
		"{classes: {a: {parameters: {incremntal: 'true'}}}}":                                       `spec.snapshots.classes.a.parameters: the driver knows no parameter "incremntal"; did you mean incremental?`,
		"{classes: {a: {parameters: {type: copy}}}}":                                               `spec.snapshots.classes.a.parameters: parameter type: "copy" is neither`,
		"{classes: {a: {annotations: {snapshot.storage.kubernetes.io/is-default-class: 'true'}}}}": "spec.snapshots.classes.a.annotations: snapshot.storage.kubernetes.io/is-default-class is the generator's own; use the key default",
		"{enabled: false, classes: {a: {}}}":                                                       "spec.snapshots.classes: the classes need the snapshotter sidecar",
	} {
		if got := refusal(t, cloudOf("fast"), "spec: {snapshots: "+spec+"}", v1alpha1.Vanilla); !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %s", spec, want, got)
		}
	}
}

func TestASecondDefaultSnapshotClassBesideThatOfOpenShiftIsWarnedOf(t *testing.T) {
	const spec = "spec: {openshift: {coexistence: adopt}, snapshots: {classes: {a: {default: true}}}}"
	warnsOnce(t, decide(t, cloudOf("fast"), spec, v1alpha1.Standalone), "spec.snapshots.classes.a.default: OpenShift's own class standard-csi is a default class of this driver too")
}
