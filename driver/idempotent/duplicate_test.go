package idempotent_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// The driver deletes a younger volume only if the times prove that no call can have returned it.
func TestAYoungerVolumeThatACallMayHaveReturnedIsKeptAndReported(t *testing.T) {
	for name, test := range map[string]struct {
		old, young func(v *volume.Volume) // how they differ from volumes that are created as they are sent, ten seconds apart
		stays      bool
	}{
		"younger":                               {},
		"processed late":                        {young: func(v *volume.Volume) { v.CreatedAt = v.CreatedAt.Add(90 * time.Second) }},
		"of the same second":                    {young: func(v *volume.Volume) { *v = cloudtest.CreatedAt(*v, v.CreatedAt.Add(-10*time.Second)) }, stays: true},
		"clock ten minutes ahead":               {young: func(v *volume.Volume) { v.CreatedAt = v.CreatedAt.Add(10 * time.Minute) }, stays: true},
		"clock of the older ten minutes behind": {old: func(v *volume.Volume) { v.CreatedAt = v.CreatedAt.Add(-10 * time.Minute) }, stays: true},
		"without the time sent":                 {young: func(v *volume.Volume) { delete(v.Metadata, contract.MetadataSent) }, stays: true},
		"metadata of an earlier version":        {young: func(v *volume.Volume) { v.Metadata[contract.MetadataSent] = "MFRGGZDFMZTWQ2LK" }, stays: true},
		"attached": {young: func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerA}}
		}, stays: true},
		"of another cluster": {young: func(v *volume.Volume) { v.Metadata[contract.MetadataCluster] = "another" }, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, young := cloudtest.CreatedAt(cloudtest.OwnVolume(9, volume.Available), time.Now()), cloudtest.CreatedAt(cloudtest.OwnVolume(10, volume.Available), time.Now().Add(10*time.Second))
				if test.old != nil {
					test.old(&old)
				}
				if test.young != nil {
					test.young(&young)
				}
				c := cloudtest.New(t, old, young)
				s, reports, log := counted(c)
				v, err := s.volumes.Create(cloudtest.Within(t, 60), volumeSpec)
				if err != nil || v.ID != old.ID {
					t.Fatalf("got %v, %v", v, err)
				}
				want, left := []string{}, 1
				if test.stays {
					want, left = []string{"volume"}, 2
				}
				if diff := cmp.Diff(want, *reports); diff != "" || len(c.Volumes()) != left {
					t.Errorf("left %v, reports -want +got\n%s", c.Remaining(), diff)
				}
				if test.stays && (!strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "volume="+string(young.ID))) {
					t.Errorf("the log does not report it: %s", log)
				}
			})
		})
	}
}

func TestADuplicateThatCinderRefusesToDeleteIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.CreatedAt(cloudtest.OwnVolume(1, volume.Available), time.Now()), cloudtest.CreatedAt(cloudtest.OwnVolume(2, volume.Available), time.Now().Add(time.Second)))
		c.Fail["DeleteVolume"] = volume.Errorf(volume.Conflict, "Volume still has 1 dependent snapshots")
		s, reports, log := counted(c)
		if v, err := s.volumes.Create(cloudtest.Within(t, 60), volumeSpec); err != nil || v.ID != cloudtest.VolumeID(1) {
			t.Errorf("got %v, %v", v, err)
		}
		if len(*reports) != 1 || !strings.Contains(log.String(), "dependent snapshots") {
			t.Errorf("reports %v, log %s", *reports, log)
		}
	})
}

// deletionTooSlow is a DELETE that Cinder accepts, and does not end within the call.
const deletionTooSlow = 45 * time.Second

// After OK the sidecar calls no more. So a call must not answer OK whose DELETE failed for a reason that passes, or was not sent in time. Nor does
// it report a duplicate that Cinder is still deleting.
func TestADuplicateWhoseDeleteFailsForNowIsDeletedByTheRetry(t *testing.T) {
	for noun, method := range map[string]string{"volume": "DeleteVolume", "snapshot": "DeleteSnapshot", "backup": "DeleteBackup"} {
		for kind, takes := range map[volume.Kind]time.Duration{volume.DeadlineExceeded: time.Minute, volume.Unavailable: 0, volume.Busy: 0} {
			t.Run(noun+"/"+kind.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { deleteFailsForNow(t, noun, method, kind, takes) })
			})
		}
		t.Run(noun+"/slow", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { deleteFailsForNow(t, noun, method, volume.DeadlineExceeded, deletionTooSlow) })
		})
	}
}

func deleteFailsForNow(t *testing.T, noun, method string, kind volume.Kind, takes time.Duration) {
	begin, backup := time.Now(), noun == "backup"
	c := cloudtest.New(t, cloudtest.SourceVolume)
	s, reports, _ := counted(c)
	create := func(seconds int) (string, error) {
		p, err := s.snapshots.Create(cloudtest.Within(t, seconds), map[bool]snapshot.Spec{false: snapshotSpec, true: backupSpec}[backup])
		return string(p.ID), err
	}
	left, oldest := func() int { return len(c.Objects(backup)) }, string(cloudtest.SnapshotID(2))
	for i := range 2 {
		c.PutSnapshot(backup, cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(2+i, volume.Available), begin.Add(time.Duration(i)*time.Second)))
	}
	if noun == "volume" {
		c = cloudtest.New(t, cloudtest.CreatedAt(cloudtest.OwnVolume(1, volume.Available), begin), cloudtest.CreatedAt(cloudtest.OwnVolume(2, volume.Available), begin.Add(time.Second)))
		s, reports, _ = counted(c)
		create = func(seconds int) (string, error) {
			v, err := s.volumes.Create(cloudtest.Within(t, seconds), volumeSpec)
			return string(v.ID), err
		}
		left, oldest = func() int { return len(c.Volumes()) }, string(cloudtest.VolumeID(1))
	}
	if takes == deletionTooSlow {
		for _, op := range []openstacksim.Operation{openstacksim.DeleteVolume, openstacksim.DeleteSnapshot, openstacksim.DeleteBackup} {
			c.Sim.SetLatency(op, takes)
		}
	} else {
		c.Fail[method], c.Hook[method] = volume.Errorf(kind, "the request failed"), func() { time.Sleep(takes) }
	}
	_, err := create(30)
	cloudtest.WantKind(t, err, kind, true)
	delete(c.Fail, method)
	delete(c.Hook, method)
	if id, err := create(60); err != nil || id != oldest || left() != 1 || len(*reports) != 0 {
		t.Errorf("got %s, %v; left %v, reports %v", id, err, c.Remaining(), *reports)
	}
}

// After the crash of a node, Ceph keeps the images that it used for half a minute. Cinder then makes such a volume available again.
func TestADuplicateThatTheBackendKeepsForNowIsDeletedByTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		young := cloudtest.CreatedAt(cloudtest.OwnVolume(2, volume.Available), time.Now().Add(time.Second))
		c := cloudtest.New(t, cloudtest.CreatedAt(cloudtest.OwnVolume(1, volume.Available), time.Now()), young)
		s, reports, _ := counted(c)
		c.Sim.SetBusy(string(young.ID), true)
		_, err := s.volumes.Create(cloudtest.Within(t, 60), volumeSpec)
		cloudtest.WantKind(t, err, volume.Busy, true)
		c.Sim.SetBusy(string(young.ID), false)
		if v, err := s.volumes.Create(cloudtest.Within(t, 60), volumeSpec); err != nil || v.ID != cloudtest.VolumeID(1) || len(c.Volumes()) != 1 || len(*reports) != 0 {
			t.Errorf("got %s, %v; left %v, reports %v", v.ID, err, c.Remaining(), *reports)
		}
	})
}

func TestAYoungerSnapshotThatACallMayHaveReturnedIsKeptAndReported(t *testing.T) {
	for name, w := range map[string]snapshot.Spec{"snapshot": snapshotSpec, "backup": backupSpec} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume)
				begin := time.Now()
				ahead := cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(2, volume.Available), begin)
				ahead.CreatedAt = begin.Add(10 * time.Minute)
				c.PutSnapshot(w.Backup != nil, cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(1, volume.Available), begin))
				c.PutSnapshot(w.Backup != nil, ahead)
				c.PutSnapshot(w.Backup != nil, cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(3, volume.Available), begin.Add(time.Second)))
				s, reports, _ := counted(c)
				p, err := s.snapshots.Create(cloudtest.Within(t, 60), w)
				if err != nil || p.ID != cloudtest.SnapshotID(1) {
					t.Fatalf("got %v, %v", p, err)
				}
				if diff := cmp.Diff([]string{name}, *reports); diff != "" || len(c.Objects(w.Backup != nil)) != 2 || c.Objects(w.Backup != nil)[cloudtest.SnapshotID(2)].ID == "" {
					t.Errorf("left %v, reports -want +got\n%s", c.Remaining(), diff)
				}
			})
		})
	}
}

// Two replicas create within a second, and one answer is lost. It is unknown which of the two objects was returned.
func TestBothVolumesOfTheSameSecondAreKeptAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := newServices(c).volumes
		c.Loses("CreateVolume", 0)
		_, err := s.Create(cloudtest.Within(t, 60), volumeSpec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		c.Put(cloudtest.CreatedAt(cloudtest.OwnVolume(1, volume.Available), time.Now()))
		synctest.Wait()
		for range 2 {
			v, err := s.Create(cloudtest.Within(t, 60), volumeSpec)
			if err != nil || v.ID != cloudtest.VolumeID(1) || len(c.Volumes()) != 2 {
				t.Errorf("got %s, %v; left %v", v.ID, err, c.Remaining())
			}
		}
	})
}
