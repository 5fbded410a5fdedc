package volumetest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// SnapshotID is the ID of the n-th snapshot or backup of a test.
func SnapshotID(n int) volume.SnapshotID {
	return volume.SnapshotID(fmt.Sprintf("50000000-0000-4000-8000-%012d", n))
}

// WithSnapshots adds snapshots to a cloud.
func (c *Cloud) WithSnapshots(all ...volume.Snapshot) *Cloud {
	for _, p := range all {
		c.SnapshotsByID[p.ID] = &p
	}
	return c
}

// ChangeSnapshot changes a snapshot after one second.
func (c *Cloud) ChangeSnapshot(id volume.SnapshotID, f func(*volume.Snapshot)) {
	time.AfterFunc(time.Second, func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if p, ok := c.SnapshotsByID[id]; ok {
			f(p)
		}
	})
}

// CreateSnapshot creates a snapshot that gets the status Outcome after one second and SlowSnapshots.
func (c *Cloud) CreateSnapshot(_ context.Context, o volume.SnapshotOptions) (volume.Snapshot, error) {
	how := map[bool]string{true: " in use"}[o.InUse] + map[bool]string{true: " by force"}[o.Force]
	if err := c.Called("CreateSnapshot"+how, ""); err != nil {
		return volume.Snapshot{}, err
	}
	c.Mu.Lock()
	c.made++
	p := volume.Snapshot{
		ID: SnapshotID(100 + c.made), Name: o.Name, Volume: o.Volume, Status: volume.Creating, Size: c.VolumesByID[o.Volume].Size, Metadata: o.Metadata, CreatedAt: c.now(),
	}
	if c.loses("CreateSnapshot", func() { p.Status, p.CreatedAt = volume.Available, c.now(); c.SnapshotsByID[p.ID] = &p }) {
		c.Mu.Unlock()
		return volume.Snapshot{}, ErrLost
	}
	c.SnapshotsByID[p.ID] = &p
	answer := p
	c.Mu.Unlock()
	time.AfterFunc(c.SlowSnapshots, func() {
		c.ChangeSnapshot(p.ID, func(p *volume.Snapshot) { p.Status = cmp.Or(c.Outcome, volume.Available) })
	})
	return answer, nil
}

func (c *Cloud) Snapshot(_ context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	if err := c.Called("Snapshot", id); err != nil {
		return volume.Snapshot{}, err
	}
	return c.readSnapshot(id)
}

func (c *Cloud) readSnapshot(id volume.SnapshotID) (volume.Snapshot, error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if p, ok := c.SnapshotsByID[id]; ok {
		return *p, nil
	}
	return volume.Snapshot{}, volume.Errorf(volume.NotFound, "no snapshot %s", id)
}

func (c *Cloud) SnapshotsNamed(_ context.Context, name string) ([]volume.Snapshot, error) {
	if err := c.Called("SnapshotsNamed"); err != nil {
		return nil, err
	}
	return c.snapshotsNamed(c.SnapshotsByID, name), nil
}

func (c *Cloud) Snapshots(_ context.Context, page volume.SnapshotPage) ([]volume.Snapshot, error) {
	if err := c.Called("Snapshots"); err != nil {
		return nil, err
	}
	return c.snapshotPage(c.SnapshotsByID, page)
}

// DeleteSnapshot deletes a snapshot after one second, or gives it the status Undeletable.
func (c *Cloud) DeleteSnapshot(_ context.Context, id volume.SnapshotID) error {
	if err := c.Called("DeleteSnapshot", id); err != nil {
		return err
	}
	c.Mu.Lock()
	p, ok := c.SnapshotsByID[id]
	if ok {
		p.Status = volume.Deleting
	}
	c.Mu.Unlock()
	if !ok {
		return volume.Errorf(volume.NotFound, "no snapshot %s", id)
	}
	time.AfterFunc(time.Second, func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if c.Undeletable != "" {
			c.SnapshotsByID[id].Status = c.Undeletable
			return
		}
		delete(c.SnapshotsByID, id)
	})
	return nil
}

func (c *Cloud) SnapshotFailure(context.Context, volume.SnapshotID) (string, error) {
	return c.Reason, c.Called("SnapshotFailure")
}
