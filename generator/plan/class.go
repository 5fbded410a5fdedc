package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const parameterFSType = "csi.storage.k8s.io/fstype"

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
			decision.Facts = append(decision.Facts, effective.Facts...)
			return decision, true
		case d.inv.VolumeTypes.State == v1alpha1.Known:
			d.warn("%s: the class %s is left out, because the cloud has no volume type %q%s. To keep the class of a type that is gone, set parameters.type to its ID", path, e.Name, typeName, d.typeHint(typeName, types))
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
	d.checkClassName(path, name)
	c := StorageClass{
		Name:                 name,
		Parameters:           merged(o.Parameters, nil),
		Provisioner:          d.result.Driver.Value,
		ReclaimPolicy:        d.result.ReclaimPolicy.Value,
		VolumeBindingMode:    d.result.BindingMode.Value,
		MountOptions:         o.MountOptions,
		Annotations:          annotationsOf(o),
		AllowVolumeExpansion: d.result.Expansion.Value,
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
	d.checkParameters(path, unknown, contract.StorageClassKeys, err)
	d.checkSecrets(path, c.Parameters)
	return c
}

func (d *decider) checkClassName(path, name string) {
	if !isSubdomain(name) {
		d.problem("%s: %q is not a class name: lower-case letters, digits, '-' and '.'", path, name)
	}
}

// checkParameters reports what the driver's own parser refuses in the parameters of a class, or does not know.
func (d *decider) checkParameters(path string, unknown, known []string, err error) {
	if err != nil {
		d.problem("%s.parameters: %v", path, err)
	}
	for _, key := range unknown {
		d.problem("%s.parameters: the driver knows no parameter %q%s", path, key, DidYouMean(key, known))
	}
}

// notByFlux keeps Flux from reading a placeholder of the driver as a variable of its own (spec.postBuild): it would refuse the whole bundle.
const notByFlux = "kustomize.toolkit.fluxcd.io/substitute"

// annotationsOf are the annotations that a person gave, and notByFlux where a parameter has a placeholder.
func annotationsOf(o v1alpha1.ClassOverride) map[string]string {
	for parameter, value := range o.Parameters {
		if _, given := o.Annotations[notByFlux]; !given && contract.IsTemplate(parameter) && strings.Contains(value, "${") {
			return merged(map[string]string{notByFlux: "disabled"}, o.Annotations)
		}
	}
	return o.Annotations
}

// readByKubelet are the operations whose Secret kubelet reads. The driver needs none of them.
var readByKubelet = []string{"node-stage", "node-publish", "node-expand"}

// checkSecrets refuses parameters that name a Secret which a sidecar reads. No role of a bundle lets it, so every claim or snapshot of the class
// would fail. Its deletes would fail too.
func (d *decider) checkSecrets(path string, parameters map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		operation, is := strings.CutSuffix(strings.TrimPrefix(key, "csi.storage.k8s.io/"), "-secret-name")
		switch {
		case !is || !strings.HasPrefix(key, "csi.storage.k8s.io/"):
		case slices.Contains(readByKubelet, operation):
			d.warn("%s.parameters.%s: kubelet reads this Secret and the driver ignores it; remove the parameter", path, key)
		default:
			d.problem("%s.parameters.%s: no sidecar of a bundle may read Secrets, so each object of the class would fail. A bundle serves one cloud; for several, replace only the image of upstream's plugin", path, key)
		}
	}
}

// restrict limits a class to the compute zones its type can serve; false: there is none, and every claim would fail.
func (d *decider) restrict(decision *Decision[StorageClass], t v1alpha1.VolumeType) bool {
	if d.result.Topology.Value {
		d.warnOfSpecs(t)
	}
	if !d.result.Topology.Value || len(t.Zones) == 0 {
		return true
	}
	if d.inv.Zones.Compute.State != v1alpha1.Known {
		return true
	}
	compute := zoneNames(d.inv.Zones.Compute.Value)
	var served []string
	for _, c := range compute {
		if slices.Contains(t.Zones, d.volumeZone(c)) {
			served = append(served, contract.ZoneLabel(c))
		}
	}
	zones := list(ZonesFact(t.Name), t.Zones)
	decision.Facts = append(decision.Facts, zones)
	if len(served) == 0 {
		d.unserved = append(d.unserved, zones)
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
		d.warn(zonesUnsupported)
	default:
		d.warn("%s (extra specs: %s). Its class names no zones; use credentials with the role reader, or the access rule %s", zonesDenied(t.Name), t.Specs, rights[specsRight])
	}
}

const zonesUnsupported = "this Cinder is older than Xena and tells no member in which zones a volume type exists: no class names zones. " +
	"Where a type exists only in some, leave it out with spec.storageClasses.exclude, or pods elsewhere wait for their volumes in vain"

// zonesDenied begins the warning about a volume type whose zones this credential may not read.
func zonesDenied(volumeType string) string {
	return fmt.Sprintf("the cloud does not tell in which zones volume type %q exists", volumeType)
}

// override is what a person changed of a type's class, and the key they did it under: the id wins over the name.
func (d *decider) override(t v1alpha1.VolumeType) (v1alpha1.ClassOverride, string) {
	byID, idGiven := d.spec.StorageClasses.Overrides[t.ID]
	byName, nameGiven := d.spec.StorageClasses.Overrides[t.Name]
	switch {
	case idGiven && nameGiven && t.ID != t.Name && d.hadOverrides(t.ID, t.Name):
		d.fail("spec.storageClasses.overrides.%s changes nothing: volume type %s has this name now, and an override of its own", t.Name, t.ID)
		return byID, t.ID
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

// hadOverrides is whether the configuration of the last plan had these overrides, which were those of two types then.
func (d *decider) hadOverrides(a, b string) bool {
	if d.last == nil {
		return false
	}
	_, first := d.last.Config.StorageClasses.Overrides[a]
	_, second := d.last.Config.StorageClasses.Overrides[b]
	return first && second
}
