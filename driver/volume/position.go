package volume

import "time"

// PagePosition is a position in one list of the project, right after one object. The zero PagePosition is the beginning of the list.
type PagePosition[I ~string] struct {
	After I
	// Created is the CreatedAt of that object. With it a list can continue even after the object is deleted: Cinder answers 404 for the marker
	// of a deleted object.
	Created time.Time
}

// Position is a position in the list of volumes.
type Position = PagePosition[ID]

// PositionOf is the position right after v.
func PositionOf(v Volume) Position { return Position{After: v.ID, Created: v.CreatedAt} }

// SnapshotPosition is a position in the list of snapshots, or in the list of backups, which follows it.
type SnapshotPosition struct {
	Backups bool
	PagePosition[SnapshotID]
}

// SnapshotPositionOf is the position right after p.
func SnapshotPositionOf(p Snapshot) SnapshotPosition {
	return SnapshotPosition{Backups: p.Backup, PagePosition: SnapshotPagePosition(p)}
}

// SnapshotPagePosition is the position right after p within its own list.
func SnapshotPagePosition(p Snapshot) PagePosition[SnapshotID] {
	return PagePosition[SnapshotID]{After: p.ID, Created: p.CreatedAt}
}
