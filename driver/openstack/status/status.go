// Package status answers the question that every controller RPC ends with: has it happened yet?
//
// One hub per cloud and kind of object polls the cloud for all waiters. A waiter gets only what the hub read after the wait began, or the
// error of its context. The hub sends nothing while nobody waits, and changes nothing in the cloud.
//
// In memory a hub keeps the waiters, the time of the newest change that it has seen, and whether the last listing failed. After a restart
// the sidecars repeat their calls, which wait again, and the first answers show the rest again.
package status

import (
	"context"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Poller is what the hub of volumes reads the cloud through.
type Poller interface {
	// Volume reads one volume; NotFound if it does not exist.
	Volume(ctx context.Context, id volume.ID) (volume.Volume, error)
	// Select reads one page of the project's volumes that match, and whether there are more. NotFound if the volume of the marker is
	// gone. If the cloud does not have the filter, the page has others too.
	Select(ctx context.Context, s volume.Selection) ([]volume.Volume, bool, error)
}

// SnapshotPoller is what the hub of snapshots reads the cloud through.
type SnapshotPoller interface {
	// Snapshot reads one snapshot; NotFound if it does not exist.
	Snapshot(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
	// Snapshots reads one page of the project's snapshots, and whether there are more. NotFound if the snapshot of the marker is gone.
	Snapshots(ctx context.Context, p volume.SnapshotPage) (page []volume.Snapshot, more bool, err error)
}

// BackupPoller is what the hub of backups reads the cloud through.
type BackupPoller interface {
	// Backup reads one backup; NotFound if it does not exist.
	Backup(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
}

// ServerPoller is what the hub of servers reads the cloud through.
type ServerPoller interface {
	// ServerAttachments reads Nova's list of a server's volumes; NotFound if the server does not exist.
	ServerAttachments(ctx context.Context, server volume.ServerID) ([]volume.Attachment, error)
}

// Hub serves the waiters for volumes, SnapshotHub those for snapshots or backups, ServerHub those for the attachments of servers. A hub
// works while its Run does.
type (
	Hub         = hub[volume.ID, volume.Volume]
	SnapshotHub = hub[volume.SnapshotID, volume.Snapshot]
	ServerHub   = hub[volume.ServerID, []volume.Attachment]
)

var (
	_ volume.Waiter         = (*Hub)(nil)
	_ volume.SnapshotWaiter = (*SnapshotHub)(nil)
)

// NewHub returns a hub of volumes; the caller starts Run.
func NewHub(p Poller) *Hub {
	return newHub(kind[volume.ID, volume.Volume]{
		noun: "volume", read: p.Volume,
		list: func(ctx context.Context, after volume.ID, since time.Time) ([]volume.Volume, bool, error) {
			return p.Select(ctx, volume.Selection{Page: volume.Page{Marker: after}, Since: since})
		},
		stateOf: func(v volume.Volume) state[volume.ID] {
			return state[volume.ID]{id: v.ID, status: v.Status, changed: v.UpdatedAt}
		},
	})
}

// NewSnapshotHub returns a hub of snapshots; the caller starts Run.
func NewSnapshotHub(p SnapshotPoller) *SnapshotHub {
	return newHub(kind[volume.SnapshotID, volume.Snapshot]{
		noun: "snapshot", read: p.Snapshot, stateOf: stateOfSnapshot,
		list: func(ctx context.Context, after volume.SnapshotID, _ time.Time) ([]volume.Snapshot, bool, error) {
			return p.Snapshots(ctx, volume.SnapshotPage{Marker: after})
		},
	})
}

// NewBackupHub returns a hub of backups, which it reads one by one; the caller starts Run.
func NewBackupHub(p BackupPoller) *SnapshotHub {
	return newHub(kind[volume.SnapshotID, volume.Snapshot]{noun: "backup", read: p.Backup, stateOf: stateOfSnapshot})
}

// NewServerHub returns a hub of the attachments of servers; the caller starts Run.
func NewServerHub(p ServerPoller) *ServerHub {
	return newHub(kind[volume.ServerID, []volume.Attachment]{
		noun: "server", read: p.ServerAttachments,
		stateOf: func([]volume.Attachment) state[volume.ServerID] { return state[volume.ServerID]{status: "there"} },
	})
}

func stateOfSnapshot(s volume.Snapshot) state[volume.SnapshotID] {
	return state[volume.SnapshotID]{id: s.ID, status: s.Status}
}
