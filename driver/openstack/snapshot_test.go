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
	{"snapshots named", false, answer{status: 200, body: `{"snapshots": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.SnapshotsNamed(ctx, "n")
		return err
	}},
	{"snapshots", false, answer{status: 200, body: `{"snapshots": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Snapshots(ctx, volume.SnapshotPage{})
		return err
	}},
	{"delete snapshot", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.DeleteSnapshot(ctx, snapshotID) }},
	{"snapshot failure", false, answer{status: 200, body: `{"messages": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.SnapshotFailure(ctx, snapshotID)
		return err
	}},
}

func TestSnapshotRequestsSayWhatIsMeant(t *testing.T) {
	t.Parallel()
	create := func(o volume.SnapshotOptions) func(context.Context, *Cloud) {
		return func(ctx context.Context, c *Cloud) { _, _ = c.CreateSnapshot(ctx, o) }
	}
	for name, tc := range map[string]struct {
		run  func(context.Context, *Cloud)
		want seen
	}{
		"everything": {
			create(volume.SnapshotOptions{Name: "s", Volume: volumeID, Description: "d", Metadata: map[string]string{"k": "v"}}),
			seen{"POST", "/v3/p/snapshots", "", "", `{"snapshot":{"name":"s","volume_id":"` + volumeID + `","description":"d","metadata":{"k":"v"}}}`},
		},
		"in use": {
			create(volume.SnapshotOptions{Name: "s", Volume: volumeID, InUse: true}),
			seen{"POST", "/v3/p/snapshots", "", "3.66", `{"snapshot":{"name":"s","volume_id":"` + volumeID + `"}}`},
		},
		"by force": {
			create(volume.SnapshotOptions{Name: "s", Volume: volumeID, Force: true}),
			seen{"POST", "/v3/p/snapshots", "", "", `{"snapshot":{"name":"s","volume_id":"` + volumeID + `","force":true}}`},
		},
		"named": {
			func(ctx context.Context, c *Cloud) { _, _ = c.SnapshotsNamed(ctx, "a&b c") },
			seen{"GET", "/v3/p/snapshots/detail", "name=a%26b+c", "", ""},
		},
		"page": {
			func(ctx context.Context, c *Cloud) {
				_, _ = c.Snapshots(ctx, volume.SnapshotPage{Marker: snapshotID, Limit: 7, Volume: volumeID})
			},
			seen{"GET", "/v3/p/snapshots/detail", "limit=7&marker=" + snapshotID + "&volume_id=" + volumeID, "", ""},
		},
		"messages": {
			func(ctx context.Context, c *Cloud) { _, _ = c.SnapshotFailure(ctx, snapshotID) },
			seen{"GET", "/v3/p/messages", "resource_uuid=" + snapshotID, "3.5", ""},
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

func TestSnapshotNamesAreComparedExactlyAndAllPagesAreRead(t *testing.T) {
	t.Parallel()
	page := func(id, name, links string) answer {
		return answer{status: 200, body: `{"snapshots": [{"id": "` + id + `", "name": "` + name + `"}], "snapshots_links": [` + links + `]}`}
	}
	c, f := connect(t, page(volumeID, "SNAP", `{"rel": "next", "href": "http://elsewhere"}`), page(snapshotID, "snap", ""))
	got, err := c.SnapshotsNamed(t.Context(), "snap")
	if err != nil || len(got) != 1 || got[0].ID != snapshotID {
		t.Errorf("got %v, %v, want the one on the second page", got, err)
	}
	if len(f.seen) != 2 || f.seen[1].Query != "marker="+volumeID+"&name=snap" {
		t.Errorf("asked %v", f.seen)
	}
	if _, err := c.SnapshotsNamed(t.Context(), ""); !volume.Is(err, volume.InvalidArgument) {
		t.Errorf("an empty name: %v; Cinder would list everything", err)
	}
}

func TestSnapshotIDsThatAreNoUUIDsAreNeverAskedAbout(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"x", "../detail", volumeID + "/action", volumeID + "\n"} {
		c, f := connect(t, answer{status: 200, body: `{}`})
		ctx := t.Context()
		_, create := c.CreateSnapshot(ctx, volume.SnapshotOptions{Name: "n", Volume: volume.ID(id)})
		_, read := c.Snapshot(ctx, volume.SnapshotID(id))
		_, page := c.Snapshots(ctx, volume.SnapshotPage{Marker: volume.SnapshotID(id)})
		_, of := c.Snapshots(ctx, volume.SnapshotPage{Volume: volume.ID(id)})
		for name, err := range map[string]error{"create": create, "read": read, "page": page, "of": of, "delete": c.DeleteSnapshot(ctx, volume.SnapshotID(id))} {
			if !volume.Is(err, volume.NotFound) {
				t.Errorf("%s of %q: %v, want not found", name, id, err)
			}
		}
		if text, err := c.SnapshotFailure(ctx, volume.SnapshotID(id)); text != "" || err != nil {
			t.Errorf("failure of %q: %q, %v", id, text, err)
		}
		if len(f.seen) != 0 {
			t.Errorf("%q was asked about: %v", id, f.seen)
		}
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
