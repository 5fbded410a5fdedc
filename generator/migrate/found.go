package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/cluster"
)

// Found is what a cluster has of the driver that the bundle replaces.
type Found struct {
	Cluster    string
	Workloads  []cluster.Workload // of the old driver, sorted
	ClusterIDs []string           // the values of --cluster
	Volumes    int                // PersistentVolumes of the driver
	Shared     []string           // PersistentVolumes with a file system that several nodes may mount
	WithSecret []string           // PersistentVolumes that name a Secret: of several clouds
	Zoned      []string           // PersistentVolumes that are bound to a zone of the driver
}

// Find reads a cluster, with GET requests only.
func Find(ctx context.Context, c *cluster.Cluster, b cluster.Bundle, topologyKey string) (*Found, error) {
	workloads, err := c.Workloads(ctx)
	if err != nil {
		return nil, err
	}
	f := &Found{Cluster: c.Name()}
	for _, w := range workloads {
		if b.Has(w) || w.DriverName() != b.DriverName {
			continue
		}
		f.Workloads = append(f.Workloads, w)
		if id := w.ClusterID(); id != "" {
			f.ClusterIDs = appendNew(f.ClusterIDs, id)
		}
	}
	volumes, err := cluster.List[corev1.PersistentVolume](ctx, c, "/api/v1/persistentvolumes")
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		if v.Spec.CSI != nil && v.Spec.CSI.Driver == b.DriverName {
			f.add(v, topologyKey)
		}
	}
	return f, nil
}

func (f *Found) add(v corev1.PersistentVolume, topologyKey string) {
	f.Volumes++
	raw := v.Spec.VolumeMode != nil && *v.Spec.VolumeMode == corev1.PersistentVolumeBlock
	if !raw && slices.Contains(v.Spec.AccessModes, corev1.ReadWriteMany) {
		f.Shared = append(f.Shared, v.Name)
	}
	s := v.Spec.CSI
	if s.ControllerPublishSecretRef != nil || s.ControllerExpandSecretRef != nil || s.NodeStageSecretRef != nil || s.NodePublishSecretRef != nil || s.NodeExpandSecretRef != nil {
		f.WithSecret = append(f.WithSecret, v.Name)
	}
	if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil && slices.ContainsFunc(v.Spec.NodeAffinity.Required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == topologyKey })
	}) {
		f.Zoned = append(f.Zoned, v.Name)
	}
}

// listVolumes shows what Find looks at.
const listVolumes = `kubectl get pv -o json | jq -r '.items[] | select(.spec.csi.driver == "%s") | [.metadata.name,
  (.spec.accessModes | join(",")), .spec.volumeMode, (.spec.nodeAffinity | tostring), (.spec.csi | keys | map(select(endswith("SecretRef"))) | join(","))] | @tsv'`

func (a Adoption) checks() []Step {
	doctor := Step{Text: "Check the cloud and the cluster; that the old driver is installed is an error that this way removes.", Commands: []string{"cinder-csi-generator doctor --os-cloud CLOUD --config distribution.yaml"}}
	classes := Step{
		Text:     "Compare the classes: at most one default of each kind, and no class of the bundle with a name that exists.",
		Commands: []string{"kubectl get storageclass,volumesnapshotclass -o wide"},
	}
	if a.Found == nil {
		return []Step{{
			Text:     "Look at the volumes. Move data of file systems with ReadWriteMany first; with Secrets of several clouds replace only the image; with zones keep topology on (docs/how-to/replace-upstream.md).",
			Commands: []string{fmt.Sprintf(listVolumes, a.Bundle.DriverName)},
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
	steps := []Step{{Text: fmt.Sprintf("Found in the cluster (%s): %s; %d PersistentVolumes.", f.Cluster, orNone(workloads), f.Volumes)}}
	for _, c := range []struct {
		names []string
		what  string
	}{
		{f.Shared, "The new driver refuses to attach a file system to several nodes. Move the data of these PersistentVolumes first"},
		{f.WithSecret, "A bundle serves one cloud. These PersistentVolumes name Secrets; if these are for several clouds, replace only the image (docs/how-to/replace-upstream.md)"},
		{a.unusableZones(), "Nodes get no zone label from this bundle, and these PersistentVolumes need one. Set spec.topology.mode to enabled, with a zoneMap"},
		{a.otherIDs(), fmt.Sprintf("The bundle marks volumes with %q, and the old driver with another ID. Tools find the volumes by it: set spec.clusterID to it", a.ClusterID)},
	} {
		if len(c.names) > 0 {
			steps = append(steps, Step{Text: c.what + ": " + strings.Join(c.names, ", ") + "."})
		}
	}
	return steps
}

func (a Adoption) unusableZones() []string {
	if a.Topology {
		return nil
	}
	return a.Found.Zoned
}

func (a Adoption) otherIDs() []string {
	return slices.DeleteFunc(slices.Clone(a.Found.ClusterIDs), func(id string) bool { return id == a.ClusterID })
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no workload of another driver with this name"
	}
	return strings.Join(names, ", ")
}
