package volume

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// every status that Cinder 21 gives a backup: objects/fields.py BackupStatus.ALL.
var everyBackupStatus = []Status{"error", "error_deleting", "creating", "available", "deleting", "deleted", "restoring"}

func TestEveryBackupStatusOfCinderHasAMeaning(t *testing.T) {
	for _, status := range everyBackupStatus {
		if !slices.Contains(SnapshotStatuses(), status) {
			t.Errorf("%s has none", status)
		}
	}
}

// archive is a wish for a backup of source.
func archive(change ...func(*BackupSpec)) SnapshotSpec {
	w := BackupSpec{PerGiB: 20 * time.Second}
	for _, c := range change {
		c(&w)
	}
	return SnapshotSpec{Name: "snapshot-1", Volume: id(1), Backup: &w}
}

func incremental(w *BackupSpec) { w.Incremental = true }

// temporaryOfOurs is a snapshot that this driver made for archive, backupOfOurs a backup.
func temporaryOfOurs(n int, status Status) Snapshot {
	p := pictureOfOurs(n, status)
	p.Metadata[contract.MetadataTemporary] = "backup"
	return p
}

func backupOfOurs(n int, status Status) Snapshot {
	b := pictureOfOurs(n, status)
	b.Backup, b.CreatedAt = true, time.Now()
	return b
}

// temporaryOfUpstream is the snapshot that upstream's driver leaves when it is replaced while it waits for a backup.
func temporaryOfUpstream(n int, status Status) Snapshot {
	p := pictureOfOurs(n, status)
	p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
	return p
}

func TestABackupIsMadeFromATemporarySnapshotThatIsGoneWhenItIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := source
		v.Status = InUse
		c := newCloud(v)
		s, began, w := snapshots(c), time.Now(), archive(func(w *BackupSpec) { w.Zone = "az1" })
		w.Metadata = map[string]string{contract.MetadataSnapshotName: "shop"}
		time.AfterFunc(5*time.Second, func() {
			if len(c.snaps) != 1 || !s.temporary(*c.snaps[sid(101)]) || c.count("CreateBackup"+string(sid(101))+" az1") != 1 {
				t.Errorf("snapshots %v after %v", c.snaps, c.calls)
			}
		})
		first, err := s.Create(within(t, 60), w)
		if took := time.Since(began); err != nil || !first.Ready() || !first.Backup || took > 15*time.Second {
			t.Fatalf("got %v, %v after %v", first, err, took)
		}
		want := map[string]string{
			contract.MetadataSnapshotName: "shop", contract.MetadataCluster: "cluster", contract.MetadataRequest: s.owner.Token(w.Name), "type": "backup",
			contract.MetadataSent: first.Metadata[contract.MetadataSent],
		}
		if diff := cmp.Diff(want, first.Metadata); diff != "" {
			t.Error("metadata, -want +got\n", diff)
		}
		b, err := s.Create(within(t, 60), w)
		if err != nil || !b.Ready() || b.ID != first.ID || len(c.snaps) != 0 || len(c.backups) != 1 || c.count("CreateSnapshot") != 1 || c.count("CreateBackup") != 1 {
			t.Errorf("got %v, %v; left %v; after %v", b, err, c.snaps, c.calls)
		}
	})
}

// external-snapshotter has few worker threads, and a backup takes minutes.
func TestOneCallWaitsForABackupForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source).withBackups(backupOfOurs(2, Creating))
		w := archive(func(w *BackupSpec) { w.PerGiB = 0 })
		for range 3 {
			began := time.Now()
			_, err := snapshots(c).Create(within(t, 180), w)
			wantKind(t, err, Busy, true)
			if took := time.Since(began); took != time.Minute || !strings.Contains(err.Error(), string(sid(2))+" is being created (status creating); the driver keeps waiting on the next call") {
				t.Errorf("%v after %v", err, took)
			}
		}
		c.changeBackup(sid(2), func(b *Snapshot) { b.Status = Available })
		if b, err := snapshots(c).Create(within(t, 180), w); err != nil || b.ID != sid(2) || c.count("Create")+c.count("Delete") != 0 {
			t.Errorf("got %v, %v after %v", b, err, c.calls)
		}
	})
}

// Whatever an earlier call left, one call after the other ends at one backup and no snapshot.
func TestABackupIsResumedFromWhateverTheCloudShows(t *testing.T) {
	old := time.Now()
	from := func(b Snapshot, p SnapshotID) Snapshot { b.From = p; return b }
	for name, test := range map[string]struct {
		snapshots []Snapshot
		backups   []Snapshot
		ends      map[SnapshotID]Status // what changes by itself, after a second
		id        SnapshotID            // empty: a new one
		left      int                   // snapshots of others
	}{
		"nothing":              {},
		"a temporary snapshot": {snapshots: []Snapshot{temporaryOfOurs(1, Available)}},
		"a temporary snapshot that is being made": {snapshots: []Snapshot{temporaryOfOurs(1, Creating)}, ends: map[SnapshotID]Status{sid(1): Available}},
		"upstream's temporary snapshot":           {snapshots: []Snapshot{temporaryOfUpstream(1, Available)}},
		"a backup":                                {backups: []Snapshot{backupOfOurs(2, Available)}, id: sid(2)},
		"a backup and its snapshot":               {snapshots: []Snapshot{temporaryOfOurs(1, Available)}, backups: []Snapshot{backupOfOurs(2, Available)}, id: sid(2)},
		"upstream's backup and its snapshot": {
			snapshots: []Snapshot{temporaryOfUpstream(1, Available)},
			backups:   []Snapshot{from(Snapshot{ID: sid(2), Name: "snapshot-1", Volume: id(1), Status: Available, CreatedAt: old}, sid(1))}, id: sid(2),
		},
		"a backup and a snapshot that it was not made from": {
			snapshots: []Snapshot{temporaryOfUpstream(1, Available)}, backups: []Snapshot{from(backupOfOurs(2, Available), sid(9))}, id: sid(2), left: 1,
		},
		"a backup that goes": {backups: []Snapshot{backupOfOurs(2, Deleting)}, ends: map[SnapshotID]Status{sid(2): ""}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).withSnapshots(test.snapshots...).withBackups(test.backups...)
				for id, status := range test.ends {
					c.changeSnapshot(id, func(p *Snapshot) { p.Status = status })
					c.changeBackup(id, func(b *Snapshot) {
						if b.Status = status; status == "" {
							b.ID = ""
						}
					})
				}
				b, err := retried(t, snapshots(c), archive())
				if err != nil || test.id != "" && b.ID != test.id || len(c.backups) != 1 || len(c.snaps) != test.left {
					t.Errorf("got %v, %v; left %v; after %v", b, err, c.snaps, c.calls)
				}
			})
		})
	}
}

func TestABackupInEveryStatusIsAnsweredWhenAskedForAgain(t *testing.T) {
	for _, status := range everyBackupStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).withSnapshots(temporaryOfOurs(1, Available)).withBackups(backupOfOurs(2, status))
				b, err := snapshots(c).Create(within(t, 30), archive())
				switch status.SnapshotMeaning().Create {
				case Proceed, Wait, BeingDeleted:
					if status != Available {
						wantKind(t, err, DeadlineExceeded, true)
					} else if err != nil || b.ID != sid(2) {
						t.Errorf("got %v, %v", b, err)
					}
				default:
					if wantKind(t, err, Failed, status == "error_deleting"); status == "error" && len(c.snaps)+len(c.backups) != 0 {
						t.Errorf("left: %v and %v", c.snaps, c.backups)
					}
				}
				if c.count("CreateBackup") != 0 {
					t.Error("another was asked for")
				}
			})
		})
	}
}

func TestAFailedBackupIsRemovedWithItsSnapshotAndTheReasonReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := backupOfOurs(2, ErrorSt)
		failed.Reason = "the store is full.\nTraceback (most recent call last):\n\n  Fil"
		c := newCloud(source).withSnapshots(temporaryOfOurs(1, Available)).withBackups(failed)
		s := snapshots(c)
		_, err := retried(t, s, archive())
		wantKind(t, err, Failed, false)
		if !strings.Contains(err.Error(), "the store is full;") || len(c.snaps)+len(c.backups) != 0 {
			t.Errorf("%v; left: %v and %v", err, c.snaps, c.backups)
		}
		if _, err := retried(t, s, archive()); err != nil {
			t.Errorf("a retry does not begin anew: %v", err)
		}
	})
}

func TestAFailedBackupOfSomeoneElseIsNeverRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backupOfOurs(2, ErrorSt)
		b.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
		c := newCloud(source).withBackups(b)
		_, err := snapshots(c).Create(within(t, 60), archive())
		if wantKind(t, err, Failed, true); c.count("Delete") != 0 {
			t.Error(c.calls)
		}
	})
}

// Cinder forgets the snapshot of a backup that its scheduler finds no cinder-backup for: only an administrator can go on.
func TestASnapshotThatCinderForgotIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backupOfOurs(2, ErrorSt)
		b.Reason, b.From = "Service not found for creating backup.", sid(1)
		c := newCloud(source).withSnapshots(temporaryOfOurs(1, backingUp)).withBackups(b)
		began := time.Now()
		_, err := snapshots(c).Create(within(t, 60), archive())
		wantKind(t, err, Failed, true)
		for _, text := range []string{"Service not found", "volume snapshot set --state available " + string(sid(1)), string(id(1)), "administrator"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q is not in %v", text, err)
			}
		}
		if time.Since(began) != 0 || c.count("Delete") != 0 {
			t.Errorf("after %v: %v", time.Since(began), c.calls)
		}
		c.snaps[sid(1)].Status = Available // by the administrator
		_, err = snapshots(c).Create(within(t, 60), archive())
		if wantKind(t, err, Failed, false); len(c.snaps)+len(c.backups) != 0 {
			t.Errorf("left: %v and %v", c.snaps, c.backups)
		}
	})
}

// A refusal is final only once the temporary snapshot is gone.
func TestBackupErrorsAreFinalOnlyWhereNothingExists(t *testing.T) {
	for _, kind := range Kinds() {
		final := Final(Errorf(kind, "no"))
		for _, stuck := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				c.fail["CreateBackup"] = Errorf(kind, "no")
				if stuck {
					c.undeletable = "error_deleting"
				}
				_, err := snapshots(c).Create(within(t, 60), archive())
				wantKind(t, err, kind, !final || stuck)
				if left := len(c.snaps); left != map[bool]int{true: 0, false: 1}[final && !stuck] {
					t.Errorf("%s: %d snapshots are left", kind, left)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(source)
			c.fail["BackupsNamed"] = Errorf(kind, "no")
			_, err := snapshots(c).Create(within(t, 60), archive())
			if wantKind(t, err, kind, true); c.count("Create") != 0 {
				t.Errorf("%s: %v", kind, c.calls)
			}
		})
	}
}

func TestAVolumesIDMayBeInAnotherCaseWhenItIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const upper, lower = "AAAAAAAA-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000001"
		for name, test := range map[string]struct {
			wish SnapshotSpec
			made Snapshot
		}{
			"snapshot": {picture, pictureOfOurs(1, Available)},
			"backup":   {archive(), backupOfOurs(2, Available)},
		} {
			test.wish.Volume, test.made.Volume = upper, lower
			c := newCloud(Volume{ID: lower, Status: Available})
			if test.made.Backup {
				c.withBackups(test.made)
			} else {
				c.withSnapshots(test.made)
			}
			if got, err := snapshots(c).Create(within(t, 60), test.wish); err != nil || got.ID != test.made.ID {
				t.Errorf("%s: want %s, got %v, %v", name, test.made.ID, got, err)
			}
		}
	})
}

func TestNamesOfOtherThingsAreIncompatible(t *testing.T) {
	elsewhere := func(p Snapshot) Snapshot { p.Volume = id(2); return p }
	for name, test := range map[string]struct {
		wish      SnapshotSpec
		snapshots []Snapshot
		backups   []Snapshot
	}{
		"a backup of another volume":                       {archive(), nil, []Snapshot{elsewhere(backupOfOurs(2, Available))}},
		"a backup that is being made of another":           {archive(), nil, []Snapshot{elsewhere(backupOfOurs(2, Creating))}},
		"a temporary snapshot of another volume":           {archive(), []Snapshot{elsewhere(temporaryOfOurs(1, Available))}, nil},
		"a snapshot where a backup is asked for":           {archive(), []Snapshot{pictureOfOurs(1, Available)}, nil},
		"a snapshot of nobody where a backup is asked for": {archive(), []Snapshot{{ID: sid(1), Name: "snapshot-1", Volume: id(1), Status: Available}}, nil},
		"a temporary snapshot where a snapshot is asked":   {picture, []Snapshot{temporaryOfOurs(1, Available)}, nil},
		"a backup where a snapshot is asked for":           {picture, nil, []Snapshot{backupOfOurs(2, Available)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source, Volume{ID: id(2), Status: Available}).withSnapshots(test.snapshots...).withBackups(test.backups...)
				_, err := snapshots(c).Create(within(t, 60), test.wish)
				if wantKind(t, err, Incompatible, false); c.count("Create")+c.count("Delete") != 0 {
					t.Error(c.calls)
				}
			})
		})
	}
}

func TestACloudWithoutBackupsMakesSnapshots(t *testing.T) {
	for _, kind := range []Kind{PermissionDenied, Unimplemented, NotFound} {
		c := newCloud(source).withSnapshots()
		c.fail["BackupsNamed"], c.fail["Backups"] = Errorf(kind, "no"), Errorf(kind, "no")
		s := snapshots(c)
		p, err := s.Create(t.Context(), picture)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if page, err := s.List(t.Context(), "", SnapshotPositionOf(p), 0); err != nil || len(page) != 0 {
			t.Errorf("%s: the list's end is %v, %v", kind, page, err)
		}
	}
	c := newCloud(source)
	c.fail["BackupsNamed"] = Errorf(Unavailable, "down")
	_, err := snapshots(c).Create(t.Context(), picture)
	wantKind(t, err, Unavailable, true)
}

func TestAnIncrementalBackupRestsOnTheLatest(t *testing.T) {
	begin := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	base := func(n int, status Status, minute int) Snapshot {
		return Snapshot{ID: sid(n), Name: "earlier", Volume: id(1), Status: status, DataAt: begin.Add(time.Duration(minute) * time.Minute), CreatedAt: begin}
	}
	for name, test := range map[string]struct {
		backups []Snapshot
		plain   bool
		kind    Kind
		full    bool
	}{
		"of none":                                {full: true},
		"of one":                                 {backups: []Snapshot{base(1, Available, 1)}},
		"of one, in full":                        {backups: []Snapshot{base(1, Available, 1)}, plain: true, full: true},
		"of one that failed":                     {backups: []Snapshot{base(1, ErrorSt, 1)}, full: true},
		"of one that is being made":              {backups: []Snapshot{base(1, Creating, 1)}, kind: Busy},
		"of one that is being restored":          {backups: []Snapshot{base(1, "restoring", 1)}, kind: Busy},
		"of an older one that failed":            {backups: []Snapshot{base(1, ErrorSt, 1), base(2, Available, 2), base(3, ErrorSt, 0), base(4, ErrorSt, 0)}},
		"of a younger one that failed":           {backups: []Snapshot{base(1, Available, 1), base(2, ErrorSt, 2)}, full: true},
		"of one that is younger than the source": {backups: []Snapshot{base(1, Available, 1), base(2, ErrorSt, 100*365*24*60)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).withBackups(test.backups...)
				w := archive(incremental)
				w.Backup.Incremental = !test.plain
				_, err := snapshots(c).Create(within(t, 60), w)
				if test.kind != Unknown {
					wantKind(t, err, test.kind, true)
					return
				}
				i := slices.IndexFunc(c.calls, func(call string) bool { return strings.HasPrefix(call, "CreateBackup") })
				if err != nil || i < 0 || strings.Contains(c.calls[i], "incremental") == test.full {
					t.Errorf("%v after %v", err, c.calls)
				}
			})
		})
	}
}

func TestABackupThatTakesLongerThanItsClassAllowsIsToldOfAndPursued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backupOfOurs(2, Creating) // of 3 GiB: 90 s
		c := newCloud(source).withBackups(b)
		for after, late := range map[time.Duration]bool{80 * time.Second: false, 100 * time.Second: true} {
			c.backups[sid(2)].CreatedAt = time.Now().Add(-after)
			_, err := snapshots(c).Create(within(t, 5), archive())
			if wantKind(t, err, DeadlineExceeded, true); strings.Contains(err.Error(), contract.ParameterBackupTime) != late {
				t.Errorf("after %v: %v", after, err)
			}
		}
		c.backups[sid(2)].Status = Available
		if b, err := snapshots(c).Create(within(t, 60), archive()); err != nil || !b.Ready() {
			t.Errorf("got %v, %v", b, err)
		}
	})
}

func TestOfSeveralBackupsTheOldestCountsAndOurYoungerGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		old, young, foreign := backupOfOurs(3, Available), backupOfOurs(1, Creating), backupOfOurs(2, Available)
		old, young, foreign = snapshotCreatedAt(old, begin), snapshotCreatedAt(young, begin.Add(time.Second)), snapshotCreatedAt(foreign, begin.Add(2*time.Second))
		foreign.Metadata = nil
		c := newCloud(source).withBackups(old, young, foreign)
		c.changeBackup(young.ID, func(b *Snapshot) { b.Status = Available })
		b, err := snapshots(c).Create(within(t, 60), archive())
		if err != nil || b.ID != old.ID {
			t.Errorf("got %v, %v", b, err)
		}
		if _, left := c.backups[young.ID]; left || len(c.backups) != 2 {
			t.Errorf("left: %v", c.backups)
		}
	})
}

func TestABackupOfAnotherReplicaThatIsOlderCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source)
		c.hook["CreateBackup"] = func() {
			other := backupOfOurs(2, Available)
			other.CreatedAt = time.Now().Add(-time.Second)
			c.withBackups(other)
		}
		b, err := snapshots(c).Create(within(t, 60), archive())
		if err != nil || b.ID != sid(2) || len(c.backups) != 1 || len(c.snaps) != 0 {
			t.Errorf("got %v, %v; left: %v and %v", b, err, c.backups, c.snaps)
		}
	})
}

// Of two of one second no later call can tell which was returned: the one that made the loser removes it.
func TestOfTwoBackupsOfOneSecondTheCallThatMadeTheSecondRemovesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source)
		c.hook["CreateBackup"] = func() {
			c.withBackups(backupOfOurs(2, Creating))
			time.AfterFunc(20*time.Second, func() { c.endBackup(sid(2)) })
		}
		b, err := snapshots(c).Create(within(t, 60), archive())
		if err != nil || b.ID != sid(2) || len(c.backups) != 1 {
			t.Errorf("got %v, %v; left: %v", b, err, c.backups)
		}
	})
}

func TestATemporarySnapshotThatIsBusyIsLeftToItsOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source).withSnapshots(temporaryOfOurs(1, backingUp))
		_, err := snapshots(c).Create(within(t, 60), archive())
		if wantKind(t, err, Busy, true); c.count("CreateBackup")+c.count("Delete") != 0 {
			t.Error(c.calls)
		}
	})
}

// A temporary snapshot that Cinder will not delete keeps nobody from using the backup; while it only takes long the answer waits.
func TestABackupIsReadyOnceItsSnapshotIsGoneOrWillNeverBe(t *testing.T) {
	for _, undeletable := range []Status{Available, "error_deleting", Deleting} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(source).withSnapshots(temporaryOfOurs(1, Available)).withBackups(backupOfOurs(2, Available))
			c.undeletable = undeletable
			b, err := snapshots(c).Create(within(t, 60), archive())
			if undeletable == Deleting {
				wantKind(t, err, DeadlineExceeded, true)
			} else if err != nil || !b.Ready() {
				t.Errorf("%s: got %v, %v", undeletable, b, err)
			}
		})
	}
}

// A VolumeSnapshot may be deleted before its backup was ready: nobody asks for that again.
func TestDeletingABackupTakesItsTemporarySnapshotAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source)
		s := snapshots(c)
		b, err := s.Create(within(t, 60), archive())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(within(t, 60), b.ID); err != nil || len(c.snaps)+len(c.backups) != 0 {
			t.Errorf("%v; left: %v and %v", err, c.snaps, c.backups)
		}
		other := pictureOfOurs(1, Available)
		c.withSnapshots(other).withBackups(backupOfOurs(2, Available))
		if err := s.Delete(within(t, 60), sid(2)); err != nil || len(c.snaps) != 1 || len(c.backups) != 0 {
			t.Errorf("%v; left: %v and %v", err, c.snaps, c.backups)
		}
		c.withSnapshots(temporaryOfOurs(1, Available)).withBackups(backupOfOurs(2, Available))
		c.undeletable = "error_deleting"
		err = s.Delete(within(t, 60), sid(2))
		if wantKind(t, err, Failed, true); len(c.backups) != 1 {
			t.Error("the backup went although its snapshot stays")
		}
	})
}

func TestTheListGoesOnFromSnapshotsToBackups(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, of := range []ID{"", id(1), id(2)} {
		for _, vanish := range []bool{false, true} {
			c, want := newCloud(source), 0
			for n := range 10 {
				p := Snapshot{ID: sid(n), Status: Available, CreatedAt: begin.Add(time.Duration(n/2) * time.Second), Volume: id(1 + n%2)}
				if of == "" || of == p.Volume {
					want++
				}
				if n < 5 {
					c.withSnapshots(p)
				} else {
					c.withBackups(p)
				}
			}
			s, seen, at := snapshots(c), []SnapshotID{}, SnapshotPosition{}
			for {
				page, err := s.List(t.Context(), of, at, 2)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				for _, p := range page {
					if slices.Contains(seen, p.ID) || p.Backup != (p.ID >= sid(5)) {
						t.Errorf("of %q: %v", of, p)
					}
					seen = append(seen, p.ID)
				}
				if at = SnapshotPositionOf(page[len(page)-1]); vanish {
					delete(c.snaps, at.After)
					delete(c.backups, at.After)
				}
			}
			if len(seen) != want {
				t.Errorf("of %q: %v, want %d", of, seen, want)
			}
		}
	}
}
