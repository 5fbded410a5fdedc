package volume

import (
	"context"
	"slices"
	"strings"
)

// origin is what a source decides about the volume made from it.
type origin struct {
	name   string // for sentences
	size   Size
	zone   string // empty when it cannot be known, or any will do
	backup bool
}

// place is the size, the zone and the source to make a wished volume with. Cinder makes a volume in its source's zone and refuses
// any other, but restores a backup in any; one that may have any size gets its source's.
func (s *Volumes) place(ctx context.Context, w Wish, size Size) (CreateOptions, error) {
	if w.Source == "" && w.Snapshot == "" {
		return CreateOptions{Size: size, Zone: first(w.Zones)}, nil
	}
	o, err := s.origin(ctx, w)
	if err != nil {
		return CreateOptions{}, err
	}
	if w.Size.Required == 0 && w.Size.Allows(o.size) {
		size = max(size, o.size)
	}
	if o.size > size {
		return CreateOptions{}, Errorf(OutOfRange, "a volume made from %s must have at least its size, %s; asked were %s", o.name, o.size, size).Op("create")
	}
	if o.backup {
		return CreateOptions{Size: size, Zone: first(w.Zones), BackupID: string(w.Snapshot)}, nil
	}
	made := CreateOptions{Size: size, Zone: o.zone, SnapshotID: string(w.Snapshot), SourceID: w.Source}
	if o.zone == "" {
		made.Zone = first(w.Zones)
		return made, nil
	}
	if len(w.Zones) > 0 && !slices.ContainsFunc(w.Zones, func(zone string) bool { return sameZone(zone, o.zone) }) {
		return CreateOptions{}, Errorf(Exhausted, "%s, the source, is in zone %s, and so must be the volume made from it; asked was %s",
			o.name, o.zone, strings.Join(w.Zones, " or ")).Op("create")
	}
	return made, nil
}

// origin reads the source of a wish. Busy while it is changing, Conflict when it is of no use until somebody acts.
func (s *Volumes) origin(ctx context.Context, w Wish) (origin, error) {
	if w.Snapshot == "" {
		v, err := s.Get(ctx, w.Source)
		if err != nil {
			return origin{}, err
		}
		o := origin{name: "volume " + string(v.ID), size: v.Size, zone: v.Zone}
		return o, usable(o.name, v.Status, statuses[v.Status].extend)
	}
	if !w.Snapshot.Exists() {
		return origin{}, noSnapshot(w.Snapshot).Op("create")
	}
	p, err := snapshotOrBackup(ctx, s.cloud, w.Snapshot)
	if err != nil {
		return origin{}, err
	}
	o := origin{name: "snapshot " + string(p.ID), size: p.Size, backup: p.Backup}
	if p.Backup {
		o.name = "backup " + string(p.ID)
	}
	if err := usable(o.name, p.Status, snapshotStatuses[p.Status].source); err != nil || p.Backup {
		return o, err
	}
	v, err := s.cloud.Volume(ctx, p.Volume) // which has the zone; a snapshot tells none
	if err != nil && !Is(err, NotFound) {
		return origin{}, err
	}
	o.zone = v.Zone
	return o, nil
}

// usable says why nothing can be made from a source now; nil where it can.
func usable(source string, status Status, step step) error {
	switch step {
	case proceed:
		return nil
	case wait:
		return Errorf(Busy, "%s is in status %s; a volume can be made from it once it is available", source, status).Op("create")
	case leaving:
		return Errorf(NotFound, "%s is being deleted", source).Op("create")
	}
	return Errorf(Conflict, "%s is in status %s; nothing can be made from it until an administrator resets that", source, status).Op("create")
}
