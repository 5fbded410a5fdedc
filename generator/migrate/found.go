package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// Found is what a cluster has of the driver that the bundle replaces.
type Found struct {
	Cluster       string
	Workloads     []cluster.Workload // of the old driver, sorted
	ClusterIDs    []string           // the values of --cluster
	Volumes       int                // PersistentVolumes of the driver
	Shared        []string           // PersistentVolumes with a file system that several nodes may mount
	WithSecret    []string           // PersistentVolumes that name a Secret: of several clouds
	Zoned         []string           // PersistentVolumes that are bound to a zone of the driver
	InTree        []string           // PersistentVolumes of the plugin that was a part of Kubernetes
	Zones         []string           // of the Zoned, as nodes carry them
	InTreeClasses []string           // StorageClasses of that plugin
	Refused       []string           // StorageClasses with a parameter that the driver of a bundle refuses
	Inline        []string           // workloads and Pods with a volume of the driver that has no claim
}

// ErrSeveral is a cluster with more than one installation that a bundle could replace.
var ErrSeveral = errors.New("several installations")

// Find reads a cluster, with GET requests only. The namespaces are those of the old driver; without one: the one that has it. Errors: ErrSeveral.
func Find(ctx context.Context, c *cluster.Cluster, b cluster.Bundle, topologyKey string, chosen []string) (*Found, error) {
	f := &Found{Cluster: c.Name()}
	if err := f.readWorkloads(ctx, c, b, chosen); err != nil {
		return nil, err
	}
	volumes, err := cluster.List[corev1.PersistentVolume](ctx, c, "/api/v1/persistentvolumes")
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		if v.Spec.Cinder != nil || v.Spec.CSI != nil && v.Spec.CSI.Driver == b.DriverName {
			f.add(v, topologyKey)
		}
	}
	classes, err := cluster.List[storagev1.StorageClass](ctx, c, "/apis/storage.k8s.io/v1/storageclasses")
	if err != nil {
		return nil, err
	}
	for _, class := range classes {
		if class.Provisioner == inTreeProvisioner {
			f.InTreeClasses = append(f.InTreeClasses, class.Name)
		}
		if names := RefusedParameters(class, b.DriverName); names != "" {
			f.Refused = append(f.Refused, class.Name+" ("+names+")")
		}
	}
	return f, nil
}

// readWorkloads finds the workloads of the old driver. Anybody who may create a Deployment can make one that looks like it. So workloads of
// several namespaces are taken together only if somebody chose these.
func (f *Found) readWorkloads(ctx context.Context, c *cluster.Cluster, b cluster.Bundle, chosen []string) error {
	workloads, err := c.Workloads(ctx)
	if err != nil {
		return err
	}
	var namespaces []string
	roles := map[bool]cluster.Workload{} // whether on the nodes
	for _, w := range workloads {
		if cluster.InlineVolumes(w.Pod, b.DriverName) > 0 {
			f.Inline = append(f.Inline, w.String())
		}
		if b.Has(w) || w.DriverName() != b.DriverName || len(chosen) > 0 && !slices.Contains(chosen, w.Namespace) {
			continue
		}
		if w.Static {
			return fmt.Errorf("%s runs driver %s, and kubelet makes it from a file of its node: move that file away first, or two controllers would run", w, b.DriverName)
		}
		f.Workloads, roles[w.OnNodes()] = append(f.Workloads, w), w
		namespaces = appendNew(namespaces, w.Namespace)
		if id := w.ClusterID(); id != "" {
			f.ClusterIDs = appendNew(f.ClusterIDs, id)
		}
	}
	slices.Sort(namespaces)
	if len(chosen) == 0 {
		if len(namespaces) > 1 {
			return fmt.Errorf("%w of driver %s, in the namespaces %s; look whose they are, and name those of one with --old-namespace", ErrSeveral, b.DriverName, quoted(namespaces))
		}
		return nil
	}
	for _, namespace := range chosen {
		if !slices.Contains(namespaces, namespace) {
			return fmt.Errorf("namespace %q has no workload of another driver with the name %s", namespace, b.DriverName)
		}
	}
	for _, w := range roles {
		if len(roles) == 1 {
			return fmt.Errorf("the namespaces of --old-namespace (%s) have only a %s of driver %s; an installation has a controller and a DaemonSet: name the namespaces of both", quoted(namespaces), w.Kind, b.DriverName)
		}
	}
	return nil
}

// quoted joins names that somebody else chose.
func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(all, ", ")
}

// inTreeZoneKeys are the labels of nodes that in-tree volumes are bound to. Kubernetes translates both to that of the driver.
var inTreeZoneKeys = []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone}

func (f *Found) add(v corev1.PersistentVolume, topologyKey string) {
	f.Volumes++
	raw := v.Spec.VolumeMode != nil && *v.Spec.VolumeMode == corev1.PersistentVolumeBlock
	if !raw && slices.Contains(v.Spec.AccessModes, corev1.ReadWriteMany) {
		f.Shared = append(f.Shared, v.Name)
	}
	if zones := zonesOf(v, topologyKey); len(zones) > 0 {
		f.Zoned = append(f.Zoned, v.Name)
		for _, zone := range zones {
			f.Zones = appendNew(f.Zones, zone)
		}
	}
	s := v.Spec.CSI
	if s == nil {
		f.InTree = append(f.InTree, v.Name)
		return
	}
	if s.ControllerPublishSecretRef != nil || s.ControllerExpandSecretRef != nil || s.NodeStageSecretRef != nil || s.NodePublishSecretRef != nil || s.NodeExpandSecretRef != nil {
		f.WithSecret = append(f.WithSecret, v.Name)
	}
}

// zonesOf are the zones that a volume is bound to. An in-tree volume may have them as labels only.
func zonesOf(v corev1.PersistentVolume, topologyKey string) []string {
	var zones []string
	bound := func(key string) bool {
		return key == topologyKey || v.Spec.Cinder != nil && slices.Contains(inTreeZoneKeys, key)
	}
	if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
		for _, t := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				if bound(e.Key) {
					zones = append(zones, e.Values...)
				}
			}
		}
	}
	for _, key := range inTreeZoneKeys {
		if zone := v.Labels[key]; zone != "" && bound(key) {
			zones = append(zones, zone)
		}
	}
	return zones
}

// listVolumes shows what Find looks at.
func listVolumes(driver string) string {
	return "kubectl get pv -o json | jq -r " + shell.Word(fmt.Sprintf(volumeRows, driver))
}

const volumeRows = `.items[] | select(.spec.csi.driver == %q or .spec.cinder) | [.metadata.name,
  (.spec.accessModes | join(",")), .spec.volumeMode, (.spec.nodeAffinity | tostring), (.spec.csi // {} | keys | map(select(endswith("SecretRef"))) | join(",")), .spec.cinder.volumeID] | @tsv`

func (a Adoption) checks() []Step {
	doctor := Step{Text: "Check the cloud and the cluster; that the old driver is installed is an error that this way removes.", Commands: []string{"cinder-csi-generator doctor --os-cloud CLOUD --config distribution.yaml"}}
	classes := Step{
		Text:     "Compare the classes: at most one default of each kind, and no StorageClass of the bundle with a name that exists.",
		Commands: []string{"kubectl get storageclass,volumesnapshotclass -o wide"},
	}
	if a.Found == nil {
		return []Step{{
			Text:     "Look at the volumes. Move data of file systems with ReadWriteMany first; with Secrets of several clouds replace only the image; with zones keep topology on (" + pages.ReplaceUpstream.String() + ").",
			Commands: []string{listVolumes(a.Bundle.DriverName)},
		}, {Text: fmt.Sprintf("Compare the value of --cluster of the old driver with %q, that of the bundle (spec.clusterID).", a.ClusterID)}, classes, doctor}
	}
	return append(a.findings(), classes, doctor)
}

// findings are the checks whose results are known.
func (a Adoption) findings() []Step {
	f := a.Found
	var workloads []string
	for _, w := range f.Workloads {
		workloads = append(workloads, w.String())
	}
	steps := []Step{{Text: fmt.Sprintf("Found in the cluster (%s): %s; %d PersistentVolumes%s.", f.Cluster, orNone(workloads), f.Volumes, f.inTreeText())}}
	served := a.Bundle.DriverName == cluster.UpstreamName // Kubernetes gives in-tree volumes to that name
	for _, c := range []struct {
		names []string
		what  string
	}{
		{f.Shared, "The new driver refuses to attach a file system to several nodes. Move the data of these PersistentVolumes first"},
		{f.WithSecret, "A bundle serves one cloud. These PersistentVolumes name Secrets; if these are for several clouds, replace only the image (" + pages.ReplaceUpstream.String() + ")"},
		{unless(a.Topology, f.Zoned), "Nodes get no zone label from this bundle, and these PersistentVolumes need one. Set spec.topology.mode to enabled, with a zoneMap"},
		{unless(served, f.InTree), "Kubernetes gives in-tree volumes to the driver with the name " + cluster.UpstreamName + ", which this bundle does not have. Set spec.driver.name, or these PersistentVolumes have no driver"},
		{unless(served, f.InTreeClasses), "Kubernetes gives claims of in-tree classes to the driver with the name " + cluster.UpstreamName + ", which this bundle does not have. Set spec.driver.name, or replace these StorageClasses"},
		{f.Inline, strings.ToUpper(InlineAdvice[:1]) + InlineAdvice[1:] + ". These have such volumes"},
		{f.Refused, "The driver of a bundle refuses new claims of these StorageClasses, because of the parameters in brackets. Create other classes without them"},
		{slices.DeleteFunc(slices.Clone(f.ClusterIDs), func(id string) bool { return id == a.ClusterID }), fmt.Sprintf("The bundle marks volumes with %q, and the old driver with another ID. Tools find the volumes by it: set spec.clusterID to it", a.ClusterID)},
	} {
		if len(c.names) > 0 {
			steps = append(steps, Step{Text: c.what + ": " + strings.Join(c.names, ", ") + "."})
		}
	}
	return steps
}

// inTreeText says how much of what was found is in-tree; both keep working, because Kubernetes translates them for the driver.
func (f *Found) inTreeText() string {
	if len(f.InTree)+len(f.InTreeClasses) == 0 {
		return ""
	}
	return fmt.Sprintf(", of which %d are in-tree (spec.cinder); %d StorageClasses of %s", len(f.InTree), len(f.InTreeClasses), inTreeProvisioner)
}

func unless(holds bool, names []string) []string {
	if holds {
		return nil
	}
	return names
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no workload of another driver with this name"
	}
	return strings.Join(names, ", ")
}
