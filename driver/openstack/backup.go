package openstack

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

const sourceBackup = contract.MetadataSourceBackup

// wireBackup is a backup in Cinder's JSON (Cinder API reference, "Show backup detail").
type wireBackup struct {
	wireID
	Name       string            `json:"name"`
	Volume     string            `json:"volume_id"`
	Snapshot   string            `json:"snapshot_id"`
	Status     string            `json:"status"`
	Size       int               `json:"size"` // GiB
	Metadata   map[string]string `json:"metadata"`
	CreatedAt  string            `json:"created_at"`
	DataAt     string            `json:"data_timestamp"`
	FailReason string            `json:"fail_reason"`
	Zone       string            `json:"availability_zone"`
	Objects    int               `json:"object_count"`
	// In Ceph, too, each backup but a full one has a parent.
	Incremental bool `json:"is_incremental"`
}

func (w wireBackup) snapshot() volume.Snapshot {
	b := volume.Snapshot{
		ID: volume.SnapshotID(w.ID), Name: w.Name, Volume: volume.ID(w.Volume), Status: volume.Status(w.Status), Size: gib(w.Size), Metadata: w.Metadata,
		Backup: true, Reason: cloud.Public(w.FailReason), From: volume.SnapshotID(w.Snapshot), Zone: w.Zone, Objects: w.Objects, Incremental: w.Incremental,
	}
	b.CreatedAt, _ = time.Parse("2006-01-02T15:04:05", w.CreatedAt) // as for volumes
	b.DataAt, _ = time.Parse("2006-01-02T15:04:05", w.DataAt)
	return b
}

// CreateBackup implements volume.BackupCloud. It needs no "force" for a volume in use, because it names a snapshot.
func (c *Cloud) CreateBackup(ctx context.Context, o volume.BackupOptions) (volume.SnapshotID, error) {
	const verb = "create backup"
	for what, id := range map[string]string{"volume": string(o.Volume), "snapshot": string(o.Snapshot)} {
		if !contract.IsUUID(id) {
			return "", volume.Errorf(volume.NotFound, "%s %q does not exist: its id is not a UUID", what, id).Op(verb)
		}
	}
	type body struct {
		Name        string            `json:"name"`
		Volume      volume.ID         `json:"volume_id"`
		Snapshot    volume.SnapshotID `json:"snapshot_id"`
		Description string            `json:"description,omitempty"`
		Metadata    map[string]string `json:"metadata,omitempty"`
		Incremental bool              `json:"incremental,omitempty"`
		Zone        string            `json:"availability_zone,omitempty"`
	}
	r := request{
		call: createBackup, verb: verb, object: "backup " + strconv.Quote(o.Name) + " of volume " + string(o.Volume), ok: http.StatusAccepted,
		body: map[string]body{"backup": {o.Name, o.Volume, o.Snapshot, o.Description, o.Metadata, o.Incremental, o.Zone}},
	}
	if o.Zone != "" {
		r.call = createBackupInZone
	}
	return object(ctx, c, r, "backup", "", func(w wireID) volume.SnapshotID { return volume.SnapshotID(w.ID) })
}

// Backup implements volume.BackupCloud.
func (c *Cloud) Backup(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	return read(ctx, c, getBackup, "backup", string(id), wireBackup.snapshot)
}

// BackupsNamed implements volume.BackupCloud.
func (c *Cloud) BackupsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	return c.backups().named(ctx, name)
}

// Backups implements volume.BackupCloud.
func (c *Cloud) Backups(ctx context.Context, p volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	return snapshotPage(ctx, c.backups(), p)
}

func (c *Cloud) backups() list[volume.Snapshot] {
	return list[volume.Snapshot]{
		cloud: c, call: listBackups, noun: "backup", id: idOfSnapshot, name: nameOfSnapshot, brief: briefSnapshot,
		send: func(ctx context.Context, r request) ([]volume.Snapshot, bool, error) {
			var answer struct {
				Backups cloud.Items[wireBackup] `json:"backups"`
				Links   links                   `json:"backups_links"`
			}
			r.into = &answer
			err := c.do(ctx, r)
			return converted(answer.Backups, wireBackup.snapshot), len(answer.Links) > 0, err
		},
	}
}

// RestoreBackup implements volume.BackupCloud. It always names the volume: without one, Cinder creates a volume.
func (c *Cloud) RestoreBackup(ctx context.Context, id volume.SnapshotID, into volume.ID) error {
	const verb = "restore backup"
	if !into.Exists() {
		return volume.NoVolume(into).Op(verb)
	}
	type body struct {
		Volume volume.ID `json:"volume_id"`
	}
	return c.do(ctx, request{
		call: restoreBackup, verb: verb, object: "backup " + string(id) + " into volume " + string(into), ids: []string{string(id)}, ok: http.StatusAccepted,
		body: map[string]body{"restore": {into}},
	})
}

// DeleteBackup implements volume.BackupCloud.
func (c *Cloud) DeleteBackup(ctx context.Context, id volume.SnapshotID) error {
	return c.do(ctx, request{
		call: deleteBackup, verb: "delete backup", object: "backup " + string(id), ids: []string{string(id)}, ok: http.StatusAccepted,
	})
}
