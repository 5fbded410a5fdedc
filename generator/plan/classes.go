package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// cinderOwnType is the volume type that Cinder makes for itself, so that there always is a default.
const cinderOwnType = "__DEFAULT__"

const parameterFSType = "csi.storage.k8s.io/fstype"

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
	chosen := d.defaultClass(classes, effective)
	for i, e := range d.spec.StorageClasses.Extra {
		if class, ok := d.extraClass(i, e, types, effective); ok {
			classes = append(classes, class)
		}
	}
	slices.SortStableFunc(classes, func(a, b Decision[StorageClass]) int { return strings.Compare(a.Value.Name, b.Value.Name) })
	for i := range classes {
		c := &classes[i].Value
		c.Default = chosen.Value != "" && c.Name == chosen.Value
		if i > 0 && c.Name == classes[i-1].Value.Name {
			d.problem("spec.storageClasses: two classes are called %q, those of the volume types %s and %s; name one in overrides or extra", c.Name, typeText(classes[i-1].Value.VolumeType), typeText(c.VolumeType))
		}
	}
	return classes, chosen
}

// typeText names a volume type for a person: two types may have one name.
func typeText(t VolumeType) string {
	if t.ID == "" {
		return strconv.Quote(t.Name)
	}
	return fmt.Sprintf("%q (ID %s)", t.Name, t.ID)
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
			d.warn("spec.storageClasses.%s: %q matches no volume type%s", key, g, didYouMean(g, typeNames(types)))
		}
	}
}

// types are the volume types, sorted by name.
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

// classOfType is the class of one type, and whether the type can serve any compute zone at all.
func (d *decider) classOfType(t v1alpha1.VolumeType) (Decision[StorageClass], bool) {
	override, key := d.override(t)
	decision := Decision[StorageClass]{
		Source: Inferred,
		Reason: fmt.Sprintf("the cloud offers volume type %q", t.Name),
		Facts:  []v1alpha1.NamedFact{offered(t)},
	}
	name := override.Name
	if name == "" {
		name = className(d.spec.StorageClasses.NamePrefix, t.Name, t.ID)
		if slugOf(t.Name) != t.Name {
			decision.Reason += "; its name is no class name, so six digits of its id's hash were added"
			decision.Facts = append(decision.Facts, v1alpha1.NamedFact{Name: typeFact + t.Name + typeID, Value: t.ID})
		}
	}
	if key != "" {
		decision.Reason += "; spec.storageClasses.overrides." + key + " applies"
	}
	path := "spec.storageClasses.overrides." + key
	if key == "" {
		path = "spec.storageClasses"
	}
	decision.Value = d.class(path, name, override)
	decision.Value.VolumeType = VolumeType{t.ID, t.Name}
	decision.Value.Parameters[contract.ParameterType] = t.Name
	return decision, d.restrict(&decision, t)
}

// extraClass is a class that a person asked for besides those of the types.
func (d *decider) extraClass(i int, e v1alpha1.ExtraClass, types []v1alpha1.VolumeType, effective Decision[string]) (Decision[StorageClass], bool) {
	path := fmt.Sprintf("spec.storageClasses.extra[%d]", i)
	if e.Name == "" {
		d.problem("%s.name: every extra class needs a name", path)
		return Decision[StorageClass]{}, false
	}
	decision := Decision[StorageClass]{Value: d.class(path, e.Name, e.ClassOverride), Source: FromConfig, Reason: path + " asks for it"}
	typeName := e.Type
	switch {
	case e.Type == "" && e.Parameters[contract.ParameterType] != "":
		decision.Value.VolumeType.Name = e.Parameters[contract.ParameterType]
		if t, found := findType(types, decision.Value.VolumeType.Name); found {
			decision.Value.VolumeType = VolumeType{t.ID, t.Name}
		}
		decision.Reason += "; its parameters are taken as given"
		return decision, true
	case e.Type == "":
		typeName = effective.Value
	case e.Parameters[contract.ParameterType] != "":
		d.problem("%s: type and parameters.type are both set; keep one", path)
	}
	t, found := findType(types, typeName)
	if !found {
		switch {
		case typeName == "" && len(d.unanswered) == 0: // as the cloud's default type is not known either: let Cinder choose
			return decision, true
		case d.inv.VolumeTypes.State == v1alpha1.Known:
			d.warn("%s: the class %s is left out, because the cloud has no volume type %q%s. To keep the class of a type that is gone, set parameters.type to its ID", path, e.Name, typeName, didYouMean(typeName, typeNames(types)))
		}
		return decision, false
	}
	decision.Value.VolumeType = VolumeType{t.ID, t.Name}
	decision.Value.Parameters[contract.ParameterType] = t.Name
	decision.Facts = append([]v1alpha1.NamedFact{offered(t)}, decision.Facts...)
	if e.Type == "" {
		decision.Facts = append(decision.Facts, effective.Facts...)
	}
	return decision, d.restrict(&decision, t)
}

// class is what every class is, with what a person changed of it; path is where they did.
func (d *decider) class(path, name string, o v1alpha1.ClassOverride) StorageClass {
	if !isSubdomain(name) {
		d.problem("%s: %q is not a class name: lower-case letters, digits, '-' and '.'", path, name)
	}
	c := StorageClass{
		Name:                 name,
		Parameters:           maps.Clone(o.Parameters),
		Provisioner:          d.result.Driver.Value,
		ReclaimPolicy:        d.result.ReclaimPolicy.Value,
		VolumeBindingMode:    d.result.BindingMode.Value,
		MountOptions:         o.MountOptions,
		Annotations:          o.Annotations,
		AllowVolumeExpansion: d.result.Expansion.Value,
	}
	if c.Parameters == nil {
		c.Parameters = map[string]string{}
	}
	if o.ReclaimPolicy != "" {
		c.ReclaimPolicy, c.OwnReclaimPolicy = o.ReclaimPolicy, true
	}
	if o.VolumeBindingMode != "" {
		c.VolumeBindingMode, c.OwnBindingMode = o.VolumeBindingMode, true
	}
	if o.AllowVolumeExpansion != nil {
		c.AllowVolumeExpansion, c.OwnExpansion = *o.AllowVolumeExpansion, true
	}
	if o.FSType != "" {
		if _, twice := c.Parameters[parameterFSType]; twice {
			d.problem("%s: fsType and parameters.%s are both set; keep one", path, parameterFSType)
		}
		c.Parameters[parameterFSType] = o.FSType
	}
	if name := contract.FileSystemOf(c.Parameters); name != "" && !slices.Contains(contract.FileSystems, name) {
		field := "fsType"
		if o.FSType == "" {
			field = "parameters"
		}
		d.problem("%s.%s: the driver does not create file system %q; use %s", path, field, name, strings.Join(contract.FileSystems, ", "))
	}
	for i, option := range o.MountOptions {
		if option == "" || strings.ContainsFunc(option, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			d.problem("%s: %q is not one mount option, such as noatime", item(path+".mountOptions", i), option)
		}
	}
	d.checkClassAnnotations(path, o.Annotations)
	_, unknown, err := contract.ParseStorageClass(c.Parameters)
	if err != nil {
		d.problem("%s.parameters: %v", path, err)
	}
	for _, key := range unknown {
		d.problem("%s.parameters: the driver knows no parameter %q%s", path, key, didYouMean(key, contract.StorageClassKeys))
	}
	return c
}

// restrict limits a class to the compute zones its type can serve; false: there is none, and every claim would fail.
func (d *decider) restrict(decision *Decision[StorageClass], t v1alpha1.VolumeType) bool {
	if d.result.Topology.Value {
		d.warnOfSpecs(t)
	}
	if !d.result.Topology.Value || len(t.Zones) == 0 {
		return true
	}
	compute, isKnown := d.zoneNames(d.inv.Zones.Compute)
	if !isKnown {
		return true
	}
	var served []string
	for _, c := range compute {
		if slices.Contains(t.Zones, d.volumeZone(c)) {
			served = append(served, contract.ZoneLabel(c))
		}
	}
	decision.Facts = append(decision.Facts, list(ZonesFact(t.Name), t.Zones))
	if len(served) == 0 {
		d.warn("class %s is left out: volume type %q exists only in volume zone %s, which serves no compute zone", decision.Value.Name, t.Name, strings.Join(t.Zones, ", "))
		return false
	}
	if len(served) < len(compute) {
		decision.Value.AllowedZones = served
		decision.Reason += "; the type exists only in some zones"
	}
	return true
}

// warnOfSpecs says that a type's zones are not known: for each type where a right is missing, once where the cloud tells nobody.
func (d *decider) warnOfSpecs(t v1alpha1.VolumeType) {
	switch t.Specs {
	case "":
	case v1alpha1.Unsupported:
		const line = "this Cinder is older than Xena and tells no member in which zones a volume type exists: no class names zones. " +
			"Where a type exists only in some, leave it out with spec.storageClasses.exclude, or pods elsewhere wait for their volumes in vain"
		if !slices.Contains(d.warnings, line) {
			d.warn(line)
		}
	default:
		d.warn("the cloud does not tell in which zones volume type %q exists (extra specs: %s). Its class names no zones; use credentials with the role reader", t.Name, t.Specs)
	}
}

// zoneNames are the names of zones without saying anything about them.
func (d *decider) zoneNames(fact v1alpha1.Fact[[]v1alpha1.Zone]) ([]string, bool) {
	var names []string
	for _, z := range fact.Value {
		names = append(names, z.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), fact.State == v1alpha1.Known
}

// override is what a person changed of a type's class, and the key they did it under: the id wins over the name.
func (d *decider) override(t v1alpha1.VolumeType) (v1alpha1.ClassOverride, string) {
	byID, idGiven := d.spec.StorageClasses.Overrides[t.ID]
	byName, nameGiven := d.spec.StorageClasses.Overrides[t.Name]
	switch {
	case idGiven && nameGiven && t.ID != t.Name:
		d.problem("spec.storageClasses.overrides: %s and %s are the same type; keep one", t.ID, t.Name)
		return byID, t.ID
	case idGiven:
		return byID, t.ID
	case nameGiven:
		return byName, t.Name
	}
	return v1alpha1.ClassOverride{}, ""
}

// checkOverrides warns of an override that matches no type: a Retain that does not apply would lose data.
func (d *decider) checkOverrides(types []v1alpha1.VolumeType) {
	if d.inv.VolumeTypes.State != v1alpha1.Known {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(d.spec.StorageClasses.Overrides)) {
		if _, found := findType(types, key); !found {
			d.warn("spec.storageClasses.overrides.%s changes nothing: the cloud has no volume type of this ID or name%s", key, didYouMean(key, typeNames(types)))
		}
		if d.spec.StorageClasses.Overrides[key].Parameters[contract.ParameterType] != "" {
			d.problem("spec.storageClasses.overrides.%s.parameters.type: the class of a type is for that type; use spec.storageClasses.extra for another", key)
		}
	}
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
