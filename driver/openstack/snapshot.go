package openstack

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// wireSnapshot is a snapshot in Cinder's JSON (Cinder API reference, "Show a snapshot's details").
type wireSnapshot struct {
	wireID
	Name      string            `json:"name"`
	Volume    string            `json:"volume_id"`
	Status    string            `json:"status"`
	Size      int               `json:"size"` // GiB
	Metadata  map[string]string `json:"metadata"`
	CreatedAt string            `json:"created_at"`
}

func (w wireSnapshot) snapshot() volume.Snapshot {
	p := volume.Snapshot{
		ID: volume.SnapshotID(w.ID), Name: w.Name, Volume: volume.ID(w.Volume), Status: volume.Status(w.Status), Size: gib(w.Size), Metadata: w.Metadata,
	}
	p.CreatedAt, _ = time.Parse("2006-01-02T15:04:05", w.CreatedAt) // as for volumes
	return p
}

// CreateSnapshot implements volume.SnapshotCloud.
func (c *Cloud) CreateSnapshot(ctx context.Context, o volume.SnapshotOptions) (volume.Snapshot, error) {
	const verb = "create snapshot"
	if !o.Volume.Exists() {
		return volume.Snapshot{}, volume.Errorf(volume.NotFound, "volume %q does not exist: its id is not a UUID", o.Volume).Op(verb)
	}
	type body struct {
		Name        string            `json:"name"`
		Volume      volume.ID         `json:"volume_id"`
		Description string            `json:"description,omitempty"`
		Metadata    map[string]string `json:"metadata,omitempty"`
		Force       bool              `json:"force,omitempty"`
	}
	r := request{
		call: createSnapshot, verb: verb, object: "snapshot " + strconv.Quote(o.Name) + " of volume " + string(o.Volume), ok: http.StatusAccepted,
		body: map[string]body{"snapshot": {o.Name, o.Volume, o.Description, o.Metadata, o.Force}},
	}
	if o.InUse {
		r.call = createSnapshotInUse
	}
	return object(ctx, c, r, "snapshot", "", wireSnapshot.snapshot)
}

// Snapshot implements volume.SnapshotCloud.
func (c *Cloud) Snapshot(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	return read(ctx, c, getSnapshot, "snapshot", string(id), wireSnapshot.snapshot)
}

// SnapshotStopsRetype implements volume.SnapshotCloud. Cinder 24.0.0 (2024.1) has lost the code that remembers the metadata of a snapshot in a message
// to cinder-volume (objects/snapshot.py). So cinder-volume takes the snapshots of a volume for changed, and stores nothing about the volume. No older release has 3.71.
func (c *Cloud) SnapshotStopsRetype(ctx context.Context, id volume.SnapshotID) (bool, error) {
	_, err := read(ctx, c, getSnapshotLater, "snapshot", string(id), wireSnapshot.snapshot)
	if volume.Is(err, volume.Unimplemented) {
		return false, nil
	}
	return err == nil, err
}

// SnapshotsNamed implements volume.SnapshotCloud.
func (c *Cloud) SnapshotsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	return c.snapshots().named(ctx, name)
}

// Snapshots implements volume.SnapshotCloud.
func (c *Cloud) Snapshots(ctx context.Context, p volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	return snapshotPage(ctx, c.snapshots(), p)
}

func snapshotPage(ctx context.Context, l list[volume.Snapshot], p volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	verb, filter := "list "+l.noun+"s", ""
	query, err := pageQuery(string(p.Marker), p.Limit, verb)
	if err != nil {
		return nil, false, err
	}
	if p.Volume != "" {
		if !p.Volume.Exists() {
			return nil, false, volume.Errorf(volume.NotFound, "volume %q does not exist: its id is not a UUID", p.Volume).Op(verb)
		}
		filter = "volume_id"
		query.Set(filter, string(p.Volume))
	}
	return l.filtered(ctx, query, filter, func(s volume.Snapshot) bool { return !strings.EqualFold(string(s.Volume), string(p.Volume)) })
}

func (c *Cloud) snapshots() list[volume.Snapshot] {
	return list[volume.Snapshot]{
		cloud: c, call: listSnapshots, noun: "snapshot", id: idOfSnapshot, name: nameOfSnapshot, brief: briefSnapshot,
		send: func(ctx context.Context, r request) ([]volume.Snapshot, bool, error) {
			var answer struct {
				Snapshots cloud.Items[wireSnapshot] `json:"snapshots"`
				Links     links                     `json:"snapshots_links"`
			}
			r.into = &answer
			err := c.do(ctx, r)
			return converted(answer.Snapshots, wireSnapshot.snapshot), len(answer.Links) > 0, err
		},
	}
}

func idOfSnapshot(s volume.Snapshot) string   { return string(s.ID) }
func nameOfSnapshot(s volume.Snapshot) string { return s.Name }

func briefSnapshot(s volume.Snapshot) volume.Snapshot {
	s.Metadata = contract.WrittenMetadata(s.Metadata)
	return s
}

// DeleteSnapshot implements volume.SnapshotCloud.
func (c *Cloud) DeleteSnapshot(ctx context.Context, id volume.SnapshotID) error {
	return c.do(ctx, request{
		call: deleteSnapshot, verb: "delete snapshot", object: "snapshot " + string(id), ids: []string{string(id)}, ok: http.StatusAccepted,
	})
}

// SnapshotFailure implements volume.SnapshotCloud.
func (c *Cloud) SnapshotFailure(ctx context.Context, id volume.SnapshotID) (string, error) {
	return c.failure(ctx, "snapshot "+string(id), string(id))
}
