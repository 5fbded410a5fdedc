package snapshot

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func inCeph(config *openstacksim.Config) { config.CephBackups = true }

func TestASecondBackupInCephIsRefusedBeforeAnythingIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.NewWith(t, inCeph, cloudtest.SourceVolume)
		s := snapshots(c)
		first, err := retried(t, s, backupSpec())
		if err != nil || !first.Ready() {
			t.Fatal(first, err)
		}
		spec := backupSpec()
		spec.Name = "snapshot-2"
		_, err = retried(t, s, spec)
		cloudtest.WantKind(t, err, volume.Conflict, false)
		if !strings.Contains(err.Error(), string(first.ID)) {
			t.Errorf("%s is not in %v", first.ID, err)
		}
		if c.Count("CreateBackup") != 1 || len(c.Objects(false)) != 0 || len(c.Objects(true)) != 1 {
			t.Errorf("after %v: %v and %v", c.Calls, c.Objects(false), c.Objects(true))
		}
		if err := s.Delete(cloudtest.Within(t, 60), first.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := retried(t, s, spec); err != nil {
			t.Errorf("after the first backup is gone: %v", err)
		}
	})
}

// Another program made the failed backup, or another replica did at the same time.
func TestTheDeleteOfAFailedBackupNeverDeletesTheDataOfAnother(t *testing.T) {
	for name, test := range map[string]struct {
		other volume.Snapshot
		kind  volume.Kind // of the refusal; 0 if the driver deletes the failed one
	}{
		"in Ceph":                        {volume.Snapshot{Status: volume.Available, From: cloudtest.SnapshotID(8)}, volume.Conflict},
		"that is being made":             {volume.Snapshot{Status: volume.Creating, From: cloudtest.SnapshotID(8)}, volume.Busy},
		"that failed too":                {volume.Snapshot{Status: volume.ErrorStatus, From: cloudtest.SnapshotID(8)}, 0},
		"of the volume, not a snapshot":  {volume.Snapshot{Status: volume.Available}, 0},
		"in a store that counts objects": {volume.Snapshot{Status: volume.Available, From: cloudtest.SnapshotID(8), Objects: 21}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := ownBackup(2, volume.ErrorStatus)
				failed.From = cloudtest.SnapshotID(9)
				other := test.other
				other.ID, other.Name, other.Volume, other.Size, other.Backup = cloudtest.SnapshotID(3), "another", failed.Volume, failed.Size, true
				c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(failed, other)
				for what, call := range map[string]func() error{
					"create": func() error { _, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec()); return err },
					"delete": func() error { return snapshots(c).Delete(cloudtest.Within(t, 60), failed.ID) },
				} {
					err := call()
					if test.kind == 0 {
						break // both delete it; the first of them has
					}
					if got := volume.KindOf(err); got != test.kind {
						t.Errorf("%s: want %v, got %v: %v", what, test.kind, got, err)
					}
				}
				if deleted := c.Count("DeleteBackup") > 0; deleted != (test.kind == 0) {
					t.Errorf("deleted: %v, after %v", deleted, c.Calls)
				}
			})
		})
	}
}
