package volume

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// sid is the id of the n-th snapshot of a test.
func sid(n int) SnapshotID { return SnapshotID(fmt.Sprintf("50000000-0000-4000-8000-%012d", n)) }

// withSnapshots puts snapshots into a cloud.
func (c *fakeCloud) withSnapshots(all ...Snapshot) *fakeCloud {
	for _, p := range all {
		c.snaps[p.ID] = &p
	}
	return c
}

// changeSnapshot alters a snapshot after one second.
func (c *fakeCloud) changeSnapshot(id SnapshotID, f func(*Snapshot)) {
	time.AfterFunc(time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p, ok := c.snaps[id]; ok {
			f(p)
		}
	})
}

// CreateSnapshot makes a snapshot that is ready, or in the cloud's outcome, after a second.
func (c *fakeCloud) CreateSnapshot(_ context.Context, o SnapshotOptions) (Snapshot, error) {
	how := map[bool]string{true: " in use"}[o.InUse] + map[bool]string{true: " by force"}[o.Force]
	if err := c.called("CreateSnapshot"+how, ""); err != nil {
		return Snapshot{}, err
	}
	c.mu.Lock()
	c.made++
	p := Snapshot{
		ID: sid(100 + c.made), Name: o.Name, Volume: o.Volume, Status: Creating, Size: c.volumes[o.Volume].Size, Metadata: o.Metadata, CreatedAt: c.now(),
	}
	if c.loses("CreateSnapshot", func() { p.Status, p.CreatedAt = Available, c.now(); c.snaps[p.ID] = &p }) {
		c.mu.Unlock()
		return Snapshot{}, errLost
	}
	c.snaps[p.ID] = &p
	answer := p
	c.mu.Unlock()
	time.AfterFunc(c.slowSnapshots, func() {
		c.changeSnapshot(p.ID, func(p *Snapshot) { p.Status = cmp.Or(c.outcome, Available) })
	})
	return answer, nil
}

func (c *fakeCloud) Snapshot(_ context.Context, id SnapshotID) (Snapshot, error) {
	if err := c.called("Snapshot", id); err != nil {
		return Snapshot{}, err
	}
	return c.readSnapshot(id)
}

func (c *fakeCloud) readSnapshot(id SnapshotID) (Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.snaps[id]; ok {
		return *p, nil
	}
	return Snapshot{}, Errorf(NotFound, "no snapshot %s", id)
}

func (c *fakeCloud) SnapshotsNamed(_ context.Context, name string) ([]Snapshot, error) {
	if err := c.called("SnapshotsNamed"); err != nil {
		return nil, err
	}
	return listOf(c, c.snaps, func(p Snapshot) bool { return p.Name == name }), nil
}

// listOf are the snapshots or backups that keep wants, in Cinder's order.
func listOf(c *fakeCloud, objects map[SnapshotID]*Snapshot, keep func(Snapshot) bool) []Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Snapshot
	for _, p := range objects {
		if keep(*p) {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) })
	return all
}

func (c *fakeCloud) Snapshots(_ context.Context, page SnapshotPage) ([]Snapshot, error) {
	if err := c.called("Snapshots"); err != nil {
		return nil, err
	}
	return pageOf(listOf(c, c.snaps, func(p Snapshot) bool { return page.Volume == "" || p.Volume == page.Volume }), page)
}

// pageOf gives three objects in one answer at most, whatever is asked for.
func pageOf(all []Snapshot, page SnapshotPage) ([]Snapshot, error) {
	if page.Marker != "" {
		i := slices.IndexFunc(all, func(p Snapshot) bool { return p.ID == page.Marker })
		if i < 0 {
			return nil, Errorf(NotFound, "%s is gone", page.Marker)
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
func (c *fakeCloud) DeleteSnapshot(_ context.Context, id SnapshotID) error {
	if err := c.called("DeleteSnapshot", id); err != nil {
		return err
	}
	c.mu.Lock()
	p, ok := c.snaps[id]
	if ok {
		p.Status = Deleting
	}
	c.mu.Unlock()
	if !ok {
		return Errorf(NotFound, "no snapshot %s", id)
	}
	time.AfterFunc(time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.undeletable != "" {
			c.snaps[id].Status = c.undeletable
			return
		}
		delete(c.snaps, id)
	})
	return nil
}

func (c *fakeCloud) SnapshotFailure(context.Context, SnapshotID) (string, error) {
	return c.reason, c.called("SnapshotFailure")
}

// snapshotWaiter reads a snapshot every 300 virtual milliseconds.
type snapshotWaiter struct{ *fakeCloud }

func (w snapshotWaiter) Await(ctx context.Context, id SnapshotID, done func(Snapshot, bool) (bool, error)) (Snapshot, error) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return Snapshot{}, Errorf(KindOf(ctx.Err()), "snapshot %s: %w", id, ctx.Err())
		case <-tick.C:
		}
		p, err := w.readSnapshot(id)
		if end, err := done(p, err == nil); end || err != nil {
			return p, err
		}
	}
}
