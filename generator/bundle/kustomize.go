package bundle

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/manifests"
)

// driverDir holds what is composed and patched. It is a kustomization of its own below that of the plane. Every patch and component costs
// kustomize the square of the number of objects it could apply to. With 2,000 classes beside the patches a build took 15 s; with the
// classes above them it takes a fraction of it.
const driverDir = "driver"

// kustomize adds the plane's overlay: what the cloud decides, above the driver.
func (p *plane) kustomize(t Tree, kustomize Kustomize, o Options) error {
	var resources []string
	own := func(name string, docs ...node) error {
		if len(docs) == 0 {
			return nil
		}
		resources = append(resources, name)
		return p.document(t, name, docs...)
	}
	if err := own("namespace.yaml", p.namespaces()...); err != nil {
		return err
	}
	if err := p.driver(t, kustomize, o); err != nil {
		return err
	}
	resources = append(resources, driverDir)
	for name, docs := range p.ownObjects() {
		if err := own(name, docs...); err != nil {
			return err
		}
	}
	k := kustomization(object{"resources": fixed(resources)})
	k["sortOptions"] = fixed(applyOrder)
	return p.document(t, "kustomization.yaml", k)
}

// applyOrder is the order of the built objects. What a workload needs is there before it, its rights above all. Classes come last, because
// nobody can use a class whose driver is missing.
var applyOrder = map[string]any{
	"order": "legacy",
	"legacySortOptions": map[string]any{
		"orderFirst": []any{
			"Namespace", "CredentialsRequest", "ServiceAccount", "Secret", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
			"CSIDriver", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "Deployment", "DaemonSet",
			"PodMonitor", "ServiceMonitor", "PrometheusRule", "CronJob",
		},
		"orderLast": []any{"StorageClass", "VolumeAttributesClass", "VolumeSnapshotClass"},
	},
}

// kustomization says its order explicitly, because kustomize's default has changed before: things as they are listed.
func kustomization(fields object) object {
	return merge(fields, object{
		"apiVersion": fixed("kustomize.config.k8s.io/v1beta1"), "kind": fixed("Kustomization"),
		"sortOptions": object{"order": fixed("fifo")},
	})
}

// driver adds the driver's own objects: what it composes of manifests/, and what it changes there.
func (p *plane) driver(t Tree, kustomize Kustomize, o Options) error {
	refs := func(names []string) (list []string, err error) {
		for _, name := range names {
			ref, err := p.manifest(t, o, name)
			if err != nil {
				return nil, err
			}
			list = append(list, ref)
		}
		return list, nil
	}
	bases, err := refs(p.bases())
	if err != nil {
		return err
	}
	var dirs []string
	for _, c := range p.components() {
		dirs = append(dirs, c.dir)
	}
	components, err := refs(dirs)
	if err != nil {
		return err
	}
	patches, err := p.writePatches(t, kustomize)
	if err != nil {
		return err
	}
	images := list{}
	for _, i := range p.images() {
		images = append(images, i.entry())
	}
	pools, err := p.pools()
	if err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(pools)) {
		if err := p.change(t, driverDir+"/"+file, pools[file]); err != nil {
			return err
		}
		bases = append(bases, file)
	}
	k := kustomization(object{"resources": fixed(bases), "patches": patches, "images": images})
	if len(components) > 0 {
		k["components"] = fixed(components)
	}
	return p.change(t, driverDir+"/kustomization.yaml", k)
}

// bases are the parts of manifests/base that the plane is made of, rights before what uses them.
func (p *plane) bases() []string {
	var list []string
	if p.cluster {
		list = append(list, "base/rbac", "base/csidriver")
	}
	if p.controller {
		list = append(list, "base/controller")
	}
	if p.node {
		list = append(list, "base/node")
	}
	return list
}

// component is a feature of manifests/components, with the decisions that switch it on.
type component struct {
	dir  string
	refs []Ref
}

// components are the features of the plane. One that adds to what another added comes after it.
func (p *plane) components() []component {
	var list []component
	add := func(when bool, name string, refs ...Ref) {
		if when {
			list = append(list, component{"components/" + name, refs})
		}
	}
	openShift, hosted := refOf(p.r.OpenShift), refOf(p.r.Hosted)
	add(p.controller && p.snapshots(), "snapshots-controller", p.snapshotsOn())
	add(p.cluster && p.snapshots(), "snapshots-rbac", p.snapshotsOn())
	add(p.controller && p.hasCA(), "ca-controller", refOf(p.r.CASource))
	add(p.controller && p.r.TrustedCA.Value, "trusted-ca", refOf(p.r.TrustedCA))
	add(p.controller && p.r.PVCAnnotations.Value, "pvc-annotations-controller", refOf(p.r.PVCAnnotations))
	add(p.controller && p.r.StartupTaint.Value, "startup-taint-controller", refOf(p.r.StartupTaint))
	add(p.cluster && p.r.StartupTaint.Value, "startup-taint-rbac", refOf(p.r.StartupTaint))
	add(p.controller && p.openShift(), "openshift-controller", openShift)
	add(p.controller && p.openShift() && !p.hosted() && partitioned(p.controllerNS.Value), "openshift-partitioning", openShift, hosted)
	add(p.node && p.openShift() && partitioned(p.nodeNS.Value), "openshift-partitioning-node", openShift)
	add(p.node && p.openShift(), "openshift-node", openShift)
	add(p.node && p.r.SELinux.Value, "selinux-node", refOf(p.r.SELinux))
	add(p.node && p.r.DrainHook.Value, "drain-hook-node", refOf(p.r.DrainHook))
	add(p.node && p.r.DrainHook.Value, "drain-hook-rbac", refOf(p.r.DrainHook))
	add(p.node && p.r.DrainHook.Value && p.openShift(), "drain-hook-openshift", refOf(p.r.DrainHook), openShift)
	add(p.node && p.r.DrainHook.Value && p.r.SELinux.Value, "drain-hook-selinux", refOf(p.r.DrainHook), refOf(p.r.SELinux))
	add(p.controller && p.hosted(), "hypershift-controller", hosted)
	add(p.controller && p.hosted() && !p.guestToken(), "hypershift-admin-kubeconfig", hosted, refOf(p.r.GuestAccess))
	add(p.controller && p.guestToken(), "hypershift-guest-token", refOf(p.r.GuestAccess))
	add(p.controller && p.hosted() && p.snapshots(), "snapshots-hypershift", hosted, p.snapshotsOn())
	add(p.cluster && p.hosted(), "hypershift-guest", hosted)
	add(p.cluster && p.r.Adopted.Value, "openshift-adopted", refOf(p.r.Adopted))
	monitor, monitoring := strings.ToLower(p.r.Monitoring.Value), refOf(p.r.Monitoring)
	plain := []Ref{monitoring}
	if p.r.MetricsTLS.Reason != "" { // only a stand-alone cluster has the choice
		plain = append(plain, p.tlsOn())
	}
	add(p.node && p.monitored(), "metrics-node", monitoring)
	add(p.controller && p.monitored() && !p.metricsTLS(), monitor+"-controller", plain...)
	add(p.controller && p.monitored() && !p.metricsTLS() && p.snapshots(), "snapshots-"+monitor, append(plain, p.snapshotsOn())...)
	add(p.controller && p.metricsTLS(), "metrics-tls-controller", p.tlsOn())
	add(p.controller && p.metricsTLS() && p.snapshots(), "snapshots-metrics-tls", p.tlsOn(), p.snapshotsOn())
	add(p.node && p.monitored(), monitor+"-node", monitoring)
	capacity := refOf(p.r.Capacity())
	alerts, dashboards := refOf(p.r.Alerts), refOf(p.r.Dashboards)
	add(p.controller && p.alerts(), "alerts-controller", monitoring, alerts)
	add(p.controller && p.alerts() && p.r.Capacity().Value, "alerts-capacity", monitoring, alerts, capacity)
	add(p.node && p.alerts(), "alerts-node", monitoring, alerts)
	add(p.controller && p.dashboards(), "dashboards-controller", monitoring, dashboards)
	add(p.node && p.dashboards(), "dashboards-node", monitoring, dashboards)
	add(p.cluster && p.r.Capacity().Value, "capacity-csidriver", capacity)
	add(p.cluster && p.r.Capacity().Value, "capacity-rbac", capacity)
	add(p.controller && p.r.Capacity().Value && !p.hosted(), "capacity-owner", capacity)
	add(p.cluster && p.r.LimitRefresh.Value > 0, "allocatable-refresh", refOf(p.r.LimitRefresh))
	drift := refOf(p.r.DriftCheck)
	add(p.checksDrift(), "drift-check", drift)
	add(p.checksDrift() && p.hasCA(), "ca-drift-check", drift, refOf(p.r.CASource))
	add(p.checksDrift() && p.openShift(), "openshift-drift-check", drift, openShift)
	add(p.checksDrift() && p.alerts(), "alerts-drift-check", drift, monitoring, alerts)
	return list
}

// manifest makes a part of manifests/ available to the overlay and returns the path it is found under.
func (p *plane) manifest(t Tree, o Options, name string) (string, error) {
	if o.Base != "" {
		return path.Join(p.up(path.Join("..", o.Base)), name), nil
	}
	err := fs.WalkDir(manifests.Files, name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := manifests.Files.ReadFile(file)
		if err != nil {
			return err
		}
		t[path.Join(p.dir, driverDir, file)] = text
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", name, err)
	}
	return name, nil
}

// ownObjects yields the files of objects that no part of manifests/ has, because the cloud decides whether and how many there are.
// All classes are in one file: kustomize's time grows with the square of the number of files.
func (p *plane) ownObjects() func(yield func(string, []node) bool) {
	return func(yield func(string, []node) bool) {
		var classes []node
		if p.cluster {
			for _, c := range p.r.StorageClasses {
				classes = append(classes, p.storageClass(c))
			}
		}
		if !yield("storageclasses.yaml", classes) {
			return
		}
		if p.cluster && p.snapshots() {
			classes := []node{p.snapshotClass()}
			if p.r.BackupClass.Value.Enabled {
				classes = append(classes, p.backupClass())
			}
			for _, c := range p.r.SnapshotClasses {
				classes = append(classes, p.furtherSnapshotClass(c))
			}
			if !yield("snapshotclass.yaml", classes) {
				return
			}
		}
		if p.cluster && len(p.r.AttributesClasses) > 0 {
			var classes []node
			for _, c := range p.r.AttributesClasses {
				classes = append(classes, p.attributesClass(c))
			}
			if !yield("volumeattributesclasses.yaml", classes) {
				return
			}
		}
		if p.controller && p.r.CABundle.Value != "" && !yield("ca.yaml", []node{p.caConfigMap()}) {
			return
		}
		if p.checksDrift() && !yield("driftcheck.yaml", p.driftCheckConfigMaps()) {
			return
		}
		if p.controller && p.r.NetworkPolicy.Value.Enabled && !yield("networkpolicy.yaml", []node{p.networkPolicy()}) {
			return
		}
		if p.controller && p.r.CredentialsRequest.Value && !yield("credentialsrequest.yaml", []node{p.credentialsRequest()}) {
			return
		}
		if docs := p.prometheus(); len(docs) > 0 {
			yield("prometheus.yaml", docs)
		}
	}
}

// writePatches writes each patch as a file of its own and returns the kustomization's list of them. What the base and the components
// say already is left out, and a patch of which nothing is left is none.
func (p *plane) writePatches(t Tree, kustomize Kustomize) (list, error) {
	base, err := p.build(kustomize)
	if err != nil {
		return nil, err
	}
	entries := list{}
	for _, whole := range p.patches() {
		patch, some := base.needed(whole)
		if !some {
			continue
		}
		if err := p.change(t, driverDir+"/"+patch.file, patch.text()); err != nil {
			return nil, err
		}
		entries = append(entries, object{"path": fixed(patch.file), "target": patch.target.entry()})
	}
	return entries, nil
}

// text is the patch as its file holds it.
func (p patch) text() node {
	if p.body != nil {
		kind := p.target.kinds[0]
		return merge(p.body, object{"apiVersion": fixed(apiVersions[kind]), "kind": fixed(kind), "metadata": object{"name": fixed(p.target.name)}})
	}
	var ops list
	for _, op := range p.ops {
		kind := "replace"
		if op.add {
			kind = "add"
		}
		ops = append(ops, object{"op": fixed(kind), "path": fixed(op.pointer), "value": op.value})
	}
	return ops
}

var apiVersions = map[string]string{"ConfigMap": "v1", "CronJob": "batch/v1", "Deployment": "apps/v1", "DaemonSet": "apps/v1"}

func (t target) entry() object {
	o := object{"kind": fixed(strings.Join(t.kinds, "|"))}
	if t.name != "" {
		o["name"] = fixed(t.name)
	}
	if t.component != "" {
		o["labelSelector"] = fixed(componentLabel + "=" + t.component)
	}
	return o
}
