package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

func TestEverySnapshotStatusOfCinderHasAMeaning(t *testing.T) {
	want := slices.Sorted(slices.Values(volumetest.EverySnapshotStatus))
	if diff := cmp.Diff(want, volume.SnapshotStatuses()); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

var snapshotSpec = Spec{Name: "snapshot-1", Volume: volumetest.VolumeID(1)}

// specs are one for each kind of object that a snapshot ID can name.
var specs = map[string]Spec{"snapshot": snapshotSpec, "backup": backupSpec()}

// own is a snapshot or backup that this driver created for specs.
func own(backup bool, n int, status volume.Status) volume.Snapshot {
	if backup {
		return ownBackup(n, status)
	}
	return volumetest.OwnSnapshot(n, status)
}

// retried calls every five seconds as external-snapshotter does, until there is a result or a final error. external-snapshotter keeps the
// first ID that it gets, so that object must be ready.
func retried(t *testing.T, s *Service, spec Spec) (volume.Snapshot, error) {
	t.Helper()
	for range 60 {
		p, err := s.Create(volumetest.Within(t, 60), spec)
		if err == nil && !p.Ready() {
			t.Fatalf("%s was returned in status %s", p.ID, p.Status)
		}
		if !volume.MayHaveWritten(err) {
			return p, err
		}
		time.Sleep(5 * time.Second)
	}
	t.Fatal("it never ends")
	return volume.Snapshot{}, nil
}

func TestCreateReturnsOnceTheSnapshotIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.SourceVolume)
		s, began, spec := snapshots(c), time.Now(), snapshotSpec
		spec.Metadata = map[string]string{contract.MetadataSnapshotName: "shop"}
		first, err := s.Create(volumetest.Within(t, 60), spec)
		if took := time.Since(began); err != nil || !first.Ready() || took < time.Second || took > 2*time.Second {
			t.Fatalf("got %v, %v after %v", first, err, took)
		}
		want := map[string]string{
			contract.MetadataSnapshotName: "shop", contract.MetadataCluster: "cluster", contract.MetadataRequest: first.Metadata[contract.MetadataRequest],
			contract.MetadataSent: first.Metadata[contract.MetadataSent],
		}
		if diff := cmp.Diff(want, first.Metadata); diff != "" || first.Metadata[contract.MetadataRequest] == "" {
			t.Error("metadata, -want +got\n", diff)
		}
		second, err := s.Create(volumetest.Within(t, 60), spec)
		if err != nil || !second.Ready() || second.ID != first.ID || second.Size != volume.GiB(3) || c.Count("CreateSnapshot") != 1 {
			t.Errorf("got %v, %v after %v", second, err, c.Calls)
		}
	})
}

// A deadline during the wait is no final error. The retry finds the snapshot by name, also in another process.
func TestCreateResumesTheWaitOnARetry(t *testing.T) {
	for name, spec := range specs {
		for _, whose := range []string{"ours", "upstream's"} {
			t.Run(name+", "+whose, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := volumetest.NewCloud(volumetest.SourceVolume)
					p := volumetest.OwnSnapshot(2, volume.Creating)
					if p.CreatedAt = time.Now(); whose != "ours" {
						p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
					}
					c.PutSnapshot(spec.Backup != nil, p)
					_, err := snapshots(c).Create(volumetest.Within(t, 30), spec)
					volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
					c.Mu.Lock()
					c.Objects(spec.Backup != nil)[p.ID].Status = volume.Available
					c.Mu.Unlock()
					if got, err := retried(t, snapshots(c), spec); err != nil || got.ID != p.ID || c.CountPrefix("Create")+c.CountPrefix("Delete") != 0 {
						t.Errorf("got %v, %v after %v", got, err, c.Calls)
					}
				})
			})
		}
	}
}

// No call has returned the ID of an object that was never available. So the replica that sees the failure deletes it, even if another created it.
func TestCreateDeletesWhatFailsDuringTheWait(t *testing.T) {
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume)
				c.Outcome, c.BackupOutcome, c.Reason = volume.ErrorStatus, volume.ErrorStatus, ": the store is full"
				if spec.Backup != nil {
					c.Outcome = "" // of its temporary snapshot
				}
				errs := make(chan error, 2)
				for _, after := range []time.Duration{0, 1500 * time.Millisecond} {
					go func() {
						time.Sleep(after)
						_, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
						errs <- err
					}()
				}
				final := 0
				for range 2 {
					err := <-errs
					if volume.KindOf(err) == volume.Failed && !volume.MayHaveWritten(err) && strings.Contains(err.Error(), "the store is full") {
						final++
					} else if !volume.MayHaveWritten(err) {
						t.Errorf("got %v", err)
					}
				}
				if left := c.Remaining(); final == 0 || len(left) != 1 { // the volume
					t.Errorf("%d failures were final; left %v after %v", final, left, c.Calls)
				}
				c.Outcome, c.BackupOutcome = "", ""
				if p, err := retried(t, snapshots(c), spec); err != nil || len(c.Remaining()) != 2 {
					t.Errorf("a retry does not begin anew: %v, %v; left %v", p, err, c.Remaining())
				}
			})
		})
	}
}

// Create reads the name again after the wait: an older object of another replica may have appeared.
func TestCreateReturnsAnOlderOneThatAppearsDuringTheWait(t *testing.T) {
	for name, spec := range specs {
		for _, found := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, found %t", name, found), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, begin := volumetest.NewCloud(volumetest.SourceVolume), time.Now()
					if found {
						c.PutSnapshot(spec.Backup != nil, volumetest.SnapshotCreatedAt(volumetest.OwnSnapshot(2, volume.Creating), begin))
						time.AfterFunc(10*time.Second, func() {
							c.Mu.Lock()
							defer c.Mu.Unlock()
							c.Objects(spec.Backup != nil)[volumetest.SnapshotID(2)].Status = volume.Available
						})
					}
					time.AfterFunc(1200*time.Millisecond, func() { // the temporary snapshot takes one second
						c.PutSnapshot(spec.Backup != nil, volumetest.SnapshotCreatedAt(volumetest.OwnSnapshot(1, volume.Creating), begin.Add(-time.Second)))
						time.AfterFunc(20*time.Second, func() {
							c.Mu.Lock()
							defer c.Mu.Unlock()
							c.Objects(spec.Backup != nil)[volumetest.SnapshotID(1)].Status = volume.Available
						})
					})
					if !found && spec.Backup == nil {
						c.SlowSnapshots = 5 * time.Second
					}
					p, err := snapshots(c).Create(volumetest.Within(t, 50), spec)
					if err != nil || p.ID != volumetest.SnapshotID(1) || len(c.Objects(spec.Backup != nil)) != 1 {
						t.Errorf("got %v, %v; left %v", p, err, c.Remaining())
					}
				})
			})
		}
	}
}

// While the oldest is not available, a younger one stays. If the oldest fails, the younger one counts.
func TestCreateKeepsYoungerOnesUntilTheOldestIsAvailable(t *testing.T) {
	for name, spec := range specs {
		for _, end := range []volume.Status{volume.Available, volume.ErrorStatus} {
			t.Run(name+" "+string(end), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, begin := volumetest.NewCloud(volumetest.SourceVolume), time.Now()
					c.PutSnapshot(spec.Backup != nil, volumetest.SnapshotCreatedAt(volumetest.OwnSnapshot(1, volume.Creating), begin))
					c.PutSnapshot(spec.Backup != nil, volumetest.SnapshotCreatedAt(volumetest.OwnSnapshot(2, volume.Available), begin.Add(time.Second)))
					time.AfterFunc(10*time.Second, func() {
						if c.CountPrefix("Delete") != 0 {
							t.Errorf("too early: %v", c.Calls)
						}
						c.Mu.Lock()
						defer c.Mu.Unlock()
						c.Objects(spec.Backup != nil)[volumetest.SnapshotID(1)].Status = end
					})
					want := volumetest.SnapshotID(1)
					if end == volume.ErrorStatus {
						_, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
						volumetest.WantKind(t, err, volume.Failed, true)
						want = volumetest.SnapshotID(2)
					}
					if p, err := retried(t, snapshots(c), spec); err != nil || p.ID != want || len(c.Objects(spec.Backup != nil)) != 1 {
						t.Errorf("got %v, %v; left %v", p, err, c.Remaining())
					}
				})
			})
		}
	}
}

func TestCreateOfAVolumeInUse(t *testing.T) {
	old := volume.Errorf(volume.Unimplemented, "no such microversion")
	for name, test := range map[string]struct {
		status volume.Status
		old    bool
		force  bool
		calls  []string
		kind   volume.Kind
	}{
		"available":                        {status: volume.Available, calls: []string{"CreateSnapshot"}},
		"available, by force":              {status: volume.Available, force: true, calls: []string{"CreateSnapshot"}},
		"in use":                           {status: volume.InUse, calls: []string{"CreateSnapshot in use"}},
		"in use, old cloud, without force": {status: volume.InUse, old: true, calls: []string{"CreateSnapshot in use"}, kind: volume.Conflict},
		"in use, old cloud, by force":      {status: volume.InUse, old: true, force: true, calls: []string{"CreateSnapshot in use", "CreateSnapshot by force"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := volumetest.SourceVolume
				v.Status = test.status
				c := volumetest.NewCloud(v)
				if test.old {
					c.Fail["CreateSnapshot in use"] = old
				}
				spec := snapshotSpec
				spec.Force = test.force
				_, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
				if test.kind != volume.Unknown {
					volumetest.WantKind(t, err, test.kind, false)
					if !strings.Contains(err.Error(), "force-create") {
						t.Errorf("it does not say what to do: %v", err)
					}
				} else if err != nil {
					t.Error(err)
				}
				asked := slices.DeleteFunc(c.Calls, func(call string) bool { return !strings.HasPrefix(call, "CreateSnapshot") })
				if diff := cmp.Diff(test.calls, asked); diff != "" {
					t.Error("-want +got\n", diff)
				}
			})
		})
	}
}

// Depending on the status of the volume, Create sends the request at once, after the status has changed, or never.
func TestCreateOfAVolumeInEveryStatus(t *testing.T) {
	for _, status := range volumetest.EveryStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := volumetest.SourceVolume
				v.Status = status
				c := volumetest.NewCloud(v)
				_, err := snapshots(c).Create(volumetest.Within(t, 60), snapshotSpec)
				switch {
				case status == volume.Available || status == volume.InUse:
					if err != nil {
						t.Error(err)
					}
					return
				case status.Meaning().Extend == volume.Wait:
					volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
				case status.Meaning().Extend == volume.BeingDeleted:
					volumetest.WantKind(t, err, volume.NotFound, false)
				default:
					volumetest.WantKind(t, err, volume.Conflict, false)
				}
				if c.Count("CreateSnapshot") != 0 {
					t.Error(c.Calls)
				}
			})
		})
	}
}

func TestCreateWaitsForAChangingVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := volumetest.SourceVolume
		v.Status = "attaching"
		c := volumetest.NewCloud(v)
		c.Later(v.ID, func(v *volume.Volume) { v.Status = volume.InUse })
		if _, err := snapshots(c).Create(volumetest.Within(t, 60), snapshotSpec); err != nil || c.Count("CreateSnapshot in use") != 1 {
			t.Error(err, c.Calls)
		}
	})
}

func TestCreateWithASnapshotInEveryStatus(t *testing.T) {
	for _, status := range volumetest.EverySnapshotStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(volumetest.OwnSnapshot(1, status))
				p, err := snapshots(c).Create(volumetest.Within(t, 60), snapshotSpec)
				switch status.SnapshotMeaning().Create {
				case volume.Proceed, volume.Wait, volume.BeingDeleted:
					if status != volume.Available {
						volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
					} else if err != nil || p.ID != volumetest.SnapshotID(1) {
						t.Errorf("got %v, %v", p, err)
					}
				default:
					if status == "error" {
						volumetest.WantKind(t, err, volume.Failed, false)
					}
					if c.Count("DeleteSnapshot "+string(volumetest.SnapshotID(1))) != 1 {
						t.Error("it was not removed")
					}
				}
				if c.Count("CreateSnapshot") != 0 {
					t.Error("another was asked for")
				}
			})
		})
	}
}

func TestCreateWaitsForADeletionOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(volumetest.OwnSnapshot(1, volume.Deleting))
		time.AfterFunc(time.Second, func() { c.Mu.Lock(); defer c.Mu.Unlock(); delete(c.SnapshotsByID, volumetest.SnapshotID(1)) })
		p, err := snapshots(c).Create(volumetest.Within(t, 60), snapshotSpec)
		if err != nil || p.ID != volumetest.SnapshotID(101) {
			t.Errorf("got %v, %v", p, err)
		}
	})
}

func TestCreateDeletesAFailedSnapshotAndReturnsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(volumetest.OwnSnapshot(1, volume.ErrorStatus))
		c.Reason = "create snapshot:the disk is full"
		s := snapshots(c)
		_, err := retried(t, s, snapshotSpec)
		volumetest.WantKind(t, err, volume.Failed, false)
		if !strings.Contains(err.Error(), c.Reason) || len(c.SnapshotsByID) != 0 {
			t.Errorf("%v; left: %v", err, c.SnapshotsByID)
		}
		if _, err := retried(t, s, snapshotSpec); err != nil {
			t.Errorf("a retry does not begin anew: %v", err)
		}
	})
}

func TestCreateNeverDeletesAFailedSnapshotThatItDoesNotOwn(t *testing.T) {
	p := volumetest.OwnSnapshot(1, "error")
	p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
	c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(p)
	_, err := snapshots(c).Create(t.Context(), snapshotSpec)
	volumetest.WantKind(t, err, volume.Failed, true)
	if c.Count("DeleteSnapshot") != 0 {
		t.Error(c.Calls)
	}
}

func TestCreateWithASnapshotOfAnotherVolumeIsIncompatible(t *testing.T) {
	p := volumetest.OwnSnapshot(1, volume.Available)
	p.Volume = volumetest.VolumeID(2)
	c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(p)
	_, err := snapshots(c).Create(t.Context(), snapshotSpec)
	volumetest.WantKind(t, err, volume.Incompatible, false)
}

func TestCreateReturnsTheOldestAndDeletesItsOwnDuplicates(t *testing.T) {
	for name, spec := range specs {
		backup := spec.Backup != nil
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				old := volumetest.SnapshotCreatedAt(own(backup, 3, volume.Available), begin)
				young := volumetest.SnapshotCreatedAt(own(backup, 1, volume.Creating), begin.Add(time.Second))
				foreign := volumetest.SnapshotCreatedAt(own(backup, 2, volume.Available), begin.Add(2*time.Second))
				foreign.Metadata = nil
				c := volumetest.NewCloud(volumetest.SourceVolume)
				for _, p := range []volume.Snapshot{old, young, foreign} {
					c.PutSnapshot(backup, p)
				}
				time.AfterFunc(time.Second, func() {
					young.Status = volume.Available
					c.PutSnapshot(backup, young)
				})
				p, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
				if err != nil || p.ID != old.ID {
					t.Errorf("got %v, %v", p, err)
				}
				if _, left := c.Objects(backup)[young.ID]; left || len(c.Objects(backup)) != 2 {
					t.Errorf("left: %v", c.Remaining())
				}
			})
		})
	}
}

func TestCreateReturnsTheOlderOneOfAnotherReplica(t *testing.T) {
	for name, spec := range specs {
		backup, method := spec.Backup != nil, "CreateSnapshot"
		if backup {
			method = "CreateBackup"
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume)
				c.Hook[method] = func() {
					other := own(backup, 2, volume.Available)
					other.CreatedAt = time.Now().Add(-time.Second)
					c.PutSnapshot(backup, other)
				}
				p, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
				if left := c.Remaining(); err != nil || p.ID != volumetest.SnapshotID(2) || len(left) != 2 { // the volume, and the older one
					t.Errorf("got %v, %v; left: %v", p, err, left)
				}
			})
		})
	}
}

func TestCreateErrorsAreFinalOnlyWhereNothingExists(t *testing.T) {
	for _, kind := range volume.Kinds() {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud(volumetest.SourceVolume)
			c.Fail["CreateSnapshot"] = volume.Errorf(kind, "no")
			_, err := snapshots(c).Create(volumetest.Within(t, 60), snapshotSpec)
			volumetest.WantKind(t, err, kind, false)
			c = volumetest.NewCloud(volumetest.SourceVolume)
			c.Fail["SnapshotsNamed"] = volume.Errorf(kind, "no")
			_, err = snapshots(c).Create(volumetest.Within(t, 60), snapshotSpec)
			volumetest.WantKind(t, err, kind, true)
			if c.Count("CreateSnapshot") != 0 {
				t.Errorf("%s: a snapshot was asked for", kind)
			}
		})
	}
}

func TestCreateRefusesBeforeItSendsARequest(t *testing.T) {
	for name, test := range map[string]struct {
		spec Spec
		kind volume.Kind
	}{
		"no name":           {Spec{Volume: volumetest.VolumeID(1)}, volume.InvalidArgument},
		"no such volume":    {Spec{Name: "s", Volume: volumetest.VolumeID(9)}, volume.NotFound},
		"no UUID for an id": {Spec{Name: "s", Volume: "../types"}, volume.NotFound},
	} {
		c := volumetest.NewCloud(volumetest.SourceVolume)
		_, err := snapshots(c).Create(t.Context(), test.spec)
		if volume.KindOf(err) != test.kind || volume.MayHaveWritten(err) || c.Count("CreateSnapshot") != 0 {
			t.Errorf("%s: got %v after %v", name, err, c.Calls)
		}
	}
}

func TestDeleteInEveryStatus(t *testing.T) {
	for _, status := range volumetest.EverySnapshotStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(volumetest.OwnSnapshot(1, status))
				err := snapshots(c).Delete(volumetest.Within(t, 60), volumetest.SnapshotID(1))
				switch status.SnapshotMeaning().Delete {
				case volume.Proceed:
					if err != nil || len(c.SnapshotsByID) != 0 {
						t.Errorf("%v; left: %v", err, c.SnapshotsByID)
					}
					return
				case volume.Refuse:
					volumetest.WantKind(t, err, volume.Conflict, false)
				default:
					volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
				}
				if c.Count("DeleteSnapshot") != 0 {
					t.Error(c.Calls)
				}
			})
		})
	}
}

func TestDelete(t *testing.T) {
	for name, test := range map[string]struct {
		id    volume.SnapshotID
		cloud func(*volumetest.Cloud)
		kind  volume.Kind // Unknown: no error
		sent  bool
		text  string
	}{
		"that is not there":            {id: volumetest.SnapshotID(9)},
		"with an id that is no UUID":   {id: "../volumes"},
		"that disappears":              {id: volumetest.SnapshotID(1), cloud: func(c *volumetest.Cloud) { c.Fail["DeleteSnapshot"] = volume.Errorf(volume.NotFound, "gone") }},
		"that its backend still needs": {id: volumetest.SnapshotID(1), cloud: func(c *volumetest.Cloud) { c.Undeletable, c.Reason = volume.Available, "delete snapshot:busy" }, kind: volume.Conflict, sent: true, text: "busy; most likely"},
		"that fails in its backend":    {id: volumetest.SnapshotID(1), cloud: func(c *volumetest.Cloud) { c.Undeletable, c.Reason = "error_deleting", "why" }, kind: volume.Failed, sent: true, text: "why"},
		"of a group": {id: volumetest.SnapshotID(1), cloud: func(c *volumetest.Cloud) {
			c.Fail["DeleteSnapshot"] = volume.Errorf(volume.Conflict, "must not be part of a group")
		}, kind: volume.Conflict, text: "group snapshot"},
		"that a policy protects": {id: volumetest.SnapshotID(1), cloud: func(c *volumetest.Cloud) { c.Fail["DeleteSnapshot"] = volume.Errorf(volume.PermissionDenied, "policy") }, kind: volume.PermissionDenied, text: "policy"},
		"that cannot be read":    {id: volumetest.SnapshotID(1), cloud: func(c *volumetest.Cloud) { c.Fail["Snapshot"] = volume.Errorf(volume.Unavailable, "down") }, kind: volume.Unavailable, text: "down"},
		"that someone begins to back up": {id: volumetest.SnapshotID(1), cloud: func(c *volumetest.Cloud) {
			c.Hook["DeleteSnapshot"] = func() { c.SnapshotsByID[volumetest.SnapshotID(1)].Status = "backing-up" }
			c.Fail["DeleteSnapshot"] = volume.Errorf(volume.Conflict, "status must be available")
		}, kind: volume.Busy, text: "backing-up"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(volumetest.OwnSnapshot(1, volume.Available))
				if test.cloud != nil {
					test.cloud(c)
				}
				err := snapshots(c).Delete(volumetest.Within(t, 60), test.id)
				if test.kind == volume.Unknown {
					if err != nil {
						t.Error(err)
					}
					return
				}
				volumetest.WantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Errorf("%q is not in %v", test.text, err)
				}
			})
		})
	}
}

func TestListContinuesWhereItStopped(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := volumetest.NewCloud(volumetest.SourceVolume)
	for n := range 9 {
		p := volumetest.OwnSnapshot(n, volume.Available)
		p.CreatedAt = begin.Add(-time.Duration(n/2) * time.Second) // two of each second
		p.Volume = volumetest.VolumeID(1 + n%2)
		c.WithSnapshots(p)
	}
	for of, want := range map[volume.ID]int{"": 9, volumetest.VolumeID(1): 5, volumetest.VolumeID(2): 4, volumetest.VolumeID(3): 0, "x": 0} {
		s, seen, at := snapshots(c), map[volume.SnapshotID]bool{}, volume.SnapshotPosition{}
		for {
			page, err := s.List(t.Context(), of, at, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, p := range page {
				if seen[p.ID] || of != "" && p.Volume != of {
					t.Errorf("of %q: %v", of, p)
				}
				seen[p.ID] = true
			}
			at = volume.SnapshotPositionOf(page[len(page)-1])
			delete(c.SnapshotsByID, at.After) // the marker vanishes
		}
		if len(seen) != want {
			t.Errorf("of %q: %d snapshots, want %d", of, len(seen), want)
		}
		for n := range 9 {
			p := volumetest.OwnSnapshot(n, volume.Available)
			p.CreatedAt, p.Volume = begin.Add(-time.Duration(n/2)*time.Second), volumetest.VolumeID(1+n%2)
			c.WithSnapshots(p)
		}
	}
	if _, err := snapshots(c).List(t.Context(), "", volume.SnapshotPosition{PagePosition: volume.PagePosition[volume.SnapshotID]{After: volumetest.SnapshotID(77)}}, 2); !volume.Is(err, volume.NotFound) {
		t.Errorf("got %v", err)
	}
}

func TestGet(t *testing.T) {
	c := volumetest.NewCloud(volumetest.SourceVolume).WithSnapshots(volumetest.OwnSnapshot(1, volume.Creating))
	if p, err := snapshots(c).Get(t.Context(), volumetest.SnapshotID(1)); err != nil || p.Ready() || !p.Alive() {
		t.Errorf("got %v, %v", p, err)
	}
	for _, id := range []volume.SnapshotID{volumetest.SnapshotID(2), "../types"} {
		if _, err := snapshots(c).Get(t.Context(), id); !volume.Is(err, volume.NotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func TestCreateIsNotFinalWhileAnotherSnapshotExistsOrMayAppear(t *testing.T) {
	for name, spec := range specs {
		call := map[bool]string{true: "CreateBackup", false: "CreateSnapshot"}[spec.Backup != nil]
		t.Run(name+" refused while another replica's is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume)
				c.Fail[call] = volume.Errorf(volume.Exhausted, "HTTP 413")
				c.Hook[call] = func() {
					c.Mu.Lock()
					defer c.Mu.Unlock()
					c.Objects(spec.Backup != nil)[volumetest.SnapshotID(7)] = new(volumetest.OwnSnapshot(7, volume.Available))
				}
				_, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
				volumetest.WantKind(t, err, volume.Exhausted, true)
				if p, err := snapshots(c).Create(volumetest.Within(t, 60), spec); err != nil || p.ID != volumetest.SnapshotID(7) {
					t.Errorf("the next try: got %v, %v", p, err)
				}
			})
		})
		t.Run(name+" failed while one of the same second is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume)
				c.Objects(spec.Backup != nil)[volumetest.SnapshotID(1)], c.Objects(spec.Backup != nil)[volumetest.SnapshotID(7)] = new(volumetest.OwnSnapshot(1, volume.ErrorStatus)), new(volumetest.OwnSnapshot(7, volume.Available))
				_, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
				volumetest.WantKind(t, err, volume.Failed, true)
				if p, err := snapshots(c).Create(volumetest.Within(t, 60), spec); err != nil || p.ID != volumetest.SnapshotID(7) {
					t.Errorf("the next try: got %v, %v", p, err)
				}
			})
		})
		t.Run(name+" refused and its name cannot be read", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.SourceVolume)
				c.Fail[call] = volume.Errorf(volume.Exhausted, "HTTP 413")
				c.Hook[call] = func() {
					c.Fail["SnapshotsNamed"], c.Fail["BackupsNamed"] = volume.Errorf(volume.Unavailable, "HTTP 503"), volume.Errorf(volume.Unavailable, "HTTP 503")
				}
				_, err := snapshots(c).Create(volumetest.Within(t, 60), spec)
				volumetest.WantKind(t, err, volume.Exhausted, true)
			})
		})
	}
}
