package plan

import (
	"fmt"
	"slices"
	"strconv"
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
	return sortedSet(names), nil
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

// typeText names a volume type for a person: two types may have one name.
func typeText(t VolumeType) string {
	if t.ID == "" {
		return strconv.Quote(t.Name)
	}
	return fmt.Sprintf("%q (ID %s)", t.Name, t.ID)
}

func (d *decider) types() []v1alpha1.VolumeType {
	if !listed(d, "volumeTypes", d.inv.VolumeTypes) {
		return nil
	}
	if len(d.inv.VolumeTypes.Value) == 0 {
		d.warn("the cloud offers this project no volume type, so the bundle has only the classes of spec.storageClasses.extra; ask the operator of the cloud")
	}
	types := slices.DeleteFunc(slices.Clone(d.inv.VolumeTypes.Value), func(t v1alpha1.VolumeType) bool {
		problem := unwritable(t.Name)
		if problem != "" {
			d.warn("volume type %q (%s) has no class: its name %s, which no bundle may hold", t.Name, t.ID, problem)
		}
		return problem != ""
	})
	slices.SortFunc(types, func(a, b v1alpha1.VolumeType) int { return strings.Compare(a.Name, b.Name) })
	return types
}

func findType(types []v1alpha1.VolumeType, idOrName string) (v1alpha1.VolumeType, bool) {
	i := slices.IndexFunc(types, func(t v1alpha1.VolumeType) bool { return t.ID == idOrName })
	if i < 0 {
		i = slices.IndexFunc(types, func(t v1alpha1.VolumeType) bool { return t.Name == idOrName })
	}
	if i < 0 || idOrName == "" {
		return v1alpha1.VolumeType{}, false
	}
	return types[i], true
}

func typeNames(types []v1alpha1.VolumeType) []string {
	var names []string
	for _, t := range types {
		names = append(names, t.Name)
	}
	return names
}
