package bundle

import (
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
)

// guards keep an object when the bundle no longer has it, and when what deployed it is gone. Without class or driver object, existing volumes are
// stranded. When an Application is deleted, Argo CD keeps what Helm's annotation keeps.
func guards() map[string]string {
	return map[string]string{
		"argocd.argoproj.io/sync-options":   "Prune=false",
		"helm.sh/resource-policy":           "keep",
		"kustomize.toolkit.fluxcd.io/prune": "disabled",
	}
}

const componentLabel = "app.kubernetes.io/component"

func labels(component string) map[string]string {
	l := map[string]string{"app.kubernetes.io/name": "cinder-csi", "app.kubernetes.io/part-of": "cinder-csi"}
	if component != "" {
		l[componentLabel] = component
	}
	return l
}

// namespaces are the Namespace objects of the plane. Those that a cluster brings along are not ours to label, and a hosted
// control plane's is made by HyperShift.
func (p *plane) namespaces() []node {
	levels := map[string]string{}
	names := map[string][]Ref{}
	add := func(role bool, d plan.Decision[string], level string) {
		if role {
			levels[d.Value], names[d.Value] = level, distinct(append(names[d.Value], refOf(d)))
		}
	}
	add(p.cluster, p.controllerNS, "restricted")
	add(p.node, p.nodeNS, "privileged") // of two roles in one namespace the node decides
	var docs []node
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if !brought(name) {
			docs = append(docs, p.namespace(from(name, names[name]...), from(levels[name], names[name]...)))
		}
	}
	return docs
}

// brought says that the namespace comes with the cluster.
func brought(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "openshift-")
}

// partitioned reports whether pods of the namespace may ask for management CPUs. The namespaces of the bundle and of OpenShift
// allow it. The namespaces that Kubernetes creates do not.
func partitioned(namespace string) bool {
	return !brought(namespace) || strings.HasPrefix(namespace, "openshift-")
}

func (p *plane) namespace(name, level node) object {
	l, a := objectOf(fixed(labels(""))), objectOf(fixed(guards()))
	for _, mode := range []string{"audit", "enforce", "warn"} {
		l["pod-security.kubernetes.io/"+mode] = level
	}
	if p.r.PlatformMonitoring.Value {
		l["openshift.io/cluster-monitoring"] = part(p.r.PlatformMonitoring, "", "true")
	}
	if p.openShift() {
		// A cluster-wide default node selector would keep the DaemonSet from some nodes.
		a["openshift.io/node-selector"] = part(p.r.OpenShift, "", "")
		// With workload partitioning, pods may ask for management's CPUs only where their namespace allows it.
		a["workload.openshift.io/allowed"] = part(p.r.OpenShift, "", "management")
	}
	return object{"apiVersion": fixed("v1"), "kind": fixed("Namespace"), "metadata": object{"name": name, "labels": l, "annotations": a}}
}

const (
	defaultClassAnnotation         = "storageclass.kubernetes.io/is-default-class"
	defaultSnapshotClassAnnotation = "snapshot.storage.kubernetes.io/is-default-class"
)

func (p *plane) storageClass(d plan.Decision[plan.StorageClass]) object {
	c := d.Value
	annotations := merge(objectOf(part(d, "annotations", c.Annotations)), objectOf(fixed(guards())))
	if c.Name == p.r.DefaultClass.Value {
		annotations[defaultClassAnnotation] = part(p.r.DefaultClass, "", "true")
	}
	class := object{
		"apiVersion": fixed("storage.k8s.io/v1"), "kind": fixed("StorageClass"),
		"metadata":             object{"name": part(d, "", c.Name), "labels": fixed(labels("")), "annotations": annotations},
		"provisioner":          whole(p.r.Driver),
		"reclaimPolicy":        p.reclaimPolicy(d),
		"volumeBindingMode":    p.bindingMode(d),
		"allowVolumeExpansion": p.expansion(d),
	}
	if len(c.Parameters) > 0 {
		class["parameters"] = part(d, "parameters", c.Parameters)
	}
	if len(c.MountOptions) > 0 {
		class["mountOptions"] = part(d, "mountOptions", c.MountOptions)
	}
	if zones := p.zoneLabels(c); len(zones) > 0 {
		topology := refOf(p.r.Topology)
		expression := object{"key": also(whole(p.r.TopologyKey), topology), "values": also(part(d, "allowedZones", zones), topology)}
		class["allowedTopologies"] = list{object{"matchLabelExpressions": list{expression}}}
	}
	return class
}

func (p *plane) reclaimPolicy(d plan.Decision[plan.StorageClass]) node {
	if d.Value.OwnReclaimPolicy {
		return part(d, "reclaimPolicy", d.Value.ReclaimPolicy)
	}
	return whole(p.r.ReclaimPolicy)
}

func (p *plane) bindingMode(d plan.Decision[plan.StorageClass]) node {
	if d.Value.OwnBindingMode {
		return part(d, "volumeBindingMode", d.Value.VolumeBindingMode)
	}
	return whole(p.r.BindingMode)
}

func (p *plane) expansion(d plan.Decision[plan.StorageClass]) node {
	if d.Value.OwnExpansion {
		return part(d, "allowVolumeExpansion", d.Value.AllowVolumeExpansion)
	}
	return whole(p.r.Expansion)
}

// zoneLabels are the zones a class is bound to, as nodes are labelled; none without topology, when nodes carry no zone.
func (p *plane) zoneLabels(c plan.StorageClass) []string {
	if !p.r.Topology.Value {
		return nil
	}
	var zones []string
	for _, z := range c.AllowedZones {
		zones = append(zones, contract.ZoneLabel(z))
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// backupClass is the VolumeSnapshotClass that makes Cinder backups.
func (p *plane) backupClass() object {
	b, s := p.r.BackupClass, p.r.SnapshotClass
	class := object{
		"apiVersion": fixed("snapshot.storage.k8s.io/v1"), "kind": fixed("VolumeSnapshotClass"),
		"metadata":       object{"name": also(part(b, "name", b.Value.Name), p.snapshotsOn()), "labels": fixed(labels("")), "annotations": fixed(guards())},
		"driver":         whole(p.r.Driver),
		"deletionPolicy": fixed("Delete"),
		"parameters":     p.backupParameters(),
	}
	return objectOf(under(class, Ref{b.ID, "enabled"}, Ref{s.ID, "enabled"}))
}

func (p *plane) backupParameters() object {
	parameters := object{contract.ParameterType: fixed(string(contract.KindBackup))}
	if s := p.r.SnapshotClass; !s.Value.InUse {
		parameters[contract.ParameterForce] = part(s, "snapshotInUse", "true")
	}
	return parameters
}

func (p *plane) attributesClass(d plan.Decision[plan.AttributesClass]) object {
	return object{
		"apiVersion": fixed("storage.k8s.io/v1"), "kind": fixed("VolumeAttributesClass"),
		"metadata":   object{"name": part(d, "", d.Value.Name), "labels": fixed(labels("")), "annotations": under(fixed(guards()), refOf(d))},
		"driverName": whole(p.r.Driver),
		"parameters": part(d, "parameters", d.Value.Parameters),
	}
}

func (p *plane) snapshotClass() object {
	s := p.r.SnapshotClass
	annotations := objectOf(fixed(guards()))
	if s.Value.Default {
		annotations[defaultSnapshotClassAnnotation] = part(s, "default", "true")
	}
	class := object{
		"apiVersion": fixed("snapshot.storage.k8s.io/v1"), "kind": fixed("VolumeSnapshotClass"),
		"metadata":       object{"name": part(s, "name", s.Value.Name), "labels": fixed(labels("")), "annotations": annotations},
		"driver":         whole(p.r.Driver),
		"deletionPolicy": fixed("Delete"),
	}
	if !s.Value.InUse {
		class["parameters"] = object{contract.ParameterForce: part(s, "snapshotInUse", "true")}
	}
	return objectOf(under(class, p.snapshotsOn()))
}

// furtherSnapshotClass is a VolumeSnapshotClass that a person asked for.
func (p *plane) furtherSnapshotClass(d plan.Decision[plan.FurtherSnapshotClass]) object {
	annotations := merge(objectOf(part(d, "annotations", d.Value.Annotations)), objectOf(under(fixed(guards()), refOf(d))))
	if d.Value.Default {
		annotations[defaultSnapshotClassAnnotation] = part(d, "default", "true")
	}
	class := object{
		"apiVersion": fixed("snapshot.storage.k8s.io/v1"), "kind": fixed("VolumeSnapshotClass"),
		"metadata":       object{"name": also(part(d, "", d.Value.Name), p.snapshotsOn()), "labels": fixed(labels("")), "annotations": annotations},
		"driver":         whole(p.r.Driver),
		"deletionPolicy": part(d, "deletionPolicy", d.Value.DeletionPolicy),
	}
	if len(d.Value.Parameters) > 0 {
		class["parameters"] = part(d, "parameters", d.Value.Parameters)
	}
	return objectOf(under(class, p.snapshotsOn()))
}

func (p *plane) caConfigMap() node {
	return under(object{
		"apiVersion": fixed("v1"), "kind": fixed("ConfigMap"),
		"metadata": object{"name": fixed("cinder-csi-ca"), "namespace": whole(p.controllerNS), "labels": fixed(labels("controller"))},
		"data":     object{"ca.pem": whole(p.r.CABundle)},
	}, refOf(p.r.CABundle))
}
