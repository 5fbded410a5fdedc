package driver_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestSnapshotLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.CreateSnapshot, 10*time.Minute) // far longer than any sidecar waits
		d, ctx := startWith(t, sim), asSidecar(t)
		_, az2 := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "az2"} }))).GetVolume().GetVolumeId()
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az2, VolumeCapability: writer}))

		p := begunSnapshot(t, d, snapshotRequest("snapshot-1", id), codes.DeadlineExceeded, "")
		if one := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: p})); one.GetEntries()[0].GetSnapshot().GetReadyToUse() {
			t.Errorf("listed as ready: %v", one)
		}
		_, err := d.CreateVolume(asSidecar(t), claim("early", fromSnapshot(p)))
		wantCode(t, err, codes.Aborted, "creating")
		if again := must[*csi.Snapshot](t)(pursued(t, d, snapshotRequest("snapshot-1", id))); again.GetSnapshotId() != p || again.GetSizeBytes() != 1<<30 {
			t.Errorf("want %s, got %v", p, again)
		}

		for range 2 {
			v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(p), func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 }))).GetVolume()
			if zone := v.GetAccessibleTopology()[0].GetSegments()["topology.cinder.csi.openstack.org/zone"]; zone != "az2" || v.GetCapacityBytes() != 2<<30 || v.GetVolumeContext()["cinder.csi.openstack.org/resizeRequired"] != "true" {
				t.Errorf("got %v", v)
			}
		}
		_, err = d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.FailedPrecondition, "")
		for range 2 {
			must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: p}))
		}
		if left := shots(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestCreateSnapshotReturnsTheReasonOfAFailureAndCreatesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateSnapshot, Times: 1})
		d := startWith(t, sim)
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		_, err := pursued(t, d, snapshotRequest("snapshot-1", id))
		wantCode(t, err, codes.FailedPrecondition, "Snapshot failed to create")
		wantCode(t, err, codes.FailedPrecondition, "the driver deleted it")
		if all := shots(t, d); len(all) != 0 {
			t.Errorf("left: %v", all)
		}
		p := must[*csi.Snapshot](t)(pursued(t, d, snapshotRequest("snapshot-1", id)))
		if all := shots(t, d); len(all) != 1 || !all[p.GetSnapshotId()] {
			t.Errorf("want %s alone, got %v", p.GetSnapshotId(), all)
		}
	})
}

func TestAnOldCloudCreatesSnapshotsOfAttachedVolumesOnlyWithForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, ctx := startWith(t, sim), asSidecar(t)
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		tooNew := openstacksim.Fault{Method: http.MethodPost, Path: "/volume/v3/*/snapshots", Status: http.StatusNotAcceptable, Times: 1}
		sim.SetFault(tooNew)
		_, err := d.CreateSnapshot(ctx, snapshotRequest("snapshot-1", id))
		wantCode(t, err, codes.FailedPrecondition, "force-create")
		sim.SetFault(tooNew)
		req := snapshotRequest("snapshot-1", id)
		req.Parameters = map[string]string{"force-create": "true"}
		ready(t, d, req)
	})
}

func TestRefusalsOfSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, ctx := startWith(t, sim), asSidecar(t)
		az1, _ := servers()
		v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "az2"} })))
		other := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-2")))
		id := v.GetVolume().GetVolumeId()
		p := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()

		_, err := d.CreateSnapshot(ctx, snapshotRequest("snapshot-1", other.GetVolume().GetVolumeId()))
		wantCode(t, err, codes.AlreadyExists, id)
		_, err = d.CreateSnapshot(ctx, snapshotRequest("snapshot-2", az1))
		wantCode(t, err, codes.NotFound, az1)
		sim.SetQuota("demo", "snapshots", 1)
		_, err = d.CreateSnapshot(ctx, snapshotRequest("snapshot-2", id))
		wantCode(t, err, codes.ResourceExhausted, "SnapshotLimitExceeded")

		_, err = d.CreateVolume(ctx, claim("a", fromSnapshot(az1)))
		wantCode(t, err, codes.NotFound, az1)
		_, err = d.CreateVolume(ctx, claim("a", fromSnapshot(p), func(r *csi.CreateVolumeRequest) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": "az1"}}}}
		}))
		wantCode(t, err, codes.ResourceExhausted, "az2") // the scheduler picks again
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("a", fromSnapshot(p))))
		_, err = d.CreateVolume(ctx, claim("a"))
		wantCode(t, err, codes.AlreadyExists, "snapshot")

		must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "not-a-uuid"}))
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.DeleteSnapshot})
		_, err = d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: p})
		wantCode(t, err, codes.FailedPrecondition, "error_deleting")
		_, err = d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: p})
		wantCode(t, err, codes.FailedPrecondition, "administrator")
	})
}

func TestAMissingSnapshotIsNotNotFoundWhileBackupsCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		_, handle := servers() // a UUID that is neither a snapshot's nor a backup's
		remove := sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/backups/*", Status: http.StatusInternalServerError})
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1", fromSnapshot(handle)))
		wantCode(t, err, codes.Unavailable, handle)
		_, err = d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: handle})
		wantCode(t, err, codes.Unavailable, handle)
		_, err = d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: handle})
		wantCode(t, err, codes.Unavailable, handle)
		remove()
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-1", fromSnapshot(handle)))
		wantCode(t, err, codes.NotFound, handle)
	})
}

func TestListSnapshotsOfAVolumeInPagesAndByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id, other := made(t, d), made(t, d, func(r *csi.CreateVolumeRequest) { r.Name = "pvc-2" })
		ready(t, d, snapshotRequest("another", other))
		for _, name := range []string{"a", "b", "c"} {
			ready(t, d, snapshotRequest(name, id))
		}
		seen, request := map[string]bool{}, &csi.ListSnapshotsRequest{SourceVolumeId: id, MaxEntries: 2}
		var pages []int
		for more := true; more; more = request.GetStartingToken() != "" {
			page := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), request))
			for _, e := range page.GetEntries() {
				seen[e.GetSnapshot().GetSnapshotId()] = e.GetSnapshot().GetSourceVolumeId() == id
			}
			pages, request.StartingToken = append(pages, len(page.GetEntries())), page.GetNextToken()
		}
		if len(seen) != 3 || slices.Max(pages) != 2 || slices.Contains(pages[:len(pages)-1], 0) {
			t.Errorf("pages of %v, snapshots %v", pages, seen)
		}
		for snapshot, its := range seen {
			if !its {
				t.Errorf("%s is of another volume", snapshot)
			}
		}

		sim.SetLatency(openstacksim.CreateSnapshot, time.Hour)
		shot := begunSnapshot(t, d, snapshotRequest("slow", id), codes.DeadlineExceeded, "")
		if there, done := readiness(t, d, shot); !there || done {
			t.Errorf("while it is made: listed %v, ready %v", there, done)
		}
		time.Sleep(time.Hour)
		if there, done := readiness(t, d, shot); !there || !done {
			t.Errorf("once it is made: listed %v, ready %v", there, done)
		}
	})
}

// Snapshots of one volume, in pages, while some of those that an earlier page listed are deleted.
func TestTheListOfAVolumesSnapshotsSurvivesDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			ready(t, d, snapshotRequest(name, id))
		}
		seen, req := map[string]bool{}, &csi.ListSnapshotsRequest{SourceVolumeId: id, MaxEntries: 2}
		for {
			got := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), req))
			for _, entry := range got.GetEntries() {
				seen[entry.GetSnapshot().GetSnapshotId()] = true
				must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: entry.GetSnapshot().GetSnapshotId()}))
			}
			if req.StartingToken = got.GetNextToken(); req.GetStartingToken() == "" {
				break
			}
		}
		if len(seen) != 5 || len(shots(t, d)) != 0 {
			t.Errorf("seen %v, left %v", seen, shots(t, d))
		}
	})
}
