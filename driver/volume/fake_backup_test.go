package volume

import (
	"context"
	"time"
)

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
