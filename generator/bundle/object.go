package bundle

import (
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// guards keep an object when what deployed it is gone: without class or driver object, existing volumes are stranded.
func guards() map[string]string {
	return map[string]string{
		"argocd.argoproj.io/sync-options": "Prune=false",
		"helm.sh/resource-policy":         "keep",
	}
}

func labels(component string) map[string]string {
	l := map[string]string{"app.kubernetes.io/name": "cinder-csi"}
	if component != "" {
		l["app.kubernetes.io/component"] = component
	}
	return l
}

// namespaces are the Namespace objects of the plane. Those that a cluster brings along are not ours to label, and a hosted
// control plane's is made by HyperShift.
func (p *plane) namespaces() []object {
	levels := map[string]string{}
	if p.cluster {
		levels[p.controllerNS] = "restricted"
	}
	if p.node {
		levels[p.nodeNS] = "privileged" // of two roles in one namespace the node decides
	}
	var docs []object
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if !brought(name) {
			docs = append(docs, namespace(name, levels[name], p.openShift()))
		}
	}
	return docs
}

// brought says that the namespace comes with the cluster.
func brought(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "openshift-")
}

func namespace(name, level string, openShift bool) object {
	l, a := labels(""), guards()
	for _, mode := range []string{"audit", "enforce", "warn"} {
		l["pod-security.kubernetes.io/"+mode] = level
	}
	if openShift {
		// A cluster-wide default node selector would keep the DaemonSet from some nodes.
		a["openshift.io/node-selector"] = ""
		// With workload partitioning, pods may ask for management's CPUs only where their namespace allows it.
		a["workload.openshift.io/allowed"] = "management"
	}
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "labels": l, "annotations": a}}
}

const (
	defaultClassAnnotation         = "storageclass.kubernetes.io/is-default-class"
	defaultSnapshotClassAnnotation = "snapshot.storage.kubernetes.io/is-default-class"
)

func (p *plane) storageClass(c plan.StorageClass) object {
	annotations := maps.Clone(c.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, guards())
	if c.Default {
		annotations[defaultClassAnnotation] = "true"
	}
	class := object{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata":             object{"name": c.Name, "labels": labels(""), "annotations": annotations},
		"provisioner":          p.r.Driver.Value.Name,
		"reclaimPolicy":        c.ReclaimPolicy,
		"volumeBindingMode":    c.VolumeBindingMode,
		"allowVolumeExpansion": c.AllowVolumeExpansion,
	}
	if len(c.Parameters) > 0 {
		class["parameters"] = c.Parameters
	}
	if len(c.MountOptions) > 0 {
		class["mountOptions"] = c.MountOptions
	}
	if zones := p.zoneLabels(c); len(zones) > 0 {
		class["allowedTopologies"] = []object{{"matchLabelExpressions": []object{{"key": p.r.Driver.Value.TopologyKey, "values": zones}}}}
	}
	return class
}

// zoneLabels are the zones a class is bound to, as nodes are labelled; none without topology, when nodes carry no zone.
func (p *plane) zoneLabels(c plan.StorageClass) []string {
	if !p.r.Topology.Value.Enabled {
		return nil
	}
	var zones []string
	for _, z := range c.AllowedZones {
		zones = append(zones, contract.ZoneLabel(z))
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

func (p *plane) snapshotClass() object {
	annotations := guards()
	if p.defaultSnapshotClass() {
		annotations[defaultSnapshotClassAnnotation] = "true"
	}
	class := object{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
		"metadata":       object{"name": p.r.SnapshotClass.Value.Name, "labels": labels(""), "annotations": annotations},
		"driver":         p.r.Driver.Value.Name,
		"deletionPolicy": "Delete",
	}
	if !p.r.SnapshotClass.Value.InUse {
		class["parameters"] = map[string]string{contract.ParameterForce: "true"}
	}
	return class
}

// defaultSnapshotClass is whether ours is the default of its driver. Taken over from OpenShift's operator, the driver's name has a
// default class already, and a second would make every request without a class fail.
func (p *plane) defaultSnapshotClass() bool {
	return !p.openShift() || p.r.Config.OpenShift.Coexistence != v1alpha1.Adopt
}

func (p *plane) caConfigMap() object {
	return object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": "cinder-csi-ca", "namespace": p.controllerNS, "labels": labels("controller")},
		"data":     map[string]string{"ca.pem": p.ca()},
	}
}

// networkPolicy limits the controller's pods: in, whoever reads metrics; out, DNS, the API server, and OpenStack on the catalog's ports.
// kubelet's probes need no rule: no policy keeps a pod's own node out.
func (p *plane) networkPolicy() object {
	n := p.r.NetworkPolicy.Value
	return object{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
		"metadata": object{"name": "cinder-csi-controller", "namespace": p.controllerNS, "labels": labels("controller")},
		"spec": object{
			"podSelector": object{"matchLabels": map[string]string{"app": "cinder-csi-controller"}},
			"policyTypes": []string{"Egress", "Ingress"},
			"ingress":     p.metricsReaders(),
			"egress":      []object{p.dns(), p.apiServer(), rule(tcp(n.Ports...), networks(n.CIDRs))},
		},
	}
}

func rule(ports, to []object) object {
	r := object{"ports": ports}
	if len(to) > 0 {
		r["to"] = to
	}
	return r
}

func tcp(ports ...int) []object {
	var list []object
	for _, port := range ports {
		list = append(list, object{"protocol": "TCP", "port": port})
	}
	return list
}

func networks(cidrs []string) []object {
	var list []object
	for _, c := range cidrs {
		list = append(list, object{"ipBlock": object{"cidr": c}})
	}
	return list
}

func namespaceWith(label, value string) object {
	return object{"namespaceSelector": object{"matchLabels": map[string]string{label: value}}}
}

const namespaceName = "kubernetes.io/metadata.name"

// metricsReaders are the pods of OpenShift's monitoring and of the namespaces that are configured.
func (p *plane) metricsReaders() []object {
	var from []object
	if p.openShift() {
		from = append(from, namespaceWith("network.openshift.io/policy-group", "monitoring"))
	}
	for _, name := range p.r.NetworkPolicy.Value.MetricsNamespaces {
		from = append(from, namespaceWith(namespaceName, name))
	}
	if from == nil {
		return []object{}
	}
	var ports []object
	for _, name := range p.metricsPorts() {
		ports = append(ports, object{"protocol": "TCP", "port": name})
	}
	return []object{{"from": from, "ports": ports}}
}

// dns: OpenShift's is known. Elsewhere the pods that answer differ between distributions, so any pod of the cluster, and nothing
// outside of it, may be asked; a management cluster need not be OpenShift.
func (p *plane) dns() object {
	numbers, to := []int{53}, object{"namespaceSelector": object{}}
	switch {
	case p.hosted():
		numbers = []int{53, 5353}
	case p.openShift():
		numbers, to = []int{5353}, namespaceWith(namespaceName, "openshift-dns")
	}
	var ports []object
	for _, port := range numbers {
		ports = append(ports, object{"protocol": "UDP", "port": port}, object{"protocol": "TCP", "port": port})
	}
	return rule(ports, []object{to})
}

// apiServer: a hosted control plane's is in the same namespace. Another's no selector can name, and its addresses are no fact of the
// cloud: spec.networkPolicy.apiServerCIDRs says them.
func (p *plane) apiServer() object {
	const service, server = 443, 6443
	to := networks(p.r.NetworkPolicy.Value.APIServerCIDRs)
	switch {
	case p.hosted():
		return rule(tcp(server), []object{{"podSelector": object{}}})
	case p.openShift():
		return rule(tcp(server), to)
	}
	return rule(tcp(service, server), to)
}

// metricsPorts are the names of the ports on which the controller's pods serve metrics.
func (p *plane) metricsPorts() []string {
	names := []string{"attacher", "driver", "provisioner", "resizer"}
	if p.snapshots() {
		names = append(names, "snapshotter")
	}
	return names
}

func tolerations(list []v1alpha1.Toleration) []object {
	out := []object{}
	for _, t := range list {
		o := object{}
		for key, value := range map[string]string{"key": t.Key, "operator": t.Operator, "value": t.Value, "effect": t.Effect} {
			if value != "" {
				o[key] = value
			}
		}
		if t.TolerationSeconds != nil {
			o["tolerationSeconds"] = *t.TolerationSeconds
		}
		out = append(out, o)
	}
	return out
}
