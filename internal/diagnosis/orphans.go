package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// Orphan is an object of Cinder with the mark of a cluster, which no object of that cluster names.
type Orphan struct {
	Kind    string     `json:"kind"` // volume, snapshot or backup
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Status  string     `json:"status"`
	Size    int        `json:"sizeGiB"`
	Created *time.Time `json:"created,omitempty"`
	For     string     `json:"for"`     // the claim or the VolumeSnapshot that it was made for: NAMESPACE/NAME
	Servers []string   `json:"servers"` // that the volume is attached to
	Doubt   string     `json:"doubt,omitempty"`
}

// Orphans is what a cluster has left in Cinder.
type Orphans struct {
	Time      time.Time `json:"time"`
	ClusterID string    `json:"clusterID"`
	Orphans   []Orphan  `json:"orphans"`
	Unseen    []Gap     `json:"unseen"`
}

// ErrClusterID is a cluster whose ID is not known.
var ErrClusterID = errors.New("the cluster ID of the driver is not known")

// ErrHosted is a cluster whose controller works for another cluster: the PersistentVolumes of the one do not name the volumes of the other.
var ErrHosted = errors.New("the controller works for another cluster")

// ErrUnseen is a cluster whose ID could not be read.
var ErrUnseen = errors.New("the cluster ID of the driver could not be read")

// young is how old an object must be before its missing PersistentVolume counts: external-provisioner writes that last.
const young = 15 * time.Minute

// FindOrphans compares the objects of Cinder that have the mark of a cluster with those that Kubernetes names. An empty ID is that of the driver
// in the cluster. What Kubernetes names must be read completely, so each list of it that fails is an error. Errors: ErrClusterID, ErrHosted,
// ErrUnseen.
func FindOrphans(ctx context.Context, from Clients, clusterID string) (Orphans, error) {
	r := &reader{Clients: from, readings: &Readings{Now: from.Now}}
	if clusterID == "" {
		var err error
		if clusterID, err = r.ownID(ctx); err != nil {
			return Orphans{}, err
		}
	}
	named, err := namedInCinder(ctx, from.Cluster)
	if err != nil {
		return Orphans{}, err
	}
	o := Orphans{Time: from.Now, ClusterID: clusterID, Orphans: []Orphan{}}
	for _, list := range []struct{ kind, resource, microversion string }{{"volume", "volumes", ""}, {"snapshot", "snapshots", ""}, {"backup", "backups", "3.43"}} {
		all, err := cinderList(ctx, r, list.resource, list.microversion, func(v ListedVolume) string { return v.ID })
		if err != nil {
			r.readings.Gaps = append(r.readings.Gaps, Gap{What: "the " + list.resource + " in Cinder", Why: err.Error()})
			continue
		}
		for _, m := range all {
			if m.Metadata[contract.MetadataCluster] == clusterID && !named[strings.ToLower(m.ID)] {
				o.Orphans = append(o.Orphans, m.orphan(list.kind, from.Now))
			}
		}
	}
	o.Unseen = listed(r.readings.Gaps)
	return o, nil
}

func (r *reader) ownID(ctx context.Context) (string, error) {
	const named = "name it with --cluster-id (spec.clusterID of the bundle)"
	r.readControllers(ctx)
	d := r.driverIDs(ctx)
	var why []string
	for _, g := range r.readings.Gaps {
		why = append(why, sentence(g.What+": "+g.Why, g.Do))
	}
	switch {
	case d.hosted != "" && r.Controller == nil:
		return "", fmt.Errorf("%w: pod %s. The PersistentVolumes are there: name that cluster with --kubeconfig, and this one with --controller-kubeconfig and --driver-namespace", ErrHosted, d.hosted)
	case len(why) > 0:
		return "", fmt.Errorf("%w: %s; or %s", ErrUnseen, strings.Join(why, ". "), named)
	case len(d.ids) > 1:
		return "", fmt.Errorf("%w: the controllers have several: %q; name that of this cluster with --cluster-id, or its controller with --driver-namespace", ErrClusterID, d.ids)
	case len(d.ids) == 0:
		return "", fmt.Errorf("%w; %s", ErrClusterID, named)
	}
	return d.ids[0], nil
}

// namedInCinder are the IDs that the PersistentVolumes and VolumeSnapshotContents of a cluster name. A cluster may have no snapshots at all.
func namedInCinder(ctx context.Context, c *cluster.Cluster) (map[string]bool, error) {
	named := map[string]bool{}
	volumes, err := cluster.List[corev1.PersistentVolume](ctx, c, "/api/v1/persistentvolumes")
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		named[strings.ToLower(handleOf(&v))] = true
	}
	contents, err := cluster.List[content](ctx, c, "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents")
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return nil, err
	}
	for _, s := range contents {
		named[strings.ToLower(s.Spec.Source.Handle)], named[strings.ToLower(s.Status.Handle)] = true, true
	}
	return named, nil
}

func (m ListedVolume) orphan(kind string, now time.Time) Orphan {
	o := Orphan{Kind: kind, ID: m.ID, Name: m.Name, Status: m.Status, Size: m.Size, Created: since(m.Created.Time), Servers: []string{}}
	for _, key := range []string{"csi.storage.k8s.io/pvc/", "csi.storage.k8s.io/volumesnapshot/"} {
		if name := m.Metadata[key+"name"]; name != "" && o.For == "" {
			o.For = m.Metadata[key+"namespace"] + "/" + name
		}
	}
	for _, a := range m.Attachments {
		o.Servers = append(o.Servers, a.Server)
	}
	switch {
	case len(o.Servers) > 0:
		o.Doubt = "a server uses it"
	case now.Sub(m.Created.Time) < young:
		o.Doubt = "it is new: Kubernetes may not have written its object yet"
	case m.Metadata[contract.MetadataTemporary] != "":
		o.Doubt = "the driver makes a backup from it, or has failed to delete it after that"
	}
	return o
}

// PrintOrphans writes orphans for people.
func PrintOrphans(out io.Writer, o Orphans, columns int) error {
	p := newPrinter(out, columns)
	var rows [][]string
	for _, one := range o.Orphans {
		old := ""
		if one.Created != nil {
			old = age(o.Time.Sub(*one.Created))
		}
		rows = append(rows, []string{one.Kind, one.ID, old, fmt.Sprint(one.Size), one.Status, orNone(one.For), one.Doubt})
	}
	p.table("KIND\tID\tAGE\tGIB\tSTATUS\tMADE FOR\tDOUBT", rows)
	p.unseen(o.Unseen)
	p.line("")
	p.text("", fmt.Sprintf("%d objects with the mark %q that nothing in this cluster names", len(o.Orphans), o.ClusterID))
	if len(o.Orphans) > 0 {
		p.text("", "Before you delete one: does another cluster in this project have the same ID? Was this cluster restored from an older backup? See "+pages.Orphans.String())
	}
	return p.err
}
