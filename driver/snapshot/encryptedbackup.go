package snapshot

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Cinder's backup driver for Ceph copies as many bytes as the volume has by its size in GiB. In Ceph, the image of an encrypted volume is larger
// than that by the LUKS header, until the volume grows. So the backup lacks the last bytes of the data, and Cinder says nothing: 2,068,480 bytes on
// Epoxy. Cinder does not show whether the volume has grown, so the driver returns no such backup.

// refuseTruncated deletes an available backup that may lack data, and returns the refusal.
func (s *Service) refuseTruncated(ctx context.Context, b volume.Snapshot) error {
	switch is, err := s.isInCeph(ctx, b); {
	case err != nil:
		return volume.AfterWrite(err)
	case !is:
		return nil
	}
	s.cephBackups.Store(true)
	refusal := s.checkNotTruncated(ctx, b.Volume)
	if !volume.Is(refusal, volume.Conflict) {
		return volume.AfterWrite(volume.IgnoreNotFound(refusal)) // nobody knows whether a deleted volume was encrypted
	}
	if s.createdForName(b) {
		if err := s.backups.Discard(ctx, b, "it may lack the last bytes of the encrypted volume"); err != nil {
			return volume.AfterWrite(err)
		}
	}
	return refusal
}

func (s *Service) isInCeph(ctx context.Context, b volume.Snapshot) (bool, error) {
	if !b.Incremental || !b.MayBeInCeph() {
		return b.InCeph(), nil
	}
	all, err := s.backupsOf(ctx, b.Volume)
	if err != nil {
		return false, err
	}
	is, known := all.inCeph(b)
	if !known {
		return false, volume.Errorf(volume.Busy, "Cinder does not show the full backup that incremental backup %s rests on. Only that says whether it is in Ceph; a retry looks again", b.ID).Op("snapshot")
	}
	return is, nil
}

// checkNotTruncated refuses a backup of an encrypted volume if this service has seen that the backups are in Ceph.
func (s *Service) checkNotTruncated(ctx context.Context, id volume.ID) error {
	if !s.cephBackups.Load() {
		return nil
	}
	v, err := s.cloud.Volume(ctx, id)
	if err != nil || !v.Encrypted {
		return volume.WithOp(err, "snapshot")
	}
	return volume.Errorf(volume.Conflict, "volume %s is encrypted, and the backups of this cloud are in Ceph. There, a backup of an encrypted volume that has never grown lacks the last 2 MiB of the data. "+
		"Cinder does not show whether a volume has grown, so the driver makes none. Use a class with type: snapshot", id).Cause(cause.BackupShared).Op("snapshot")
}
