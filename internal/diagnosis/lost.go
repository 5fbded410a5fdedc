package diagnosis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// Missing is an object of Kubernetes that stands for something that Cinder does not have.
type Missing struct {
	Kind string `json:"kind"` // PersistentVolume, VolumeSnapshotContent or VolumeAttachment
	Name string `json:"name"`
	ID   string `json:"id"`  // in Cinder
	Of   string `json:"for"` // the claim or the VolumeSnapshot: NAMESPACE/NAME; empty if there is none
	Why  string `json:"why"`
}

// MissingObjects are the objects of a cluster whose volume, snapshot, backup or attachment Cinder does not have.
type MissingObjects struct {
	Time    time.Time `json:"time"`
	Missing []Missing `json:"missing"`
	Checked int       `json:"checked"` // objects that were compared
	Doubt   string    `json:"doubt,omitempty"`
	Unseen  []Gap     `json:"unseen"`
}

type content struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Driver string `json:"driver"`
		Source struct {
			Handle string `json:"snapshotHandle"`
		} `json:"source"`
		Ref corev1.ObjectReference `json:"volumeSnapshotRef"`
	} `json:"spec"`
	Status struct {
		Handle string `json:"snapshotHandle"`
	} `json:"status"`
}

// FindMissing compares what the objects of the driver name with Cinder. It calls an object missing only if a whole list of Cinder lacks it and
// Cinder then answers 404 for its ID. A list that fails is a gap, and nothing is concluded from it. The only error is that of a cluster whose
// PersistentVolumes cannot be read.
func FindMissing(ctx context.Context, from Clients) (MissingObjects, error) {
	readings, err := ReadList(ctx, from)
	if err != nil {
		return MissingObjects{}, err
	}
	f := &finder{reader: &reader{Clients: from, readings: &Readings{Gaps: readings.Gaps}}, list: readings, out: MissingObjects{Time: from.Now, Missing: []Missing{}}}
	if readings.CinderRead {
		f.volumes(ctx)
		f.attachments(ctx)
	}
	f.contents(ctx)
	f.out.Unseen = listed(f.readings.Gaps)
	return f.out, nil
}

// finder is one run of FindMissing.
type finder struct {
	*reader
	list    ListReadings
	missing map[string]bool // the volumes that are missing, in lower case
	out     MissingObjects
}

// gone reports whether Cinder answers 404 for each of these resources. Any other answer is a gap.
func (f *finder) gone(ctx context.Context, id string, resources ...string) bool {
	if !shell.IsID(id) {
		return true // Cinder can have no such object
	}
	for _, resource := range resources {
		microversion := ""
		if resource == "backups" {
			microversion = "3.43"
		}
		if _, missing := f.ask(ctx, resource+" "+id+" in Cinder", "block-storage", microversion, resource+"/"+url.PathEscape(id), &struct{}{}); !missing {
			return false
		}
	}
	return true
}

func (f *finder) add(m Missing) { f.out.Missing = append(f.out.Missing, m) }

func (f *finder) volumes(ctx context.Context) {
	f.missing = map[string]bool{}
	checked := 0
	for _, v := range f.list.Volumes {
		id := f.list.handle(v)
		if id == "" {
			continue
		}
		checked++
		if _, found := f.list.Cinder[strings.ToLower(id)]; found || !f.gone(ctx, id, "volumes") {
			continue
		}
		f.missing[strings.ToLower(id)] = true
		f.add(Missing{Kind: "PersistentVolume", Name: v.Name, ID: id, Of: claimOfPersistent(v), Why: "Cinder has no such volume"})
	}
	f.out.Checked += checked
	if n := len(f.out.Missing); n > 1 && n == checked {
		f.out.Doubt = "Cinder has none of the volumes: the credentials are probably those of another project or cloud"
	}
}

func (f *finder) attachments(ctx context.Context) {
	volumes := map[string]corev1.PersistentVolume{}
	for _, v := range f.list.Volumes {
		volumes[v.Name] = v
	}
	for _, a := range f.list.Attachments {
		name := a.Spec.Source.PersistentVolumeName
		if name == nil || !slices.Contains(f.list.Drivers, a.Spec.Attacher) {
			continue
		}
		f.out.Checked++
		v, known := volumes[*name]
		m := Missing{Kind: "VolumeAttachment", Name: a.Name, ID: f.list.handle(v), Of: claimOfPersistent(v)}
		switch {
		case !known:
			m.Why = "there is no PersistentVolume " + *name
		case f.missing[strings.ToLower(m.ID)]:
			m.Why = "Cinder has no such volume"
		default:
			m.Why = f.detached(ctx, a, m.ID)
		}
		if m.Why != "" && f.still(ctx, a) {
			f.add(m)
		}
	}
}

// still reports whether the VolumeAttachment is as it was: Kubernetes was read before Cinder.
func (f *finder) still(ctx context.Context, a storagev1.VolumeAttachment) bool {
	var now storagev1.VolumeAttachment
	there := f.get(ctx, "VolumeAttachment "+a.Name, "/apis/storage.k8s.io/v1/volumeattachments/"+url.PathEscape(a.Name), &now)
	return there && now.UID == a.UID && now.Status.Attached == a.Status.Attached && (now.DeletionTimestamp == nil) == (a.DeletionTimestamp == nil)
}

// detached says how Cinder contradicts a VolumeAttachment that is attached; empty if it does not.
func (f *finder) detached(ctx context.Context, a storagev1.VolumeAttachment, id string) string {
	server, registered := f.list.Servers[a.Spec.NodeName]
	listed, found := f.list.Cinder[strings.ToLower(id)]
	at := func(v ListedVolume) bool { return v.attachedTo(map[string]bool{server: true}) }
	nowhere := len(listed.Attachments) == 0 // then the server need not be known
	if !found || !registered && !nowhere || !a.Status.Attached || a.DeletionTimestamp != nil || at(listed) {
		return ""
	}
	var answer struct {
		Volume ListedVolume `json:"volume"`
	}
	if there, _ := f.ask(ctx, "volume "+id+" in Cinder", "block-storage", "", "volumes/"+url.PathEscape(id), &answer); !there || at(answer.Volume) || !registered && len(answer.Volume.Attachments) > 0 {
		return ""
	}
	if !registered {
		return fmt.Sprintf("attached to node %s, and Cinder does not attach the volume to any server (status %s)", a.Spec.NodeName, answer.Volume.Status)
	}
	return fmt.Sprintf("attached to node %s, and Cinder does not attach the volume to its server %s (status %s)", a.Spec.NodeName, server, answer.Volume.Status)
}

func (f *finder) contents(ctx context.Context) {
	all, err := cluster.List[content](ctx, f.Cluster, "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents")
	if errors.Is(err, cluster.ErrNotFound) || err == nil && len(all) == 0 {
		return // no snapshots in this cluster
	}
	if err != nil {
		f.gap("the VolumeSnapshotContents", err)
		return
	}
	if f.Cloud == nil {
		return
	}
	known := map[string]bool{}
	for _, list := range []struct{ resource, microversion string }{{"snapshots", ""}, {"backups", "3.43"}} {
		objects, err := cinderList(ctx, f.reader, list.resource, list.microversion, func(v ListedVolume) string { return v.ID })
		if err != nil {
			f.readings.Gaps = append(f.readings.Gaps, Gap{What: "the " + list.resource + " in Cinder, so nothing is known of the VolumeSnapshotContents", Why: err.Error()})
			return
		}
		for _, o := range objects {
			known[strings.ToLower(o.ID)] = true
		}
	}
	for _, c := range all {
		id := cmp.Or(c.Spec.Source.Handle, c.Status.Handle)
		if id == "" || !slices.Contains(f.list.Drivers, c.Spec.Driver) {
			continue // of another driver, or not made yet
		}
		f.out.Checked++
		if !known[strings.ToLower(id)] && f.gone(ctx, id, "snapshots", "backups") {
			f.add(Missing{Kind: "VolumeSnapshotContent", Name: c.Metadata.Name, ID: id, Of: c.Spec.Ref.Namespace + "/" + c.Spec.Ref.Name, Why: "Cinder has no such snapshot and no such backup"})
		}
	}
}

// PrintMissing writes them for people.
func PrintMissing(out io.Writer, m MissingObjects, columns int) error {
	p := newPrinter(out, columns)
	var rows [][]string
	for _, one := range m.Missing {
		rows = append(rows, []string{one.Kind, one.Name, orNone(one.Of), orNone(one.ID), one.Why})
	}
	p.table("KIND\tNAME\tFOR\tID\tWHY", rows)
	p.unseen(m.Unseen)
	p.line("")
	if m.Doubt != "" {
		p.text("", m.Doubt)
	}
	p.text("", fmt.Sprintf("%d of %d objects name something that Cinder does not have", len(m.Missing), m.Checked))
	if len(m.Missing) > 0 {
		p.text("", "What to do: "+pages.AfterRestoreOfEtcd.String())
	}
	return p.err
}
