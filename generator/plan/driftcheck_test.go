package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestADriftCheckThatNoConfigMapHoldsIsRefused(t *testing.T) {
	const spec = "spec: {driftCheck: {schedule: '@daily'}}"
	types := func(n int) v1alpha1.Inventory {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("type-%04d", i))
		}
		return cloudOf(names...)
	}
	if _, err := Decide(types(1000), configured(t, spec), v1alpha1.Vanilla, v1alpha1.Helm, "test"); err != nil {
		t.Errorf("want a thousand types to fit, got %v", err)
	}
	if got := refusal(t, types(5000), spec, v1alpha1.Vanilla); !strings.Contains(got, "spec.driftCheck.schedule: ") || !strings.Contains(got, "ConfigMap holds at most 1048576") {
		t.Errorf("got %s", got)
	}
}

func TestAnImageOfTheGeneratorWithoutADriftCheckIsAWarning(t *testing.T) {
	warnsOnce(t, decide(t, cloudOf("fast"), "spec: {images: {generator: {tag: v9}}}", v1alpha1.Vanilla), "spec.images.generator: no pod has this image")
	r, err := Decide(cloudOf("fast"), configured(t, "spec: {driftCheck: {schedule: '@daily'}}"), v1alpha1.Vanilla, v1alpha1.Helm, "test")
	if err != nil {
		t.Fatal(err)
	}
	warnsOnce(t, r, "the generator image: no registry has this image by default")
}

// Each run of the CronJob would print the warning.
func TestTheDriftCheckDoesNotWarnOfADefault(t *testing.T) {
	config, _, err := decide(t, cloudOf("fast"), "spec: {driftCheck: {schedule: '@daily'}}", v1alpha1.Vanilla).DriftCheckFiles()
	if err != nil {
		t.Fatal(err)
	}
	if again := decide(t, cloudOf("fast"), config, v1alpha1.Vanilla); strings.Contains(strings.Join(again.Warnings, "\n"), "coexistence") {
		t.Errorf("want no warning of spec.openshift.coexistence, got %q", again.Warnings)
	}
}
