package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// The ids of decisions that others look for. A class's is ClassID and its name.
const (
	IDDriverName          = "driver.name"
	IDTopologyKey         = "driver.topologyKey"
	IDLogLevel            = "driver.logLevel"
	IDPVCAnnotations      = "driver.pvcAnnotations"
	IDControllerNamespace = "namespaces.controller"
	IDNodeNamespace       = "namespaces.node"
	IDClusterID           = "clusterID"
	IDCredentials         = "credentials"
	IDTopology            = "topology.enabled"
	IDZoneMap             = "topology.zoneMap"
	ClassID               = "storageClass."
	IDDefaultClass        = "defaultClass"
	IDSnapshotClass       = "snapshotClass"
	IDCloudConf           = "cloudConf"
	IDAttachLimit         = "volumeAttachLimit"
	IDLimitRefresh        = "volumeAttachLimit.refreshSeconds"
	IDNetworkPolicy       = "networkPolicy"
	IDController          = "controller"
	IDNode                = "node"
)

// Document is the Plan that is written beside the files of a bundle: what was decided, under public ids, in a fixed order.
func (r Result) Document(files []v1alpha1.File) v1alpha1.Plan {
	p := v1alpha1.Plan{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.KindPlan,
		Generator:  r.Generator,
		Simulated:  r.Simulated,
		Cloud:      r.Cloud,
		Target:     r.Target,
		Format:     r.Format,
		Config:     r.Config,
		Files:      files,
	}
	add := func(d v1alpha1.Decision) { p.Decisions = append(p.Decisions, d) }
	add(document(r.Driver, IDDriverName, r.Driver.Value.Name))
	add(v1alpha1.Decision{ID: IDTopologyKey, Value: r.Driver.Value.TopologyKey, Reason: "it follows from the driver's name: topology.<driver name>/zone", Source: string(r.Driver.Source)})
	add(v1alpha1.Decision{ID: IDLogLevel, Value: r.Driver.Value.LogLevel, Reason: "spec.driver.logLevel, one of klog's levels", Source: string(sourceOf(r.Driver.Value.LogLevel != v1alpha1.DefaultLogLevel))})
	add(document(r.PVCAnnotations, IDPVCAnnotations, r.PVCAnnotations.Value))
	add(document(r.Namespaces, IDControllerNamespace, r.Namespaces.Value.Controller))
	add(document(r.Namespaces, IDNodeNamespace, r.Namespaces.Value.Node))
	add(document(r.ClusterID, IDClusterID, r.ClusterID.Value))
	add(document(r.Credentials, IDCredentials, credentialsValue(r.Credentials.Value)))
	add(document(r.Topology, IDTopology, r.Topology.Value.Enabled))
	if len(r.Topology.Value.ZoneMap) > 0 {
		add(v1alpha1.Decision{
			ID: IDZoneMap, Value: r.Topology.Value.ZoneMap, Facts: r.Topology.Facts, Source: string(FromConfig),
			Reason: "spec.topology.zoneMap: nodes report their compute zone, and the driver makes their volumes in the volume zone it names",
		})
	}
	for _, c := range r.StorageClasses {
		add(document(c, ClassID+c.Value.Name, classValue(r.Driver.Value.Name, c.Value)))
	}
	add(document(r.DefaultClass, IDDefaultClass, r.DefaultClass.Value))
	add(document(r.SnapshotClass, IDSnapshotClass, snapshotValue(r.SnapshotClass.Value)))
	add(document(r.CloudConf, IDCloudConf, r.CloudConf.Value))
	add(document(r.AttachLimit, IDAttachLimit, attachLimitValue(r.AttachLimit.Value)))
	if r.LimitRefresh.Value > 0 {
		add(document(r.LimitRefresh, IDLimitRefresh, r.LimitRefresh.Value))
	}
	add(document(r.NetworkPolicy, IDNetworkPolicy, networkPolicyValue(r.NetworkPolicy.Value)))
	add(document(r.Controller, IDController, workloadValue(r.Controller.Value)))
	add(document(r.Node, IDNode, workloadValue(r.Node.Value)))
	return p
}

// DecisionOf finds a decision in a document by its id.
func DecisionOf(p v1alpha1.Plan, id string) (v1alpha1.Decision, bool) {
	i := slices.IndexFunc(p.Decisions, func(d v1alpha1.Decision) bool { return d.ID == id })
	if i < 0 {
		return v1alpha1.Decision{}, false
	}
	return p.Decisions[i], true
}

func document[T any](d Decision[T], id string, value any) v1alpha1.Decision {
	return v1alpha1.Decision{ID: id, Value: value, Reason: d.Reason, Facts: d.Facts, Source: string(d.Source)}
}

// value is an object of a document; what is empty is left out.
type value map[string]any

func (v value) set(key string, x any, empty bool) {
	if !empty {
		v[key] = x
	}
}

func credentialsValue(c Credentials) value {
	v := value{"secretName": c.SecretName, "key": c.Key, "cloud": c.Cloud}
	v.set("caBundle", fmt.Sprintf("%d certificates", strings.Count(c.CABundle, beginCertificate)), c.CABundle == "")
	return v
}

// classValue names the fields of a StorageClass as Kubernetes does; the guard compares those that cannot be changed there.
func classValue(driver string, c StorageClass) value {
	v := value{
		"provisioner":          driver,
		"parameters":           c.Parameters,
		"reclaimPolicy":        c.ReclaimPolicy,
		"volumeBindingMode":    c.VolumeBindingMode,
		"allowVolumeExpansion": c.AllowVolumeExpansion,
	}
	v.set("mountOptions", c.MountOptions, len(c.MountOptions) == 0)
	v.set("annotations", c.Annotations, len(c.Annotations) == 0)
	v.set("allowedZones", c.AllowedZones, len(c.AllowedZones) == 0)
	return v
}

func snapshotValue(s SnapshotClass) value {
	if !s.Enabled {
		return value{"enabled": false}
	}
	return value{"enabled": true, "name": s.Name, "snapshotInUse": s.InUse}
}

func attachLimitValue(limit string) string {
	if limit == "" {
		return v1alpha1.Auto
	}
	return limit
}

func networkPolicyValue(n NetworkPolicy) value {
	v := value{"enabled": n.Enabled}
	v.set("ports", n.Ports, len(n.Ports) == 0)
	v.set("cidrs", n.CIDRs, len(n.CIDRs) == 0)
	v.set("apiServerCIDRs", n.APIServerCIDRs, len(n.APIServerCIDRs) == 0)
	v.set("metricsNamespaces", n.MetricsNamespaces, len(n.MetricsNamespaces) == 0)
	return v
}

func workloadValue(w Workload) value {
	v := value{"priorityClass": w.PriorityClass}
	v.set("replicas", w.Replicas, w.Replicas == 0)
	v.set("nodeSelector", w.NodeSelector, len(w.NodeSelector) == 0)
	v.set("tolerations", tolerationsValue(w.Tolerations), len(w.Tolerations) == 0)
	v.set("podLabels", w.PodLabels, len(w.PodLabels) == 0)
	v.set("imagePullSecrets", w.ImagePullSecrets, len(w.ImagePullSecrets) == 0)
	v.set("runAsUser", w.RunAsUser, w.RunAsUser == nil)
	v.set("images", slices.Sorted(maps.Keys(w.Images)), len(w.Images) == 0)
	v.set("proxy", w.Proxy, w.Proxy == (v1alpha1.Proxy{}))
	v.set("resources", slices.Sorted(maps.Keys(w.Resources)), len(w.Resources) == 0)
	return v
}

// tolerationsValue writes tolerations as kubectl describes them.
func tolerationsValue(tolerations []v1alpha1.Toleration) []string {
	var lines []string
	for _, t := range tolerations {
		line := t.Key
		if t.Value != "" {
			line += "=" + t.Value
		}
		if t.Effect != "" {
			line += ":" + t.Effect
		}
		if t.Operator == "Exists" {
			line = strings.TrimSpace(line + " op=Exists")
		}
		lines = append(lines, line)
	}
	return lines
}
