package verify_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// changeOf changes one field of one decision; an empty field is the whole.
type changeOf struct {
	id, field string
	do        func(*plan.Result)
}

// changes are one for every decision, and for every field that something is emitted from.
func changes() []changeOf {
	labels := map[string]string{"team": "other", "role": "other", "storage": "other", "kubernetes.io/os": "other", "node-role.kubernetes.io/control-plane": "other", "hypershift.openshift.io/hosted-control-plane": "other"}
	relabelled := func(m map[string]string) map[string]string {
		other := maps.Clone(m)
		for key := range other {
			other[key] = labels[key] + "x"
		}
		return other
	}
	user := int64(7)
	list := []changeOf{
		{"kubernetesVersion", "", func(r *plan.Result) { r.KubernetesVersion.Value = "1.37" }},
		{"size", "", func(r *plan.Result) { r.Size.Value = v1alpha1.LargeCluster }},
		{"nodePools.gpu", "", func(r *plan.Result) {
			limit := 9
			p := &r.NodePools[0].Value
			p.Name, p.NodeSelector, p.VolumeAttachLimit, p.KubeletDir = "other", map[string]string{"other": "x"}, &limit, "/other"
			p.Tolerations = []v1alpha1.Toleration{{Key: "other", Operator: "Exists"}}
		}},
		{"driver.name", "", func(r *plan.Result) {
			r.Driver.Value, r.SnapshotClass.Value.Name = "other.example.org", "other.example.org"
		}},
		{"driver.topologyKey", "", func(r *plan.Result) { r.TopologyKey.Value = "example.org/zone" }},
		{"driver.seLinux", "", func(r *plan.Result) { r.SELinux.Value = !r.SELinux.Value }},
		{"driver.metadata", "", func(r *plan.Result) { r.Metadata.Value = []string{"dmi"} }},
		{"credentials.caConfigMap", "configMap", func(r *plan.Result) { r.CASource.Value.ConfigMap = "other" }},
		{"credentials.caConfigMap", "key", func(r *plan.Result) { r.CASource.Value.Key = "other" }},
		{"credentials.caKey", "", func(r *plan.Result) { r.CAKey.Value += "other" }},
		{"monitoring.kind", "", func(r *plan.Result) { r.Monitoring.Value = v1alpha1.None }},
		{"monitoring.alerts", "", func(r *plan.Result) { r.Alerts.Value = false }},
		{"monitoring.runbookBase", "", func(r *plan.Result) { r.RunbookBase.Value = "https://other.example/p" }},
		{"monitoring.dashboards", "", func(r *plan.Result) { r.Dashboards.Value = false }},
		{"monitoring.labels", "", func(r *plan.Result) { r.MonitoringLabels.Value = relabelled(r.MonitoringLabels.Value) }},
		{"monitoring.nodePorts", "", func(r *plan.Result) { r.NodePorts.Value += 10 }},
		{"csiDriver", "", func(r *plan.Result) { r.CSIDriver.Value.AttachRequired = false }},
		{"driftCheck", "", func(r *plan.Result) { r.DriftCheck.Value = plan.DriftCheck{} }},
		{"driftCheck", "schedule", func(r *plan.Result) { r.DriftCheck.Value.Schedule = "@weekly" }},
		{"driftCheck", "imagePullPolicy", func(r *plan.Result) { r.DriftCheck.Value.PullPolicy = "Never" }},
		{"driver.pvcAnnotations", "", func(r *plan.Result) { r.PVCAnnotations.Value = !r.PVCAnnotations.Value }},
		{"nodeLifecycle.startupTaint", "", func(r *plan.Result) { r.StartupTaint.Value = !r.StartupTaint.Value }},
		{"nodeLifecycle.drainHook", "", func(r *plan.Result) { r.DrainHook.Value = !r.DrainHook.Value }},
		{"namespaces.controller", "", func(r *plan.Result) { r.ControllerNamespace.Value = "other-controller" }},
		{"namespaces.node", "", func(r *plan.Result) { r.NodeNamespace.Value = "other-node" }},
		{"clusterID", "", func(r *plan.Result) { r.ClusterID.Value = "other" }},
		{"credentials", "secretName", func(r *plan.Result) { r.Credentials.Value.SecretName = "other" }},
		{"credentials", "key", func(r *plan.Result) { r.Credentials.Value.Key = "another.yaml" }},
		{"openshift.adopted", "", func(r *plan.Result) { r.Adopted.Value = !r.Adopted.Value }},
		{"credentials.request", "", func(r *plan.Result) { r.CredentialsRequest.Value = !r.CredentialsRequest.Value }},
		{"monitoring.tls", "enabled", func(r *plan.Result) { r.MetricsTLS.Value = plan.MetricsTLS{} }},
		{"monitoring.tls", "minVersion", func(r *plan.Result) { r.MetricsTLS.Value.MinVersion = "VersionTLS13" }},
		{"monitoring.tls", "cipherSuites", func(r *plan.Result) { r.MetricsTLS.Value.CipherSuites = "TLS_AES_128_GCM_SHA256" }},
		{"monitoring.platform", "", func(r *plan.Result) { r.PlatformMonitoring.Value = !r.PlatformMonitoring.Value }},
		{"credentials", "cloud", func(r *plan.Result) { r.Credentials.Value.Cloud = "other" }},
		{"credentials.caBundle", "", func(r *plan.Result) { r.CABundle.Value = "" }},
		{"hypershift.kubeconfigSecret", "", func(r *plan.Result) { r.KubeconfigSecret.Value = "other" }},
		{"hypershift.guestAccess", "", func(r *plan.Result) { r.GuestAccess.Value = v1alpha1.AdminKubeconfig }},
		{"attacher", "apiBurst", func(r *plan.Result) { r.Attacher.Value.Burst = 7 }},
		{"attacher", "apiRequestsPerSecond", func(r *plan.Result) { r.Attacher.Value.QPS = 7 }},
		{"attacher", "reconcileSync", func(r *plan.Result) { r.Attacher.Value.ReconcileSync = "9m" }},
		{"leases", "leaseDuration", func(r *plan.Result) { r.Leases.Value.LeaseDuration = "1h" }},
		{"leases", "renewDeadline", func(r *plan.Result) { r.Leases.Value.RenewDeadline = "1h" }},
		{"leases", "retryPeriod", func(r *plan.Result) { r.Leases.Value.RetryPeriod = "1h" }},
		{"topology.enabled", "", func(r *plan.Result) { r.Topology.Value = !r.Topology.Value }},
		{"topology.zoneMap", "", func(r *plan.Result) { r.ZoneMap.Value = map[string]string{"az 1": "az2"} }},
		{"storageClasses.volumeBindingMode", "", func(r *plan.Result) { r.BindingMode.Value = "Immediate" }},
		{"storageClasses.reclaimPolicy", "", func(r *plan.Result) { r.ReclaimPolicy.Value = "Retain" }},
		{"storageClasses.allowVolumeExpansion", "", func(r *plan.Result) { r.Expansion.Value = false }},
		{"defaultClass", "", func(r *plan.Result) { r.DefaultClass.Value = "" }},
		{"snapshotClass", "enabled", func(r *plan.Result) { r.SnapshotClass.Value = plan.SnapshotClass{} }},
		{"snapshotClass", "name", func(r *plan.Result) { r.SnapshotClass.Value.Name = "other" }},
		{"snapshotClass", "snapshotInUse", func(r *plan.Result) { r.SnapshotClass.Value.InUse = true }},
		{"snapshotClass", "default", func(r *plan.Result) { r.SnapshotClass.Value.Default = !r.SnapshotClass.Value.Default }},
		{"snapshotClass.backup", "enabled", func(r *plan.Result) { r.BackupClass.Value = plan.BackupClass{} }},
		{"snapshotClass.backup", "name", func(r *plan.Result) { r.BackupClass.Value.Name = "other" }},
		{plan.SnapshotClassID + "weekly", "deletionPolicy", further("weekly", func(c *plan.FurtherSnapshotClass) { c.DeletionPolicy = "Delete" })},
		{plan.SnapshotClassID + "plain", "deletionPolicy", further("plain", func(c *plan.FurtherSnapshotClass) { c.DeletionPolicy = "Retain" })},
		{plan.SnapshotClassID + "weekly", "default", further("weekly", func(c *plan.FurtherSnapshotClass) { c.Default = false })},
		{plan.SnapshotClassID + "weekly", "parameters", further("weekly", func(c *plan.FurtherSnapshotClass) { c.Parameters = map[string]string{"type": "snapshot"} })},
		{plan.SnapshotClassID + "weekly", "annotations", further("weekly", func(c *plan.FurtherSnapshotClass) {
			c.Annotations = map[string]string{"example.org/owner": "other"}
		})},
		{plan.AttributesClassID + "gold", "parameters", func(r *plan.Result) {
			r.AttributesClasses = slices.Clone(r.AttributesClasses)
			r.AttributesClasses[0].Value.Parameters = map[string]string{"type": "other", "policy": "never", "metadata.tier": "other"}
		}},
		{"cloudConf", "", func(r *plan.Result) {
			r.CloudConf.Value = strings.Replace(r.CloudConf.Value, "cloud = ", "cloud = other-", 1)
		}},
		{"volumeAttachLimit", "", func(r *plan.Result) { r.AttachLimit.Value = "21" }},
		{"volumeAttachLimit.refreshSeconds", "", func(r *plan.Result) { r.LimitRefresh.Value = 30 }},
		{"networkPolicy", "enabled", func(r *plan.Result) { r.NetworkPolicy.Value.Enabled = false }},
		{"networkPolicy", "ports", func(r *plan.Result) { r.NetworkPolicy.Value.Ports = []int{1} }},
		{"networkPolicy", "cidrs", func(r *plan.Result) { r.NetworkPolicy.Value.CIDRs = nil }},
		{"networkPolicy", "apiServerCIDRs", func(r *plan.Result) { r.NetworkPolicy.Value.APIServerCIDRs = nil }},
		{"networkPolicy", "metricsNamespaces", func(r *plan.Result) { r.NetworkPolicy.Value.MetricsNamespaces = nil }},
		{"target.openshift", "", func(r *plan.Result) { r.OpenShift.Value = !r.OpenShift.Value }},
		{"controller.memory", "", func(r *plan.Result) {
			r.Controller.Memory.Value = map[string]string{"driver": "7Mi", "provisioner": "7Mi", "attacher": "7Mi", "resizer": "7Mi"}
		}},
		{"controller.replicas", "", func(r *plan.Result) { r.Controller.Replicas.Value++ }},
		{"controller.runAsUser", "", func(r *plan.Result) { r.Controller.RunAsUser.Value = &user }},
	}
	for _, row := range v1alpha1.Settings {
		id, field := row.ID()
		list = append(list, changeOf{id, field, func(r *plan.Result) { changeSetting(r, row) }})
	}
	class := func(name, at string, do func(*plan.StorageClass)) {
		list = append(list, changeOf{plan.ClassID + name, at, func(r *plan.Result) {
			for i := range r.StorageClasses {
				if c := &r.StorageClasses[i].Value; c.Name == name {
					c.Parameters, c.Annotations = maps.Clone(c.Parameters), maps.Clone(c.Annotations)
					do(c)
				}
			}
		}})
	}
	class("os-standard", "reclaimPolicy", func(c *plan.StorageClass) { c.ReclaimPolicy = "Delete" })
	class("os-standard", "parameters.type", func(c *plan.StorageClass) { c.Parameters["type"] = "other" })
	class("os-standard", "mountOptions", func(c *plan.StorageClass) { c.MountOptions = nil })
	class("os-standard", "annotations", func(c *plan.StorageClass) { c.Annotations = nil })
	class("os-fast-ssd-628b49", "allowedZones", func(c *plan.StorageClass) { c.AllowedZones = []string{"az9"} })
	class("twin", "parameters", func(c *plan.StorageClass) { c.Parameters = nil })
	for _, name := range []string{"driver", "provisioner", "attacher", "resizer", "snapshotter", "livenessprobe", "registrar", "rbacproxy", "generator"} {
		list = append(list, changeOf{"images." + name, "", func(r *plan.Result) { setImage(r.Images, name) }})
	}
	for role, of := range map[string]func(*plan.Result) *plan.Workload{
		v1alpha1.ControllerRole: func(r *plan.Result) *plan.Workload { return &r.Controller },
		v1alpha1.NodeRole:       func(r *plan.Result) *plan.Workload { return &r.Node },
	} {
		pod := func(part, at string, do func(*plan.Workload)) {
			list = append(list, changeOf{role + "." + part, at, func(r *plan.Result) { do(of(r)) }})
		}
		pod("priorityClass", "", func(w *plan.Workload) { w.PriorityClass.Value = "other" })
		pod("nodeSelector", "", func(w *plan.Workload) { w.NodeSelector.Value = relabelled(w.NodeSelector.Value) })
		pod("tolerations", "", func(w *plan.Workload) {
			w.Tolerations.Value = []v1alpha1.Toleration{{Key: "other", Operator: "Equal", Value: "yes"}} // as many: the start-up taint's is after them
		})
		pod("podLabels", "", func(w *plan.Workload) { w.PodLabels.Value = relabelled(w.PodLabels.Value) })
		pod("imagePullSecrets", "", func(w *plan.Workload) { w.ImagePullSecrets.Value = []string{"other"} })
		pod("proxy", "http", func(w *plan.Workload) { w.Proxy.Value.HTTP = "" })
		pod("proxy", "https", func(w *plan.Workload) { w.Proxy.Value.HTTPS = "" })
		pod("proxy", "noProxy", func(w *plan.Workload) { w.Proxy.Value.NoProxy = "" })
		pod("imagePullPolicy", "", func(w *plan.Workload) { w.PullPolicies.Value = map[string]string{"driver": "Never"} })
		pod("podAnnotations", "", func(w *plan.Workload) { w.PodAnnotations.Value = nil })
		pod("env", "", func(w *plan.Workload) { w.Env.Value = nil })
		pod("extraArgs", "", func(w *plan.Workload) { w.ExtraArgs.Value = nil })
		pod("updateStrategy", "", func(w *plan.Workload) { w.UpdateStrategy.Value = v1alpha1.UpdateStrategy{Type: "Other"} })
		pod("resources", "", func(w *plan.Workload) { w.Resources.Value = nil })
	}
	list = append(list, changeOf{"controller.images.attacher", "", func(r *plan.Result) { setImage(r.Controller.Images, "attacher") }},
		changeOf{"node.images.driver", "", func(r *plan.Result) { setImage(r.Node.Images, "driver") }})
	return list
}

// changeSetting gives a setting another value of its kind. No other result shares it.
func changeSetting(r *plan.Result, row v1alpha1.Setting) {
	id, field := row.ID()
	r.Settings = slices.Clone(r.Settings)
	for i := range r.Settings {
		d := &r.Settings[i]
		switch fields, several := d.Value.Value.(map[string]any); {
		case d.ID != id:
		case several:
			fields = maps.Clone(fields)
			fields[field] = otherValue(row, fields[field])
			d.Value.Value = fields
		default:
			d.Value.Value = otherValue(row, d.Value.Value)
		}
	}
}

func otherValue(row v1alpha1.Setting, value any) any {
	switch value := value.(type) {
	case int:
		return value + 1
	case bool:
		return !value
	case map[string]string:
		return map[string]string{"team": "other"}
	case string:
		if value == v1alpha1.Strict {
			return true
		}
	}
	switch row.Bounds.(type) {
	case v1alpha1.OneOf:
		return map[any]string{v1alpha1.LogText: v1alpha1.LogJSON, v1alpha1.LogJSON: v1alpha1.LogText}[value]
	case v1alpha1.Duration:
		return "8s"
	}
	return "/var/lib/other"
}

func setImage(images map[string]plan.Decision[string], name string) {
	if d, there := images[name]; there {
		d.Value = "other.example/image:v0"
		images[name] = d
	}
}

// everythingDecided is a plan in which every decision has a value that is emitted.
func everythingDecided(t *testing.T, spec v1alpha1.Spec, target v1alpha1.Target) plan.Result {
	t.Helper()
	r := decide(t, spec, clouds["topology on"], target)
	r.KubernetesVersion.Value = "1.36"
	r.LimitRefresh.Value, r.LimitRefresh.Reason = 60, "set by the test"
	r.ZoneMap.Value, r.ZoneMap.Reason = map[string]string{"az 1": "az 1"}, "set by the test"
	r.SnapshotClass.Value.InUse = false
	for _, w := range []*plan.Workload{&r.Controller, &r.Node} {
		w.Images = maps.Clone(w.Images)
		w.Proxy.Value = v1alpha1.Proxy{HTTP: "http://proxy.example:1", HTTPS: "http://proxy.example:2", NoProxy: ".svc"}
		w.Proxy.Reason = "set by the test"
		w.Resources.Value = map[string]v1alpha1.Resources{"driver": {Requests: map[string]string{"cpu": "1"}, Limits: map[string]string{"memory": "1Gi"}}}
		w.ImagePullSecrets.Value = []string{"pull"}
		w.PullPolicies.Value = map[string]string{"driver": "Always"}
		w.PodAnnotations.Value = map[string]string{"example.org/team": "storage"}
		w.Env.Value = map[string]string{"GODEBUG": "netdns=go"}
		w.ExtraArgs.Value = []string{"--user-agent=a"}
		w.UpdateStrategy.Value = v1alpha1.UpdateStrategy{Type: "RollingUpdate", RollingUpdate: v1alpha1.RollingUpdate{MaxUnavailable: "2", MaxSurge: "3"}}
		w.PodLabels.Value = map[string]string{"team": "storage"}
		w.Tolerations.Value = []v1alpha1.Toleration{{Key: "storage", Operator: "Exists"}}
	}
	r.StartupTaint.Value, r.DrainHook.Value = target != v1alpha1.HostedControlPlane, true
	r.DefaultClass.Value = "os-standard"
	r.Images = maps.Clone(r.Images)
	return r
}

// leafValues are the values of a build by object and field, with their origins.
type leafValues map[string]map[string]leafValue

type leafValue struct {
	at     field.Path
	value  any
	origin bundle.Origin
}

// objectsOf are the objects of a plan; none, if the chart refuses it. Both formats have the same objects, and values alone cost less.
func objectsOf(t *testing.T, r plan.Result) []verify.Object {
	t.Helper()
	r.Format = v1alpha1.Helm
	tree, err := bundle.Render(r, verify.Chart, bundle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := verify.Bundle(tree, r.Target, r.Format)
	if err != nil {
		t.Logf("refused: %v", err)
		return nil
	}
	return objects
}

func leafValuesOf(objects []verify.Object) leafValues {
	all := leafValues{}
	for _, o := range objects {
		id := o.Plane + ": " + o.Kind() + "/" + o.Name()
		all[id] = map[string]leafValue{}
		for _, at := range field.Leaves(o.Fields, nil) {
			value, _, _ := field.Find(o.Fields, at.String())
			if slices.Contains(verify.ChartLabels, at[len(at)-1]) || strings.HasSuffix(at.String(), "config-hash") || strings.Contains(id, "ConfigMap/cinder-csi-drift-check") {
				continue // the copy of the plan holds every decision, and a checksum follows from many
			}
			all[id][at.String()] = leafValue{at: at, value: value}
		}
	}
	return all
}

// explained are the values of a plan with their origins.
func explained(t *testing.T, r plan.Result) leafValues {
	t.Helper()
	index, err := bundle.IndexOf(r, verify.Chart)
	if err != nil {
		t.Fatal(err)
	}
	all := leafValuesOf(objectsOf(t, r))
	for id, leaves := range all {
		plane, object, _ := strings.Cut(id, ": ")
		kind, name, _ := strings.Cut(object, "/")
		for key, l := range leaves {
			var known bool
			if l.origin, known = index.Origin(plane, kind, name, l.at); !known {
				t.Errorf("%s %s comes from nowhere", id, l.at)
			}
			leaves[key] = l
		}
	}
	return all
}

// refusable are changes that the chart refuses, as plan.Decide does.
var refusable = []string{
	"credentials.caKey", "monitoring.kind", "credentials.request", "monitoring.platform", "snapshotClass default", "networkPolicy metricsNamespaces", "driver.userAgent",
	"trustedCA", "credentials.caConfigMap configMap", "node.nodeSelector", "monitoring.tls enabled", "target.openshift", "hypershift.guestAccess", "nodeLifecycle.startupTaint", "monitoring.alerts",
}

// TestADecisionChangesTheValuesThatExplainNamesAndNoOther changes every decision and builds again. Each value that comes from the
// decision is another one or gone. Each other value is what it was. So a value without a decision never changes. Each change is made for
// one of the targets with such values in turn; with -full, for every target.
func TestADecisionChangesTheValuesThatExplainNamesAndNoOther(t *testing.T) {
	spec := specs()["everything"]
	before := map[v1alpha1.Target]leafValues{}
	toChange := map[string][]v1alpha1.Target{} // by decision: the targets that have a value from it
	for _, target := range targets {
		before[target] = explained(t, everythingDecided(t, spec, target))
		for id := range before[target].decisions() {
			toChange[id] = append(toChange[id], target)
		}
	}
	changed := map[string]bool{"target.hostedControlPlane": true} // the planes of a bundle differ with it
	for n, c := range changes() {
		changed[c.id] = true
		of := targets
		if has := toChange[c.id]; !testenv.Full() && len(has) > 0 {
			of = has[n%len(has):][:1]
		}
		for _, target := range of {
			t.Run(fmt.Sprintf("%s/%s %s", target, c.id, c.field), func(t *testing.T) {
				t.Parallel()
				r := everythingDecided(t, spec, target)
				c.do(&r)
				objects := objectsOf(t, r)
				if objects == nil {
					if what := strings.TrimSpace(c.id + " " + c.field); !slices.Contains(refusable, what) {
						t.Errorf("the chart refuses a change of %s", what)
					}
					return
				}
				compareLeaves(t, c, before[target], leafValuesOf(objects))
			})
		}
	}
	for id, has := range toChange {
		if !changed[id] {
			t.Errorf("no case changes decision %s of %v", id, has)
		}
	}
}

func (v leafValues) decisions() map[string]bool {
	ids := map[string]bool{}
	for _, leaves := range v {
		for _, l := range leaves {
			for _, ref := range l.origin.Refs {
				ids[ref.Decision] = true
			}
		}
	}
	return ids
}

func names(refs []bundle.Ref, id string) bool {
	return slices.ContainsFunc(refs, func(r bundle.Ref) bool { return r.Decision == id })
}

var indexed = regexp.MustCompile(`\[[0-9]+\].*`)

// listed are all origins of a list whose elements have no names: they move up when one is gone.
func listed(leaves map[string]leafValue, at string) (refs []bundle.Ref, inList bool) {
	list := indexed.ReplaceAllString(at, "")
	for other, l := range leaves {
		if other == at || list != at && strings.HasPrefix(other, list+"[") {
			refs = slices.Concat(refs, l.origin.Refs, l.origin.Gone)
		}
	}
	return refs, list != at
}

func compareLeaves(t *testing.T, c changeOf, from, to leafValues) {
	t.Helper()
	for id, leaves := range from {
		other, stays := to[id]
		for at, l := range leaves {
			exactly := slices.ContainsFunc(l.origin.Refs, func(r bundle.Ref) bool {
				return r.Decision == c.id && (c.field == "" || r.Field == c.field || strings.HasPrefix(r.Field, c.field+"."))
			})
			is, there := other[at]
			differs := !there || !reflect.DeepEqual(is.value, l.value)
			if !exactly && !differs {
				continue // almost all: listed walks through the whole object
			}
			refs, inList := listed(leaves, at)
			switch {
			case exactly && !differs && !inList && !(c.id == "target.openshift" && (at == "spec.seLinuxMount" || strings.HasSuffix(at, "namespace"))): // its value is a decision of its own
				t.Errorf("%s %s stays %v, although it comes from %v", id, at, l.value, l.origin.Refs)
			case !differs || names(refs, c.id):
			case !stays && (at != "metadata.name" || names(l.origin.There, c.id)): // the name says what became of the object
			case c.id == "nodeLifecycle.drainHook" && strings.Contains(at, "ontainers[registrar]"): // it moves to another list
			case c.id == "nodePools.gpu" && strings.Contains(at, "affinity"): // the key of a label, which explain does not vary
			default:
				t.Errorf("%s %s changes from %v to %v, although it comes from %v", id, at, l.value, is.value, refs)
			}
		}
	}
}

// further changes one of the further VolumeSnapshotClasses.
func further(name string, do func(*plan.FurtherSnapshotClass)) func(*plan.Result) {
	return func(r *plan.Result) {
		r.SnapshotClasses = slices.Clone(r.SnapshotClasses)
		for i := range r.SnapshotClasses {
			if c := &r.SnapshotClasses[i].Value; c.Name == name {
				do(c)
			}
		}
	}
}
