package snapshot

import (
	"context"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Spec describes a new snapshot or backup (CSI specification, CreateSnapshot; Cinder API reference, "Create a snapshot").
type Spec struct {
	// Name identifies the request: two specs with the same name are the same snapshot.
	Name   string
	Volume volume.ID
	// Force allows a snapshot of a volume in use on clouds that require a flag for it: those before Cinder 3.66.
	Force bool
	// Metadata is added to the metadata that every snapshot of the driver carries.
	Metadata map[string]string
	// Backup asks for a backup instead of a snapshot; nil asks for a snapshot.
	Backup *BackupSpec
}

// Create finds the snapshot or backup that an earlier call created, or creates it, and returns it once it is available. external-snapshotter
// keeps the first ID that it gets, whatever happens to that object later. Until then the errors are retryable, and the retry finds by name.
//
// As for volumes, the outcome does not depend on memory. The driver deletes a snapshot that Cinder could not create before it returns the
// error, so a retry starts from nothing. After a create whose answer was lost, package idempotent holds back the next create of that name.
// Errors are marked AfterWrite wherever a snapshot of that name exists, may exist, or may still appear.
func (s *Service) Create(ctx context.Context, spec Spec) (volume.Snapshot, error) {
	if spec.Name == "" {
		return volume.Snapshot{}, volume.Errorf(volume.InvalidArgument, "the request has no snapshot name").Op("snapshot")
	}
	unlock, err := s.locks.Take("snapshot "+spec.Name, "create")
	if err != nil {
		return volume.Snapshot{}, volume.AfterWrite(err)
	}
	defer unlock()
	if spec.Backup != nil {
		b, err := s.findOrCreateBackup(ctx, spec)
		// A backup has a temporary snapshot of the same name.
		err = s.backups.FinalOrRetryable(ctx, spec.Name, err)
		return b, s.snapshots.FinalOrRetryable(ctx, spec.Name, err)
	}
	p, err := s.findOrCreateSnapshot(ctx, spec)
	return p, s.snapshots.FinalOrRetryable(ctx, spec.Name, err)
}

func (s *Service) findOrCreateSnapshot(ctx context.Context, spec Spec) (volume.Snapshot, error) {
	found, created, err := s.snapshots.findOrCreate(ctx, spec.Name, func() (volume.SnapshotID, error) {
		if err := s.checkNoBackup(ctx, spec.Name); err != nil {
			return "", err
		}
		return s.createSnapshot(ctx, spec)
	})
	if err != nil {
		return volume.Snapshot{}, err
	}
	return s.useOldest(ctx, s.snapshots, found, created, func(p volume.Snapshot) error {
		if err := spec.checkVolume("snapshot", p); err != nil {
			return err
		}
		if p.Metadata[contract.MetadataTemporary] != "" {
			return volume.Errorf(volume.Incompatible, "snapshot %s already has the name %s, and it is the temporary snapshot of a backup; the request asks for a snapshot", p.ID, spec.Name).Cause(cause.CreateNameTaken).Op("snapshot")
		}
		return nil
	})
}

// checkNoBackup refuses a snapshot where a backup has its name: two calls of one request would return different objects.
func (s *Service) checkNoBackup(ctx context.Context, name string) error {
	found, err := s.cloud.BackupsNamed(ctx, name)
	switch {
	case withoutBackups(err) || volume.Is(err, volume.NotFound):
		return nil
	case volume.Is(err, volume.NotOwned): // nothing was sent, and the name stays taken
		return err
	case err != nil:
		return volume.AfterWrite(err)
	case len(found) > 0:
		return volume.Errorf(volume.Incompatible, "backup %s already has the name %s; the request asks for a snapshot", found[0].ID, name).Cause(cause.CreateNameTaken).Op("snapshot")
	}
	return nil
}

// ofVolume reports whether p was created from the volume of the spec. The database of Cinder ignores the case of IDs.
func (spec Spec) ofVolume(p volume.Snapshot) bool {
	return strings.EqualFold(string(p.Volume), string(spec.Volume))
}

func (spec Spec) checkVolume(noun string, p volume.Snapshot) error {
	if spec.ofVolume(p) {
		return nil
	}
	return volume.Errorf(volume.Incompatible, "%s %s already has the name %s, and its volume is %s instead of %s", noun, p.ID, spec.Name, p.Volume, spec.Volume).Cause(cause.CreateNameTaken).Op("snapshot")
}

// createSnapshot sends the create request once the volume allows it.
func (s *Service) createSnapshot(ctx context.Context, spec Spec) (volume.SnapshotID, error) {
	v, err := s.readSnapshottable(ctx, spec.Volume)
	if err != nil {
		return "", err
	}
	p, err := s.snapshots.Send(ctx, spec.Name, s.locks.Share("snapshot "+spec.Name, "create"), func(ctx context.Context) (volume.Snapshot, error) {
		return s.sendCreate(ctx, spec, v)
	})
	return p.ID, err
}

// sendCreate requests a snapshot. A volume in use needs a flag that depends on the version of Cinder.
func (s *Service) sendCreate(ctx context.Context, spec Spec, v volume.Volume) (volume.Snapshot, error) {
	o := volume.SnapshotOptions{
		Name: spec.Name, Volume: spec.Volume, Description: contract.Description, Metadata: s.owner.Metadata(spec.Name, spec.Metadata), InUse: v.Status == volume.InUse,
	}
	o.Metadata[contract.MetadataSent] = idempotent.FormatSent(time.Now())
	p, err := s.cloud.CreateSnapshot(ctx, o)
	if !o.InUse || !volume.Is(err, volume.Unimplemented) || volume.MayHaveWritten(err) {
		return p, err
	}
	if !spec.Force {
		return volume.Snapshot{}, volume.Errorf(volume.Conflict, "volume %s is attached to %s. This version of Cinder creates a snapshot of it only if the VolumeSnapshotClass has %s: \"true\"",
			v.ID, v.Holders(), contract.ParameterForce).Cause(cause.SnapshotAttached).Op("snapshot")
	}
	o.InUse, o.Force = false, true
	return s.cloud.CreateSnapshot(ctx, o)
}

// readSnapshottable reads a volume once its status allows a snapshot.
func (s *Service) readSnapshottable(ctx context.Context, id volume.ID) (volume.Volume, error) {
	v, err := s.volumes.Get(ctx, id)
	if err == nil {
		err = v.CheckRestored("snapshot")
	}
	if err != nil {
		return volume.Volume{}, volume.WithOp(err, "snapshot")
	}
	if v, err = s.volumes.Settled(ctx, v, "become ready for a snapshot", observe.ForExtend); err != nil {
		return volume.Volume{}, err
	}
	switch v.Status.Meaning().Extend {
	case volume.Proceed:
		return v, nil
	case volume.BeingDeleted:
		return v, volume.Errorf(volume.NotFound, "volume %s is being deleted", id).Op("snapshot")
	}
	return v, s.volumes.Stuck(ctx, v, "Cinder creates no snapshot of it").Op("snapshot")
}
