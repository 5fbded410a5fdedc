package snapshot

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// Cinder is away for a moment when the temporary snapshot should go. The backup is not returned before that: nobody would delete the snapshot later.
func TestABackupIsNotReturnedWhileItsTemporarySnapshotMayStay(t *testing.T) {
	for kind, returned := range map[volume.Kind]bool{volume.Unavailable: false, volume.Busy: false, volume.DeadlineExceeded: false, volume.Conflict: true, volume.Failed: true} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(ownTemporary(1, volume.Available)).WithBackups(ownBackup(2, volume.Available))
			c.Fail["DeleteSnapshot"] = volume.Errorf(kind, "no")
			if _, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec()); (err == nil) != returned || err != nil && !volume.MayHaveWritten(err) {
				t.Errorf("%v: %v", kind, err)
			}
		})
	}
}

// A snapshot of an older driver of another cluster is not this cluster's temporary snapshot.
func TestATemporarySnapshotIsOfThisCluster(t *testing.T) {
	s := snapshots(cloudtest.New(t))
	for cluster, want := range map[string]bool{cloudtest.TestOwner.Cluster: true, "another": false, "": false} {
		p := volume.Snapshot{Name: "snapshot-1", Metadata: map[string]string{contract.MetadataCluster: cluster}}
		if got := s.isTemporary(p); got != want {
			t.Errorf("cluster %q: %v", cluster, got)
		}
	}
}

// Another volume's backup has the name, and takes long. That is a name in use, and no backup that takes too long.
func TestTheBackupOfAnotherVolumeIsNoSlowBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := ownBackup(2, volume.Creating)
		other.Volume, other.CreatedAt = cloudtest.VolumeID(7), time.Now().Add(-24*time.Hour)
		c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(other)
		_, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
		cloudtest.WantKind(t, err, volume.Incompatible, false)
	})
}

// Only the snapshot that a failed backup names is stuck with it; another one of the name is read by a backup that goes on.
func TestOnlyTheSnapshotOfTheFailedBackupIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := ownBackup(2, volume.ErrorStatus)
		failed.From = cloudtest.SnapshotID(9)
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(ownTemporary(1, backingUp)).WithBackups(failed)
		c.LaterSnapshot(cloudtest.SnapshotID(1), func(p *volume.Snapshot) { p.Status = volume.Available })
		if err := snapshots(c).Delete(cloudtest.Within(t, 60), failed.ID); err != nil {
			t.Error(err)
		}
	})
}

// A failed backup of the volume itself shares nothing with the backups of its snapshots.
func TestAFailedBackupOfTheVolumeItselfIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, other := ownBackup(2, volume.ErrorStatus), ownBackup(3, volume.Available)
		failed.From, other.Name, other.From, other.Objects = "", "another", cloudtest.SnapshotID(8), 0
		c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(failed, other)
		if err := snapshots(c).Delete(cloudtest.Within(t, 60), failed.ID); err != nil || len(c.Objects(true)) != 1 {
			t.Errorf("%v; left %v", err, c.Objects(true))
		}
	})
}

// The volume was deleted after its backup. Nobody can find out whether it was encrypted, and the backup becomes ready.
func TestTheBackupOfADeletedVolumeBecomesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := ownBackup(2, volume.Available)
		made.Objects, made.From = 0, cloudtest.SnapshotID(9)
		c := cloudtest.NewWith(t, inCeph, cloudtest.SourceVolume).WithBackups(made)
		c.Remove(cloudtest.SourceVolume.ID)
		if b, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec()); err != nil || !b.Ready() {
			t.Error(b, err)
		}
	})
}

// Somebody deletes the object that Cinder is creating: the call ends, and does not wait until it is gone.
func TestACreateEndsWhenSomebodyDeletesItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume)
		c.Sim.SetLatency(openstacksim.CreateSnapshot, time.Hour)
		c.Hook["CreateSnapshot"] = func() {
			time.AfterFunc(time.Second, func() {
				for id := range c.Objects(false) {
					c.ChangeSnapshot(id, func(p *volume.Snapshot) { p.Status = volume.Deleting })
				}
			})
			time.AfterFunc(10*time.Second, func() {
				for id := range c.Objects(false) {
					c.ChangeSnapshot(id, func(p *volume.Snapshot) { p.ID = "" })
				}
			})
		}
		_, err := snapshots(c).Create(cloudtest.Within(t, 60), Spec{Name: "snapshot-1", Volume: cloudtest.SourceVolume.ID})
		if cloudtest.WantKind(t, err, volume.Busy, true); !strings.Contains(err.Error(), "somebody deleted") {
			t.Error(err)
		}
	})
}

// The list of hidden backups changes while the driver reads it: the wanted backup is not proven to be gone.
func TestAHiddenBackupIsNotGoneIfTheListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []volume.Snapshot
		for n := 2; n < 8; n++ {
			b := ownBackup(n, volume.Available)
			b.CreatedAt = time.Now().Add(-time.Duration(n) * time.Hour)
			all = append(all, b)
		}
		c := cloudtest.NewWith(t, pagesOfThree, cloudtest.SourceVolume).WithBackups(all...)
		c.Fail["Backup"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		c.Sim.SetRetention(true)
		err := snapshots(c).Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(7))
		if cloudtest.WantKind(t, err, volume.Busy, false); len(c.Objects(true)) != 5 {
			t.Errorf("left %v", c.Objects(true))
		}
	})
}
