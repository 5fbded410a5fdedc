package openstack

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// wireSnapshot is a snapshot in Cinder's JSON (Cinder API reference, "Show a snapshot's details").
type wireSnapshot struct {
	ID        string            `json:"id"`
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
	var answer struct {
		Snapshot wireSnapshot `json:"snapshot"`
	}
	r := request{
		call: createSnapshot, verb: verb, object: "snapshot " + strconv.Quote(o.Name) + " of volume " + string(o.Volume), ok: http.StatusAccepted,
		body: map[string]body{"snapshot": {o.Name, o.Volume, o.Description, o.Metadata, o.Force}}, into: &answer,
	}
	if o.InUse {
		r.call = createSnapshotInUse
	}
	if err := c.doObject(ctx, r, &answer.Snapshot.ID, ""); err != nil {
		return volume.Snapshot{}, err
	}
	return answer.Snapshot.snapshot(), nil
}

// Snapshot implements volume.SnapshotCloud.
func (c *Cloud) Snapshot(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	var answer struct {
		Snapshot wireSnapshot `json:"snapshot"`
	}
	err := c.doObject(ctx, request{
		call: getSnapshot, verb: "read snapshot", object: "snapshot " + string(id), ids: []string{string(id)}, ok: http.StatusOK, into: &answer,
	}, &answer.Snapshot.ID, string(id))
	if err != nil {
		return volume.Snapshot{}, err
	}
	return answer.Snapshot.snapshot(), nil
}

// SnapshotsNamed implements volume.SnapshotCloud.
func (c *Cloud) SnapshotsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	const verb = "find snapshot by name"
	if name == "" {
		return nil, volume.Errorf(volume.InvalidArgument, "the name is empty; the driver does not list all snapshots").Op(verb)
	}
	return allNamed(name, func(query url.Values) ([]volume.Snapshot, bool, error) {
		return c.listSnapshots(ctx, verb, "snapshots named "+strconv.Quote(name), query)
	}, snapshotIDAndName)
}

// Snapshots implements volume.SnapshotCloud.
func (c *Cloud) Snapshots(ctx context.Context, p volume.SnapshotPage) ([]volume.Snapshot, error) {
	const verb = "list snapshots"
	query, err := pageQuery(p, verb)
	if err != nil {
		return nil, err
	}
	page, _, err := c.listSnapshots(ctx, verb, "the project's snapshots", query)
	return page, err
}

// pageQuery is the query for one page of snapshots or backups.
func pageQuery(p volume.SnapshotPage, verb string) (url.Values, error) {
	query := url.Values{}
	for key, id := range map[string]string{"marker": string(p.Marker), "volume_id": string(p.Volume)} {
		if id == "" {
			continue
		}
		if !isUUID(id) {
			return nil, volume.Errorf(volume.NotFound, "%s %q does not exist: it is not a UUID", key, id).Op(verb)
		}
		query.Set(key, id)
	}
	if p.Limit > 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
	return query, nil
}

// listSnapshots reads one page, and whether there are more.
func (c *Cloud) listSnapshots(ctx context.Context, verb, object string, query url.Values) ([]volume.Snapshot, bool, error) {
	var answer struct {
		Snapshots cloud.Items[wireSnapshot] `json:"snapshots"`
		Links     links                     `json:"snapshots_links"`
	}
	err := c.do(ctx, request{call: listSnapshots, verb: verb, object: object, query: query, ok: http.StatusOK, into: &answer})
	if err != nil {
		return nil, false, err
	}
	return pageOf(query, answer.Snapshots, func(w wireSnapshot) (volume.Snapshot, string) { return w.snapshot(), w.ID }, len(answer.Links) > 0, verb)
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
