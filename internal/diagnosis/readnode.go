package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// NodeReadings are everything that ReadNode found out about one node.
type NodeReadings struct {
	ListReadings
	Name    string
	Node    *corev1.Node       // nil: it does not exist, or it was not read
	CSINode *storagev1.CSINode // nil: it does not exist, or it was not read
	// NoNode and NoCSINode say that the cluster has no such object. Both are false for one that could not be read.
	NoNode, NoCSINode bool
	Undeclared        []string                // drivers that the node registered, and of which the cluster has no CSIDriver
	Plugins           []corev1.Pod            // of the driver on the node
	CloudServers      map[string]*CloudServer // by ID: those of the node
	Unhealthy         map[string]string       // by volume in lower case: the reason, as the driver of the node reports it
	Waiting           []Report                // of volumes that wait on the node, at most maxWaiting
	NotDiagnosed      []string                // the others that wait: PersistentVolumes
}

// maxWaiting is for how many volumes of a node all objects are read: each takes some ten requests.
const maxWaiting = 10

// ReadNode collects the readings about one node. Errors: cluster.ErrNotFound if the cluster knows neither the node nor a VolumeAttachment for it,
// and that of a cluster whose PersistentVolumes cannot be read.
func ReadNode(ctx context.Context, from Clients, name string) (NodeReadings, error) {
	f := NodeReadings{Name: name, CloudServers: map[string]*CloudServer{}, Unhealthy: map[string]string{}}
	var err error
	if f.ListReadings, err = ReadList(ctx, from); err != nil {
		return f, err
	}
	r := &reader{Clients: from, readings: &Readings{Now: from.Now, Gaps: f.Gaps, Nodes: map[string]*Node{}}}
	var node corev1.Node
	there, missing := r.missing(ctx, "node "+name, "/api/v1/nodes/"+url.PathEscape(name), &node)
	if f.NoNode = missing; there {
		f.Node = &node
	}
	var drivers storagev1.CSINode
	there, missing = r.missing(ctx, "CSINode "+name, "/apis/storage.k8s.io/v1/csinodes/"+url.PathEscape(name), &drivers)
	if f.NoCSINode = missing; there {
		f.CSINode = &drivers
	}
	if f.NoNode && f.NoCSINode && len(f.attachmentsHere()) == 0 {
		return f, fmt.Errorf("node %s: %w: the cluster has no such node, and no VolumeAttachment for it; list the nodes with: kubectl get nodes", name, cluster.ErrNotFound)
	}
	f.readDeclared(ctx, r)
	f.readPlugins(ctx, r)
	f.readServers(ctx, r)
	f.readWaiting(ctx, r)
	f.Gaps = r.readings.Gaps
	return f, nil
}

// readDeclared asks for the CSIDriver of each driver that the node registered. That of another installation has no label of ours.
func (f *NodeReadings) readDeclared(ctx context.Context, r *reader) {
	if f.CSINode == nil {
		return
	}
	for _, d := range f.CSINode.Spec.Drivers {
		if !slices.Contains(f.Drivers, d.Name) || slices.Contains(f.Declared, d.Name) {
			continue
		}
		var existing struct{}
		if _, missing := r.missing(ctx, "CSIDriver "+d.Name, "/apis/storage.k8s.io/v1/csidrivers/"+url.PathEscape(d.Name), &existing); missing {
			f.Undeclared = append(f.Undeclared, d.Name)
		}
	}
}

// readPlugins reads the pods of the driver on the node, and what they found wrong with volumes.
func (f *NodeReadings) readPlugins(ctx context.Context, r *reader) {
	for _, driver := range f.Drivers {
		r.readings.Driver = driver
		node := &Node{}
		r.readPlugins(ctx, f.Name, node)
		f.Plugins = append(f.Plugins, node.Plugins...)
	}
	r.readings.Gaps = slices.Compact(r.readings.Gaps)
	if r.NodePage == nil {
		return
	}
	for _, p := range f.Plugins {
		r.readUnhealthy(ctx, p, "what the driver found wrong with the volumes of the node", func(id, reason string) { f.Unhealthy[id] = reason })
	}
}

// readServers asks Nova for the servers that the node registered.
func (f *NodeReadings) readServers(ctx context.Context, r *reader) {
	ids := f.servers()
	if g := unknownServer(f.Name); len(ids) == 0 && !slices.Contains(r.readings.Gaps, g) {
		r.readings.Gaps = append(r.readings.Gaps, g)
	}
	if r.Cloud == nil {
		return
	}
	r.readings.Cloud = &CloudReadings{Name: r.Cloud.Name(), Servers: f.CloudServers}
	for _, id := range ids {
		r.readServer(ctx, id)
	}
}

// servers are the one that the provider ID of the node names, or else those that the drivers registered there.
func (f *NodeReadings) servers() (ids []string) {
	if id := f.provider(); id != "" {
		return []string{id}
	}
	if f.CSINode != nil {
		for _, d := range f.CSINode.Spec.Drivers {
			if slices.Contains(f.Drivers, d.Name) && !slices.Contains(ids, d.NodeID) {
				ids = append(ids, d.NodeID)
			}
		}
	}
	return ids
}

func (f *NodeReadings) provider() string {
	if f.Node == nil {
		return ""
	}
	return serverOf(f.Node.Spec.ProviderID)
}

// readWaiting diagnoses each volume that waits on the node. What was read about the node counts even if a volume cannot be read. A volume that
// is gone since it was listed waits no more, and another error becomes a gap.
func (f *NodeReadings) readWaiting(ctx context.Context, r *reader) {
	for i, volume := range f.waiting() {
		if i >= maxWaiting {
			f.NotDiagnosed = append(f.NotDiagnosed, volume)
			continue
		}
		readings, err := ReadSubject(ctx, r.Clients, Subject{Kind: Volume, Name: volume})
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			continue
		case err != nil:
			f.NotDiagnosed = append(f.NotDiagnosed, volume)
			r.gap("the diagnosis of PersistentVolume "+volume, err)
			continue
		}
		report := Diagnose(readings)
		for _, g := range report.Unseen {
			if !slices.Contains(r.readings.Gaps, g) {
				r.readings.Gaps = append(r.readings.Gaps, g)
			}
		}
		f.Waiting = append(f.Waiting, report)
	}
}

func (f NodeReadings) attachmentsHere() []storagev1.VolumeAttachment {
	var here []storagev1.VolumeAttachment
	for _, a := range f.Attachments {
		if a.Spec.NodeName == f.Name && slices.Contains(f.Drivers, a.Spec.Attacher) {
			here = append(here, a)
		}
	}
	return here
}

// waiting are the PersistentVolumes that wait on the node for an attach, a detach or a mount. The longest wait comes first.
func (f NodeReadings) waiting() []string {
	var names []string
	attachments := f.attachmentsHere()
	slices.SortStableFunc(attachments, func(a, b storagev1.VolumeAttachment) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, a := range attachments {
		if v := a.Spec.Source.PersistentVolumeName; v != nil && (!a.Status.Attached || a.DeletionTimestamp != nil) && f.volumeNamed(*v) != nil {
			names = append(names, *v)
		}
	}
	for _, v := range f.Volumes {
		waits := slices.ContainsFunc(f.podsOf(v), func(p corev1.Pod) bool { return !ready(p) && !mounted(p) })
		if waits && f.handle(v) != "" && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

func (f NodeReadings) volumeNamed(name string) *corev1.PersistentVolume {
	return first(f.Volumes, func(v corev1.PersistentVolume) bool { return v.Name == name && f.handle(v) != "" })
}

func (f NodeReadings) podsOf(v corev1.PersistentVolume) []corev1.Pod {
	ref := v.Spec.ClaimRef
	if !f.hasClaim(v) {
		return nil
	}
	var all []corev1.Pod
	for _, p := range f.Pods {
		if p.Spec.NodeName == f.Name && p.Namespace == ref.Namespace && !ended(p) && uses(p, ref.Name) {
			all = append(all, p)
		}
	}
	return all
}

// inUse reports whether kubelet says that a volume may be mounted: "kubernetes.io/csi/DRIVER^HANDLE" in the status of the node.
func (f NodeReadings) inUse(driver, handle string) bool {
	return f.Node != nil && slices.ContainsFunc(f.Node.Status.VolumesInUse, func(name corev1.UniqueVolumeName) bool {
		return strings.EqualFold(string(name), "kubernetes.io/csi/"+driver+"^"+handle)
	})
}

func driverOfVolume(v *corev1.PersistentVolume) string {
	if v.Spec.CSI != nil {
		return v.Spec.CSI.Driver
	}
	return cluster.UpstreamName
}
