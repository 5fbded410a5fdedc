package driver

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// snapshotRequest asks for a snapshot of a volume.
func snapshotRequest(name, id string) *csi.CreateSnapshotRequest {
	return &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: id}
}

// fromSnapshot makes a claim's source a snapshot.
func fromSnapshot(id string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) {
		r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
	}
}

// ready makes a snapshot; no answer is an error.
func ready(t *testing.T, d *instance, req *csi.CreateSnapshotRequest) *csi.Snapshot {
	t.Helper()
	p := must[*csi.CreateSnapshotResponse](t)(d.CreateSnapshot(asSidecar(t), req)).GetSnapshot()
	if !p.GetReadyToUse() {
		t.Fatalf("what was returned is not ready: %v", p)
	}
	return p
}

// shots is what ListSnapshots says: per snapshot id, whether it is ready.
func shots(t *testing.T, d *instance) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, entry := range must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{})).GetEntries() {
		all[entry.GetSnapshot().GetSnapshotId()] = entry.GetSnapshot().GetReadyToUse()
	}
	return all
}

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

// Whatever becomes of the POST's answer, the retry finds one snapshot and makes no second.
func TestALostAnswerLosesNoSnapshot(t *testing.T) {
	for name, fault := range map[string]openstacksim.Fault{
		"dropped":          {After: true, Drop: true},
		"a proxy's 504":    {After: true, Status: http.StatusGatewayTimeout},
		"dropped before":   {Drop: true},
		"an early 503":     {Status: http.StatusServiceUnavailable},
		"a rate limit":     {Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}},
		"late but carried": {After: true, Delay: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				fault.Method, fault.Path, fault.Times = http.MethodPost, "/volume/v3/*/snapshots", 1
				sim.SetFault(fault)
				d := startWith(t, sim)
				id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
				if _, err := d.CreateSnapshot(asSidecar(t), snapshotRequest("snapshot-1", id)); err != nil &&
					!slices.Contains([]codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}, status.Code(err)) {
					t.Errorf("a final answer although a snapshot may exist: %v", err)
				}
				time.Sleep(10 * time.Minute) // virtual: what was late has happened
				ready(t, d, snapshotRequest("snapshot-1", id))
				if all := shots(t, d); len(all) != 1 {
					t.Errorf("want one snapshot, got %v", all)
				}
			})
		})
	}
}

func TestTwoReplicasCreateOneSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one, other := startWith(t, sim), startWith(t, sim)
		id := must[*csi.CreateVolumeResponse](t)(one.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		makeOne(t, one, other, func(d *instance) (string, bool) {
			p, err := d.CreateSnapshot(asSidecar(t), snapshotRequest("snapshot-1", id))
			return p.GetSnapshot().GetSnapshotId(), err == nil && p.GetSnapshot().GetReadyToUse()
		}, func() int { return len(shots(t, one)) })
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

		_, err = d.ListSnapshots(ctx, &csi.ListSnapshotsRequest{StartingToken: az1})
		wantCode(t, err, codes.Aborted, "token")
		must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: "not-a-uuid"}))
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.DeleteSnapshot})
		_, err = d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: p})
		wantCode(t, err, codes.FailedPrecondition, "error_deleting")
		_, err = d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: p})
		wantCode(t, err, codes.FailedPrecondition, "administrator")
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
