package volume

import "time"

// PagePosition is a place in one of the project's lists, right after one object. The zero PagePosition is the list's beginning.
type PagePosition[I ~string] struct {
	After I
	// Created is that object's CreatedAt. With it the list goes on even when the object itself is gone: Cinder answers 404 for
	// a marker that no longer exists.
	Created time.Time
}

// Position is a place in the project's list of volumes.
type Position = PagePosition[ID]

// PositionOf is the place right after v.
func PositionOf(v Volume) Position { return Position{After: v.ID, Created: v.CreatedAt} }

// SnapshotPosition is a place in the project's list of snapshots, or in that of backups, which follows it.
type SnapshotPosition struct {
	Backups bool
	PagePosition[SnapshotID]
}

// SnapshotPositionOf is the place right after p.
func SnapshotPositionOf(p Snapshot) SnapshotPosition {
	return SnapshotPosition{Backups: p.Backup, PagePosition: SnapshotPagePosition(p)}
}

func SnapshotPagePosition(p Snapshot) PagePosition[SnapshotID] {
	return PagePosition[SnapshotID]{After: p.ID, Created: p.CreatedAt}
}
