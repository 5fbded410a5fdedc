package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// A sentence of plan may contain what is the name of another key, such as the d of "and". Only the key that it is about is left out.
func TestWhatPlanRefusesIsLeftOutAlone(t *testing.T) {
	for name, c := range map[string]struct {
		labels, selector map[string]string
		wantLabels       map[string]string
		wantSelector     map[string]string
	}{
		"a label that the bundle sets": {
			labels: map[string]string{"app": "foo", "d": "w", "e": "v"}, wantLabels: map[string]string{"d": "w", "e": "v"},
		},
		"a selector with a space": {selector: map[string]string{"bad key": "x", "good": "yes"}, wantSelector: map[string]string{"good": "yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 8 { // the order of a map differs
				var d v1alpha1.Distribution
				d.Spec.Roles.Node.PodLabels, d.Spec.Roles.Node.NodeSelector = c.labels, c.selector
				got, notes := (&survey{}).accept(d)
				if diff := cmp.Diff(c.wantLabels, got.Spec.Roles.Node.PodLabels); diff != "" {
					t.Fatalf("labels (-want +got):\n%s%v", diff, notes)
				}
				if diff := cmp.Diff(c.wantSelector, got.Spec.Roles.Node.NodeSelector); diff != "" {
					t.Fatalf("selector (-want +got):\n%s%v", diff, notes)
				}
				if len(notes) != 1 || !strings.HasPrefix(notes[0].Why, "plan refuses it: ") {
					t.Fatalf("want one note, got %v", notes)
				}
			}
		})
	}
}

func TestMoreRefusedKeysThanAHundredAreAllLeftOut(t *testing.T) {
	var d v1alpha1.Distribution
	for range 120 {
		d.Spec.Roles.Node.ImagePullSecrets = append(d.Spec.Roles.Node.ImagePullSecrets, "Not_A_Name")
	}
	got, notes := (&survey{}).accept(d)
	if left := got.Spec.Roles.Node.ImagePullSecrets; len(left) != 0 || len(notes) != 120 {
		t.Errorf("want 120 notes and no Secret, got %d and %v", len(notes), left)
	}
}
