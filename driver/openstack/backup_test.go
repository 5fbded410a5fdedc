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
	{"backup", false, answer{status: 200, body: `{"backup": {}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Backup(ctx, snapshotID)
		return err
	}},
	{"delete backup", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.DeleteBackup(ctx, snapshotID) }},
	{"add metadata", true, answer{status: 200, body: `{"metadata": {"k": "v"}}`}, func(ctx context.Context, c *Cloud) error {
		return c.AddMetadata(ctx, volumeID, map[string]string{"k": "v"})
	}},
}

func TestBackupRequestsSayWhatIsMeant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		run  func(context.Context, *Cloud)
		want seen
	}{
		"restore": {
			func(ctx context.Context, c *Cloud) {
				_, _ = c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1), BackupID: snapshotID, Metadata: map[string]string{"k": "v"}})
			},
			seen{"POST", "/v3/p/volumes", "", "3.47", `{"volume":{"name":"n","size":1,"backup_id":"` + snapshotID + `","metadata":{"k":"v","src_backup_id":"` + snapshotID + `"}}}`},
		},
		"restore without metadata": {
			func(ctx context.Context, c *Cloud) {
				_, _ = c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1), BackupID: snapshotID})
			},
			seen{"POST", "/v3/p/volumes", "", "3.47", `{"volume":{"name":"n","size":1,"backup_id":"` + snapshotID + `","metadata":{"src_backup_id":"` + snapshotID + `"}}}`},
		},
		"read":   {func(ctx context.Context, c *Cloud) { _, _ = c.Backup(ctx, snapshotID) }, seen{"GET", "/v3/p/backups/" + snapshotID, "", "", ""}},
		"delete": {func(ctx context.Context, c *Cloud) { _ = c.DeleteBackup(ctx, snapshotID) }, seen{"DELETE", "/v3/p/backups/" + snapshotID, "", "", ""}},
		"metadata": {
			func(ctx context.Context, c *Cloud) { _ = c.AddMetadata(ctx, volumeID, map[string]string{"k": "v"}) },
			seen{"POST", "/v3/p/volumes/" + volumeID + "/metadata", "", "", `{"metadata":{"k":"v"}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, f := connect(t, answer{status: 200, body: `{}`})
			tc.run(t.Context(), c)
			if diff := cmp.Diff([]seen{tc.want}, f.seen); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABackupIsReadWhole(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 200, body: `{"backup": {"id": "` + snapshotID + `", "status": "error", "size": 2, "object_count": 21, "availability_zone": null,
		"container": "c", "created_at": "2026-11-21T10:42:47.000000", "updated_at": null, "name": "b", "description": null, "fail_reason": "disk full",
		"volume_id": "` + volumeID + `", "links": [], "is_incremental": false, "has_dependent_backups": false, "snapshot_id": null,
		"data_timestamp": "2026-11-21T10:42:47.000000"}}`})
	got, err := c.Backup(t.Context(), snapshotID)
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Snapshot{
		ID: snapshotID, Name: "b", Volume: volumeID, Status: "error", Size: volume.GiB(2), CreatedAt: time.Date(2026, 11, 21, 10, 42, 47, 0, time.UTC),
		Backup: true, Reason: "disk full",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("backup (-want +got):\n%s", diff)
	}
}

func TestBackupIDsThatAreNoUUIDsAreNeverAskedAbout(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"x", "../detail", volumeID + "/action", volumeID + "\n"} {
		c, f := connect(t, answer{status: 200, body: `{}`})
		ctx := t.Context()
		_, read := c.Backup(ctx, volume.SnapshotID(id))
		for name, err := range map[string]error{
			"read": read, "delete": c.DeleteBackup(ctx, volume.SnapshotID(id)), "metadata": c.AddMetadata(ctx, volume.ID(id), nil),
		} {
			if !volume.Is(err, volume.NotFound) {
				t.Errorf("%s of %q: %v, want not found", name, id, err)
			}
		}
		if len(f.seen) != 0 {
			t.Errorf("%q was asked about: %v", id, f.seen)
		}
	}
}

func TestWhatABackupsAnswersMean(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer answer
		delete volume.Kind
		read   volume.Kind
	}{
		"400 others rest on it": {answer{status: 400, body: `{"badRequest": {"code": 400, "message": "Invalid backup: Incremental backups exist for this backup."}}`}, volume.Conflict, volume.InvalidArgument},
		"404":                   {answer{status: 404, body: `{"itemNotFound": {"code": 404, "message": "Backup could not be found."}}`}, volume.NotFound, volume.NotFound},
		"403":                   {answer{status: 403}, volume.PermissionDenied, volume.PermissionDenied},
		"500":                   {answer{status: 500}, volume.Unavailable, volume.Unavailable},
		"503":                   {answer{status: 503}, volume.Unavailable, volume.Unavailable},
	} {
		c, _ := connect(t, test.answer)
		if err := c.DeleteBackup(t.Context(), snapshotID); !volume.Is(err, test.delete) {
			t.Errorf("%s to a deletion: %v, want %s", name, err, test.delete)
		}
		if _, err := c.Backup(t.Context(), snapshotID); !volume.Is(err, test.read) {
			t.Errorf("%s to a look: %v, want %s", name, err, test.read)
		}
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
