// Package snapshot creates, lists and deletes snapshots and backups: a CSI snapshot ID names either.
//
// Create finds the object by name or creates it, and returns it once it is available. The package itself keeps in memory only whether a backup
// was seen in Ceph, which saves backups that it would delete. Package idempotent keeps the creates whose answers were lost.
package snapshot

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Options are what a Service needs besides its cloud.
type Options struct {
	Owner    idempotent.Owner
	Locks    *inflight.Locks // shared with every service for the same cloud; nil makes new ones
	Requests *inflight.Calls // shared in the same way; the attach service drains them
	// KeepHidden keeps what may be a backup that the cloud does not let the driver read: it may belong to another cluster.
	KeepHidden bool
	Log        *slog.Logger // for what no RPC response can report; nil discards
	// CountDuplicate counts a "snapshot" or "backup" that has the name of another and that the driver does not delete; nil counts nothing.
	CountDuplicate func(noun string)
}

// Service creates and deletes the snapshots and backups of one cloud.
type Service struct {
	cloud         volume.Cloud
	volumes       observe.Volumes
	awaitSnapshot await
	awaitBackup   await
	owner         idempotent.Owner
	keepHidden    bool
	log           *slog.Logger
	locks         *inflight.Locks
	snapshots     kind
	backups       kind
	cephBackups   atomic.Bool // a backup was seen in Ceph
}

// New returns the service for the snapshots and backups of a cloud. The waiters wait for changes of its volumes, snapshots and backups.
func New(cloud volume.Cloud, volumes volume.Waiter, snapshots, backups volume.SnapshotWaiter, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Locks = cmp.Or(o.Locks, &inflight.Locks{})
	o.Requests = cmp.Or(o.Requests, &inflight.Calls{})
	s := &Service{
		cloud: cloud, volumes: observe.Volumes{Cloud: cloud, Waiter: volumes, Log: o.Log}, awaitSnapshot: awaitWith(snapshots, "snapshot"), awaitBackup: awaitWith(backups, "backup"),
		owner: o.Owner, keepHidden: o.KeepHidden, log: o.Log, locks: o.Locks,
	}
	s.snapshots, s.backups = s.newSnapshots(o), s.newBackups(o)
	return s
}

// Get reads one snapshot or backup. NotFound where neither exists.
func (s *Service) Get(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	if !id.Exists() {
		return volume.Snapshot{}, volume.NoSnapshot(id)
	}
	return observe.SnapshotOrBackup(ctx, s.cloud, id)
}

// List reads at most limit snapshots of the project, and after them its backups, from position p on (CSI specification, ListSnapshots). If
// source is set, it reads only those of that volume. Limit 0 means as many as Cinder returns in one page. A cloud that has no backup service,
// or hides its backups, counts as one without backups. NotFound where the object of p is gone and p lacks its creation time.
func (s *Service) List(ctx context.Context, source volume.ID, p volume.SnapshotPosition, limit int) ([]volume.Snapshot, error) {
	if source != "" && !source.Exists() {
		return nil, nil
	}
	if !p.Backups {
		page, err := listFrom(ctx, s.cloud.Snapshots, source, p, limit)
		if err != nil || len(page) > 0 {
			return page, err
		}
		p = volume.SnapshotPosition{Backups: true}
	}
	page, err := listFrom(ctx, s.cloud.Backups, source, p, limit)
	if withoutBackups(err) || volume.Is(err, volume.NotFound) && p.After == "" {
		s.log.WarnContext(ctx, "the list has no backups, because the cloud does not show them", "error", err)
		return nil, nil
	}
	return page, err
}

func listFrom(ctx context.Context, read func(context.Context, volume.SnapshotPage) ([]volume.Snapshot, bool, error), source volume.ID, p volume.SnapshotPosition, limit int) ([]volume.Snapshot, error) {
	return observe.PageFrom(p.PagePosition, limit, volume.SnapshotPagePosition, func(after volume.SnapshotID, limit int) ([]volume.Snapshot, error) {
		page, _, err := read(ctx, volume.SnapshotPage{Marker: after, Limit: limit, Volume: source, ForCaller: true})
		return page, err
	})
}

// withoutBackups reports whether err says that the cloud has no backups for this driver.
func withoutBackups(err error) bool {
	return volume.Is(err, volume.PermissionDenied) || volume.Is(err, volume.Unimplemented)
}
