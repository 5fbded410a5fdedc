package driver_test

import (
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestBackupLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.RestoreBackup, 2*time.Minute)
		d := startWith(t, sim)
		inZone := func(zone string) func(*csi.CreateVolumeRequest) {
			return func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": zone} }
		}
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", inZone("az1")))).GetVolume().GetVolumeId()
		b := newBackup(t, d, "backup-1", id)
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) // which a backup outlives

		got := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), &csi.ListSnapshotsRequest{SnapshotId: b})).GetEntries()
		if len(got) != 1 || !got[0].GetSnapshot().GetReadyToUse() || got[0].GetSnapshot().GetSourceVolumeId() != id || got[0].GetSnapshot().GetSizeBytes() != 1<<30 {
			t.Errorf("got %v", got)
		}
		restore := claim("pvc-2", fromSnapshot(b), inZone("az2"), func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 })
		var restored *csi.CreateVolumeResponse
		done := make(chan error, 1)
		go func() {
			var err error
			restored, err = d.CreateVolume(asSidecar(t), restore)
			done <- err
		}()
		time.Sleep(time.Minute)
		if listed, ready := readiness(t, d, b); !listed || ready {
			t.Errorf("while it is restored: listed %v, ready %v", listed, ready)
		}
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-3", fromSnapshot(b)))
		wantCode(t, err, codes.Aborted, "restoring")
		v := must[*csi.CreateVolumeResponse](t)(restored, <-done).GetVolume()
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
		story(t, name, func(t *testing.T) {
			sim, d := started(t)
			id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
			b := newBackup(t, d, "backup-1", id)
			repair := sim.SetFault(fault)
			if _, err := d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b}); err == nil {
				t.Fatal("said to be deleted")
			}
			repair()
			time.Sleep(2 * time.Hour) // virtual
			must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b}))
			if listed, _ := readiness(t, d, b); listed {
				t.Error("it is still there")
			}
		})
	}
}

func TestRefusalsOfBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 }))).GetVolume().GetVolumeId()
		base := newBackup(t, d, "backup-1", id)
		increment := newBackup(t, d, "backup-2", id, "incremental", "true")
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
		wantCode(t, err, codes.FailedPrecondition, "Failed to attach volume")
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), larger))
		if volumes := listed(t, d); len(volumes) != 2 {
			t.Errorf("want the source and the restored volume, got %v", volumes)
		}
		for _, b := range []string{increment, base} {
			must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b}))
		}
	})
}

func TestCreateBackupOfAVolumeInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.CreateBackup, 20*time.Minute) // far longer than any sidecar waits
		d, ctx := startWith(t, sim), asSidecar(t)
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1"))).GetVolume().GetVolumeId()
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		began, req := time.Now(), archive("backup-1", id, "backup-max-duration-seconds-per-gb", "600")
		first := begunSnapshot(t, d, req, codes.Aborted, "is being created (status creating); the driver keeps waiting on the next call")
		if took := time.Since(began); took < 10*time.Second || took > 20*time.Second { // the temporary snapshot takes seven seconds
			t.Errorf("the call took %v", took)
		}
		got := must[*csi.GetSnapshotResponse](t)(d.GetSnapshot(asSidecar(t), &csi.GetSnapshotRequest{SnapshotId: first})).GetSnapshot()
		if got.GetReadyToUse() || got.GetSourceVolumeId() != id || got.GetSizeBytes() != 1<<30 {
			t.Errorf("while it is made: %v", got)
		}
		if listed, ready := readiness(t, d, first); !listed || ready {
			t.Errorf("while it is made: listed %v, ready %v", listed, ready)
		}
		_, err := d.CreateVolume(asSidecar(t), claim("early", fromSnapshot(first)))
		wantCode(t, err, codes.Aborted, "creating")
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az1}))
		time.Sleep(15 * time.Minute)
		_, err = d.CreateSnapshot(asSidecar(t), req)
		wantCode(t, err, codes.DeadlineExceeded, "backup-max-duration-seconds-per-gb")
		if b := must[*csi.Snapshot](t)(pursued(t, d, req)); b.GetSnapshotId() != first {
			t.Errorf("got %v", b)
		}
		if all := shots(t, d); len(all) != 1 || !all[first] {
			t.Errorf("want the backup only, got %v", all)
		}
	})
}

// Whatever goes wrong at whichever request, asking again ends at one backup and no snapshot, or at a final answer and nothing.
func TestNothingIsLeftOfABackupWhateverGoesWrong(t *testing.T) {
	testenv.NotShort(t)
	post, get, remove := http.MethodPost, http.MethodGet, http.MethodDelete
	backups, snapshots := "/volume/v3/*/backups", "/volume/v3/*/snapshots"
	for name, test := range map[string]struct {
		fault openstacksim.Fault
		code  codes.Code // OK: it is made
	}{
		"the backup's answer is lost":        {openstacksim.Fault{Method: post, Path: backups, After: true, Drop: true}, codes.OK},
		"the backup's answer is a 504":       {openstacksim.Fault{Method: post, Path: backups, After: true, Status: http.StatusGatewayTimeout}, codes.OK},
		"the backup's request is lost":       {openstacksim.Fault{Method: post, Path: backups, Drop: true}, codes.OK},
		"the backup is late":                 {openstacksim.Fault{Method: post, Path: backups, After: true, Delay: 5 * time.Minute}, codes.OK},
		"there is no cinder-backup":          {openstacksim.Fault{Method: post, Path: backups, Status: http.StatusServiceUnavailable}, codes.OK},
		"the backup is forbidden":            {openstacksim.Fault{Method: post, Path: backups, Status: http.StatusForbidden}, codes.PermissionDenied},
		"the cloud is too old":               {openstacksim.Fault{Method: post, Path: backups, Status: http.StatusNotAcceptable}, codes.Unimplemented},
		"the snapshot's answer is lost":      {openstacksim.Fault{Method: post, Path: snapshots, After: true, Drop: true}, codes.OK},
		"the snapshot is forbidden":          {openstacksim.Fault{Method: post, Path: snapshots, Status: http.StatusForbidden}, codes.PermissionDenied},
		"the snapshot fails":                 {openstacksim.Fault{Operation: openstacksim.CreateSnapshot}, codes.FailedPrecondition},
		"the snapshot takes long":            {openstacksim.Fault{Operation: openstacksim.CreateSnapshot, Slow: true, Delay: 10 * time.Minute}, codes.OK},
		"the backup fails":                   {openstacksim.Fault{Operation: openstacksim.CreateBackup}, codes.FailedPrecondition},
		"the list of backups fails":          {openstacksim.Fault{Method: get, Path: backups + "/detail", Status: http.StatusInternalServerError}, codes.OK},
		"the list of snapshots fails":        {openstacksim.Fault{Method: get, Path: snapshots + "/detail", Status: http.StatusInternalServerError}, codes.OK},
		"the snapshot's deletion fails":      {openstacksim.Fault{Method: remove, Path: snapshots + "/*", Status: http.StatusInternalServerError}, codes.OK},
		"the snapshot's deletion is cut off": {openstacksim.Fault{Method: remove, Path: snapshots + "/*", Drop: true}, codes.OK},
		"the snapshot's deletion takes long": {openstacksim.Fault{Operation: openstacksim.DeleteSnapshot, Slow: true, Delay: 10 * time.Minute}, codes.OK},
	} {
		story(t, name, func(t *testing.T) {
			sim, d := started(t)
			id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
			test.fault.Times = 1
			sim.SetFault(test.fault)
			b, err := pursued(t, d, archive("backup-1", id))
			if status.Code(err) != test.code {
				t.Errorf("want %s, got %v", test.code, err)
			}
			time.Sleep(10 * time.Minute) // virtual: what was late has happened
			if all := shots(t, d); err == nil && (len(all) != 1 || !all[b.GetSnapshotId()]) || err != nil && len(all) != 0 {
				t.Errorf("left: %v", all)
			}
			must[*csi.Snapshot](t)(pursued(t, d, archive("backup-1", id)))
			must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) // which snapshots prevent
		})
	}
}

// DeleteSnapshot of a backup that is not ready leaves nothing, whenever that happens.
func TestABackupDeletedBeforeItIsReadyLeavesNothing(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute, 15 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			sim := simulated()
			sim.SetLatency(openstacksim.CreateBackup, 10*time.Minute)
			d := startWith(t, sim)
			id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
			b := begunSnapshot(t, d, archive("backup-1", id), codes.Aborted, "creating")
			time.Sleep(after)
			for tries := 0; ; tries++ {
				_, err := d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: b})
				if err == nil {
					break
				}
				if tries > 10 {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second) // virtual
			}
			if all := shots(t, d); len(all) != 0 {
				t.Errorf("after %v: left: %v", after, all)
			}
		})
	}
}

func TestRefusalsOfNewBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		other := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2"))).GetVolume().GetVolumeId()
		sim.SetQuota("demo", "backups", 1)
		first := newBackup(t, d, "backup-1", id, "incremental", "true") // in full, since there is none before
		_, err := d.CreateSnapshot(asSidecar(t), archive("backup-2", id))
		wantCode(t, err, codes.ResourceExhausted, "BackupLimitExceeded")
		_, err = d.CreateSnapshot(asSidecar(t), archive("backup-1", other))
		wantCode(t, err, codes.AlreadyExists, id)
		_, err = d.CreateSnapshot(asSidecar(t), snapshotRequest("backup-1", id))
		wantCode(t, err, codes.AlreadyExists, first)
		_, err = d.GetSnapshot(asSidecar(t), &csi.GetSnapshotRequest{SnapshotId: id})
		wantCode(t, err, codes.NotFound, id)
		p := ready(t, d, snapshotRequest("snapshot-1", id)).GetSnapshotId()
		_, err = d.CreateSnapshot(asSidecar(t), archive("snapshot-1", id))
		wantCode(t, err, codes.AlreadyExists, p)
		if all := shots(t, d); len(all) != 2 || !all[first] || !all[p] {
			t.Errorf("there are %v", all)
		}
	})
}

// No cinder-backup works in az2. Cinder 21 then takes the volume's status away and keeps the snapshot: an administrator must help.
func TestABackupWithoutBackupServiceNamesWhatAnAdministratorMustReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "az2"} }))).GetVolume().GetVolumeId()
		for range 3 {
			_, err := d.CreateSnapshot(asSidecar(t), archive("backup-1", id))
			wantCode(t, err, codes.Aborted, "Service not found for creating backup")
			wantCode(t, err, codes.Aborted, "openstack volume set --state available "+id)
		}
	})
}

// Snapshots and then backups, in pages, while those that an earlier page listed are deleted.
func TestTheListOfSnapshotsAndBackupsSurvivesDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, want, seen := startWith(t, simulated()), map[string]bool{}, map[string]bool{}
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		for _, name := range []string{"a", "b", "c"} {
			want[ready(t, d, snapshotRequest(name, id)).GetSnapshotId()] = true
			want[newBackup(t, d, "backup-"+name, id)] = true
		}
		req := &csi.ListSnapshotsRequest{SourceVolumeId: id, MaxEntries: 2}
		for {
			got := must[*csi.ListSnapshotsResponse](t)(d.ListSnapshots(asSidecar(t), req))
			for _, entry := range got.GetEntries() {
				seen[entry.GetSnapshot().GetSnapshotId()] = entry.GetSnapshot().GetReadyToUse()
				must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: entry.GetSnapshot().GetSnapshotId()}))
			}
			if req.StartingToken = got.GetNextToken(); req.GetStartingToken() == "" {
				break
			}
		}
		if !maps.Equal(seen, want) || len(shots(t, d)) != 0 {
			t.Errorf("want %v, seen %v, left %v", want, seen, shots(t, d))
		}
	})
}

// A quiet volume: nothing changes, so its incremental backups have no objects in a chunked store. That is no sign of Ceph. Package snapshot has a year of them.
func TestIncrementalBackupsOfAnUnchangedVolume(t *testing.T) {
	for _, typeName := range []string{"standard", "luks"} {
		story(t, typeName, func(t *testing.T) {
			config := openstacksim.Default()
			config.VolumeTypes = append(config.VolumeTypes, openstacksim.VolumeType{
				ID: "0000e0c0-0000-4000-8000-000000000001", Name: "luks", Encryption: &openstacksim.Encryption{Provider: "luks", Location: "front-end"},
			})
			sim := openstacksim.New(config)
			d := startWith(t, sim)
			id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", of("type", typeName)))).GetVolume().GetVolumeId()
			other := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2", of("type", typeName)))).GetVolume().GetVolumeId()
			for _, name := range []string{"backup-1", "backup-2", "backup-3", "backup-4"} {
				newBackup(t, d, name, id, "incremental", "true")
			}
			newBackup(t, d, "in-full", id)
			newBackup(t, d, "of-another", other)
			if n := len(sim.SnapshotStates()); n != 6 {
				t.Errorf("want six backups and no snapshot, got %d", n)
			}
		})
	}
}
