package driver

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// newBackup makes a backup as the cloud's users do, which the driver does not, and waits for it.
func newBackup(t *testing.T, sim *openstacksim.Sim, volume string, incremental bool) string {
	t.Helper()
	id := askBackup(t, sim, volume, incremental)
	time.Sleep(time.Minute) // virtual
	return id
}

func askBackup(t *testing.T, sim *openstacksim.Sim, volume string, incremental bool) string {
	t.Helper()
	conf, err := cloudconf.Parse(sim.CloudConf(cloudURL))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := cloud.FromConf(conf, "", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{Transport: memnet.Transport(sim.Handler())})
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Client("block-storage", "")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Backup struct{ ID string }
	}
	body := map[string]any{"backup": map[string]any{"volume_id": volume, "incremental": incremental}}
	if _, err := client.Post(t.Context(), client.ServiceURL("backups"), body, &answer, nil); err != nil {
		t.Fatal(err)
	}
	return answer.Backup.ID
}

// readiness is what ListSnapshots says of one handle: whether it is listed, and ready.
func readiness(t *testing.T, d *instance, id string) (listed, ready bool) {
	t.Helper()
	entries := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: id})).GetEntries()
	return len(entries) == 1, len(entries) == 1 && entries[0].GetSnapshot().GetReadyToUse()
}

func TestALifeOfABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.RestoreBackup, 2*time.Minute)
		d := startWith(t, sim)
		inZone := func(zone string) func(*csi.CreateVolumeRequest) {
			return func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": zone} }
		}
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", inZone("az1")))).GetVolume().GetVolumeId()
		b := newBackup(t, sim, id, false)
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) // which a backup outlives

		got := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: b})).GetEntries()
		if len(got) != 1 || !got[0].GetSnapshot().GetReadyToUse() || got[0].GetSnapshot().GetSourceVolumeId() != id || got[0].GetSnapshot().GetSizeBytes() != 1<<30 {
			t.Errorf("got %v", got)
		}
		restore := claim("pvc-2", fromSnapshot(b), inZone("az2"), func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 })
		done := make(chan *csi.Volume)
		go func() { done <- must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), restore)).GetVolume() }()
		time.Sleep(time.Minute)
		if listed, ready := readiness(t, d, b); !listed || ready {
			t.Errorf("while it is restored: listed %v, ready %v", listed, ready)
		}
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-3", fromSnapshot(b)))
		wantCode(t, err, codes.Aborted, "restoring")
		v := <-done
		again := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), restore)).GetVolume()
		for _, v := range []*csi.Volume{v, again} {
			if zone := v.GetAccessibleTopology()[0].GetSegments()["topology.cinder.csi.openstack.org/zone"]; zone != "az2" || v.GetCapacityBytes() != 2<<30 ||
				v.GetVolumeContext()["cinder.csi.openstack.org/resizeRequired"] != "true" || v.GetVolumeId() != again.GetVolumeId() {
				t.Errorf("got %v", v)
			}
		}
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-2"))
		wantCode(t, err, codes.AlreadyExists, b)
		for range 2 {
			must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b}))
			if listed, _ := readiness(t, d, b); listed {
				t.Error("it is still there")
			}
		}
	})
}

// Whatever becomes of an answer, no backup is taken for deleted that is not.
func TestNoBackupIsLeftBehind(t *testing.T) {
	backups := "/volume/v3/*/backups/*"
	for name, fault := range map[string]openstacksim.Fault{
		"the look fails":          {Method: http.MethodGet, Path: backups, Status: http.StatusInternalServerError},
		"the look is forbidden":   {Method: http.MethodGet, Path: backups, Status: http.StatusForbidden},
		"the look is cut off":     {Method: http.MethodGet, Path: backups, Drop: true},
		"the snapshot's look":     {Method: http.MethodGet, Path: "/volume/v3/*/snapshots/*", Status: http.StatusServiceUnavailable},
		"the deletion fails":      {Method: http.MethodDelete, Path: backups, Status: http.StatusInternalServerError},
		"nobody could delete it":  {Method: http.MethodDelete, Path: backups, Status: http.StatusNotFound},
		"the store fails":         {Operation: openstacksim.DeleteBackup},
		"the deletion takes long": {Operation: openstacksim.DeleteBackup, Slow: true, Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := startWith(t, sim)
				id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
				b := newBackup(t, sim, id, false)
				mend := sim.SetFault(fault)
				if _, err := d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b}); err == nil {
					t.Fatal("said to be deleted")
				}
				mend()
				time.Sleep(2 * time.Hour) // virtual
				must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b}))
				if listed, _ := readiness(t, d, b); listed {
					t.Error("it is still there")
				}
			})
		})
	}
}

// Whatever becomes of the POST's answer, the retry finds one restored volume and makes no second.
func TestALostAnswerLosesNoRestoredVolume(t *testing.T) {
	for name, fault := range map[string]openstacksim.Fault{
		"dropped":          {After: true, Drop: true},
		"a proxy's 504":    {After: true, Status: http.StatusGatewayTimeout},
		"dropped before":   {Drop: true},
		"late but carried": {After: true, Delay: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := startWith(t, sim)
				id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
				b := newBackup(t, sim, id, false)
				fault.Method, fault.Path, fault.Times = http.MethodPost, "/volume/v3/*/volumes", 1
				sim.SetFault(fault)
				sim.SetLatency(openstacksim.RestoreBackup, 10*time.Minute) // longer than any sidecar waits
				for tries := 0; ; tries++ {
					_, err := d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(b)))
					if err == nil {
						break
					}
					if code := status.Code(err); tries > 20 || code != codes.Canceled && code != codes.DeadlineExceeded && code != codes.Unavailable && code != codes.Aborted {
						t.Fatalf("a final answer although a volume may exist: %v", err)
					}
					time.Sleep(10 * time.Second)
				}
				if all := listed(t, d); len(all) != 2 {
					t.Errorf("want the source and the restored volume, got %v", all)
				}
			})
		})
	}
}

func TestTwoReplicasRestoreOneVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		one, other := startWith(t, sim), startWith(t, sim)
		id := must[*csi.CreateVolumeResponse](t)(one.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		b, ids := newBackup(t, sim, id, false), make(chan string, 2)
		for _, d := range []*instance{one, other} {
			go func() {
				for {
					v, err := d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(b)))
					if err == nil {
						ids <- v.GetVolume().GetVolumeId()
						return
					}
					time.Sleep(time.Second)
				}
			}()
		}
		first, second := <-ids, <-ids
		time.Sleep(time.Minute) // virtual: the duplicate's deletion ends
		if all := listed(t, one); first != second || len(all) != 2 {
			t.Errorf("got %s and %s; there are %v", first, second, all)
		}
	})
}

func TestRefusalsOfBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 }))).GetVolume().GetVolumeId()
		base := newBackup(t, sim, id, false)
		increment := newBackup(t, sim, id, true)
		_, err := d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: base})
		wantCode(t, err, codes.FailedPrecondition, "Incremental backups exist")
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(base)))
		wantCode(t, err, codes.OutOfRange, base)

		sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/backups/*", Status: http.StatusInternalServerError})
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-2", fromSnapshot(base)))
		wantCode(t, err, codes.Unavailable, "")
		_, err = d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: base})
		wantCode(t, err, codes.Unavailable, "")
		sim.ClearFaults()

		larger := claim("pvc-2", fromSnapshot(base), func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 })
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.RestoreBackup, Times: 1})
		_, err = d.CreateVolume(asSidecar(t), larger)
		wantCode(t, err, codes.Internal, "Failed to attach volume")
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), larger))
		if volumes := listed(t, d); len(volumes) != 2 {
			t.Errorf("want the source and the restored volume, got %v", volumes)
		}
		for _, b := range []string{increment, base} {
			must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b}))
		}
	})
}
