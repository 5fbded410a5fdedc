package plan

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestSnapshotClassesHaveTheNameOfAnotherDriver(t *testing.T) {
	for _, c := range []struct {
		target         v1alpha1.Target
		spec           string
		class, backups string
	}{
		{v1alpha1.Vanilla, "", "cinder-csi", "cinder-csi-backup"},
		{v1alpha1.Vanilla, "driver: {name: west.example.com}, ", "west.example.com", "west.example.com-backup"},
		{v1alpha1.Standalone, "", "cinder-csi", "cinder-csi-backup"},
		{v1alpha1.Standalone, "openshift: {coexistence: adopt}, ", "cinder-csi", "cinder-csi-backup"},
	} {
		r := decide(t, cloudOf("fast"), "spec: {"+c.spec+"snapshots: {backup: enabled}}", c.target)
		if r.SnapshotClass.Value.Name != c.class || r.BackupClass.Value.Name != c.backups {
			t.Errorf("%s %q: want %s and %s, got %s and %s", c.target, c.spec, c.class, c.backups, r.SnapshotClass.Value.Name, r.BackupClass.Value.Name)
		}
	}
	const taken = "spec: {driver: {name: west.example.com}, snapshots: {classes: {west.example.com-backup: {}}}}"
	if got := refusal(t, cloudOf("fast"), taken, v1alpha1.Vanilla); !strings.Contains(got, "the bundle has a class of this name already") {
		t.Errorf("want a second class of the name refused, got %s", got)
	}
	decide(t, cloudOf("fast"), "spec: {driver: {name: west.example.com}, snapshots: {classes: {cinder-csi: {}}}}", v1alpha1.Vanilla)
}

func TestADriverNameThatGivesTheNamesOfTheDefaultIsRefused(t *testing.T) {
	for _, name := range []string{"cinder-csi", "cinder-csi-backup"} {
		for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone} {
			got := refusal(t, cloudOf("fast"), "spec: {driver: {name: "+name+"}}", target)
			if want := `spec.driver.name: with "` + name + `", objects of the whole cluster`; !strings.Contains(got, want) || !strings.Contains(got, name+".example.com") {
				t.Errorf("%s: want %q and another name, got %s", target, want, got)
			}
		}
	}
}

func TestScheduleHintsOfClaimsAreReadOnlyWhereTheConfigurationSaysSo(t *testing.T) {
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		if decide(t, cloudOf("fast"), "", target).PVCAnnotations.Value {
			t.Errorf("%s: the driver's container has the pod's token by default", target)
		}
	}
	if !decide(t, cloudOf("fast"), "spec: {driver: {pvcAnnotations: true}}", v1alpha1.Vanilla).PVCAnnotations.Value {
		t.Error("spec.driver.pvcAnnotations: true has no effect")
	}
}
