package openstack

import (
	"context"
	"encoding/json"
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
		_, err := c.Backups(ctx, volume.SnapshotPage{})
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
		"make": {
			func(ctx context.Context, c *Cloud) {
				_, _ = c.CreateBackup(ctx, volume.BackupOptions{
					Name: "n", Volume: volumeID, Snapshot: snapshotID, Description: "d", Metadata: map[string]string{"k": "v"}, Incremental: true,
				})
			},
			seen{"POST", "/v3/p/backups", "", "3.43", `{"backup":{"name":"n","volume_id":"` + volumeID + `","snapshot_id":"` + snapshotID +
				`","description":"d","metadata":{"k":"v"},"incremental":true}}`},
		},
		"make in a zone": {
			func(ctx context.Context, c *Cloud) {
				_, _ = c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: volumeID, Snapshot: snapshotID, Zone: "az 1"})
			},
			seen{"POST", "/v3/p/backups", "", "3.51", `{"backup":{"name":"n","volume_id":"` + volumeID + `","snapshot_id":"` + snapshotID + `","availability_zone":"az 1"}}`},
		},
		"find":     {func(ctx context.Context, c *Cloud) { _, _ = c.BackupsNamed(ctx, "a b") }, seen{"GET", "/v3/p/backups/detail", "name=a+b", "3.43", ""}},
		"list all": {func(ctx context.Context, c *Cloud) { _, _ = c.Backups(ctx, volume.SnapshotPage{}) }, seen{"GET", "/v3/p/backups/detail", "", "3.43", ""}},
		"list some": {
			func(ctx context.Context, c *Cloud) {
				_, _ = c.Backups(ctx, volume.SnapshotPage{Marker: snapshotID, Limit: 5, Volume: volumeID})
			},
			seen{"GET", "/v3/p/backups/detail", "limit=5&marker=" + snapshotID + "&volume_id=" + volumeID, "3.43", ""},
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
		"volume_id": "` + volumeID + `", "links": [], "is_incremental": false, "has_dependent_backups": false, "snapshot_id": "` + snapshotID + `",
		"data_timestamp": "2026-11-21T10:42:46.000000"}}`})
	got, err := c.Backup(t.Context(), snapshotID)
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Snapshot{
		ID: snapshotID, Name: "b", Volume: volumeID, Status: "error", Size: volume.GiB(2), CreatedAt: time.Date(2026, 11, 21, 10, 42, 47, 0, time.UTC),
		Backup: true, Reason: "disk full", From: snapshotID, DataAt: time.Date(2026, 11, 21, 10, 42, 46, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("backup (-want +got):\n%s", diff)
	}
}

func TestBackupsOfANameAreReadPageByPageAndComparedOnceMore(t *testing.T) {
	t.Parallel()
	c, f := connect(t,
		answer{status: 200, body: `{"backups": [{"id": "` + snapshotID + `", "name": "n", "metadata": {"k": "v"}}, {"id": "` + volumeID + `", "name": "N"}], "backups_links": [{"rel": "next"}]}`},
		answer{status: 200, body: `{"backups": []}`})
	got, err := c.BackupsNamed(t.Context(), "n")
	if err != nil || len(got) != 1 || got[0].ID != snapshotID || !got[0].Backup || got[0].Metadata["k"] != "v" {
		t.Errorf("got %v, %v", got, err)
	}
	if len(f.seen) != 2 || f.seen[1].Query != "marker="+volumeID+"&name=n" {
		t.Errorf("asked %v", f.seen)
	}
	if _, err := c.BackupsNamed(t.Context(), ""); !volume.Is(err, volume.InvalidArgument) || len(f.seen) != 2 {
		t.Errorf("without a name: %v after %v", err, f.seen)
	}
}

func TestWhatAnswersToANewBackupMean(t *testing.T) {
	t.Parallel()
	for text, test := range map[string]struct {
		status int
		kind   volume.Kind
		sent   bool
	}{
		"Invalid snapshot: Snapshot to be backed up must be available, but the current status is \"backing-up\".":      {400, volume.Busy, false},
		"Invalid volume: Volume to be backed up must be available or in-use, but the current status is \"extending\".": {400, volume.Busy, false},
		"Invalid backup: The parent backup must be available for incremental backup.":                                  {400, volume.Busy, false},
		"Invalid backup: No backups available to do an incremental backup.":                                            {400, volume.Busy, false},
		"Invalid volume: Volume a does not match with snapshot.volume_id b.":                                           {400, volume.InvalidArgument, false},
		"Policy doesn't allow backup:create to be performed.":                                                          {403, volume.PermissionDenied, false},
		"Snapshot could not be found.": {404, volume.NotFound, false},
		"Version 3.51 is not supported by the API. Minimum is 3.0 and maximum is 3.50.": {406, volume.Unimplemented, false},
		"BackupLimitExceeded: Maximum number of backups allowed (10) exceeded":          {413, volume.Exhausted, false},
		"Service cinder-backup could not be found.":                                     {503, volume.Unavailable, true},
	} {
		body, err := json.Marshal(map[string]any{"fault": map[string]any{"message": text}})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := connect(t, answer{status: test.status, body: string(body)})
		_, err = c.CreateBackup(t.Context(), volume.BackupOptions{Name: "n", Volume: volumeID, Snapshot: snapshotID})
		if !volume.Is(err, test.kind) || volume.MayHaveWritten(err) != test.sent {
			t.Errorf("%d %s: %v of kind %s, after a write: %v", test.status, text, err, volume.KindOf(err), volume.MayHaveWritten(err))
		}
	}
}

func TestBackupIDsThatAreNoUUIDsAreNeverAskedAbout(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"x", "../detail", volumeID + "/action", volumeID + "\n"} {
		c, f := connect(t, answer{status: 200, body: `{}`})
		ctx := t.Context()
		_, read := c.Backup(ctx, volume.SnapshotID(id))
		_, ofVolume := c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: volume.ID(id), Snapshot: snapshotID})
		_, ofSnapshot := c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: volumeID, Snapshot: volume.SnapshotID(id)})
		_, list := c.Backups(ctx, volume.SnapshotPage{Volume: volume.ID(id)})
		for name, err := range map[string]error{
			"read": read, "make of a volume": ofVolume, "make of a snapshot": ofSnapshot, "list": list, "delete": c.DeleteBackup(ctx, volume.SnapshotID(id)), "metadata": c.AddMetadata(ctx, volume.ID(id), nil),
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
