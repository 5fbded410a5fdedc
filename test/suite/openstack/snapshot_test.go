//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// newSnapshot creates a snapshot. The end of the test deletes it.
func newSnapshot(t *testing.T, d *driver, volume string) *csi.Snapshot {
	t.Helper()
	request := &csi.CreateSnapshotRequest{Name: "bed-" + rand.Text(), SourceVolumeId: volume, Parameters: forInUse(t, map[string]string{contract.MetadataSnapshotName: "shot"})}
	ctx, cancel := context.WithTimeout(t.Context(), patient(time.Minute))
	defer cancel()
	made := testenv.Value(d.controller.CreateSnapshot(ctx, request))(t)
	t.Cleanup(func() { deleteSnapshot(t, d, made.GetSnapshot().GetSnapshotId()) })
	if !made.GetSnapshot().GetReadyToUse() {
		t.Fatalf("what was returned is not ready: %v", made)
	}
	return made.GetSnapshot()
}

// forInUse adds what a snapshot class needs for a volume in use: Cinder of Victoria lacks 3.66, without which it refuses such a snapshot.
func forInUse(t *testing.T, parameters map[string]string) map[string]string {
	t.Helper()
	if settingsOf(t, bed(t)).Cloud == "victoria" {
		parameters["force-create"] = "true"
	}
	return parameters
}

func deleteSnapshot(t *testing.T, d *driver, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient(time.Minute))
	defer cancel()
	if _, err := d.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
		t.Errorf("snapshot %s stays: %v", id, err)
	}
}

// listedSnapshots are the IDs of the snapshots of a volume, listed one at a time.
func listedSnapshots(t *testing.T, d *driver, volume string) map[string]bool {
	t.Helper()
	ids, request := map[string]bool{}, &csi.ListSnapshotsRequest{SourceVolumeId: volume, MaxEntries: 1}
	for {
		got := testenv.Value(d.controller.ListSnapshots(t.Context(), request))(t)
		for _, entry := range got.GetEntries() {
			ids[entry.GetSnapshot().GetSnapshotId()] = true
		}
		if request.StartingToken = got.GetNextToken(); request.GetStartingToken() == "" {
			return ids
		}
	}
}

// The test takes a snapshot of a volume while a pod writes to it. Restored and cloned volumes have the data of the time of the copy, the
// requested size, and the zone of their source.
func TestDataOfAVolumeInUseComesBackFromASnapshotAndAClone(t *testing.T) {
	d := startDriver(t, bed(t))
	for name, fsType := range map[string]string{"xfs": "xfs", "block": ""} {
		t.Run(name, func(t *testing.T) {
			near := d.near(t)
			v := newVolume(t, d, fsType, near)
			m := mount(t, d, v, fsType)
			before, after := []byte("before the snapshot "+rand.Text()), []byte("after the snapshot! "+rand.Text())
			testenv.Must(t, writeAt(m.file(), before))
			p := newSnapshot(t, d, v.GetVolumeId())
			if p.GetSizeBytes() != 1<<30 || time.Since(p.GetCreationTime().AsTime()) > time.Minute {
				t.Errorf("got %v", p)
			}
			second := newSnapshot(t, d, v.GetVolumeId())
			if all := listedSnapshots(t, d, v.GetVolumeId()); len(all) != 2 || !all[p.GetSnapshotId()] || !all[second.GetSnapshotId()] {
				t.Errorf("want %s and %s, listed %v", p.GetSnapshotId(), second.GetSnapshotId(), all)
			}
			testenv.Must(t, writeAt(m.file(), after))
			if _, err := d.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.GetVolumeId()}); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("deletion of a volume in use with snapshots: want FailedPrecondition, got %v", err)
			}
			for source, test := range map[string]struct {
				source func(*csi.CreateVolumeRequest)
				want   []byte
			}{
				"snapshot": {csitest.FromSnapshot(p.GetSnapshotId()), before},
				"clone":    {csitest.FromVolume(v.GetVolumeId()), after},
			} {
				t.Run(source, func(t *testing.T) {
					copied := newVolume(t, d, fsType, test.source, func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 })
					if copied.GetCapacityBytes() != 2<<30 || copied.GetVolumeContext()[contract.ContextResizeRequired] != "true" ||
						copied.GetAccessibleTopology()[0].GetSegments()[contract.TopologyKey] != "az1" {
						t.Errorf("got %v", copied)
					}
					mounted := mount(t, d, copied, fsType)
					mounted.wantData(t, test.want)
					stats, err := d.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: copied.GetVolumeId(), VolumePath: mounted.target})
					if err != nil || stats.GetUsage()[0].GetTotal() < 1900<<20 {
						t.Errorf("want almost 2 GiB in the stats, got %v, %v", stats, err)
					}
				})
			}
			_, err := d.controller.CreateVolume(t.Context(), csitest.Claim("bed-"+rand.Text(), csitest.As(m.capability), csitest.FromSnapshot(p.GetSnapshotId()), csitest.Wanted("az2")))
			if status.Code(err) != codes.ResourceExhausted {
				t.Errorf("restore in another zone: want ResourceExhausted, got %v", err)
			}
		})
	}
}

func TestASnapshotIsDeletedOnceAndForAll(t *testing.T) {
	d := startDriver(t, bed(t))
	v := newVolume(t, d, "ext4")
	p := newSnapshot(t, d, v.GetVolumeId())
	if _, err := d.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.GetVolumeId()}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("deletion of a volume with a snapshot: want FailedPrecondition, got %v", err)
	}
	for range 2 {
		deleteSnapshot(t, d, p.GetSnapshotId())
	}
	got, err := d.controller.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: p.GetSnapshotId()})
	if err != nil || len(got.GetEntries()) != 0 {
		t.Errorf("after the deletion: %v, %v", got, err)
	}
}
