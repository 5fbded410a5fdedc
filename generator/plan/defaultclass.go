package plan

import (
	"fmt"
	"slices"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// defaultType is the name of the type that a volume gets when nobody names one: the one a person chose, else the cloud's.
func (d *decider) defaultType(types []v1alpha1.VolumeType) Decision[string] {
	requested := d.spec.StorageClasses.Default
	if requested != v1alpha1.Auto && requested != v1alpha1.None {
		t, found := findType(types, requested)
		switch {
		case found || d.inv.VolumeTypes.State != v1alpha1.Known:
		case d.last != nil && d.last.Config.StorageClasses.Default == requested:
			d.fail("spec.storageClasses.default: the cloud has no volume type of id or name %q any more, so no class is the default", requested)
			return Decision[string]{Source: FromConfig, Reason: "the cloud has the volume type of spec.storageClasses.default no more"}
		default:
			d.problem("spec.storageClasses.default: the cloud has no volume type of id or name %q%s; or use auto or none", requested, d.typeHint(requested, types))
		}
		return Decision[string]{Value: t.Name, Source: FromConfig, Reason: "spec.storageClasses.default is set"}
	}
	if !d.needsDefaultType(types) {
		return Decision[string]{Source: Default}
	}
	fact := d.inv.DefaultVolumeType
	if !known(d, defaultFact, fact) {
		reason := "the cloud does not report its default volume type"
		if fact.State == v1alpha1.Denied {
			reason = "the cloud's default volume type is not known: " + missingRight(defaultFact, fact.Reason)
		}
		return Decision[string]{Source: Inferred, Facts: []v1alpha1.NamedFact{stateOf(defaultFact, fact)}, Reason: reason}
	}
	switch {
	case fact.Value == "":
		return Decision[string]{Source: Inferred, Facts: []v1alpha1.NamedFact{{Name: defaultFact, Value: none}}, Reason: "the cloud has no default volume type"}
	case unwritable(fact.Value) != "": // types has warned of it; the name must not reach a bundle
		return Decision[string]{Source: Inferred, Reason: "the name of the cloud's default volume type cannot be written"}
	}
	return Decision[string]{Value: fact.Value, Source: Inferred, Facts: []v1alpha1.NamedFact{{Name: defaultFact, Value: fact.Value}}, Reason: fmt.Sprintf("%q is the cloud's default volume type", fact.Value)}
}

// needsDefaultType is whether any decision rests on the cloud's default type: a default class, Cinder's own type, or an extra
// class that names no type.
func (d *decider) needsDefaultType(types []v1alpha1.VolumeType) bool {
	if d.spec.StorageClasses.Default == v1alpha1.Auto && !d.sideBySide() {
		return true
	}
	if _, found := findType(types, cinderOwnType); found {
		return true
	}
	return slices.ContainsFunc(d.spec.StorageClasses.Extra, func(e v1alpha1.ExtraClass) bool { return e.Type == "" && e.Parameters["type"] == "" })
}

// defaultClass is the class that claims without a class get: at most one.
func (d *decider) defaultClass(classes []Decision[StorageClass], effective Decision[string]) Decision[string] {
	requested := d.spec.StorageClasses.Default
	configured := sourceOf(d.given.StorageClasses.Default != "")
	switch {
	case requested == v1alpha1.None:
		return Decision[string]{Source: configured, Reason: "spec.storageClasses.default is none"}
	case requested == v1alpha1.Auto && d.sideBySide():
		return Decision[string]{Source: Default, Reason: "OpenShift's built-in driver brings a default class, and a cluster has one"}
	case effective.Value == "":
		if len(d.unanswered) == 0 && requested == v1alpha1.Auto {
			d.warn("no class is the default: %s", effective.Reason)
		}
		return Decision[string]{Source: effective.Source, Reason: effective.Reason, Facts: effective.Facts}
	}
	ofType := func(c Decision[StorageClass]) bool { return c.Value.VolumeType.Name == effective.Value }
	i := slices.IndexFunc(classes, func(c Decision[StorageClass]) bool { return ofType(c) && c.Source == Inferred })
	if i < 0 && requested != v1alpha1.Auto { // the type has no class of its own, but one that a person asked for
		i = slices.IndexFunc(classes, ofType)
	}
	if i >= 0 {
		return Decision[string]{Value: classes[i].Value.Name, Source: effective.Source, Reason: effective.Reason, Facts: effective.Facts}
	}
	reason := fmt.Sprintf("%s, but no class is made for volume type %q", effective.Reason, effective.Value)
	switch {
	case requested != v1alpha1.Auto && d.sameDefault():
		d.fail("no class is the default: %s any more", reason)
	case requested != v1alpha1.Auto:
		d.problem("spec.storageClasses.default: no class is made for volume type %q; include it", effective.Value)
	case len(d.unanswered) == 0:
		d.warn("no class is the default: %s", reason)
	}
	return Decision[string]{Source: effective.Source, Reason: reason, Facts: effective.Facts}
}

// sameDefault is whether the configuration chose the default and the classes in the last plan as it does now.
func (d *decider) sameDefault() bool {
	if d.last == nil {
		return false
	}
	was, is := d.last.Config.StorageClasses, d.spec.StorageClasses
	return was.Default == is.Default && slices.Equal(was.Include, is.Include) && slices.Equal(was.Exclude, is.Exclude)
}
