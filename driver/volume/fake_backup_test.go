package volume

import (
	"cmp"
	"context"
	"time"
)

// fakeBackups is what a fakeCloud knows of backups alone.
type fakeBackups struct {
	backupOutcome Status        // what a creating backup becomes; empty means available
	slowSnapshots time.Duration // how much longer than a second a snapshot takes
}

// withBackups puts backups into a cloud.
func (c *fakeCloud) withBackups(all ...Snapshot) *fakeCloud {
	for _, b := range all {
		b.Backup = true
		c.backups[b.ID] = &b
	}
	return c
}

func (c *fakeCloud) Backup(_ context.Context, id SnapshotID) (Snapshot, error) {
	if err := c.called("Backup", id); err != nil {
		return Snapshot{}, err
	}
	return c.readBackup(id)
}

func (c *fakeCloud) readBackup(id SnapshotID) (Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.backups[id]; ok {
		return *b, nil
	}
	return Snapshot{}, Errorf(NotFound, "no backup %s", id)
}

// changeBackup alters a backup after one second; one whose id it takes away is gone.
func (c *fakeCloud) changeBackup(id SnapshotID, f func(*Snapshot)) {
	time.AfterFunc(time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if b, ok := c.backups[id]; ok {
			if f(b); b.ID == "" {
				delete(c.backups, id)
			}
		}
	})
}

// DeleteBackup takes a backup away after a second, unless the cloud's outcome says what becomes of it instead.
func (c *fakeCloud) DeleteBackup(_ context.Context, id SnapshotID) error {
	if err := c.called("DeleteBackup", id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.backups[id]
	if !ok {
		return Errorf(NotFound, "no backup %s", id)
	}
	if b.Status != Available && b.Status != ErrorSt {
		return Errorf(Conflict, "Backup status must be available or error")
	}
	b.Status = Deleting
	c.changeBackup(id, func(b *Snapshot) {
		if b.Status = c.undeletable; b.Status == "" {
			b.ID = ""
		} else {
			b.Reason = "the store is gone"
		}
	})
	return nil
}

// backupWaiter reads a backup every 300 virtual milliseconds.
type backupWaiter struct{ *fakeCloud }

func (w backupWaiter) Await(ctx context.Context, id SnapshotID, done func(Snapshot, bool) (bool, error)) (Snapshot, error) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return Snapshot{}, Errorf(KindOf(ctx.Err()), "backup %s: %w", id, ctx.Err())
		case <-tick.C:
		}
		b, err := w.readBackup(id)
		if end, err := done(b, err == nil); end || err != nil {
			return b, err
		}
	}
}

// CreateBackup makes a backup that is there, or in the cloud's outcome of backups, after ten seconds. Its snapshot is busy meanwhile.
func (c *fakeCloud) CreateBackup(_ context.Context, o BackupOptions) (SnapshotID, error) {
	if err := c.called("CreateBackup", o.Snapshot, map[bool]string{true: " incremental"}[o.Incremental], " "+o.Zone); err != nil {
		return "", err
	}
	c.mu.Lock()
	c.made++
	b := Snapshot{
		ID: sid(100 + c.made), Name: o.Name, Volume: o.Volume, Status: Creating, Size: c.volumes[o.Volume].Size, Metadata: o.Metadata, CreatedAt: c.now(),
		Backup: true, From: o.Snapshot, DataAt: c.now(),
	}
	if c.loses("CreateBackup", func() { b.Status, b.CreatedAt = Available, c.now(); c.backups[b.ID] = &b }) {
		c.mu.Unlock()
		return "", errLost
	}
	c.backups[b.ID] = &b
	if p, ok := c.snaps[o.Snapshot]; ok {
		p.Status = "backing-up"
	}
	id := b.ID
	c.mu.Unlock()
	time.AfterFunc(10*time.Second, func() { c.endBackup(id) })
	return id, nil
}

// endBackup ends the making of a backup.
func (c *fakeCloud) endBackup(id SnapshotID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.backups[id]
	if !ok {
		return
	}
	if p, ok := c.snaps[b.From]; ok {
		p.Status = Available
	}
	if b.Status = cmp.Or(c.backupOutcome, Available); b.Status == ErrorSt {
		b.Reason = "the store is full"
	}
}

func (c *fakeCloud) BackupsNamed(_ context.Context, name string) ([]Snapshot, error) {
	if err := c.called("BackupsNamed"); err != nil {
		return nil, err
	}
	return listOf(c, c.backups, func(b Snapshot) bool { return b.Name == name }), nil
}

func (c *fakeCloud) Backups(_ context.Context, page SnapshotPage) ([]Snapshot, error) {
	if err := c.called("Backups"); err != nil {
		return nil, err
	}
	return pageOf(listOf(c, c.backups, func(b Snapshot) bool { return page.Volume == "" || b.Volume == page.Volume }), page)
}
