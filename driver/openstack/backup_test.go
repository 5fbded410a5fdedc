package openstack

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

var backupOperations = []operation{
	{"backup", false, answer{status: 200, body: `{"backup": {"id": "` + snapshotID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Backup(ctx, snapshotID)
		return err
	}},
	{"create backup", true, answer{status: 202, body: `{"backup": {"id": "` + snapshotID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: volumeID, Snapshot: snapshotID})
		return err
	}},
	{"create backup in zone", true, answer{status: 202, body: `{"backup": {"id": "` + snapshotID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: volumeID, Snapshot: snapshotID, Zone: "az1"})
		return err
	}},
	{"backups by name", false, answer{status: 200, body: `{"backups": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.BackupsNamed(ctx, "n")
		return err
	}},
	{"backups", false, answer{status: 200, body: `{"backups": []}`}, func(ctx context.Context, c *Cloud) error {
		_, _, err := c.Backups(ctx, volume.SnapshotPage{})
		return err
	}},
	{"restore backup", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.RestoreBackup(ctx, snapshotID, volumeID) }},
	{"delete backup", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.DeleteBackup(ctx, snapshotID) }},
	{"add metadata", true, answer{status: 200, body: `{"metadata": {"k": "v"}}`}, func(ctx context.Context, c *Cloud) error {
		return c.AddMetadata(ctx, volumeID, map[string]string{"k": "v"})
	}},
	{"remove metadata", true, answer{status: 200}, func(ctx context.Context, c *Cloud) error { return c.RemoveMetadata(ctx, volumeID, "k") }},
}

var backupRequests = []requestCase{
	{
		"backup, restore",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1), BackupID: snapshotID, Metadata: map[string]string{"k": "v"}})
		},
		seen{"POST", "/v3/p/volumes", "", "3.47", `{"volume":{"name":"n","size":1,"backup_id":"` + snapshotID + `","metadata":{"k":"v","src_backup_id":"` + snapshotID + `"}}}`},
	},
	{
		"backup, restore without metadata",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1), BackupID: snapshotID})
		},
		seen{"POST", "/v3/p/volumes", "", "3.47", `{"volume":{"name":"n","size":1,"backup_id":"` + snapshotID + `","metadata":{"src_backup_id":"` + snapshotID + `"}}}`},
	},
	{
		"backup, make",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateBackup(ctx, volume.BackupOptions{
				Name: "n", Volume: volumeID, Snapshot: snapshotID, Description: "d", Metadata: map[string]string{"k": "v"}, Incremental: true,
			})
		},
		seen{"POST", "/v3/p/backups", "", "3.43", `{"backup":{"name":"n","volume_id":"` + volumeID + `","snapshot_id":"` + snapshotID +
			`","description":"d","metadata":{"k":"v"},"incremental":true}}`},
	},
	{
		"backup, make in a zone",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: volumeID, Snapshot: snapshotID, Zone: "az 1"})
		},
		seen{"POST", "/v3/p/backups", "", "3.51", `{"backup":{"name":"n","volume_id":"` + volumeID + `","snapshot_id":"` + snapshotID + `","availability_zone":"az 1"}}`},
	},
	{"backup, find", func(ctx context.Context, c *Cloud) { _, _ = c.BackupsNamed(ctx, "a b") }, seen{"GET", "/v3/p/backups/detail", "limit=1000&name=a+b", "3.43", ""}},
	{"backup, list all", func(ctx context.Context, c *Cloud) { _, _, _ = c.Backups(ctx, volume.SnapshotPage{}) }, seen{"GET", "/v3/p/backups/detail", "limit=1000", "3.43", ""}},
	{
		"backup, list some",
		func(ctx context.Context, c *Cloud) {
			_, _, _ = c.Backups(ctx, volume.SnapshotPage{Marker: snapshotID, Limit: 5, Volume: volumeID})
		},
		seen{"GET", "/v3/p/backups/detail", "limit=5&marker=" + snapshotID + "&volume_id=" + volumeID, "3.43", ""},
	},
	{"backup, read", func(ctx context.Context, c *Cloud) { _, _ = c.Backup(ctx, snapshotID) }, seen{"GET", "/v3/p/backups/" + snapshotID, "", "3.43", ""}},
	{
		"backup, restore into a volume",
		func(ctx context.Context, c *Cloud) { _ = c.RestoreBackup(ctx, snapshotID, volumeID) },
		seen{"POST", "/v3/p/backups/" + snapshotID + "/restore", "", "", `{"restore":{"volume_id":"` + volumeID + `"}}`},
	},
	{"backup, delete", func(ctx context.Context, c *Cloud) { _ = c.DeleteBackup(ctx, snapshotID) }, seen{"DELETE", "/v3/p/backups/" + snapshotID, "", "", ""}},
	{
		"backup, metadata",
		func(ctx context.Context, c *Cloud) { _ = c.AddMetadata(ctx, volumeID, map[string]string{"k": "v"}) },
		seen{"POST", "/v3/p/volumes/" + volumeID + "/metadata", "", "", `{"metadata":{"k":"v"}}`},
	},
	{
		"metadata, remove",
		func(ctx context.Context, c *Cloud) { _ = c.RemoveMetadata(ctx, volumeID, "a b?.c") },
		seen{"DELETE", "/v3/p/volumes/" + volumeID + "/metadata/a b?.c", "", "", ""},
	},
}

func TestABackupIsReadWhole(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 200, body: `{"backup": {"id": "` + snapshotID + `", "status": "error", "size": 2, "object_count": 21, "availability_zone": "az1",
		"container": "c", "created_at": "2026-11-21T10:42:47.000000", "updated_at": null, "name": "b", "description": null, "fail_reason": "disk full",
		"volume_id": "` + volumeID + `", "links": [], "is_incremental": false, "has_dependent_backups": false, "snapshot_id": "` + snapshotID + `",
		"data_timestamp": "2026-11-21T10:42:46.000000"}}`})
	got, err := c.Backup(t.Context(), snapshotID)
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Snapshot{
		ID: snapshotID, Name: "b", Volume: volumeID, Status: "error", Size: volume.GiB(2), CreatedAt: time.Date(2026, 11, 21, 10, 42, 47, 0, time.UTC),
		Backup: true, Reason: "disk full", From: snapshotID, Zone: "az1", Objects: 21, DataAt: time.Date(2026, 11, 21, 10, 42, 46, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("backup (-want +got):\n%s", diff)
	}
}

func TestBackupsAreAwaitedOneByOneHoweverMany(t *testing.T) {
	t.Parallel()
	simulated(t, openstacksim.Default(), func(t *testing.T, a *Cloud, _ *status.Hub, sim *openstacksim.Sim) {
		hub := status.NewBackupHub(a)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		go func() { _ = hub.Run(ctx) }()
		errs := make(chan error)
		for n := range 20 {
			id := volume.SnapshotID(volumeID[:34] + string("0123456789"[n/10]) + string("0123456789"[n%10]))
			go func() {
				_, err := hub.Await(ctx, id, func(_ volume.Snapshot, ok bool) (bool, error) { return !ok, nil })
				errs <- err
			}()
		}
		for range 20 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		for _, r := range sim.Requests() {
			if r.Method == http.MethodGet && r.Status != http.StatusNotFound {
				t.Errorf("%+v", r)
			}
		}
	})
}
