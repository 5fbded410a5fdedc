package snapshot

import (
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestCreateComparesVolumeIDsWithoutCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const upper, lower = "AAAAAAAA-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000001"
		for name, test := range map[string]struct {
			spec Spec
			made volume.Snapshot
		}{
			"snapshot": {snapshotSpec, cloudtest.OwnSnapshot(1, volume.Available)},
			"backup":   {backupSpec(), ownBackup(2, volume.Available)},
		} {
			test.spec.Volume, test.made.Volume = upper, lower
			c := cloudtest.New(t, volume.Volume{ID: lower, Status: volume.Available})
			if test.made.Backup {
				c.WithBackups(test.made)
			} else {
				c.WithSnapshots(test.made)
			}
			if got, err := snapshots(c).Create(cloudtest.Within(t, 60), test.spec); err != nil || got.ID != test.made.ID {
				t.Errorf("%s: want %s, got %v, %v", name, test.made.ID, got, err)
			}
		}
	})
}

func TestCreateWithTheNameOfAnotherKindIsIncompatible(t *testing.T) {
	elsewhere := func(p volume.Snapshot) volume.Snapshot { p.Volume = cloudtest.VolumeID(2); return p }
	for name, test := range map[string]struct {
		spec      Spec
		snapshots []volume.Snapshot
		backups   []volume.Snapshot
	}{
		"a backup of another volume":                       {backupSpec(), nil, []volume.Snapshot{elsewhere(ownBackup(2, volume.Available))}},
		"a backup that is being made of another":           {backupSpec(), nil, []volume.Snapshot{elsewhere(ownBackup(2, volume.Creating))}},
		"a temporary snapshot of another volume":           {backupSpec(), []volume.Snapshot{elsewhere(ownTemporary(1, volume.Available))}, nil},
		"a snapshot where a backup is asked for":           {backupSpec(), []volume.Snapshot{cloudtest.OwnSnapshot(1, volume.Available)}, nil},
		"a snapshot of nobody where a backup is asked for": {backupSpec(), []volume.Snapshot{{ID: cloudtest.SnapshotID(1), Name: "snapshot-1", Volume: cloudtest.VolumeID(1), Status: volume.Available}}, nil},
		"a temporary snapshot where a snapshot is asked":   {snapshotSpec, []volume.Snapshot{ownTemporary(1, volume.Available)}, nil},
		"a backup where a snapshot is asked for":           {snapshotSpec, nil, []volume.Snapshot{ownBackup(2, volume.Available)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume, volume.Volume{ID: cloudtest.VolumeID(2), Status: volume.Available}).WithSnapshots(test.snapshots...).WithBackups(test.backups...)
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), test.spec)
				if cloudtest.WantKind(t, err, volume.Incompatible, false); c.CountPrefix("Create")+c.CountPrefix("Delete") != 0 {
					t.Error(c.Calls)
				}
			})
		})
	}
}
