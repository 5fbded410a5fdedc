package snapshot

import (
	"context"
	"maps"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud/paging"
)

// BackupSpec is what a new backup shall be, besides what a snapshot is.
type BackupSpec struct {
	// Zone is the zone of the cinder-backup that makes it; empty means any.
	Zone string
	// Incremental asks for what changed since the volume's latest backup only; without one that it can rest on it is made in full.
	Incremental bool
	// PerGiB is how long a GiB may take before Create tells of it; 0 means ever.
	PerGiB time.Duration
}

// grace is how long a backup of any size may take, besides its PerGiB: upstream's.
const grace = 30 * time.Second

// longestBackupWait bounds how long one call waits for a backup. external-snapshotter has ten worker threads by default, and a backup
// takes minutes: ten calls that wait for backups would hold up every other VolumeSnapshot. The retry resumes the wait.
const longestBackupWait = time.Minute

// backUp makes the backup of a wish, or finds it. It is made from a temporary snapshot of its name, as upstream's are: backed up
// itself, a volume could be neither attached nor detached for as long as that takes. It is returned only after the temporary snapshot
// is gone: afterwards nobody asks again. Every call goes on from what Cinder shows.
func (s *Service) backUp(ctx context.Context, w Spec) (volume.Snapshot, error) {
	k := s.backups
	found, err := k.FindBeforeCreate(ctx, w.Name)
	if err != nil {
		return volume.Snapshot{}, err
	}
	var made volume.SnapshotID
	if len(found) == 0 {
		if made, found, err = s.createBackup(ctx, w); err != nil {
			return volume.Snapshot{}, err
		}
	}
	if b := found[0]; sameVolume(b, w) && b.Status.SnapshotMeaning().Create == volume.Wait {
		if err := overdue(b, w); err != nil {
			return volume.Snapshot{}, err
		}
	}
	b, err := s.available(ctx, k, found, made, func(b volume.Snapshot) error {
		if !sameVolume(b, w) {
			return otherVolume("backup", b, w)
		}
		return nil
	})
	if err == nil {
		err = s.done(ctx, b)
	}
	if err != nil {
		return volume.Snapshot{}, err
	}
	return b, nil
}

// awaitBackupOrRetry waits for done as untilBackup does, for longestBackupWait at most.
func (s *Service) awaitBackupOrRetry(ctx context.Context, id volume.SnapshotID, what string, done func(b volume.Snapshot, ok bool) (bool, error)) (volume.Snapshot, error) {
	bounded, cancel := context.WithTimeout(ctx, longestBackupWait)
	defer cancel()
	status := volume.Creating
	b, err := s.awaitBackup(bounded, id, what, func(b volume.Snapshot, ok bool) (bool, error) {
		if ok {
			status = b.Status
		}
		return done(b, ok)
	})
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		state := "is being created"
		if status != volume.Creating {
			state = "is not available"
		}
		return b, volume.Errorf(volume.Busy, "backup %s %s (status %s); the driver keeps waiting on the next call", id, state, status).Op("snapshot").AfterWrite()
	}
	return b, err
}

// overdue tells of a backup that is being made for longer than its class allows. It may still be made: the answer is not final.
func overdue(b volume.Snapshot, w Spec) error {
	allowed := grace + w.Backup.PerGiB*time.Duration(b.Size.RoundUp())
	if age := time.Since(b.CreatedAt); w.Backup.PerGiB > 0 && age > allowed {
		return volume.AfterWrite(volume.Errorf(volume.DeadlineExceeded, "backup %s of volume %s, %s, is being made for %s, longer than the %s that the VolumeSnapshotClass allows; "+
			"it goes on. If it is not stuck, raise %s", b.ID, b.Volume, b.Size, age.Round(time.Second), allowed, contract.ParameterBackupTime).Op("snapshot"))
	}
	return nil
}

// done clears up after a backup that is made. A temporary snapshot that Cinder will not delete does not keep it from being used.
func (s *Service) done(ctx context.Context, b volume.Snapshot) error {
	err := s.clearUp(ctx, b)
	switch volume.KindOf(err) {
	case volume.Conflict, volume.Failed:
		s.log.WarnContext(ctx, "a temporary snapshot stays", "backup", b.ID, "name", b.Name, "error", err)
		return nil
	}
	return volume.AfterWrite(err)
}

// createBackup sends the create request, waits for the backup, and reads again who has the name, as create does.
func (s *Service) createBackup(ctx context.Context, w Spec) (volume.SnapshotID, []volume.Snapshot, error) {
	p, err := s.temporarySnapshot(ctx, w)
	if err != nil {
		return "", nil, err
	}
	incremental, err := s.restsOnAnother(ctx, w, p)
	if err != nil {
		return "", nil, volume.AfterWrite(err)
	}
	metadata := s.owner.Metadata(w.Name, w.Metadata)
	metadata[contract.MetadataType], metadata[contract.MetadataSent] = string(contract.KindBackup), idempotent.FormatSent(time.Now())
	made, err := s.cloud.CreateBackup(ctx, volume.BackupOptions{
		Name: w.Name, Volume: w.Volume, Snapshot: p.ID, Zone: w.Backup.Zone, Incremental: incremental, Description: contract.Description, Metadata: metadata,
	})
	switch {
	case volume.MayHaveWritten(err):
		return "", nil, s.backups.Lost(w.Name, err)
	case idempotent.Final(err):
		return "", nil, s.withdraw(ctx, p, err)
	case err != nil: // a retry goes on with the temporary snapshot
		return "", nil, volume.AfterWrite(err)
	}
	found, err := s.namedOnceMade(ctx, s.backups, made, w.Name)
	return made, found, err
}

// withdraw removes the temporary snapshot of a backup that Cinder refused to make, so that the refusal leaves nothing.
func (s *Service) withdraw(ctx context.Context, p volume.Snapshot, refusal error) error {
	if !s.ours(p) {
		return volume.AfterWrite(refusal)
	}
	if err := s.snapshots.Discard(ctx, p, "Cinder made no backup of it"); err != nil {
		return volume.AfterWrite(volume.Errorf(volume.KindOf(refusal), "%w; removing temporary snapshot %s failed too: %v", refusal, p.ID, err))
	}
	return refusal
}

// temporarySnapshot makes the snapshot that a backup is made from, or finds it, and returns it once it can be backed up.
func (s *Service) temporarySnapshot(ctx context.Context, w Spec) (volume.Snapshot, error) {
	found, err := s.snapshots.FindBeforeCreate(ctx, w.Name)
	if err != nil {
		return volume.Snapshot{}, err
	}
	var made volume.SnapshotID
	if len(found) == 0 {
		marked := w
		marked.Metadata = maps.Clone(w.Metadata)
		if marked.Metadata == nil {
			marked.Metadata = map[string]string{}
		}
		marked.Metadata[contract.MetadataTemporary] = string(contract.KindBackup)
		if made, found, err = s.create(ctx, marked); err != nil {
			return volume.Snapshot{}, err
		}
	}
	return s.available(ctx, s.snapshots, found, made, func(p volume.Snapshot) error {
		switch {
		case !sameVolume(p, w):
			return otherVolume("snapshot", p, w)
		case !s.temporary(p):
			return volume.Errorf(volume.Incompatible, "snapshot %s is named %s already; asked was a backup", p.ID, w.Name).Op("snapshot")
		case p.Status.SnapshotMeaning().Create == volume.Proceed && !p.Ready():
			return volume.AfterWrite(volume.Errorf(volume.Busy, "temporary snapshot %s is in status %s: another call is making a backup of it", p.ID, p.Status).Op("snapshot"))
		}
		return nil
	})
}

// restsOnAnother decides whether a wished backup is made as an increment. Cinder rests it on the backup with the latest data before
// the snapshot and refuses unless that is available (backup/api.py of Cinder 21): one that failed leaves only a full backup.
func (s *Service) restsOnAnother(ctx context.Context, w Spec, p volume.Snapshot) (bool, error) {
	if !w.Backup.Incremental {
		return false, nil
	}
	full := func(why string, base volume.SnapshotID) (bool, error) {
		s.log.InfoContext(ctx, "making a full backup although an incremental one is asked for", "name", w.Name, "volume", w.Volume, "reason", why, "backup", base)
		return false, nil
	}
	var latest *volume.Snapshot
	err := paging.Walk(paging.MaxItems, func(marker string) ([]volume.Snapshot, bool, error) {
		page, err := s.cloud.Backups(ctx, volume.SnapshotPage{Volume: w.Volume, Marker: volume.SnapshotID(marker)})
		return page, true, err
	}, func(b volume.Snapshot) string { return string(b.ID) }, func(page []volume.Snapshot) bool {
		for i, b := range page {
			if latest == nil || before(latest.DataAt, p.CreatedAt).Compare(before(b.DataAt, p.CreatedAt)) < 0 {
				latest = &page[i]
			}
		}
		return true
	})
	if err != nil {
		return false, observe.EndlessList(err, "the backups of volume "+string(w.Volume))
	}
	if latest == nil {
		return full("the volume has no backup", "")
	}
	switch latest.Status.SnapshotMeaning().Source {
	case volume.Proceed:
		return true, nil
	case volume.Refuse:
		return full("the latest backup failed", latest.ID)
	}
	return false, volume.Errorf(volume.Busy, "backup %s, which an incremental one rests on, is in status %s; that one can be made once it is available", latest.ID, latest.Status).Op("snapshot")
}

// before is t where it is before end, else the beginning of time.
func before(t, end time.Time) time.Time {
	if t.Before(end) {
		return t
	}
	return time.Time{}
}

// temporary reports whether p is a snapshot that is there for a backup only: ours are marked. Upstream's look like any snapshot
// of its driver, but of the name of a request for a backup there is no other.
func (s *Service) temporary(p volume.Snapshot) bool {
	if p.Metadata[contract.MetadataTemporary] != "" {
		return s.ours(p)
	}
	_, requested := p.Metadata[contract.MetadataRequest]
	cluster, labelled := p.Metadata[contract.MetadataCluster]
	return labelled && !requested && cluster == s.owner.Cluster
}

const backingUp volume.Status = "backing-up"

// forgotten tells of a temporary snapshot that stays as it is although its backup has failed. That is what Cinder 21 does where its
// scheduler finds no cinder-backup in the volume's zone; the volume then loses its status too (scheduler/manager.py; seen on a real
// cloud), and only an administrator can give it one.
func forgotten(b, p volume.Snapshot) *volume.Error {
	return volume.Errorf(volume.Failed, "its temporary snapshot %s stays in status %s, because Cinder forgot to reset it, and so perhaps volume %s: an administrator must reset both "+
		"(openstack volume snapshot set --state available %s; openstack volume set --state available %s, or in-use if it is attached). Does a cinder-backup work in the volume's zone?",
		p.ID, p.Status, b.Volume, p.ID, b.Volume).Op("snapshot")
}

// clearUp removes the temporary snapshots of a backup that is made or has failed: ours by its name, upstream's only where the
// backup says that it was made from it.
func (s *Service) clearUp(ctx context.Context, b volume.Snapshot) error {
	if b.Name == "" {
		return nil
	}
	found, err := s.snapshots.Named(ctx, b.Name)
	if err != nil {
		return err
	}
	for _, p := range found {
		if !s.temporary(p) || !s.ours(p) && p.ID != b.From {
			continue
		}
		if p.Status == backingUp && p.ID == b.From && b.Status.SnapshotMeaning().Create == volume.Refuse {
			return forgotten(b, p)
		}
		if err := s.snapshots.AwaitDeletable(ctx, p); err != nil {
			return err
		}
		if err := s.snapshots.Discard(ctx, p, "backup "+string(b.ID)+" needs it no more"); err != nil {
			return volume.Errorf(volume.KindOf(err), "cannot remove temporary snapshot %s of backup %s: %w", p.ID, b.ID, err).Op("snapshot")
		}
	}
	return nil
}
