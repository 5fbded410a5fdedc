package ownership

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

const volumeNoun, snapshotNoun, backupNoun = "volume", "volume snapshot", "volume backup"

// guard is a cloud whose reads return only what the driver may act on. Everything else is NotOwned.
type guard struct {
	volume.Cloud
	rule Rule
}

// Guard returns a cloud that leaves alone what does not belong to the cluster of the rule.
func Guard(c volume.WaitingCloud, r Rule) volume.WaitingCloud {
	g := guard{c.Cloud, r}
	return volume.WaitingCloud{
		Cloud: g, Volumes: waiter[volume.ID, volume.Volume]{c.Volumes.Await, g.checkVolume},
		Snapshots: waiter[volume.SnapshotID, volume.Snapshot]{c.Snapshots.Await, g.checkSnapshot},
		Backups:   waiter[volume.SnapshotID, volume.Snapshot]{c.Backups.Await, g.checkSnapshot},
	}
}

// waiter returns only what the driver may act on. A wait takes minutes, and the object may get another owner meanwhile.
type waiter[ID, T any] struct {
	await func(ctx context.Context, id ID, done func(object T, ok bool) (bool, error)) (T, error)
	check func(ctx context.Context, object T) error
}

// Await asks whose the object is once the wait ends, also before an error of done tells about it.
func (w waiter[ID, T]) Await(ctx context.Context, id ID, done func(object T, ok bool) (bool, error)) (T, error) {
	var none T
	var refusal error
	object, err := w.await(ctx, id, func(object T, ok bool) (bool, error) {
		ended, err := done(object, ok)
		if !ok || !ended && err == nil {
			return ended, err
		}
		if refusal = w.check(ctx, object); refusal != nil {
			return true, refusal
		}
		return ended, err
	})
	if refusal != nil {
		return none, err
	}
	return object, err
}

func (g guard) checkVolume(ctx context.Context, v volume.Volume) error {
	answer, err := g.volume(ctx, v)
	return g.allow(volumeNoun, string(v.ID), answer, err)
}

func (g guard) checkSnapshot(ctx context.Context, p volume.Snapshot) error {
	noun := snapshotNoun
	if p.Backup {
		noun = backupNoun
	}
	answer, err := g.snapshot(ctx, p)
	return g.allow(noun, string(p.ID), answer, err)
}

func (g guard) Volume(ctx context.Context, id volume.ID) (volume.Volume, error) {
	v, err := g.Cloud.Volume(ctx, id)
	return checked(ctx, v, err, g.checkVolume)
}

func (g guard) Snapshot(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	p, err := g.Cloud.Snapshot(ctx, id)
	return checked(ctx, p, err, g.checkSnapshot)
}

func (g guard) Backup(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	b, err := g.Cloud.Backup(ctx, id)
	return checked(ctx, b, err, g.checkSnapshot)
}

func checked[T any](ctx context.Context, object T, err error, check func(context.Context, T) error) (T, error) {
	if err == nil {
		err = check(ctx, object)
	}
	if err != nil {
		var none T
		return none, err
	}
	return object, nil
}

func (g guard) VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error) {
	found, err := g.Cloud.VolumesNamed(ctx, name)
	return named(ctx, found, err, g.checkVolume)
}

func (g guard) SnapshotsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	found, err := g.Cloud.SnapshotsNamed(ctx, name)
	return named(ctx, found, err, g.checkSnapshot)
}

func (g guard) BackupsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	found, err := g.Cloud.BackupsNamed(ctx, name)
	return named(ctx, found, err, g.checkSnapshot)
}

// named returns the objects of a name that the driver may act on. If there are only others, it returns the refusal of the first. Two clusters
// have the same names if both come from one copy of etcd: then each keeps what it created itself.
func named[T any](ctx context.Context, found []T, err error, check func(context.Context, T) error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	var kept []T
	var refusal error
	for _, object := range found {
		switch err := check(ctx, object); {
		case err == nil:
			kept = append(kept, object)
		case !volume.Is(err, volume.NotOwned):
			return nil, err
		case refusal == nil:
			refusal = err
		}
	}
	if len(kept) > 0 {
		return kept, nil
	}
	return nil, refusal
}

// Select implements volume.VolumeCloud. It leaves out what another cluster has marked. It asks no server, because a list may have hundreds of disks
// without a mark. The list shows only the ID, size, status and attachments of those. external-attacher takes a volume that is missing for detached.
func (g guard) Select(ctx context.Context, s volume.Selection) ([]volume.Volume, bool, error) {
	return visible(string(s.Marker), func(marker string) ([]volume.Volume, bool, error) {
		s.Marker = volume.ID(marker)
		return g.Cloud.Select(ctx, s)
	}, func(v volume.Volume) string { return string(v.ID) }, func(v volume.Volume) error {
		if answer := g.rule.ofVolume(v); answer.owner == theirs {
			return g.allow(volumeNoun, string(v.ID), answer, nil)
		}
		return nil
	})
}

func (g guard) Snapshots(ctx context.Context, p volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	return g.snapshotPage(ctx, p, g.Cloud.Snapshots)
}

func (g guard) Backups(ctx context.Context, p volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	return g.snapshotPage(ctx, p, g.Cloud.Backups)
}

// snapshotPage leaves out what the driver may not act on, if the list is for a caller of the driver. The driver itself needs every snapshot and
// backup of a volume: Cinder bases an incremental backup on the latest one, also that of another program.
func (g guard) snapshotPage(ctx context.Context, p volume.SnapshotPage, read func(context.Context, volume.SnapshotPage) ([]volume.Snapshot, bool, error)) ([]volume.Snapshot, bool, error) {
	if !p.ForCaller {
		return read(ctx, p)
	}
	return visible(string(p.Marker), func(marker string) ([]volume.Snapshot, bool, error) {
		p.Marker = volume.SnapshotID(marker)
		return read(ctx, p)
	}, func(p volume.Snapshot) string { return string(p.ID) }, func(p volume.Snapshot) error { return g.checkSnapshot(ctx, p) })
}

// visible reads a page, and drops the objects that check refuses. It reads on while nothing is left of a page, because an empty page is the end
// of a list.
func visible[T any](first string, read func(marker string) ([]T, bool, error), id func(T) string, check func(T) error) (kept []T, more bool, err error) {
	var failed error
	err = paging.Walk(paging.MaxItems, func(marker string) (page []T, _ bool, err error) {
		if marker == "" {
			page, more, err = read(first)
			return page, true, err
		}
		page, more, err = read(marker)
		return page, true, volume.ListChanged(err, marker)
	}, id, func(page []T) bool {
		for _, object := range page {
			switch err := check(object); {
			case err == nil:
				kept = append(kept, object)
			case !volume.Is(err, volume.NotOwned):
				failed = err
				return false
			}
		}
		return len(kept) == 0
	})
	if err == nil {
		err = failed
	}
	return kept, more, err
}
