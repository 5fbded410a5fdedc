package snapshot

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestDeleteBackup(t *testing.T) {
	down := volume.Errorf(volume.Unavailable, "down")
	for name, test := range map[string]struct {
		status volume.Status // empty: there is none
		cloud  func(*cloudtest.Cloud)
		kind   volume.Kind // Unknown: gone
		sent   bool
		text   string
	}{
		"that is there":     {status: volume.Available},
		"that failed":       {status: "error"},
		"that is not there": {},
		"that is being made": {status: volume.Creating, cloud: func(c *cloudtest.Cloud) {
			c.LaterSnapshot(cloudtest.SnapshotID(1), func(b *volume.Snapshot) { b.Status = volume.Available })
		}},
		"that is being read": {status: "restoring", cloud: func(c *cloudtest.Cloud) {
			c.LaterSnapshot(cloudtest.SnapshotID(1), func(b *volume.Snapshot) { b.Status = volume.Available })
		}},
		"that disappears": {status: "restoring", cloud: func(c *cloudtest.Cloud) {
			c.LaterSnapshot(cloudtest.SnapshotID(1), func(b *volume.Snapshot) { b.ID = "" })
		}},
		"that is being deleted": {status: volume.Deleting, cloud: func(c *cloudtest.Cloud) {
			c.LaterSnapshot(cloudtest.SnapshotID(1), func(b *volume.Snapshot) { b.ID = "" })
		}},
		"that is deleted slowly": {status: volume.Deleting, kind: volume.DeadlineExceeded, text: "be deleted"},
		"that is created slowly": {status: volume.Creating, kind: volume.DeadlineExceeded, text: "deletable"},
		"that is stuck":          {status: "error_deleting", kind: volume.Failed, text: "disk full"},
		"that gets stuck":        {status: volume.Available, cloud: func(c *cloudtest.Cloud) { c.Undeletable("error_deleting") }, kind: volume.Failed, sent: true, text: "the store is gone"},
		"whose deletion fails":   {status: volume.Available, cloud: func(c *cloudtest.Cloud) { c.Undeletable("error") }, kind: volume.Failed, sent: true, text: "the store is gone"},
		"that others depend on": {
			status: volume.Available, cloud: func(c *cloudtest.Cloud) {
				c.Fail["DeleteBackup"] = volume.Errorf(volume.Conflict, "Incremental backups exist")
			},
			kind: volume.Conflict, text: "incremental",
		},
		"that someone begins to restore": {status: volume.Available, cloud: func(c *cloudtest.Cloud) {
			c.Hook["DeleteBackup"] = func() { c.ChangeSnapshot(cloudtest.SnapshotID(1), func(p *volume.Snapshot) { p.Status = "restoring" }) }
			c.Fail["DeleteBackup"] = volume.Errorf(volume.Conflict, "status must be available")
		}, kind: volume.Busy, text: "restoring"},
		"that someone else deletes": {status: volume.Available, cloud: func(c *cloudtest.Cloud) {
			c.Hook["DeleteBackup"] = func() { c.Sim.Discard(string(cloudtest.SnapshotID(1))) }
			c.Fail["DeleteBackup"] = volume.Errorf(volume.NotFound, "no backup")
		}},
		"while no cinder-backup works": {
			status: volume.Available, cloud: func(c *cloudtest.Cloud) {
				c.Fail["DeleteBackup"] = volume.Errorf(volume.NotFound, "Service cinder-backup could not be found")
			},
			kind: volume.Unavailable, text: "no running cinder-backup service in the zone of the volume",
		},
		"in a zone without cinder-backup": {
			status: volume.ErrorStatus, cloud: func(c *cloudtest.Cloud) {
				c.ChangeSnapshot(cloudtest.SnapshotID(1), func(b *volume.Snapshot) { b.Zone = "nowhere" })
				c.Fail["DeleteBackup"] = volume.Errorf(volume.NotFound, "Service cinder-backup could not be found")
			},
			kind: volume.Unavailable, text: `no running cinder-backup service in zone "nowhere" of the backup`,
		},
		"that a policy protects": {status: volume.Available, cloud: func(c *cloudtest.Cloud) { c.Fail["DeleteBackup"] = volume.Errorf(volume.PermissionDenied, "policy") }, kind: volume.PermissionDenied, text: "policy"},
		"that cannot be read":    {status: volume.Available, cloud: func(c *cloudtest.Cloud) { c.Fail["Backup"] = down }, kind: volume.Unavailable, text: "down"},
		"that cannot be read any more": {status: volume.Available, cloud: func(c *cloudtest.Cloud) {
			c.Fail["DeleteBackup"] = volume.Errorf(volume.Conflict, "no")
			c.Hook["DeleteBackup"] = func() { c.Breaks("Backup", down) }
		}, kind: volume.Unavailable, text: "down"},
		"that snapshots hide": {status: volume.Available, cloud: func(c *cloudtest.Cloud) { c.Fail["Snapshot"] = down }, kind: volume.Unavailable, text: "down"},
		// A policy may forbid the driver to read backups. A snapshot that is gone must not count as a hidden backup forever.
		"that is not there, and one may not be read": {cloud: func(c *cloudtest.Cloud) { c.Fail["Backup"] = volume.Errorf(volume.PermissionDenied, "policy") }},
		"that is not there, and none may be read or listed": {cloud: func(c *cloudtest.Cloud) {
			c.Fail["Backup"], c.Fail["Backups"] = volume.Errorf(volume.PermissionDenied, "policy"), volume.Errorf(volume.PermissionDenied, "policy")
		}},
		"that is not there, and nothing about one is allowed": {cloud: func(c *cloudtest.Cloud) {
			for _, call := range []string{"Backup", "Backups", "DeleteBackup"} {
				c.Fail[call] = volume.Errorf(volume.PermissionDenied, "policy")
			}
		}},
		"that is there, and may be deleted only": {status: volume.Available, cloud: func(c *cloudtest.Cloud) {
			c.Fail["Backup"], c.Fail["Backups"] = volume.Errorf(volume.PermissionDenied, "policy"), volume.Errorf(volume.PermissionDenied, "policy")
		}, kind: volume.Unavailable, sent: true, text: "next retry"},
		"that is there, may be deleted only, and is not": {status: "restoring", cloud: func(c *cloudtest.Cloud) {
			c.Fail["Backup"], c.Fail["Backups"] = volume.Errorf(volume.PermissionDenied, "policy"), volume.Errorf(volume.PermissionDenied, "policy")
		}, kind: volume.Conflict, text: "status must be"},
		"that is there, and may be listed only": {status: volume.Available, cloud: func(c *cloudtest.Cloud) {
			for n := range 9 { // three pages
				c.WithBackups(volume.Snapshot{ID: cloudtest.SnapshotID(900 + n), Status: volume.Available})
			}
			c.Fail["Backup"] = volume.Errorf(volume.PermissionDenied, "policy")
		}, kind: volume.PermissionDenied, text: "policy"},
		"that may not be read, while the list fails": {status: volume.Available, cloud: func(c *cloudtest.Cloud) {
			c.Fail["Backup"], c.Fail["Backups"] = volume.Errorf(volume.PermissionDenied, "policy"), down
		}, kind: volume.Unavailable, text: "down"},
		"that nobody may ask about now": {cloud: func(c *cloudtest.Cloud) { c.Fail["Backup"] = volume.Errorf(volume.Unauthenticated, "who?") }, kind: volume.Unauthenticated, text: "who?"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.NewWith(t, pagesOfThree, cloudtest.SourceVolume)
				if test.status != "" {
					c.WithBackups(cloudtest.NewBackup(test.status))
				}
				if test.cloud != nil {
					test.cloud(c)
				}
				err := snapshots(c).Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(1))
				if test.kind == volume.Unknown {
					if _, there := c.Objects(true)[cloudtest.SnapshotID(1)]; err != nil || there {
						t.Errorf("%v; is it there: %v", err, there)
					}
					return
				}
				cloudtest.WantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Errorf("%q is not in %v", test.text, err)
				}
			})
		})
	}
}

func TestDeleteOfASnapshotReadsNoBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available)).WithBackups(cloudtest.NewBackup(volume.Available))
		if p, err := snapshots(c).Get(t.Context(), cloudtest.SnapshotID(1)); err != nil || p.Backup {
			t.Errorf("got %v, %v", p, err)
		}
		if err := snapshots(c).Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(1)); err != nil || c.Count("DeleteSnapshot") != 1 || c.Count("Backup")+c.Count("DeleteBackup") != 0 {
			t.Errorf("%v: %v", err, c.Calls)
		}
	})
}

func TestGetBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status, ready := range map[volume.Status]bool{volume.Available: true, volume.Creating: false, "restoring": false, "error": false, volume.Deleting: false} {
			b, err := snapshots(cloudtest.New(t).WithBackups(cloudtest.NewBackup(status))).Get(t.Context(), cloudtest.SnapshotID(1))
			if err != nil || b.Ready() != ready || b.Volume != cloudtest.SourceVolume.ID || b.Size != cloudtest.SourceVolume.Size {
				t.Errorf("%s: got %v, %v", status, b, err)
			}
		}
		c := cloudtest.New(t)
		c.Fail["Backup"] = volume.Errorf(volume.Unavailable, "down")
		if _, err := snapshots(c).Get(t.Context(), cloudtest.SnapshotID(1)); !volume.Is(err, volume.Unavailable) {
			t.Errorf("an unknown backup: %v", err)
		}
	})
}

// A user may delete a VolumeSnapshot before its backup is available; then no further create call comes.
func TestDeleteBackupDeletesItsTemporarySnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume)
		s := snapshots(c)
		b, err := s.Create(cloudtest.Within(t, 60), backupSpec())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(cloudtest.Within(t, 60), b.ID); err != nil || len(c.Objects(false))+len(c.Objects(true)) != 0 {
			t.Errorf("%v; left: %v and %v", err, c.Objects(false), c.Objects(true))
		}
		other := cloudtest.OwnSnapshot(1, volume.Available)
		c.WithSnapshots(other).WithBackups(ownBackup(2, volume.Available))
		if err := s.Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(2)); err != nil || len(c.Objects(false)) != 1 || len(c.Objects(true)) != 0 {
			t.Errorf("%v; left: %v and %v", err, c.Objects(false), c.Objects(true))
		}
		c.WithSnapshots(ownTemporary(1, volume.Available)).WithBackups(ownBackup(2, volume.Available))
		if err := s.Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(2)); err != nil || len(c.Objects(false))+len(c.Objects(true)) != 0 {
			t.Errorf("%v; left: %v and %v", err, c.Objects(false), c.Objects(true))
		}
		c.WithSnapshots(ownTemporary(1, volume.Available)).WithBackups(ownBackup(2, volume.Available))
		c.Undeletable("error_deleting")
		deletes := c.Count("DeleteBackup")
		err = s.Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(2))
		if cloudtest.WantKind(t, err, volume.Failed, true); len(c.Objects(true)) != 1 || c.Count("DeleteBackup") != deletes {
			t.Errorf("the driver deleted the backup although its snapshot stays: %v", c.Calls)
		}
	})
}

// cycling is a cloud that hides single backups, and whose list of backups repeats two pages.
type cycling struct {
	*cloudtest.Cloud
	pages int
}

func (c *cycling) Backups(context.Context, volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	c.pages++
	return []volume.Snapshot{{ID: cloudtest.SnapshotID(2 + c.pages%2)}}, true, nil
}

func TestDeleteReadsNoListOfBackupsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cycling{Cloud: cloudtest.New(t)}
		c.Fail["Backup"] = volume.Errorf(volume.PermissionDenied, "policy")
		err := New(c, c.Cloud, c.SnapshotWaiter, c.BackupWaiter, Options{Owner: cloudtest.TestOwner}).Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(1))
		if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), "does not end") || c.pages > 6 {
			t.Errorf("%v after %d pages", err, c.pages)
		}
	})
}
