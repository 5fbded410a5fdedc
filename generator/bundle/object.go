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
var guards = map[string]string{
	"argocd.argoproj.io/sync-options":   "Prune=false",
	"helm.sh/resource-policy":           "keep",
	"kustomize.toolkit.fluxcd.io/prune": "disabled",
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
			docs = append(docs, p.namespace(valueOf(name, names[name]...), valueOf(levels[name], names[name]...)))
		}
	}
	return docs
}

// brought says that the namespace comes with the cluster.
func brought(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "openshift-")
}

func (p *plane) namespace(name, level node) object {
	l := object{"app.kubernetes.io/name": constant("cinder-csi"), "app.kubernetes.io/part-of": constant("cinder-csi")}
	a := objectOf(constant(guards))
	for _, mode := range []string{"audit", "enforce", "warn"} {
		l["pod-security.kubernetes.io/"+mode] = level
	}
	if p.r.PlatformMonitoring.Value {
		l["openshift.io/cluster-monitoring"] = decidedField(p.r.PlatformMonitoring, "", "true")
	}
	if p.openShift() {
		// A cluster-wide default node selector would keep the DaemonSet from some nodes.
		a["openshift.io/node-selector"] = decidedField(p.r.OpenShift, "", "")
		// With workload partitioning, OpenShift gives pods the CPUs of management only where their namespace allows it.
		a["workload.openshift.io/allowed"] = decidedField(p.r.OpenShift, "", "management")
	}
	return object{"apiVersion": constant("v1"), "kind": constant("Namespace"), "metadata": object{"name": name, "labels": l, "annotations": a}}
}

func (p *plane) reclaimPolicy(d plan.Decision[plan.StorageClass]) node {
	if d.Value.OwnReclaimPolicy {
		return decidedField(d, "reclaimPolicy", d.Value.ReclaimPolicy)
	}
	return decided(p.r.ReclaimPolicy)
}

func (p *plane) bindingMode(d plan.Decision[plan.StorageClass]) node {
	if d.Value.OwnBindingMode {
		return decidedField(d, "volumeBindingMode", d.Value.VolumeBindingMode)
	}
	return decided(p.r.BindingMode)
}

func (p *plane) expansion(d plan.Decision[plan.StorageClass]) node {
	if d.Value.OwnExpansion {
		return decidedField(d, "allowVolumeExpansion", d.Value.AllowVolumeExpansion)
	}
	return decided(p.r.Expansion)
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

func (p *plane) backupParameters() object {
	parameters := object{contract.ParameterType: constant(string(contract.KindBackup))}
	if s := p.r.SnapshotClass; !s.Value.InUse {
		parameters[contract.ParameterForce] = decidedField(s, "snapshotInUse", "true")
	}
	return parameters
}
