package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// cinderOwnType is the volume type that Cinder makes for itself, so that there always is a default.
const cinderOwnType = "__DEFAULT__"

// classDefaults are what every class has unless an override says otherwise.
func (d *decider) classDefaults() (binding, reclaim Decision[string], expansion Decision[bool]) {
	binding = Decision[string]{Value: v1alpha1.WaitForFirstConsumer, Source: Default, Reason: "the volume is made once its first pod has a node, where that pod can use it"}
	reclaim = Decision[string]{Value: "Delete", Source: Default, Reason: "a volume is deleted with its claim; overrides and extra classes can say Retain"}
	expansion = Decision[bool]{Value: true, Source: Default, Reason: "Cinder and the driver expand volumes, also in use"}
	if mode := d.spec.StorageClasses.VolumeBindingMode; mode != "" {
		binding = Decision[string]{Value: mode, Source: FromConfig, Reason: "spec.storageClasses.volumeBindingMode is " + mode}
	}
	if allow := d.spec.StorageClasses.AllowVolumeExpansion; allow != nil {
		expansion = Decision[bool]{Value: *allow, Source: FromConfig, Reason: "spec.storageClasses.allowVolumeExpansion is " + strconv.FormatBool(*allow)}
	}
	return binding, reclaim, expansion
}

// storageClasses is one class per type that is included, and the extra ones; at most one is the default.
func (d *decider) storageClasses(r Result) ([]Decision[StorageClass], Decision[string]) {
	d.result = r
	d.checkPrefix()
	types := d.types()
	if !d.canMatch(types) {
		return nil, Decision[string]{}
	}
	d.checkOverrides(types)
	d.checkGlobs("include", d.spec.StorageClasses.Include, len(d.given.StorageClasses.Include) > 0, types)
	d.checkGlobs("exclude", d.spec.StorageClasses.Exclude, true, types)
	effective := d.defaultType(types)
	var classes []Decision[StorageClass]
	for _, t := range types {
		if !d.wanted(t, effective.Value) {
			continue
		}
		class, served := d.classOfType(t)
		if !served {
			continue
		}
		classes = append(classes, class)
	}
	for i, e := range d.spec.StorageClasses.Extra {
		class, ok := d.extraClass(i, e, types, effective)
		taken := slices.IndexFunc(classes, func(c Decision[StorageClass]) bool { return c.Value.Name == class.Value.Name })
		switch {
		case !ok:
		case taken < 0:
			classes = append(classes, class)
		case classes[taken].Source == Inferred && d.hadClass(class):
			d.nameTaken(classes[taken].Value)
			classes[taken] = class
		default:
			d.problem("spec.storageClasses.extra[%d].name: %q is the name of another class, that of volume type %s; choose another name", i, e.Name, typeText(classes[taken].Value.VolumeType))
		}
	}
	slices.SortStableFunc(classes, func(a, b Decision[StorageClass]) int { return strings.Compare(a.Value.Name, b.Value.Name) })
	classes = d.withOwnNames(classes)
	chosen := d.defaultClass(classes, effective)
	for i := range classes {
		c := &classes[i].Value
		c.Default = chosen.Value != "" && c.Name == chosen.Value
	}
	return classes, chosen
}

// withOwnNames are the classes, sorted by name, without a second one of a name. If the last plan has one of the two, the cloud brought the other. A new volume
// type never takes the name of a class that claims use.
func (d *decider) withOwnNames(classes []Decision[StorageClass]) []Decision[StorageClass] {
	var own []Decision[StorageClass]
	for _, c := range classes {
		if len(own) == 0 || own[len(own)-1].Value.Name != c.Value.Name {
			own = append(own, c)
			continue
		}
		switch before := &own[len(own)-1]; {
		case d.hadClass(*before):
			d.nameTaken(c.Value)
		case d.hadClass(c):
			d.nameTaken(before.Value)
			*before = c
		default:
			d.problem("spec.storageClasses: two classes are called %q, those of the volume types %s and %s; give one another name in spec.storageClasses.overrides", c.Value.Name, typeText(before.Value.VolumeType), typeText(c.Value.VolumeType))
		}
	}
	return own
}

// hadClass is whether the last plan has this class for the same reason. The plan of a drift check names no sources.
func (d *decider) hadClass(c Decision[StorageClass]) bool {
	return d.last != nil && slices.ContainsFunc(d.last.StorageClasses, func(was Decision[StorageClass]) bool {
		return was.Value.Name == c.Value.Name && (was.Source == c.Source || was.Source == "") && was.Value.VolumeType.ID == c.Value.VolumeType.ID
	})
}

func (d *decider) nameTaken(c StorageClass) {
	d.fail("volume type %s has no class: another class has the name %q; give it a name of its own in spec.storageClasses.overrides.%s.name", typeText(c.VolumeType), c.Name, c.VolumeType.ID)
}

// mostCompared is how many letters of patterns are compared with how many letters of names: 1,000 patterns with 2,000 volume types have less.
const mostCompared = 1_000_000_000

// canMatch is whether include and exclude can be applied in seconds.
func (d *decider) canMatch(types []v1alpha1.VolumeType) bool {
	patterns, names := 0, 0
	for _, p := range slices.Concat(d.spec.StorageClasses.Include, d.spec.StorageClasses.Exclude) {
		patterns += len(p)
	}
	for _, t := range types {
		names += len(t.Name)
	}
	if patterns*names > mostCompared {
		d.problem("spec.storageClasses: the patterns of include and exclude are too many for the %d volume types of the cloud; use fewer, or shorter ones", len(types))
		return false
	}
	return true
}

// checkPrefix reports a prefix that gives invalid names once, and not for each class.
func (d *decider) checkPrefix() {
	prefix := d.spec.StorageClasses.NamePrefix
	if isSubdomain(prefix + "a") {
		return
	}
	d.problem("spec.storageClasses.namePrefix: %q cannot begin the name of a class: lower-case letters, digits, '-' and '.'", prefix)
	d.spec.StorageClasses.NamePrefix = "" // the names are valid without it, so no class repeats the problem
}

// checkGlobs warns of patterns that match no volume type: they change nothing, which nobody would notice.
func (d *decider) checkGlobs(key string, globs []string, given bool, types []v1alpha1.VolumeType) {
	if !given || d.inv.VolumeTypes.State != v1alpha1.Known {
		return
	}
	for _, g := range globs {
		if !slices.ContainsFunc(types, func(t v1alpha1.VolumeType) bool { return glob(g, t.Name) }) {
			d.warn("spec.storageClasses.%s: %q matches no volume type%s", key, g, d.typeHint(g, types))
		}
	}
}

// wanted applies include and exclude. Cinder's own type gets a class only where it is what volumes get anyway.
func (d *decider) wanted(t v1alpha1.VolumeType, defaultType string) bool {
	if t.Name == cinderOwnType && defaultType != cinderOwnType {
		return false
	}
	matches := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { return glob(g, t.Name) })
	}
	return matches(d.spec.StorageClasses.Include) && !matches(d.spec.StorageClasses.Exclude)
}

// checkOverrides warns of an override that matches no type: a Retain that does not apply would lose data.
func (d *decider) checkOverrides(types []v1alpha1.VolumeType) {
	if d.inv.VolumeTypes.State != v1alpha1.Known {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(d.spec.StorageClasses.Overrides)) {
		if _, found := findType(types, key); !found {
			d.warn("spec.storageClasses.overrides.%s changes nothing: the cloud has no volume type of this ID or name%s", key, d.typeHint(key, types))
		}
		if d.spec.StorageClasses.Overrides[key].Parameters[contract.ParameterType] != "" {
			d.problem("spec.storageClasses.overrides.%s.parameters.type: the class of a type is for that type; use spec.storageClasses.extra for another", key)
		}
	}
}

// glob matches * to any run of characters and ? to any one; everything else is itself.
func glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}
