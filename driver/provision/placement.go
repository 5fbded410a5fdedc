package provision

import (
	"context"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// placement is what to request from Cinder, and in which zones.
type placement struct {
	options volume.CreateOptions // without the zone
	zones   []string             // best first
	unread  error                // why the zones are only labels of nodes; nil where they are Cinder's
	source  string               // where the source is, as a clause; empty where that restricts nothing
}

// placement decides how to create a volume. Cinder creates a volume in the zone of its source and refuses any other zone, unless
// cloned_volume_same_az is off. It restores a backup in any zone. A volume of any size gets the size of its source.
func (s *Service) placement(ctx context.Context, spec CreateSpec, size volume.Size) (placement, error) {
	var from source
	if spec.Source != "" || spec.Snapshot != "" {
		var err error
		if from, err = s.readSource(ctx, spec); err != nil {
			return placement{}, err
		}
	}
	if spec.Size.Required == 0 && spec.Size.Allows(from.size) {
		size = max(size, from.size)
	}
	if from.size > size {
		return placement{}, volume.Errorf(volume.OutOfRange, "a volume created from %s needs at least %s, the size of its source; the request asks for %s", from.name, from.size, size).Op("create")
	}
	hints, err := s.allHints(ctx, spec)
	if err != nil {
		return placement{}, err
	}
	p := placement{options: volume.CreateOptions{
		Name: spec.Name, Size: size, Type: spec.Type, Description: contract.Description, Metadata: s.createMetadata(spec), SourceID: spec.Source, Hints: hints,
	}}
	switch {
	case from.inCeph:
		p.options.Metadata[contract.MetadataRestore] = string(spec.Snapshot)
	case from.backup:
		p.options.BackupID = string(spec.Snapshot)
	default:
		p.options.SnapshotID = string(spec.Snapshot)
	}
	if from.zone != "" && spec.Zone == "" && spec.allowsZone(from.zone) {
		p.zones = []string{from.zone}
		return p, nil
	}
	if from.zone != "" {
		p.source = "the source, " + from.name + ", is in zone " + from.zone
	}
	p.zones, p.unread, err = s.candidateZones(ctx, spec)
	return p, err
}

// noZone is the error of a volume that no allowed zone can have, and of which nothing is left. NotInZone makes the Kubernetes scheduler choose
// another zone, so it is the answer only if the topology of the request chose the zones.
func (p placement) noZone(spec CreateSpec, refusal error) error {
	if p.unread != nil { // a fault of the cloud must not send pods to other zones
		return volume.AfterWrite(volume.Errorf(volume.Unavailable, "Cinder refuses the labels of nodes as zones (tried %s): %w. A retry reads the names of its zones again: %w",
			strings.Join(p.zones, ", "), refusal, p.unread).Cause(cause.CloudUnreachable).Op("create"))
	}
	kind, sentence := volume.NotInZone, "Cinder cannot create the volume in any allowed zone (tried "+strings.Join(p.zones, ", ")+")"
	if !spec.zonesFromTopology() {
		kind, sentence = volume.InvalidArgument, "Cinder cannot create the volume in this zone"
	}
	if p.source != "" {
		sentence += "; " + p.source
	}
	return volume.Errorf(kind, "%s: %w", sentence, refusal).Cause(volume.CauseOf(refusal)).Op("create")
}

// source is what the driver must know about the volume, snapshot or backup from which a volume is created.
type source struct {
	name   string // for errors: "volume 4b2e…"
	size   volume.Size
	zone   string // empty where the zone is unknown or does not matter
	backup bool
	inCeph bool // a backup that may be in Ceph, so the driver restores it into an empty volume: that is right in every store
}

// readSource reads the source of a spec. Busy while the source is changing, Conflict while nothing can be created from it.
func (s *Service) readSource(ctx context.Context, spec CreateSpec) (source, error) {
	if spec.Snapshot == "" {
		v, err := s.volumes.Get(ctx, spec.Source)
		if err == nil {
			err = v.CheckRestored("create")
		}
		if err != nil {
			return source{}, volume.WithOp(err, "create")
		}
		from := source{name: "volume " + string(v.ID), size: v.Size, zone: v.Zone}
		return from, from.usable(v.Status, v.Status.Meaning().Extend)
	}
	if !spec.Snapshot.Exists() {
		return source{}, volume.NoSnapshot(spec.Snapshot).Op("create")
	}
	snapshot, err := observe.SnapshotOrBackup(ctx, s.cloud, spec.Snapshot)
	if err != nil {
		return source{}, volume.WithOp(err, "create")
	}
	from := source{name: "snapshot " + string(snapshot.ID), size: snapshot.Size, backup: snapshot.Backup, inCeph: snapshot.MayBeInCeph()}
	if snapshot.Backup {
		from.name = "backup " + string(snapshot.ID)
	}
	if err := from.usable(snapshot.Status, snapshot.Status.SnapshotMeaning().Source); err != nil || snapshot.Backup {
		return from, err
	}
	v, err := s.cloud.Volume(ctx, snapshot.Volume)                                          // a snapshot has no zone of its own in Cinder
	if err != nil && !volume.Is(err, volume.NotFound) && !volume.Is(err, volume.NotOwned) { // the snapshot itself is this cluster's
		return source{}, err
	}
	from.zone = v.Zone
	return from, nil
}

// usable returns why no volume can be created from a source now; nil where one can.
func (from source) usable(status volume.Status, step volume.Step) error {
	switch step {
	case volume.Proceed:
		return nil
	case volume.Wait:
		return volume.Errorf(volume.Busy, "the source, %s, is in status %s; a retry creates the volume once the source is available", from.name, status).Cause(cause.CreateSource).Op("create")
	case volume.BeingDeleted:
		return volume.Errorf(volume.NotFound, "the source, %s, is being deleted", from.name).Op("create")
	}
	return volume.Errorf(volume.Conflict, "the source, %s, is in status %s; no volume can be created from it until an administrator resets the status", from.name, status).Cause(cause.CreateSource).Op("create")
}
