package guard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The names of VolumeSnapshotClasses follow the driver name. A plan that was made before has the names of upstream's driver.
func TestASnapshotClassThatGetsAnotherNameIsRefusedWithBothNames(t *testing.T) {
	const spec = "{metadata: {name: c}, spec: {driver: {name: x.example.com}, snapshots: {backup: enabled}}}"
	inv := inventory("standard", "fast")
	old := read(t, decide(t, inv, spec, v1alpha1.Vanilla))
	for _, d := range old.Decisions {
		if value, is := d.Value.(map[string]any); is && strings.HasPrefix(d.ID, "snapshotClass") {
			value["name"] = strings.Replace(value["name"].(string), "x.example.com", "cinder-csi", 1)
		}
	}
	refusals := Refused(compare(t, old, inv, spec, v1alpha1.Vanilla), nil, false)
	var got []string
	for _, r := range refusals {
		got = append(got, r.Accept+": "+r.Refused)
	}
	says := func(is, was string) string {
		return "class-removed: the bundle has VolumeSnapshotClass " + is + " in place of " + was + ", which stays in the cluster. If both are the default of the driver, " +
			"a VolumeSnapshot without a class fails; kubectl annotate --overwrite volumesnapshotclass " + was + " snapshot.storage.kubernetes.io/is-default-class=false"
	}
	want := []string{says("x.example.com", "cinder-csi"), says("x.example.com-backup", "cinder-csi-backup")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := Refused(refusals, []string{ClassRemoved}, false); len(left) > 0 {
		t.Errorf("want nothing left once accepted, got %v", left)
	}
	pins, _ := pinsOf(t, refusals)
	if diff := cmp.Diff(document(t, "spec: {snapshots: {classes: {cinder-csi: {}, cinder-csi-backup: {parameters: {type: backup}}}}}"), document(t, string(pins))); diff != "" {
		t.Errorf("pin (-want +got):\n%s", diff)
	}
	if left := Refused(compare(t, old, inv, pasted(t, spec, pins, nil), v1alpha1.Vanilla), nil, false); len(left) > 0 {
		t.Errorf("want nothing left once the pin is pasted, got %v", left)
	}
}
