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
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// Kind is a kind of object by which somebody names a volume.
type Kind string

// The kinds. The value is the resource, as kubectl names it.
const (
	Claim      Kind = "persistentvolumeclaims"
	Pod        Kind = "pods"
	Volume     Kind = "persistentvolumes"
	Attachment Kind = "volumeattachments"
	SnapshotOf Kind = "volumesnapshots"
	Cinder     Kind = "cinder" // a volume of Cinder, by its ID
)

// shortNames are the names that kubectl takes for the kinds.
var shortNames = map[string]Kind{
	"pvc": Claim, "persistentvolumeclaim": Claim, "po": Pod, "pod": Pod, "pv": Volume, "persistentvolume": Volume,
	"va": Attachment, "volumeattachment": Attachment, "vs": SnapshotOf, "volumesnapshot": SnapshotOf,
}

// KindOf is the kind of a resource, as kubectl takes it.
func KindOf(resource string) (Kind, bool) {
	switch k := Kind(resource); k {
	case Claim, Pod, Volume, Attachment, SnapshotOf, Cinder:
		return k, true
	}
	k, found := shortNames[resource]
	return k, found
}

// Subject names a volume by one of its objects.
type Subject struct {
	Kind            Kind
	Namespace, Name string
}

// String names the object as kubectl does.
func (t Subject) String() string {
	if t.Kind == Claim || t.Kind == Pod || t.Kind == SnapshotOf {
		return fmt.Sprintf("%s %s/%s", strings.TrimSuffix(string(t.Kind), "s"), t.Namespace, t.Name)
	}
	return fmt.Sprintf("%s %s", strings.TrimSuffix(string(t.Kind), "s"), t.Name)
}

// path is where the API server has the object.
func (t Subject) path() string {
	name := url.PathEscape(t.Name)
	switch t.Kind {
	case Volume:
		return "/api/v1/persistentvolumes/" + name
	case Attachment:
		return "/apis/storage.k8s.io/v1/volumeattachments/" + name
	case SnapshotOf:
		return "/apis/snapshot.storage.k8s.io/v1/namespaces/" + url.PathEscape(t.Namespace) + "/volumesnapshots/" + name
	}
	return namespaced(t.Namespace, string(t.Kind), t.Name)
}

// ErrNoVolume is an object that leads to no volume.
var ErrNoVolume = errors.New("no volume")

// Find leads from an object to the claims and PersistentVolumes of its volumes: several for a pod. The commands of its errors have the given flags.
// Kubernetes checks no name in the spec of a pod or a snapshot.
func Find(ctx context.Context, c *cluster.Cluster, t Subject, given Given) ([]Subject, error) {
	all, err := find(ctx, c, t, given)
	for _, one := range all {
		if one.Kind != Cinder && !shell.IsName(one.Name) {
			return nil, fmt.Errorf("%w: %s names %.60q, and no object of Kubernetes can have that name", ErrNoVolume, t, one.Name)
		}
	}
	return all, err
}

func find(ctx context.Context, c *cluster.Cluster, t Subject, given Given) ([]Subject, error) {
	switch t.Kind {
	case Pod:
		return claimsOfPod(ctx, c, t)
	case Attachment:
		var a storagev1.VolumeAttachment
		if err := c.Get(ctx, t.path(), &a); err != nil {
			return nil, err
		}
		if a.Spec.Source.PersistentVolumeName == nil {
			return nil, fmt.Errorf("%w: %s names no PersistentVolume", ErrNoVolume, t)
		}
		return []Subject{{Kind: Volume, Name: *a.Spec.Source.PersistentVolumeName}}, nil
	case SnapshotOf:
		var s struct {
			Spec struct {
				Source struct {
					Claim string `json:"persistentVolumeClaimName"`
				} `json:"source"`
			} `json:"spec"`
		}
		if err := c.Get(ctx, t.path(), &s); err != nil {
			return nil, err
		}
		if s.Spec.Source.Claim == "" {
			return nil, fmt.Errorf("%w: %s is not of a claim, but of a VolumeSnapshotContent; see: %s", ErrNoVolume, t,
				given.command(kubectl(t.Namespace, "describe", "volumesnapshot", shell.Name(t.Name, "SNAPSHOT"))))
		}
		return []Subject{{Claim, t.Namespace, s.Spec.Source.Claim}}, nil
	case Cinder:
		return byHandle(ctx, c, t, given)
	}
	return []Subject{t}, nil
}

func claimsOfPod(ctx context.Context, c *cluster.Cluster, t Subject) ([]Subject, error) {
	var p corev1.Pod
	if err := c.Get(ctx, t.path(), &p); err != nil {
		return nil, err
	}
	var all []Subject
	for _, v := range p.Spec.Volumes {
		if claim := (Subject{Claim, t.Namespace, claimOfVolumeOf(p, v)}); claim.Name != "" && !slices.Contains(all, claim) {
			all = append(all, claim)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %s uses no claim", ErrNoVolume, t)
	}
	return all, nil
}

// byHandle finds the PersistentVolumes of a volume of Cinder. More than one is a fault that the reports show.
func byHandle(ctx context.Context, c *cluster.Cluster, t Subject, given Given) ([]Subject, error) {
	volumes, err := cluster.List[corev1.PersistentVolume](ctx, c, "/api/v1/persistentvolumes")
	if err != nil {
		return nil, err
	}
	var all []Subject
	for _, v := range volumes {
		if strings.EqualFold(handleOf(&v), t.Name) {
			all = append(all, Subject{Kind: Volume, Name: v.Name})
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, fmt.Errorf("%w: no PersistentVolume of this cluster names Cinder volume %s. Its metadata in Cinder says which cluster and claim it was made for: %s",
		ErrNoVolume, t.Name, given.command(run("openstack", "volume", "show", "--column", "properties", shell.ID(t.Name, "VOLUME"))))
}
