package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func changesOnly(status volume.Status) volume.Snapshot {
	return volume.Snapshot{Status: status, From: cloudtest.SnapshotID(8), Incremental: true}
}

func inCeph(config *openstacksim.Config) { config.CephBackups = true }

func TestASecondBackupInCephIsRefusedBeforeAnythingIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.NewWith(t, inCeph, cloudtest.SourceVolume)
		s := snapshots(c)
		first, err := retried(t, s, backupSpec())
		if err != nil || !first.Ready() {
			t.Fatal(first, err)
		}
		if all, err := s.backupsOf(t.Context(), backupSpec().Volume); err != nil || len(all) != 1 || all[0].Metadata != nil {
			t.Errorf("want the backup without its metadata, which a cloud may make large, got %+v, %v", all, err)
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

// pagesOf is a cloud that shows as many backups as somebody reads.
type pagesOf struct {
	volume.Cloud
	of volume.Snapshot
}

func (c pagesOf) Backups(_ context.Context, p volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	begin := 0
	_, _ = fmt.Sscanf(string(p.Marker), "00000000-0000-4000-8000-%d", &begin)
	page := slices.Repeat([]volume.Snapshot{c.of}, 1000)
	for i := range page {
		if c.of.ID == "" {
			page[i].ID = volume.SnapshotID(fmt.Sprintf("00000000-0000-4000-8000-%012d", begin+i+1))
		}
	}
	return page, true, nil
}

// Each call keeps the backups of its volume, and a cloud chooses how many and how large they are.
func TestTheBackupsOfAVolumeHaveABound(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	s := New(pagesOf{of: volume.Snapshot{Name: long, Status: volume.Status(long), Reason: long, Zone: long, Volume: volume.ID(long)}}, nil, nil, nil, Options{})
	all, err := s.backupsOf(t.Context(), cloudtest.SourceVolume.ID)
	if cloudtest.WantKind(t, err, volume.Unavailable, false); len(all) > maxBackups || len(all[0].Name+all[0].Reason+all[0].Zone+string(all[0].Volume)) > 0 || len(all[0].Status) > 64 {
		t.Errorf("%d backups like %+v", len(all), all[0])
	}
	for _, of := range []volume.Snapshot{{ID: volume.SnapshotID(long)}, {From: volume.SnapshotID(long)}} {
		all, err := New(pagesOf{of: of}, nil, nil, nil, Options{}).backupsOf(t.Context(), cloudtest.SourceVolume.ID)
		if cloudtest.WantKind(t, err, volume.Unavailable, false); len(all) != 0 {
			t.Errorf("%d backups of a cloud that shows nonsense", len(all))
		}
	}
}

// Another program made the failed backup, or another replica did at the same time.
func TestTheDeleteOfAFailedBackupNeverDeletesTheDataOfAnother(t *testing.T) {
	for name, test := range map[string]struct {
		other volume.Snapshot
		full  *volume.Snapshot // that an incremental one rests on
		kind  volume.Kind      // of the refusal; 0 if the driver deletes the failed one
	}{
		"in Ceph":                        {volume.Snapshot{Status: volume.Available, From: cloudtest.SnapshotID(8)}, nil, volume.Conflict},
		"that is being made":             {volume.Snapshot{Status: volume.Creating, From: cloudtest.SnapshotID(8)}, nil, volume.Busy},
		"that failed too":                {volume.Snapshot{Status: volume.ErrorStatus, From: cloudtest.SnapshotID(8)}, nil, 0},
		"of the volume, not a snapshot":  {volume.Snapshot{Status: volume.Available}, nil, 0},
		"in a store that counts objects": {volume.Snapshot{Status: volume.Available, From: cloudtest.SnapshotID(8), Objects: 21}, nil, 0},

		// An incremental one has no objects in any store, if nothing has changed.
		"incremental, of a full one in Ceph":                {changesOnly(volume.Available), &volume.Snapshot{}, volume.Conflict},
		"incremental, of a full one in another store":       {changesOnly(volume.Available), &volume.Snapshot{Objects: 21}, 0},
		"incremental, of none that the list shows":          {changesOnly(volume.Available), nil, volume.Busy},
		"incremental and being made, in Ceph":               {changesOnly(volume.Creating), &volume.Snapshot{}, volume.Busy},
		"incremental and being made, in another store":      {changesOnly(volume.Creating), &volume.Snapshot{Objects: 21}, 0},
		"incremental with changes":                          {volume.Snapshot{Status: volume.Available, From: cloudtest.SnapshotID(8), Incremental: true, Objects: 2}, nil, 0},
		"incremental, of a full one that was made after it": {changesOnly(volume.Available), &volume.Snapshot{DataAt: time.Now().Add(time.Hour)}, volume.Busy},
		"incremental, of a full one that failed":            {changesOnly(volume.Available), &volume.Snapshot{Status: volume.ErrorStatus}, volume.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := ownBackup(2, volume.ErrorStatus)
				failed.From = cloudtest.SnapshotID(9)
				other := test.other
				other.ID, other.Name, other.Volume, other.Size, other.Backup = cloudtest.SnapshotID(3), "another", failed.Volume, failed.Size, true
				c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(failed, other)
				if f := test.full; f != nil {
					f.ID, f.Name, f.Volume, f.Size, f.Backup = cloudtest.SnapshotID(4), "full", failed.Volume, failed.Size, true
					if f.Status == "" {
						f.Status = volume.Available
					}
					c.WithBackups(*f)
				}
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

// On most days nothing changes, so an incremental backup has no objects in a chunked store. That is no sign of Ceph. In Ceph the user deletes one a day.
func TestAYearOfDailyIncrementalBackups(t *testing.T) {
	days := 45
	if testenv.Full() {
		days = 365
	}
	for name, test := range map[string]struct{ ceph, encrypted bool }{
		"in a chunked store":                        {false, false},
		"of an encrypted volume in a chunked store": {false, true},
		"in Ceph": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := cloudtest.SourceVolume
				if test.encrypted {
					source.Type = "encrypted"
				}
				c := cloudtest.NewWith(t, func(config *openstacksim.Config) {
					withEncryptedType(config)
					config.CephBackups = test.ceph
					for i := range config.Projects {
						config.Projects[i].Quota = map[string]int{"backups": -1, "backup_gigabytes": -1}
					}
				}, source)
				s, last := snapshots(c), volume.SnapshotID("")
				named := func(name string) Spec {
					spec := backupSpec()
					spec.Name, spec.Backup.Incremental = name, true
					return spec
				}
				for day := range days {
					if day%30 == 7 {
						c.Sim.WriteVolume(string(source.ID), day)
					}
					if test.ceph && last != "" {
						_, err := retried(t, s, named("early"))
						if cloudtest.WantKind(t, err, volume.Conflict, false); !strings.Contains(err.Error(), string(last)) {
							t.Fatal(err)
						}
						if err := s.Delete(cloudtest.Within(t, 60), last); err != nil {
							t.Fatal(err)
						}
					}
					b, err := retried(t, s, named(fmt.Sprint("backup-", day)))
					if err != nil {
						t.Fatalf("day %d: %v", day, err)
					}
					last = b.ID
					time.Sleep(24 * time.Hour)
				}
				want := map[bool]int{false: days, true: 1}[test.ceph]
				if n := len(c.Objects(true)); n != want || len(c.Objects(false)) != 0 || c.Count("CreateBackup") != days {
					t.Errorf("want %d backups, got %d, and %d snapshots", want, n, len(c.Objects(false)))
				}
			})
		})
	}
}
