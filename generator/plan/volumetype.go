package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// ClassesOf are the decisions on the classes of a volume type, given by name or ID. For a type without a class it gives the reason.
// Both are empty for a type that the plan knows nothing of: the cloud did not offer it to the project.
func ClassesOf(p v1alpha1.Plan, volumeType string) ([]v1alpha1.Decision, string, error) {
	r, err := FromDocument(p)
	if err != nil {
		return nil, "", err
	}
	var classes []v1alpha1.Decision
	for _, c := range r.StorageClasses {
		if t := c.Value.VolumeType; t.Name == volumeType || t.ID == volumeType {
			d, _ := DecisionOf(p, c.ID)
			classes = append(classes, d)
		}
	}
	if len(classes) > 0 {
		return classes, "", nil
	}
	return nil, withoutClass(p, volumeType), nil
}

// TypesOf are the names of the volume types that have a class, sorted. The plan does not hold the other types of the cloud.
func TypesOf(p v1alpha1.Plan) ([]string, error) {
	r, err := FromDocument(p)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range r.StorageClasses {
		if name := c.Value.VolumeType.Name; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// withoutClass says why a type has no class. What only the inventory could say is in the warnings of the plan.
func withoutClass(p v1alpha1.Plan, volumeType string) string {
	for _, w := range p.Warnings {
		if strings.Contains(w, fmt.Sprintf("volume type %q", volumeType)) {
			return w
		}
	}
	matching := func(globs []string) int {
		return slices.IndexFunc(globs, func(g string) bool { return glob(g, volumeType) })
	}
	classes := p.Config.StorageClasses
	exclude := matching(classes.Exclude)
	switch {
	case volumeType == cinderOwnType:
		return "Cinder makes this type for itself; it has a class only if it is the cloud's default type"
	case exclude >= 0:
		return fmt.Sprintf("spec.storageClasses.exclude has the pattern %q, which matches it", classes.Exclude[exclude])
	case matching(classes.Include) < 0:
		return fmt.Sprintf("no pattern of spec.storageClasses.include matches it (%s)", quoted(classes.Include))
	}
	return ""
}
