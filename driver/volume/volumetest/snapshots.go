package volumetest

import (
	"cmp"
	"context"
	"fmt"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"slices"
	"time"
)

// sid is the id of the n-th snapshot of a test.
func SnapshotID(n int) volume.SnapshotID {
	return volume.SnapshotID(fmt.Sprintf("50000000-0000-4000-8000-%012d", n))
}

// withSnapshots puts snapshots into a cloud.
func (c *Cloud) WithSnapshots(all ...volume.Snapshot) *Cloud {
	for _, p := range all {
		c.SnapshotsByID[p.ID] = &p
	}
	return c
}

// changeSnapshot alters a snapshot after one second.
func (c *Cloud) ChangeSnapshot(id volume.SnapshotID, f func(*volume.Snapshot)) {
	time.AfterFunc(time.Second, func() {
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if p, ok := c.SnapshotsByID[id]; ok {
			f(p)
		}
	})
}

// CreateSnapshot makes a snapshot that is ready, or in the cloud's outcome, after a second.
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
	return listOf(c, c.SnapshotsByID, func(p volume.Snapshot) bool { return p.Name == name }), nil
}

// listOf are the snapshots or backups that keep wants, in Cinder's order.
func listOf(c *Cloud, objects map[volume.SnapshotID]*volume.Snapshot, keep func(volume.Snapshot) bool) []volume.Snapshot {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var all []volume.Snapshot
	for _, p := range objects {
		if keep(*p) {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(a, b volume.Snapshot) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return all
}

func (c *Cloud) Snapshots(_ context.Context, page volume.SnapshotPage) ([]volume.Snapshot, error) {
	if err := c.Called("Snapshots"); err != nil {
		return nil, err
	}
	return pageOf(listOf(c, c.SnapshotsByID, func(p volume.Snapshot) bool { return page.Volume == "" || p.Volume == page.Volume }), page)
}

// pageOf gives three objects in one answer at most, whatever is asked for.
func pageOf(all []volume.Snapshot, page volume.SnapshotPage) ([]volume.Snapshot, error) {
	if page.Marker != "" {
		i := slices.IndexFunc(all, func(p volume.Snapshot) bool { return p.ID == page.Marker })
		if i < 0 {
			return nil, volume.Errorf(volume.NotFound, "%s is gone", page.Marker)
		}
		all = all[i+1:]
	}
	most := 3
	if page.Limit > 0 {
		most = min(most, page.Limit)
	}
	return all[:min(most, len(all))], nil
}

// DeleteSnapshot takes a snapshot away after a second, unless the cloud's outcome says what becomes of it instead.
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

// snapshotWaiter reads a snapshot every 300 virtual milliseconds.
type SnapshotWaiter struct{ *Cloud }

func (w SnapshotWaiter) Await(ctx context.Context, id volume.SnapshotID, done func(volume.Snapshot, bool) (bool, error)) (volume.Snapshot, error) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return volume.Snapshot{}, volume.Errorf(volume.KindOf(ctx.Err()), "snapshot %s: %w", id, ctx.Err())
		case <-tick.C:
		}
		p, err := w.readSnapshot(id)
		if end, err := done(p, err == nil); end || err != nil {
			return p, err
		}
	}
}
