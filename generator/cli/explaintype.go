package cli

import (
	"io"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// volumeTypeKind is the kind of a volume type on the command line of explain.
const volumeTypeKind = "volumetype"

// volumeTypeOf is the name or ID in volumetype/NAME, which is no object of a bundle.
func volumeTypeOf(object string) (string, bool) {
	kind, name, _ := strings.Cut(object, "/")
	return name, isKind(kind, volumeTypeKind)
}

func explainType(out io.Writer, p v1alpha1.Plan, volumeType string) error {
	classes, why, err := plan.ClassesOf(p, volumeType)
	switch {
	case err != nil:
		return err
	case len(classes) == 0 && why == "":
		return usage("volume type %q: project %s was not offered it when the bundle was made; see cinder-csi-generator inspect", volumeType, p.Cloud.ProjectID)
	case len(classes) == 0:
		answer{value: "no class", rest: why}.print(out)
		return nil
	}
	for _, d := range classes {
		answer{value: "StorageClass " + strings.TrimPrefix(d.ID, plan.ClassID), decisions: []v1alpha1.Decision{d}}.print(out)
	}
	return nil
}
