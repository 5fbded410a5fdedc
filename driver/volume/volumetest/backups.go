package volumetest

import (
	"cmp"
	"context"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// backupFaults are the faults of a Cloud that concern only backups.
type backupFaults struct {
	BackupOutcome volume.Status // what a creating backup becomes; empty means available
	SlowSnapshots time.Duration // how much longer than a second a snapshot takes
}

// WithBackups adds backups to a cloud.
func (c *Cloud) WithBackups(all ...volume.Snapshot) *Cloud {
	for _, b := range all {
		b.Backup = true
		c.BackupsByID[b.ID] = &b
	}
	return c
}

func (c *Cloud) Backup(_ context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	if err := c.Called("Backup", id); err != nil {
		return volume.Snapshot{}, err
	}
	return c.readBackup(id)
}

func (c *Cloud) readBackup(id volume.SnapshotID) (volume.Snapshot, error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if b, ok := c.BackupsByID[id]; ok {
		return *b, nil
	}
	return volume.Snapshot{}, volume.Errorf(volume.NotFound, "no backup %s", id)
}

// ChangeBackup changes a backup after one second. It deletes a backup whose ID f removes.
func (c *Cloud) ChangeBackup(id volume.SnapshotID, f func(*volume.Snapshot)) {
	time.AfterFunc(time.Second, func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if b, ok := c.BackupsByID[id]; ok {
			if f(b); b.ID == "" {
				delete(c.BackupsByID, id)
			}
		}
	})
}

// DeleteBackup deletes a backup after one second, or gives it the status Undeletable.
func (c *Cloud) DeleteBackup(_ context.Context, id volume.SnapshotID) error {
	if err := c.Called("DeleteBackup", id); err != nil {
		return err
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	b, ok := c.BackupsByID[id]
	if !ok {
		return volume.Errorf(volume.NotFound, "no backup %s", id)
	}
	if b.Status != volume.Available && b.Status != volume.ErrorStatus {
		return volume.Errorf(volume.Conflict, "Backup status must be available or error")
	}
	b.Status = volume.Deleting
	c.ChangeBackup(id, func(b *volume.Snapshot) {
		if b.Status = c.Undeletable; b.Status == "" {
			b.ID = ""
		} else {
			b.Reason = "the store is gone"
		}
	})
	return nil
}

// CreateBackup creates a backup that gets the status BackupOutcome after ten seconds. Until then its snapshot is in status backing-up.
func (c *Cloud) CreateBackup(_ context.Context, o volume.BackupOptions) (volume.SnapshotID, error) {
	if err := c.Called("CreateBackup", o.Snapshot, map[bool]string{true: " incremental"}[o.Incremental], " "+o.Zone); err != nil {
		return "", err
	}
	c.Mu.Lock()
	c.made++
	b := volume.Snapshot{
		ID: SnapshotID(100 + c.made), Name: o.Name, Volume: o.Volume, Status: volume.Creating, Size: c.VolumesByID[o.Volume].Size, Metadata: o.Metadata, CreatedAt: c.now(),
		Backup: true, From: o.Snapshot, DataAt: c.now(),
	}
	if c.loses("CreateBackup", func() { b.Status, b.CreatedAt = volume.Available, c.now(); c.BackupsByID[b.ID] = &b }) {
		c.Mu.Unlock()
		return "", ErrLost
	}
	c.BackupsByID[b.ID] = &b
	if p, ok := c.SnapshotsByID[o.Snapshot]; ok {
		p.Status = "backing-up"
	}
	id := b.ID
	c.Mu.Unlock()
	time.AfterFunc(10*time.Second, func() { c.EndBackup(id) })
	return id, nil
}

// EndBackup completes a backup.
func (c *Cloud) EndBackup(id volume.SnapshotID) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	b, ok := c.BackupsByID[id]
	if !ok {
		return
	}
	if p, ok := c.SnapshotsByID[b.From]; ok {
		p.Status = volume.Available
	}
	if b.Status = cmp.Or(c.BackupOutcome, volume.Available); b.Status == volume.ErrorStatus {
		b.Reason = "the store is full"
	}
}

func (c *Cloud) BackupsNamed(_ context.Context, name string) ([]volume.Snapshot, error) {
	if err := c.Called("BackupsNamed"); err != nil {
		return nil, err
	}
	return c.snapshotsNamed(c.BackupsByID, name), nil
}

func (c *Cloud) Backups(_ context.Context, page volume.SnapshotPage) ([]volume.Snapshot, error) {
	if err := c.Called("Backups"); err != nil {
		return nil, err
	}
	return c.snapshotPage(c.BackupsByID, page)
}
