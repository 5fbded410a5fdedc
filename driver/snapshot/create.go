package snapshot

import (
	"context"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// SnapshotSpec is what a new snapshot shall be.
type Spec struct {
	// Name is the request's identity: two wishes of one name are the same snapshot.
	Name   string
	Volume volume.ID
	// Force allows a snapshot of a volume in use on clouds that want to be told so: those without Cinder's 3.66.
	Force bool
	// Metadata is added to what every snapshot of the driver carries.
	Metadata map[string]string
	// Backup asks for a backup instead of a snapshot.
	Backup *BackupSpec
}

// Create makes the snapshot of a wish, or its backup, or finds it where an earlier call made it, and returns it once it is available:
// external-snapshotter keeps the first ID that it gets for good, whatever becomes of what that names. Until then its errors are
// retryable, and the retry resumes by name.
//
// As with Volumes.Create the outcome does not rest on memory. A snapshot that Cinder could not make is removed before the failure
// is returned, so that a retry begins anew: it was never available, so no call has returned its ID. A create whose answer was lost is
// not sent again for createHoldOff. Errors are marked AfterWrite wherever a snapshot of that name exists, may exist, or may still be
// created by a request without an answer.
func (s *Service) Create(ctx context.Context, w Spec) (volume.Snapshot, error) {
	if w.Name == "" {
		return volume.Snapshot{}, volume.Errorf(volume.InvalidArgument, "a snapshot needs a name").Op("snapshot")
	}
	unlock, err := s.locks.Take("snapshot "+w.Name, "create")
	if err != nil {
		return volume.Snapshot{}, volume.AfterWrite(err)
	}
	defer unlock()
	find := s.picture
	if w.Backup != nil {
		find = s.backUp
	}
	p, err := find(ctx, w)
	return p, s.finalOrRetryable(ctx, w, err)
}

// picture makes the snapshot of a wish, or finds it.
func (s *Service) picture(ctx context.Context, w Spec) (volume.Snapshot, error) {
	k := s.snapshots
	found, err := k.FindBeforeCreate(ctx, w.Name)
	if err != nil {
		return volume.Snapshot{}, err
	}
	var made volume.SnapshotID
	if len(found) == 0 {
		if err := s.noBackup(ctx, w.Name); err != nil {
			return volume.Snapshot{}, err
		}
		if made, found, err = s.create(ctx, w); err != nil {
			return volume.Snapshot{}, err
		}
	}
	return s.available(ctx, k, found, made, func(p volume.Snapshot) error {
		switch {
		case !sameVolume(p, w):
			return otherVolume("snapshot", p, w)
		case p.Metadata[contract.MetadataTemporary] != "":
			return volume.Errorf(volume.Incompatible, "snapshot %s is named %s already and is there for a backup only; asked was a snapshot", p.ID, w.Name).Op("snapshot")
		}
		return nil
	})
}

// noBackup refuses a snapshot where a backup has its name: the same request would be answered with two different things.
func (s *Service) noBackup(ctx context.Context, name string) error {
	found, err := s.cloud.BackupsNamed(ctx, name)
	switch {
	case without(err) || volume.Is(err, volume.NotFound):
		return nil
	case err != nil:
		return volume.AfterWrite(err)
	case len(found) > 0:
		return volume.Errorf(volume.Incompatible, "backup %s is named %s already; asked was a snapshot", found[0].ID, name).Op("snapshot")
	}
	return nil
}

// sameVolume reports whether p is of the wished volume, whose id may be written in another case: Cinder's database takes either.
func sameVolume(p volume.Snapshot, w Spec) bool {
	return strings.EqualFold(string(p.Volume), string(w.Volume))
}

func otherVolume(noun string, p volume.Snapshot, w Spec) error {
	return volume.Errorf(volume.Incompatible, "%s %s is named %s already and is of volume %s, not of %s", noun, p.ID, w.Name, p.Volume, w.Volume).Op("snapshot")
}

// finalOrRetryable returns err unchanged where a final answer is safe, as Resource.FinalOrRetryable says. A backup has a temporary snapshot of
// its name too.
func (s *Service) finalOrRetryable(ctx context.Context, w Spec, err error) error {
	if w.Backup != nil {
		err = s.backups.FinalOrRetryable(ctx, w.Name, err)
	}
	return s.snapshots.FinalOrRetryable(ctx, w.Name, err)
}

// create sends the create request, waits for the snapshot, and reads again who has the name, since another replica may have created one
// too.
func (s *Service) create(ctx context.Context, w Spec) (volume.SnapshotID, []volume.Snapshot, error) {
	v, err := s.snapshotable(ctx, w.Volume)
	if err != nil {
		return "", nil, err
	}
	p, err := s.sendCreate(ctx, w, v)
	if volume.MayHaveWritten(err) {
		return "", nil, s.snapshots.Lost(w.Name, err)
	}
	if err != nil { // refused, or never sent
		return "", nil, err
	}
	found, err := s.namedOnceMade(ctx, s.snapshots, p.ID, w.Name)
	return p.ID, found, err
}

// sendCreate asks for a snapshot, of a volume in use in the way that this cloud knows.
func (s *Service) sendCreate(ctx context.Context, w Spec, v volume.Volume) (volume.Snapshot, error) {
	o := volume.SnapshotOptions{
		Name: w.Name, Volume: w.Volume, Description: contract.Description, Metadata: s.owner.Metadata(w.Name, w.Metadata), InUse: v.Status == volume.InUse,
	}
	o.Metadata[contract.MetadataSent] = idempotent.FormatSent(time.Now())
	p, err := s.cloud.CreateSnapshot(ctx, o)
	if !o.InUse || !volume.Is(err, volume.Unimplemented) || volume.MayHaveWritten(err) {
		return p, err
	}
	if !w.Force {
		return volume.Snapshot{}, volume.Errorf(volume.Conflict, "volume %s is attached to %s, and this cloud's Cinder makes a snapshot of it only if the VolumeSnapshotClass has %s: \"true\"",
			v.ID, v.Holders(), contract.ParameterForce).Op("snapshot")
	}
	o.InUse, o.Force = false, true
	return s.cloud.CreateSnapshot(ctx, o)
}

// snapshotable reads a volume once Cinder may be asked for a snapshot of it.
func (s *Service) snapshotable(ctx context.Context, id volume.ID) (volume.Volume, error) {
	v, err := s.volumes.Get(ctx, id)
	if err != nil {
		return volume.Volume{}, err
	}
	if v.Status.Meaning().Extend == volume.Wait {
		v, err = s.volumes.Await(ctx, id, "become ready for a snapshot", func(v volume.Volume, ok bool) (bool, error) {
			if !ok {
				return true, volume.NoVolume(id)
			}
			return v.Status.Meaning().Extend != volume.Wait, nil
		})
		if err != nil {
			return volume.Volume{}, err
		}
	}
	switch v.Status.Meaning().Extend {
	case volume.Proceed:
		return v, nil
	case volume.BeingDeleted:
		return v, volume.Errorf(volume.NotFound, "volume %s is being deleted", id).Op("snapshot")
	}
	return v, volume.Errorf(volume.Conflict, "volume %s is in status %s%s; Cinder makes no snapshot of it until an administrator resets that", id, v.Status, s.volumes.FailureReason(ctx, id)).Op("snapshot")
}
