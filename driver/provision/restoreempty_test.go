package provision

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// inCeph is a cloud with a backup in Ceph. Its volume is gone.
func inCeph(t *testing.T, original map[string]string) *cloudtest.Cloud {
	t.Helper()
	b, v := cloudtest.NewBackup(volume.Available), cloudtest.SourceVolume
	b.Objects, v.Metadata = 0, original
	c := cloudtest.New(t, v).WithBackups(b)
	c.Remove(v.ID)
	return c
}

var fromCeph = CreateSpec{Name: "restored", Snapshot: cloudtest.SnapshotID(1), Metadata: map[string]string{"mine": "1"}}

// empty is the volume that the driver created for fromCeph and that waits for its data.
func empty(status volume.Status) volume.Volume {
	metadata := cloudtest.TestOwner.Metadata("restored", fromCeph.Metadata)
	metadata[contract.MetadataRestore] = string(cloudtest.SnapshotID(1))
	return volume.Volume{
		ID: cloudtest.VolumeID(2), Name: "restored", Status: status, Size: volume.GiB(3), Zone: "az1", Metadata: metadata,
		Description: contract.DescriptionOfRestored(cloudtest.TestOwner.Token("restored"), time.Now()),
	}
}

// wantRestored checks what a call returned, and what Cinder has.
func wantRestored(t *testing.T, c *cloudtest.Cloud, v volume.Volume, err error, restores int) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v after %v", err, c.Calls)
	}
	now, _ := c.Read(v.ID)
	if v.RestoreFrom != "" || now.RestoreFrom != "" || now.BackupID != string(cloudtest.SnapshotID(1)) || now.Status != volume.Available {
		t.Errorf("returned %v, Cinder has %v", v, now)
	}
	if m := now.Metadata; m[contract.MetadataCluster] != "cluster" || m[contract.MetadataRequest] != cloudtest.TestOwner.Token("restored") || m["mine"] != "1" {
		t.Errorf("metadata %v", m)
	}
	if got := c.CountPrefix("RestoreBackup "); got != restores || len(c.Volumes()) != 1 {
		t.Errorf("want %d restores, got %d; volumes %v after %v", restores, got, c.Volumes(), c.Calls)
	}
}

func TestABackupInCephIsRestoredIntoAnEmptyVolume(t *testing.T) {
	for name, original := range map[string]map[string]string{
		"metadata of another cluster": {contract.MetadataCluster: "another", contract.MetadataRequest: "theirs", "theirs": "1"},
		"no metadata":                 nil,
		"the key of its own restore":  {contract.MetadataRestore: string(cloudtest.SnapshotID(9))},
	} {
		t.Run("the original had "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := inCeph(t, original), service
				spec := fromCeph
				spec.Size, spec.Zones = volume.Range{Required: volume.GiB(9)}, []string{"az1"}
				began := time.Now()
				v, err := s(c).Create(cloudtest.Within(t, 60), spec)
				wantRestored(t, c, v, err, 1)
				if w := c.Wanted; w.BackupID != "" || w.SnapshotID != "" || w.Metadata[contract.MetadataRestore] != string(spec.Snapshot) || w.Metadata[contract.MetadataSourceBackup] != "" {
					t.Errorf("the create request was %+v", w)
				}
				if v.Size != volume.GiB(9) || time.Since(began) > 10*time.Second {
					t.Errorf("got %v after %v", v, time.Since(began))
				}
				again, err := s(c).Create(cloudtest.Within(t, 60), spec)
				wantRestored(t, c, again, err, 1)
			})
		})
	}
}

// The next call may be that of another replica, which remembers nothing.
func TestAnotherReplicaContinuesARestore(t *testing.T) {
	restoredBy := func(v *volume.Volume) {
		v.Status, v.BackupID = volume.Available, string(cloudtest.SnapshotID(1))
		v.Metadata = map[string]string{contract.MetadataCluster: "another"}
	}
	for name, test := range map[string]struct {
		left     volume.Status
		later    func(*volume.Volume) // what Cinder does in a second
		restores int
		holdOff  bool
	}{
		"after the create request":     {left: volume.Creating, later: func(v *volume.Volume) { v.Status = volume.Available }, restores: 1, holdOff: true},
		"before the restore":           {left: volume.Available, restores: 1, holdOff: true},
		"during the restore":           {left: "restoring-backup", later: restoredBy},
		"after the restore":            {left: volume.Available, later: restoredBy},
		"restored, metadata unchanged": {left: volume.Available, later: func(v *volume.Volume) { v.BackupID = string(cloudtest.SnapshotID(1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := inCeph(t, nil), (*Service)(nil)
				c.Put(empty(test.left))
				if test.later != nil && test.left != volume.Available {
					c.Later(cloudtest.VolumeID(2), test.later)
				} else if test.later != nil {
					c.Change(cloudtest.VolumeID(2), test.later)
				}
				s = service(c)
				began := time.Now()
				v, err := s.Create(cloudtest.Within(t, 60), fromCeph)
				for ; err != nil && time.Since(began) < time.Hour; v, err = s.Create(cloudtest.Within(t, 60), fromCeph) {
					cloudtest.WantKind(t, err, volume.Busy, true)
					if c.CountPrefix("RestoreBackup ") > 0 {
						t.Fatal("the restore was sent, and the call failed")
					}
					time.Sleep(5 * time.Second)
				}
				wantRestored(t, c, v, err, test.restores)
				if held := time.Since(began).Round(time.Minute) == 2*time.Minute; held != test.holdOff {
					t.Errorf("it took %v", time.Since(began))
				}
			})
		})
	}
}

// The call ends while Cinder creates the volume. The same replica need not wait: it knows that it has sent no restore.
func TestTheReplicaThatCreatedAVolumeRestoresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inCeph(t, nil)
		c.Sim.SetLatency(openstacksim.CreateVolume, 20*time.Second)
		s := service(c)
		_, err := s.Create(cloudtest.Within(t, 10), fromCeph)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
		began := time.Now()
		v, err := s.Create(cloudtest.Within(t, 60), fromCeph)
		if wantRestored(t, c, v, err, 1); time.Since(began) > 30*time.Second {
			t.Errorf("it took %v", time.Since(began))
		}
	})
}

func TestARestoreThatTakesLongerThanACallIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inCeph(t, nil)
		c.Sim.SetLatency(openstacksim.RestoreBackup, 10*time.Minute)
		v, err := volume.Volume{}, error(nil)
		calls := 0
		for range 20 {
			calls++
			if v, err = service(c).Create(cloudtest.Within(t, 60), fromCeph); err == nil {
				break
			}
			cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
		}
		if wantRestored(t, c, v, err, 1); calls < 10 {
			t.Errorf("%d calls", calls)
		}
	})
}

// Two replicas work on one request. Cinder may accept two restores that arrive together, so only one of the replicas may send it.
func TestTwoReplicasSendOneRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inCeph(t, nil)
		var group sync.WaitGroup
		var volumes [2]volume.Volume
		var errs [2]error
		for i := range 2 {
			time.Sleep(time.Duration(i) * 200 * time.Millisecond)
			s := service(c)
			group.Go(func() {
				for range 20 {
					if volumes[i], errs[i] = s.Create(cloudtest.Within(t, 60), fromCeph); errs[i] == nil {
						return
					}
					time.Sleep(time.Second)
				}
			})
		}
		group.Wait()
		for i := range 2 {
			wantRestored(t, c, volumes[i], errs[i], 1)
		}
		if volumes[0].ID != volumes[1].ID {
			t.Errorf("got %v", volumes)
		}
	})
}

func TestARestoreWhoseAnswerIsLostIsNotSentAgain(t *testing.T) {
	for name, late := range map[string]time.Duration{"Cinder has begun": 0, "Cinder begins later": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := inCeph(t, nil)
				c.Loses("RestoreBackup", late)
				s := service(c)
				_, err := s.Create(cloudtest.Within(t, 60), fromCeph)
				cloudtest.WantKind(t, err, volume.Unavailable, true)
				var v volume.Volume
				for range 20 {
					if v, err = s.Create(cloudtest.Within(t, 60), fromCeph); err == nil {
						break
					}
					cloudtest.WantKind(t, err, volume.Busy, true)
					time.Sleep(5 * time.Second)
				}
				wantRestored(t, c, v, err, 1)
			})
		})
	}
}

func TestWhatARefusedRestoreLeaves(t *testing.T) {
	refuses := func(c *cloudtest.Cloud, status int) {
		c.Sim.SetFault(openstacksim.Fault{Method: "POST", Path: "/volume/v3/*/backups/*/restore", Status: status})
	}
	becomes := func(status volume.Status) func(*cloudtest.Cloud) {
		return func(c *cloudtest.Cloud) {
			c.ChangeSnapshot(cloudtest.SnapshotID(1), func(b *volume.Snapshot) { b.Status = status })
		}
	}
	for name, test := range map[string]struct {
		before func(*cloudtest.Cloud) // when the volume is empty and available
		kind   volume.Kind
		left   int
	}{
		"the backup is gone":          {func(c *cloudtest.Cloud) { c.Sim.Discard(string(cloudtest.SnapshotID(1))) }, volume.NotFound, 0},
		"somebody deletes the backup": {becomes(volume.Deleting), volume.NotFound, 0},
		"the backup has failed":       {becomes(volume.ErrorStatus), volume.Conflict, 0},
		"somebody else restores it":   {becomes("restoring"), volume.Busy, 1},
		"a policy forbids it":         {func(c *cloudtest.Cloud) { refuses(c, 403) }, volume.PermissionDenied, 0},
		"no cinder-backup":            {func(c *cloudtest.Cloud) { refuses(c, 404) }, volume.Unavailable, 1},
		"Cinder fails":                {func(c *cloudtest.Cloud) { refuses(c, 500) }, volume.Unavailable, 1},
		"Cinder is overloaded":        {func(c *cloudtest.Cloud) { refuses(c, 429) }, volume.Unavailable, 1},
		"somebody deleted the volume": {func(c *cloudtest.Cloud) { c.Remove(c.Volumes()[0]) }, volume.Unavailable, 0},
		"no read of the backup either": {func(c *cloudtest.Cloud) {
			refuses(c, 404)
			c.Breaks("Backup", volume.Errorf(volume.Unavailable, "500"))
		}, volume.Unavailable, 1},
		"the volume cannot be deleted now": {func(c *cloudtest.Cloud) {
			refuses(c, 403)
			c.Breaks("DeleteVolume", volume.Errorf(volume.Unavailable, "500"))
		}, volume.Unavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := inCeph(t, nil)
				c.Hook["RestoreBackup"] = func() { test.before(c) }
				_, err := service(c).Create(cloudtest.Within(t, 60), fromCeph)
				exists := test.left > 0 || name == "somebody deleted the volume"
				if cloudtest.WantKind(t, err, test.kind, exists); len(c.Volumes()) != test.left {
					t.Errorf("%v; left %v", err, c.Volumes())
				}
			})
		})
	}
}

func TestAFailedRestoreIntoAnEmptyVolumeIsDeleted(t *testing.T) {
	for _, fault := range []openstacksim.Operation{openstacksim.RestoreBackup, openstacksim.Attach} {
		synctest.Test(t, func(t *testing.T) {
			c := inCeph(t, map[string]string{contract.MetadataCluster: "another"})
			c.Sim.SetFault(openstacksim.Fault{Operation: fault, Message: "the reason", Times: 1})
			_, err := service(c).Create(cloudtest.Within(t, 60), fromCeph)
			if cloudtest.WantKind(t, err, volume.Failed, false); !strings.Contains(err.Error(), "the reason") || len(c.Volumes()) != 0 {
				t.Errorf("%v; left %v", err, c.Volumes())
			}
			v, err := service(c).Create(cloudtest.Within(t, 60), fromCeph)
			wantRestored(t, c, v, err, 2)
		})
	}
}

// Only a volume with the key that the driver created for the request is safe to overwrite.
func TestNoOtherVolumeIsRestoredInto(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*volume.Volume)
		kind   volume.Kind
	}{
		"it has been returned": {func(v *volume.Volume) { delete(v.Metadata, contract.MetadataRestore) }, volume.Incompatible},
		"it waits for another backup": {func(v *volume.Volume) {
			v.Metadata[contract.MetadataRestore] = string(cloudtest.SnapshotID(2))
		}, volume.Incompatible},
		"another cluster created it": {func(v *volume.Volume) {
			v.Metadata[contract.MetadataRequest], v.Description = "theirs", contract.DescriptionOfRestored("theirs", time.Now())
		}, volume.Conflict},
		"a server has it": {func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerA}}
		}, volume.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, v := inCeph(t, nil), empty(volume.Available)
				test.change(&v)
				c.Put(v)
				s := service(c)
				for range 2 {
					if _, err := s.Create(cloudtest.Within(t, 60), fromCeph); !volume.Is(err, test.kind) {
						t.Errorf("got %v", err)
					}
					time.Sleep(restoreHoldOff)
				}
				if c.CountPrefix("RestoreBackup ") != 0 || len(c.Volumes()) != 1 {
					t.Errorf("left %v after %v", c.Volumes(), c.Calls)
				}
			})
		})
	}
}

// No call has returned it, so the driver replaces it.
func TestAnEmptyVolumeInAnotherZoneIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, v := inCeph(t, nil), empty(volume.Available)
		v.Zone = "az2"
		c.Put(v)
		spec := fromCeph
		spec.Zones = []string{"az1"}
		replaced, err := service(c).Create(cloudtest.Within(t, 60), spec)
		if wantRestored(t, c, replaced, err, 1); replaced.ID == v.ID || replaced.Zone != "az1" {
			t.Errorf("got %v", replaced)
		}
	})
}

// The volume has no data yet, but its ID is known to everybody in the project.
func TestAnEmptyVolumeIsNotUsed(t *testing.T) {
	for name, use := range map[string]func(context.Context, *Service, volume.ID) error{
		"expand": func(ctx context.Context, s *Service, id volume.ID) error {
			_, err := s.Expand(ctx, id, volume.Range{Required: volume.GiB(9)})
			return err
		},
		"modify": func(ctx context.Context, s *Service, id volume.ID) error {
			return s.Modify(ctx, id, Change{Metadata: map[string]string{"a": "1"}})
		},
		"clone": func(ctx context.Context, s *Service, id volume.ID) error {
			_, err := s.Create(ctx, CreateSpec{Name: "clone", Source: id})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := inCeph(t, nil)
				v := empty(volume.Available)
				c.Put(v)
				before := slices.Clone(c.Calls)
				err := use(cloudtest.Within(t, 60), service(c), v.ID)
				if cloudtest.WantKind(t, err, volume.Busy, false); !strings.Contains(err.Error(), string(cloudtest.SnapshotID(1))) || len(c.Volumes()) != 1 {
					t.Errorf("%v after %v", err, c.Calls[len(before):])
				}
				if now, _ := c.Read(v.ID); now.Size != v.Size || !maps.Equal(now.Metadata, v.Metadata) {
					t.Errorf("changed to %v", now)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := inCeph(t, nil)
		v := empty(volume.Available)
		c.Put(v)
		s := service(c)
		if h, err := s.Health(t.Context(), v.ID); err != nil || len(h.Issues) != 1 || h.Issues[0].Reason != "NotRestored" || h.Issues[0].Severity != volume.Inaccessible {
			t.Errorf("health %v, %v", h, err)
		}
		if err := s.Delete(cloudtest.Within(t, 60), v.ID); err != nil || len(c.Volumes()) != 0 {
			t.Errorf("delete: %v; left %v", err, c.Volumes())
		}
	})
}
