package migrate

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// attributesClassRules are for the documentation.
var attributesClassRules = []rule{
	{key: "the class", to: "spec.attributesClasses", why: "with the parameters type, policy and metadata.KEY"},
	{key: "parameters", why: "a class with a parameter that the driver does not know stays in the cluster as it is"},
}

// readAttributesClass keeps a class in the configuration. Kubernetes lets nobody change its parameters, so they stay as they are.
func (p *proposal) readAttributesClass(d document) error {
	class, err := typed[storagev1.VolumeAttributesClass](p, d)
	if err != nil {
		return err
	}
	parameters := class.Parameters
	parsed, err := contract.ParseAttributesClass(parameters)
	if err != nil || len(parsed.Remove) > 0 {
		p.note("the class", "", "it stays in the cluster as it is: the driver of a bundle refuses its parameters, and external-resizer says so at the claim")
		return nil
	}
	if d.text("apiVersion") != storageGroup+"/v1" {
		p.note("the class", "", "it stays in the cluster as it is. Write it into spec.attributesClasses once each cluster has Kubernetes 1.34, and set spec.kubernetesVersion")
		return nil
	}
	p.Spec.KubernetesVersion = "1.34"
	p.note("apiVersion", "spec.kubernetesVersion", "Kubernetes serves the class as "+storageGroup+"/v1 since 1.34")
	add(&p.Spec.AttributesClasses, map[string]v1alpha1.AttributesClass{d.name(): {Type: parsed.Type, Policy: parameters["policy"], Metadata: parsed.Metadata}})
	p.note("the class", "spec.attributesClasses", "")
	return nil
}

// csiDriverRules are about the CSIDriver of upstream, which the swap replaces.
var csiDriverRules = []rule{
	{key: "spec.attachRequired", why: "the bundle has its own CSIDriver, with true"},
	{key: "spec.podInfoOnMount", why: "the bundle has its own CSIDriver, with false: the driver asks for nothing of a pod"},
	{key: "spec.volumeLifecycleModes", why: "the bundle has its own CSIDriver, for persistent volumes alone. Pods with inline volumes (volumes[].csi) need generic ephemeral volumes"},
	{key: "spec.fsGroupPolicy", why: "the bundle has its own CSIDriver, with File: kubelet sets the group of a pod on every file system"},
	{key: "spec.storageCapacity", why: "the bundle has its own CSIDriver; spec.driver.capacity decides"},
}
