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
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestEverySnapshotStatusOfCinderHasAMeaning(t *testing.T) {
	want := slices.Sorted(slices.Values(cloudtest.EverySnapshotStatus))
	if diff := cmp.Diff(want, volume.SnapshotStatuses()); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

var snapshotSpec = Spec{Name: "snapshot-1", Volume: cloudtest.VolumeID(1)}

// specs are one for each kind of object that a snapshot ID can name.
var specs = map[string]Spec{"snapshot": snapshotSpec, "backup": backupSpec()}

// what are the operations that create a snapshot (false) or a backup (true).
var what = map[bool]openstacksim.Operation{false: openstacksim.CreateSnapshot, true: openstacksim.CreateBackup}

// own is a snapshot or backup that this driver created for specs.
func own(backup bool, n int, status volume.Status) volume.Snapshot {
	if backup {
		return ownBackup(n, status)
	}
	return cloudtest.OwnSnapshot(n, status)
}

// retried calls every five seconds as external-snapshotter does, until there is a result or a final error. external-snapshotter keeps the
// first ID that it gets, so that object must be ready.
func retried(t *testing.T, s *Service, spec Spec) (volume.Snapshot, error) {
	t.Helper()
	for range 60 {
		p, err := s.Create(cloudtest.Within(t, 60), spec)
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
		c := cloudtest.New(t, cloudtest.SourceVolume)
		s, began, spec := snapshots(c), time.Now(), snapshotSpec
		spec.Metadata = map[string]string{contract.MetadataSnapshotName: "shop"}
		first, err := s.Create(cloudtest.Within(t, 60), spec)
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
		second, err := s.Create(cloudtest.Within(t, 60), spec)
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
					c := cloudtest.New(t, cloudtest.SourceVolume)
					p := cloudtest.OwnSnapshot(2, volume.Creating)
					if p.CreatedAt = time.Now(); whose != "ours" {
						p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
					}
					c.PutSnapshot(spec.Backup != nil, p)
					_, err := snapshots(c).Create(cloudtest.Within(t, 8), spec)
					cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
					c.ChangeSnapshot(p.ID, func(p *volume.Snapshot) { p.Status = volume.Available })
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
				c := cloudtest.New(t, cloudtest.SourceVolume)
				c.Sim.SetFault(openstacksim.Fault{Operation: what[spec.Backup != nil], Message: ": the store is full"})
				errs := make(chan error, 2)
				for _, after := range []time.Duration{0, 1500 * time.Millisecond} {
					go func() {
						time.Sleep(after)
						_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
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
				c.Sim.ClearFaults()
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
					c, begin := cloudtest.New(t, cloudtest.SourceVolume), time.Now()
					if found {
						c.PutSnapshot(spec.Backup != nil, cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(2, volume.Creating), begin))
						time.AfterFunc(3*time.Second, func() {
							c.ChangeSnapshot(cloudtest.SnapshotID(2), func(p *volume.Snapshot) { p.Status = volume.Available })
						})
					}
					time.AfterFunc(1200*time.Millisecond, func() { // the temporary snapshot takes one second
						c.PutSnapshot(spec.Backup != nil, cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(1, volume.Creating), begin.Add(-time.Second)))
						time.AfterFunc(6*time.Second, func() {
							c.ChangeSnapshot(cloudtest.SnapshotID(1), func(p *volume.Snapshot) { p.Status = volume.Available })
						})
					})
					if !found && spec.Backup == nil {
						c.Sim.SetLatency(openstacksim.CreateSnapshot, 6*time.Second)
					}
					p, err := snapshots(c).Create(cloudtest.Within(t, 50), spec)
					if err != nil || p.ID != cloudtest.SnapshotID(1) || len(c.Objects(spec.Backup != nil)) != 1 {
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
					c, begin := cloudtest.New(t, cloudtest.SourceVolume), time.Now()
					c.PutSnapshot(spec.Backup != nil, cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(1, volume.Creating), begin))
					c.PutSnapshot(spec.Backup != nil, cloudtest.SnapshotCreatedAt(cloudtest.OwnSnapshot(2, volume.Available), begin.Add(time.Second)))
					time.AfterFunc(5*time.Second, func() {
						if c.CountPrefix("Delete") != 0 {
							t.Errorf("too early: %v", c.Calls)
						}
						c.ChangeSnapshot(cloudtest.SnapshotID(1), func(p *volume.Snapshot) { p.Status = end })
					})
					want := cloudtest.SnapshotID(1)
					if end == volume.ErrorStatus {
						_, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
						cloudtest.WantKind(t, err, volume.Failed, true)
						want = cloudtest.SnapshotID(2)
					}
					if p, err := retried(t, snapshots(c), spec); err != nil || p.ID != want || len(c.Objects(spec.Backup != nil)) != 1 {
						t.Errorf("got %v, %v; left %v", p, err, c.Remaining())
					}
				})
			})
		}
	}
}

func TestCreateWithASnapshotInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EverySnapshotStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, status))
				p, err := snapshots(c).Create(cloudtest.Within(t, 60), snapshotSpec)
				switch status.SnapshotMeaning().Create {
				case volume.Proceed, volume.Wait, volume.BeingDeleted:
					if status != volume.Available {
						cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
					} else if err != nil || p.ID != cloudtest.SnapshotID(1) {
						t.Errorf("got %v, %v", p, err)
					}
				default:
					if status == "error" {
						cloudtest.WantKind(t, err, volume.Failed, false)
					}
					if c.Count("DeleteSnapshot "+string(cloudtest.SnapshotID(1))) != 1 {
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
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, volume.Deleting))
		time.AfterFunc(time.Second, func() { c.Sim.Discard(string(cloudtest.SnapshotID(1))) })
		p, err := snapshots(c).Create(cloudtest.Within(t, 60), snapshotSpec)
		if err != nil || p.ID == cloudtest.SnapshotID(1) {
			t.Errorf("got %v, %v", p, err)
		}
	})
}

func TestCreateDeletesAFailedSnapshotAndReturnsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, volume.ErrorStatus))
		c.Reason = "create snapshot:the disk is full"
		s := snapshots(c)
		_, err := retried(t, s, snapshotSpec)
		cloudtest.WantKind(t, err, volume.Failed, false)
		if !strings.Contains(err.Error(), c.Reason) || len(c.Objects(false)) != 0 {
			t.Errorf("%v; left: %v", err, c.Objects(false))
		}
		if _, err := retried(t, s, snapshotSpec); err != nil {
			t.Errorf("a retry does not begin anew: %v", err)
		}
	})
}

func TestCreateNeverDeletesAFailedSnapshotThatItDoesNotOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cloudtest.OwnSnapshot(1, "error")
		p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(p)
		_, err := snapshots(c).Create(t.Context(), snapshotSpec)
		cloudtest.WantKind(t, err, volume.Failed, true)
		if c.Count("DeleteSnapshot") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestCreateWithASnapshotOfAnotherVolumeIsIncompatible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cloudtest.OwnSnapshot(1, volume.Available)
		p.Volume = cloudtest.VolumeID(2)
		other := cloudtest.SourceVolume
		other.ID = p.Volume
		c := cloudtest.New(t, cloudtest.SourceVolume, other).WithSnapshots(p)
		_, err := snapshots(c).Create(t.Context(), snapshotSpec)
		cloudtest.WantKind(t, err, volume.Incompatible, false)
	})
}

func TestCreateReturnsTheOldestAndDeletesItsOwnDuplicates(t *testing.T) {
	for name, spec := range specs {
		backup := spec.Backup != nil
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				old := cloudtest.SnapshotCreatedAt(own(backup, 3, volume.Available), begin)
				young := cloudtest.SnapshotCreatedAt(own(backup, 1, volume.Creating), begin.Add(time.Second))
				foreign := cloudtest.SnapshotCreatedAt(own(backup, 2, volume.Available), begin.Add(2*time.Second))
				foreign.Metadata = nil
				c := cloudtest.New(t, cloudtest.SourceVolume)
				for _, p := range []volume.Snapshot{old, young, foreign} {
					c.PutSnapshot(backup, p)
				}
				time.AfterFunc(time.Second, func() {
					young.Status = volume.Available
					c.PutSnapshot(backup, young)
				})
				p, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
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
				c := cloudtest.New(t, cloudtest.SourceVolume)
				c.Hook[method] = func() {
					other := own(backup, 2, volume.Available)
					other.CreatedAt = time.Now().Add(-time.Second)
					c.PutSnapshot(backup, other)
				}
				p, err := snapshots(c).Create(cloudtest.Within(t, 60), spec)
				if left := c.Remaining(); err != nil || p.ID != cloudtest.SnapshotID(2) || len(left) != 2 { // the volume, and the older one
					t.Errorf("got %v, %v; left: %v", p, err, left)
				}
			})
		})
	}
}
