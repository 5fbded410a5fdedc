package provision

import (
	"context"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// origin is what a source decides about the volume made from it.
type origin struct {
	name   string // for sentences
	size   volume.Size
	zone   string // empty when it cannot be known, or any will do
	backup bool
}

// placement is what to ask Cinder for, and in which zones.
type placement struct {
	options volume.CreateOptions // all but the zone
	zones   []string             // candidates, best first
	source  string               // where the source is, as a sentence; empty where that decides nothing
}

// place works out how to make a wished volume. Cinder makes a volume in its source's zone and refuses any other, unless its
// cloned_volume_same_az is off; a backup it restores in any. A volume that may have any size gets its source's.
func (s *Service) place(ctx context.Context, w CreateSpec, size volume.Size) (placement, error) {
	var o origin
	if w.Source != "" || w.Snapshot != "" {
		var err error
		if o, err = s.origin(ctx, w); err != nil {
			return placement{}, err
		}
	}
	if w.Size.Required == 0 && w.Size.Allows(o.size) {
		size = max(size, o.size)
	}
	if o.size > size {
		return placement{}, volume.Errorf(volume.OutOfRange, "a volume made from %s must have at least its size, %s; asked were %s", o.name, o.size, size).Op("create")
	}
	p := placement{options: volume.CreateOptions{
		Name: w.Name, Size: size, Type: w.Type, Description: contract.Description, Metadata: s.createMetadata(w), SourceID: w.Source,
	}}
	if o.backup {
		p.options.BackupID = string(w.Snapshot)
	} else {
		p.options.SnapshotID = string(w.Snapshot)
	}
	hints, err := s.hints(ctx, w.Hints, s.hinted)
	if err != nil {
		return placement{}, err
	}
	if w.MoreHints != nil {
		more, err := w.MoreHints(ctx)
		if err != nil {
			return placement{}, err
		}
		if more, err = s.hints(ctx, more, func(ctx context.Context, name string) (volume.ID, error) {
			return s.hintedOf(ctx, w.HintsNamespace, name)
		}); err != nil {
			return placement{}, err
		}
		hints = hints.With(more)
		hints.SameHost, hints.DifferentHost = onlyOnce(hints.SameHost), onlyOnce(hints.DifferentHost)
	}
	p.options.Hints = hints
	if o.zone != "" && w.Zone == "" && w.allows(o.zone) {
		p.zones = []string{o.zone}
		return p, nil
	}
	if o.zone != "" {
		p.source = o.name + ", the source, is in zone " + o.zone
	}
	p.zones, err = s.candidates(ctx, w)
	return p, err
}

// nowhere is the error of a volume that no zone could have, and of which nothing is left. Only where topology asked for the zones
// may the scheduler's next choice be a better one.
func (p placement) nowhere(w CreateSpec, err error) error {
	kind, where := volume.NotHere, "no zone that will do can have the volume (tried: "+strings.Join(p.zones, ", ")+")"
	if !w.zonal() {
		kind, where = volume.InvalidArgument, "the zone cannot have the volume"
	}
	if p.source != "" {
		where += "; " + p.source
	}
	return volume.Errorf(kind, "%s: %w", where, err).Op("create")
}

// origin reads the source of a wish. Busy while it is changing, Conflict when it is of no use until somebody acts.
func (s *Service) origin(ctx context.Context, w CreateSpec) (origin, error) {
	if w.Snapshot == "" {
		v, err := s.Get(ctx, w.Source)
		if err != nil {
			return origin{}, err
		}
		o := origin{name: "volume " + string(v.ID), size: v.Size, zone: v.Zone}
		return o, usable(o.name, v.Status, v.Status.Meaning().Extend)
	}
	if !w.Snapshot.Exists() {
		return origin{}, volume.NoSnapshot(w.Snapshot).Op("create")
	}
	p, err := observe.SnapshotOrBackup(ctx, s.cloud, w.Snapshot)
	if err != nil {
		return origin{}, err
	}
	o := origin{name: "snapshot " + string(p.ID), size: p.Size, backup: p.Backup}
	if p.Backup {
		o.name = "backup " + string(p.ID)
	}
	if err := usable(o.name, p.Status, p.Status.SnapshotMeaning().Source); err != nil || p.Backup {
		return o, err
	}
	v, err := s.cloud.Volume(ctx, p.Volume) // which has the zone; a snapshot tells none
	if err != nil && !volume.Is(err, volume.NotFound) {
		return origin{}, err
	}
	o.zone = v.Zone
	return o, nil
}

// usable says why nothing can be made from a source now; nil where it can.
func usable(source string, status volume.Status, step volume.Step) error {
	switch step {
	case volume.Proceed:
		return nil
	case volume.Wait:
		return volume.Errorf(volume.Busy, "%s is in status %s; a volume can be made from it once it is available", source, status).Op("create")
	case volume.BeingDeleted:
		return volume.Errorf(volume.NotFound, "%s is being deleted", source).Op("create")
	}
	return volume.Errorf(volume.Conflict, "%s is in status %s; nothing can be made from it until an administrator resets that", source, status).Op("create")
}
