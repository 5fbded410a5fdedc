package snapshot

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestABackupOfAnEncryptedVolumeInCephIsRefusedAndDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		inCeph, encrypted, refused bool
	}{
		"in Ceph":                        {true, true, true},
		"in Ceph, of a plain volume":     {true, false, false},
		"in a store that counts objects": {false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := cloudtest.SourceVolume
				if test.encrypted {
					source.Type = "encrypted"
				}
				c := cloudtest.NewWith(t, func(config *openstacksim.Config) {
					withEncryptedType(config)
					config.CephBackups = test.inCeph
				}, source)
				s := snapshots(c)
				b, err := retried(t, s, backupSpec())
				if !test.refused {
					if err != nil || !b.Ready() {
						t.Error(b, err)
					}
					return
				}
				cloudtest.WantKind(t, err, volume.Conflict, false)
				if !strings.Contains(err.Error(), string(source.ID)+" is encrypted") || !strings.Contains(err.Error(), "type: snapshot") {
					t.Errorf("the error lacks the volume, the reason or the way out: %v", err)
				}
				if len(c.Objects(false)) != 0 || len(c.Objects(true)) != 0 {
					t.Errorf("left: %v and %v", c.Objects(false), c.Objects(true))
				}
				_, err = retried(t, s, backupSpec())
				if cloudtest.WantKind(t, err, volume.Conflict, false); c.Count("CreateBackup") != 1 || c.Count("CreateSnapshot") != 1 {
					t.Errorf("want a second refusal before anything is made, after %v", c.Calls)
				}
			})
		})
	}
}

// An earlier call made the temporary snapshot before anybody had seen that the backups are in Ceph.
func TestARefusedBackupLeavesNoTemporarySnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cloudtest.SourceVolume
		source.Type = "encrypted"
		c := cloudtest.NewWith(t, withEncryptedType, source).WithSnapshots(ownTemporary(1, volume.Available))
		s := snapshots(c)
		s.cephBackups.Store(true)
		_, err := retried(t, s, backupSpec())
		if cloudtest.WantKind(t, err, volume.Conflict, false); len(c.Objects(false)) != 0 || len(c.Objects(true)) != 0 {
			t.Errorf("left: %v and %v, after %v", c.Objects(false), c.Objects(true), c.Calls)
		}
	})
}

func withEncryptedType(config *openstacksim.Config) {
	config.CephBackups = true
	config.VolumeTypes = append(config.VolumeTypes, openstacksim.VolumeType{Name: "encrypted", Encryption: &openstacksim.Encryption{Provider: "luks"}})
}

func TestABackupOfAnotherProgramIsRefusedAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cloudtest.SourceVolume
		source.Type = "encrypted"
		foreign := volume.Snapshot{ID: cloudtest.SnapshotID(2), Name: backupSpec().Name, Volume: source.ID, Status: volume.Available, Size: source.Size, Backup: true, From: cloudtest.SnapshotID(9)}
		c := cloudtest.NewWith(t, withEncryptedType, source).WithBackups(foreign)
		_, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
		if cloudtest.WantKind(t, err, volume.Conflict, true); len(c.Objects(true)) != 1 {
			t.Errorf("want the backup of another program in place, after %v", c.Calls)
		}
	})
}

// Nothing has changed since the full backup, so the incremental one has no object in any store. The full one says which store that is.
func TestAnIncrementalBackupOfAnEncryptedVolumeIsJudgedByItsFullOne(t *testing.T) {
	for name, test := range map[string]struct {
		full    *volume.Snapshot
		kind    volume.Kind // of the refusal
		refused bool
		left    int
	}{
		"in Ceph":                     {&volume.Snapshot{}, volume.Conflict, true, 1},
		"in another store":            {&volume.Snapshot{Objects: 21}, 0, false, 2},
		"that the list does not show": {nil, volume.Busy, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := cloudtest.SourceVolume
				source.Type = "encrypted"
				made := ownBackup(2, volume.Available)
				made.Incremental, made.Objects, made.From = true, 0, cloudtest.SnapshotID(9)
				c := cloudtest.NewWith(t, func(config *openstacksim.Config) { withEncryptedType(config); config.CephBackups = false }, source).WithBackups(made)
				if f := test.full; f != nil {
					f.ID, f.Name, f.Volume, f.Size, f.Status, f.From = cloudtest.SnapshotID(4), "full", source.ID, source.Size, volume.Available, cloudtest.SnapshotID(8)
					c.WithBackups(*f)
				}
				s := snapshots(c)
				_, err := s.Create(cloudtest.Within(t, 60), backupSpec())
				if got := volume.KindOf(err); err != nil != test.refused || err != nil && got != test.kind {
					t.Errorf("%v, %v", got, err)
				}
				if len(c.Objects(true)) != test.left || s.cephBackups.Load() != (test.kind == volume.Conflict) {
					t.Errorf("left %v after %v", c.Objects(true), c.Calls)
				}
			})
		})
	}
}
