package plan

import (
	"maps"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// attributesKubernetes is the first Kubernetes that serves VolumeAttributesClass in storage.k8s.io/v1. The sidecars use that version alone.
const attributesKubernetes = "1.34"

func (d *decider) attributesClasses(driver string) []Decision[AttributesClass] {
	if len(d.spec.AttributesClasses) == 0 {
		return nil
	}
	if !atLeast(d.spec.KubernetesVersion, attributesKubernetes) {
		d.problem("spec.attributesClasses: Kubernetes %s does not serve VolumeAttributesClass v1; set spec.kubernetesVersion to %s or later if every cluster has it", d.spec.KubernetesVersion, attributesKubernetes)
	}
	var classes []Decision[AttributesClass]
	for _, name := range slices.Sorted(maps.Keys(d.spec.AttributesClasses)) {
		if c, found := d.attributesClass(driver, name, d.spec.AttributesClasses[name]); found {
			classes = append(classes, c)
		}
	}
	return classes
}

// attributesClass is one of them; false: its volume type is gone.
func (d *decider) attributesClass(driver, name string, c v1alpha1.AttributesClass) (Decision[AttributesClass], bool) {
	path := "spec.attributesClasses." + name
	d.checkClassName("spec.attributesClasses", name)
	decision := Decision[AttributesClass]{Source: FromConfig, Reason: path + " asks for it"}
	parameters := map[string]string{}
	for key, value := range c.Metadata {
		parameters[contract.ParameterMetadataPrefix+key] = value
	}
	if c.Policy != "" {
		parameters[contract.ParameterPolicy] = c.Policy
	}
	if c.Type != "" {
		parameters[contract.ParameterType] = c.Type
		t, found := findType(d.inv.VolumeTypes.Value, c.Type)
		switch {
		case found:
			decision.Value.VolumeType = VolumeType{t.ID, t.Name}
			if c.Type != t.ID { // an ID stays one: it follows the type to another name
				parameters[contract.ParameterType] = t.Name
			}
			decision.Facts = []v1alpha1.NamedFact{offered(t)}
		case d.inv.VolumeTypes.State == v1alpha1.Known:
			d.warn("%s: the class is left out, because the cloud has no volume type %q%s", path, c.Type, d.typeHint(c.Type, d.inv.VolumeTypes.Value))
			return decision, false
		}
	}
	if len(parameters) == 0 {
		d.problem("%s: changes nothing; set type, or metadata", path)
	}
	if _, err := contract.ParseAttributesClass(parameters); err != nil {
		d.problem("%s: %v", path, err)
	}
	decision.Value.Name, decision.Value.DriverName, decision.Value.Parameters = name, driver, parameters
	return decision, true
}
