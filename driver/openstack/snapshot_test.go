package openstack

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	attachment "github.com/cinder-csi/cinder-csi/driver/attach"
	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

var snapshotOperations = []operation{
	{"create snapshot", true, answer{status: 202, body: `{"snapshot": {"id": "` + snapshotID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.CreateSnapshot(ctx, volume.SnapshotOptions{Name: "n", Volume: volumeID})
		return err
	}},
	{"create snapshot in use", true, answer{status: 202, body: `{"snapshot": {"id": "` + snapshotID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.CreateSnapshot(ctx, volume.SnapshotOptions{Name: "n", Volume: volumeID, InUse: true})
		return err
	}},
	{"snapshot", false, answer{status: 200, body: `{"snapshot": {"id": "` + snapshotID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Snapshot(ctx, snapshotID)
		return err
	}},
	{"snapshot that stops a retype", false, answer{status: 200, body: `{"snapshot": {"id": "` + snapshotID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.SnapshotStopsRetype(ctx, snapshotID)
		return err
	}},
	{"snapshots named", false, answer{status: 200, body: `{"snapshots": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.SnapshotsNamed(ctx, "n")
		return err
	}},
	{"snapshots", false, answer{status: 200, body: `{"snapshots": []}`}, func(ctx context.Context, c *Cloud) error {
		_, _, err := c.Snapshots(ctx, volume.SnapshotPage{})
		return err
	}},
	{"delete snapshot", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.DeleteSnapshot(ctx, snapshotID) }},
	{"snapshot failure", false, answer{status: 200, body: `{"messages": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.SnapshotFailure(ctx, snapshotID)
		return err
	}},
}

// Only Cinder 24 and later have 3.71. Older ones store the result of a retype.
func TestOnlyASnapshotOfCinder24StopsARetype(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer answer
		stops  bool
		kind   volume.Kind
	}{
		"Cinder 26":           {answer{status: 200, body: `{"snapshot": {"id": "` + snapshotID + `"}}`}, true, volume.Unknown},
		"Cinder 21":           {answer{status: 406, body: `{"computeFault": {"message": "Version 3.71 is not supported by the API."}}`}, false, volume.Unknown},
		"no such snapshot":    {answer{status: 404}, false, volume.NotFound},
		"a cloud that is out": {answer{status: 503}, false, volume.Unavailable},
	} {
		c, _ := connect(t, test.answer)
		stops, err := c.SnapshotStopsRetype(t.Context(), snapshotID)
		if stops != test.stops || (err == nil) != (test.kind == volume.Unknown) || err != nil && !volume.Is(err, test.kind) {
			t.Errorf("%s: %v, %v", name, stops, err)
		}
	}
}

var snapshotRequests = []requestCase{
	{
		"snapshot, everything",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateSnapshot(ctx, volume.SnapshotOptions{Name: "s", Volume: volumeID, Description: "d", Metadata: map[string]string{"k": "v"}})
		},
		seen{"POST", "/v3/p/snapshots", "", "", `{"snapshot":{"name":"s","volume_id":"` + volumeID + `","description":"d","metadata":{"k":"v"}}}`},
	},
	{
		"snapshot, in use",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateSnapshot(ctx, volume.SnapshotOptions{Name: "s", Volume: volumeID, InUse: true})
		},
		seen{"POST", "/v3/p/snapshots", "", "3.66", `{"snapshot":{"name":"s","volume_id":"` + volumeID + `"}}`},
	},
	{
		"snapshot, by force",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateSnapshot(ctx, volume.SnapshotOptions{Name: "s", Volume: volumeID, Force: true})
		},
		seen{"POST", "/v3/p/snapshots", "", "", `{"snapshot":{"name":"s","volume_id":"` + volumeID + `","force":true}}`},
	},
	{
		"snapshot, named",
		func(ctx context.Context, c *Cloud) { _, _ = c.SnapshotsNamed(ctx, "a&b c") },
		seen{"GET", "/v3/p/snapshots/detail", "limit=1000&name=a%26b+c", "", ""},
	},
	{
		"snapshot, page",
		func(ctx context.Context, c *Cloud) {
			_, _, _ = c.Snapshots(ctx, volume.SnapshotPage{Marker: snapshotID, Limit: 7, Volume: volumeID})
		},
		seen{"GET", "/v3/p/snapshots/detail", "limit=7&marker=" + snapshotID + "&volume_id=" + volumeID, "", ""},
	},
	{
		"snapshot, messages",
		func(ctx context.Context, c *Cloud) { _, _ = c.SnapshotFailure(ctx, snapshotID) },
		seen{"GET", "/v3/p/messages", "limit=1000&resource_uuid=" + snapshotID, "3.5", ""},
	},
}

func TestASnapshotIsReadWhole(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 200, body: `{"snapshot": {"id": "` + snapshotID + `", "created_at": "2026-11-21T10:42:47.000000", "updated_at": null,
		"name": "s", "description": "d", "volume_id": "` + volumeID + `", "status": "available", "size": 2, "metadata": {"k": "v"},
		"os-extended-snapshot-attributes:progress": "100%"}}`})
	got, err := c.Snapshot(t.Context(), snapshotID)
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Snapshot{
		ID: snapshotID, Name: "s", Volume: volumeID, Status: volume.Available, Size: volume.GiB(2), Metadata: map[string]string{"k": "v"},
		CreatedAt: time.Date(2026, 11, 21, 10, 42, 47, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func TestASnapshotsLifeOnASimulatedCloud(t *testing.T) {
	t.Parallel()
	config := openstacksim.Default()
	simulated(t, config, func(t *testing.T, a *Cloud, hub *status.Hub, sim *openstacksim.Sim) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		hubOfSnapshots, hubOfBackups := status.NewSnapshotHub(a), status.NewBackupHub(a)
		go func() { _ = hubOfSnapshots.Run(ctx) }()
		go func() { _ = hubOfBackups.Run(ctx) }()
		volumes := provision.New(a, hub, provision.Options{})
		attachments := attachment.New(a, hub, attachment.Options{})
		snapshots := snapshot.New(a, hub, hubOfSnapshots, hubOfBackups, snapshot.Options{})
		v, err := volumes.Create(ctx, provision.CreateSpec{Name: "pvc", Zones: []string{"az2"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = attachments.Attach(ctx, v.ID, volume.ServerID(config.Servers[1].ID)); err != nil {
			t.Fatal(err)
		}
		sim.ResetRequests()
		spec := snapshot.Spec{Name: "snap", Volume: v.ID}
		if _, err := snapshots.Create(ctx, spec); err != nil {
			t.Fatal(err)
		}
		if n := sim.RequestCount(); n != 6 { // two searches for the name, one for a backup, a read of the volume, a POST, and the metadata
			t.Errorf("%d requests for a snapshot", n)
		}
		time.Sleep(time.Minute)
		p, err := snapshots.Create(ctx, spec)
		if err != nil || !p.Ready() || p.Size != volume.GiB(1) {
			t.Errorf("got %+v, %v", p, err)
		}
		page, err := snapshots.List(ctx, v.ID, volume.SnapshotPosition{}, 10)
		if err != nil || !slices.ContainsFunc(page, func(q volume.Snapshot) bool { return q.ID == p.ID }) {
			t.Errorf("listed %v, %v", page, err)
		}
		restored, err := volumes.Create(ctx, provision.CreateSpec{Name: "restored", Snapshot: p.ID})
		if err != nil || restored.Zone != "az2" || restored.SnapshotID != string(p.ID) {
			t.Errorf("got %+v, %v", restored, err)
		}
		for range 2 {
			if err := snapshots.Delete(ctx, p.ID); err != nil {
				t.Error(err)
			}
		}
		if _, err := snapshots.Get(ctx, p.ID); !volume.Is(err, volume.NotFound) {
			t.Errorf("after the deletion: %v", err)
		}
	})
}

func TestACloudWithoutTheMicroversionIsAskedByForce(t *testing.T) {
	t.Parallel()
	simulated(t, openstacksim.Default(), func(t *testing.T, a *Cloud, _ *status.Hub, sim *openstacksim.Sim) {
		sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/volume/v3/*/snapshots", Status: http.StatusNotAcceptable})
		_, err := a.CreateSnapshot(t.Context(), volume.SnapshotOptions{Name: "n", Volume: volumeID, InUse: true})
		if !volume.Is(err, volume.Unimplemented) || volume.MayHaveWritten(err) {
			t.Errorf("got %v", err)
		}
	})
}
