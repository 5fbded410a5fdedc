package volume

import (
	"strings"
	"testing"
	"testing/synctest"
)

func TestDeletingABackup(t *testing.T) {
	down := Errorf(Unavailable, "down")
	for name, test := range map[string]struct {
		status Status // empty: there is none
		cloud  func(*fakeCloud)
		kind   Kind // Unknown: gone
		sent   bool
		text   string
	}{
		"that is there":        {status: Available},
		"that failed":          {status: "error"},
		"that is not there":    {},
		"that is being made":   {status: Creating, cloud: func(c *fakeCloud) { c.changeBackup(sid(1), func(b *Snapshot) { b.Status = Available }) }},
		"that is being read":   {status: "restoring", cloud: func(c *fakeCloud) { c.changeBackup(sid(1), func(b *Snapshot) { b.Status = Available }) }},
		"that goes meanwhile":  {status: "restoring", cloud: func(c *fakeCloud) { c.changeBackup(sid(1), func(b *Snapshot) { b.ID = "" }) }},
		"that is leaving":      {status: Deleting, cloud: func(c *fakeCloud) { c.changeBackup(sid(1), func(b *Snapshot) { b.ID = "" }) }},
		"that is leaving long": {status: Deleting, kind: DeadlineExceeded, text: "go"},
		"that is made long":    {status: Creating, kind: DeadlineExceeded, text: "deletable"},
		"that is stuck":        {status: "error_deleting", kind: Failed, text: "disk full"},
		"that gets stuck":      {status: Available, cloud: func(c *fakeCloud) { c.undeletable = "error_deleting" }, kind: Failed, sent: true, text: "the store is gone"},
		"that fails to go":     {status: Available, cloud: func(c *fakeCloud) { c.undeletable = "error" }, kind: Failed, sent: true, text: "the store is gone"},
		"that others rest on": {
			status: Available, cloud: func(c *fakeCloud) { c.fail["DeleteBackup"] = Errorf(Conflict, "Incremental backups exist") },
			kind: Conflict, text: "incremental",
		},
		"that someone begins to restore": {status: Available, cloud: func(c *fakeCloud) {
			c.hook["DeleteBackup"] = func() { c.backups[sid(1)].Status = "restoring" }
			c.fail["DeleteBackup"] = Errorf(Conflict, "status must be available")
		}, kind: Busy, text: "restoring"},
		"that someone else deletes": {status: Available, cloud: func(c *fakeCloud) {
			c.hook["DeleteBackup"] = func() { delete(c.backups, sid(1)) }
			c.fail["DeleteBackup"] = Errorf(NotFound, "no backup")
		}},
		"while no cinder-backup works": {
			status: Available, cloud: func(c *fakeCloud) {
				c.fail["DeleteBackup"] = Errorf(NotFound, "Service cinder-backup could not be found")
			},
			kind: Unavailable, text: "no cinder-backup",
		},
		"that a policy protects": {status: Available, cloud: func(c *fakeCloud) { c.fail["DeleteBackup"] = Errorf(PermissionDenied, "policy") }, kind: PermissionDenied, text: "policy"},
		"that cannot be read":    {status: Available, cloud: func(c *fakeCloud) { c.fail["Backup"] = down }, kind: Unavailable, text: "down"},
		"that cannot be read any more": {status: Available, cloud: func(c *fakeCloud) {
			c.fail["DeleteBackup"] = Errorf(Conflict, "no")
			c.hook["DeleteBackup"] = func() { c.mu.Lock(); c.fail["Backup"] = down; c.mu.Unlock() }
		}, kind: Unavailable, text: "down"},
		"that snapshots hide": {status: Available, cloud: func(c *fakeCloud) { c.fail["Snapshot"] = down }, kind: Unavailable, text: "down"},
		// A policy may forbid to read backups: then a snapshot that is gone must not be taken for a backup for ever.
		"that is not there, and one may not be read": {cloud: func(c *fakeCloud) { c.fail["Backup"] = Errorf(PermissionDenied, "policy") }},
		"that is not there, and none may be read or listed": {cloud: func(c *fakeCloud) {
			c.fail["Backup"], c.fail["Backups"] = Errorf(PermissionDenied, "policy"), Errorf(PermissionDenied, "policy")
		}},
		"that is not there, and nothing about one is allowed": {cloud: func(c *fakeCloud) {
			for _, call := range []string{"Backup", "Backups", "DeleteBackup"} {
				c.fail[call] = Errorf(PermissionDenied, "policy")
			}
		}},
		"that is there, and may be deleted only": {status: Available, cloud: func(c *fakeCloud) {
			c.fail["Backup"], c.fail["Backups"] = Errorf(PermissionDenied, "policy"), Errorf(PermissionDenied, "policy")
		}, kind: Unavailable, sent: true, text: "next retry"},
		"that is there, may be deleted only, and is not": {status: "restoring", cloud: func(c *fakeCloud) {
			c.fail["Backup"], c.fail["Backups"] = Errorf(PermissionDenied, "policy"), Errorf(PermissionDenied, "policy")
		}, kind: Conflict, text: "status must be"},
		"that is there, and may be listed only": {status: Available, cloud: func(c *fakeCloud) {
			for n := range 9 { // three pages
				c.withBackups(Snapshot{ID: sid(900 + n), Status: Available})
			}
			c.fail["Backup"] = Errorf(PermissionDenied, "policy")
		}, kind: PermissionDenied, text: "policy"},
		"that may not be read, while the list fails": {status: Available, cloud: func(c *fakeCloud) {
			c.fail["Backup"], c.fail["Backups"] = Errorf(PermissionDenied, "policy"), down
		}, kind: Unavailable, text: "down"},
		"that nobody may ask about now": {cloud: func(c *fakeCloud) { c.fail["Backup"] = Errorf(Unauthenticated, "who?") }, kind: Unauthenticated, text: "who?"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				if test.status != "" {
					c.withBackups(archived(test.status))
				}
				if test.cloud != nil {
					test.cloud(c)
				}
				err := snapshots(c).Delete(within(t, 60), sid(1))
				if test.kind == Unknown {
					if _, there := c.backups[sid(1)]; err != nil || there {
						t.Errorf("%v; is it there: %v", err, there)
					}
					return
				}
				wantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Errorf("%q is not in %v", test.text, err)
				}
			})
		})
	}
}

func TestASnapshotIsNoBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source).withSnapshots(pictureOfOurs(1, Available)).withBackups(archived(Available))
		if p, err := snapshots(c).Get(t.Context(), sid(1)); err != nil || p.Backup {
			t.Errorf("got %v, %v", p, err)
		}
		if err := snapshots(c).Delete(within(t, 60), sid(1)); err != nil || c.count("DeleteSnapshot") != 1 || c.count("Backup")+c.count("DeleteBackup") != 0 {
			t.Errorf("%v: %v", err, c.calls)
		}
	})
}

func TestReadingABackup(t *testing.T) {
	for status, ready := range map[Status]bool{Available: true, Creating: false, "restoring": false, "error": false, Deleting: false} {
		b, err := snapshots(newCloud().withBackups(archived(status))).Get(t.Context(), sid(1))
		if err != nil || b.Ready() != ready || b.Volume != source.ID || b.Size != source.Size {
			t.Errorf("%s: got %v, %v", status, b, err)
		}
	}
	c := newCloud()
	c.fail["Backup"] = Errorf(Unavailable, "down")
	if _, err := snapshots(c).Get(t.Context(), sid(1)); !Is(err, Unavailable) {
		t.Errorf("an unknown backup: %v", err)
	}
}
