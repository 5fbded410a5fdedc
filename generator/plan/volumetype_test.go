package plan

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestATypeWithoutAClassHasAReasonInThePlan(t *testing.T) {
	inv := cloudOf("standard", "far", "x ${X}", "other")
	inv.VolumeTypes.Value[1].Zones = []string{"az3"}
	r := decide(t, inv, "spec: {storageClasses: {include: [standard, far, 'x*']}}", v1alpha1.Vanilla)
	for name, want := range map[string]string{
		"far":    `class far is left out: volume type "far" exists only in volume zone az3, which serves no compute zone`,
		"x ${X}": "its name holds ${",
		"other":  `no pattern of spec.storageClasses.include matches it ("standard", "far", "x*")`,
	} {
		classes, why, err := ClassesOf(r.Document(nil), name)
		if err != nil || len(classes) != 0 || !strings.Contains(why, want) {
			t.Errorf("%s: want %q, got %v, %q, %v", name, want, classes, why, err)
		}
	}
	for _, nameOrID := range []string{"standard", "id-of-standard"} {
		if classes, why, err := ClassesOf(r.Document(nil), nameOrID); err != nil || len(classes) != 1 || classes[0].ID != "storageClass.standard" || why != "" {
			t.Errorf("%s: want its class, got %v, %q, %v", nameOrID, classes, why, err)
		}
	}
}
