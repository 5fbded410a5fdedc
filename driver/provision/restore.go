package provision

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Cinder 26 shifts the data of a volume that it makes from a backup in Ceph (its bug 2155612). A restore into an existing volume is right. So the
// driver creates an empty volume with contract.MetadataRestore, restores the backup into it, and then marks it as done. No call returns a volume
// before that. Cinder shows how far that is, and each call continues from there:
//
//   - The volume is available and has the key with the backup: the driver sends the restore, perhaps for the second time.
//   - The volume is restoring-backup: the driver waits. Cinder replaces the metadata meanwhile, so the key may be gone.
//   - The volume is error_restoring or error: this is a create that failed, and the driver deletes the volume.
//   - The volume is available, and its src_backup_id is the backup: it has the data. Cinder writes src_backup_id last, from Victoria on, and the
//     driver does not write it in this case.

// restoredFrom reports whether Cinder has restored the backup of the spec into v.
func (spec CreateSpec) restoredFrom(v volume.Volume) bool {
	return spec.Snapshot != "" && strings.EqualFold(v.BackupID, string(spec.Snapshot))
}

// backupOf is the backup of a volume that Cinder could not restore; empty if it has none. A restore may have replaced the metadata that names the
// backup. Only a volume from a backup has such a description.
func (spec CreateSpec) backupOf(v volume.Volume) string {
	if _, _, restored := contract.ParseDescriptionOfRestored(v.Description); restored && v.BackupID == "" {
		return string(spec.Snapshot)
	}
	return v.BackupID
}

// restoreOwed restores the backup of the spec into v, if the driver created v for that and it does not have the data yet. It returns v as it is
// then.
func (s *Service) restoreOwed(ctx context.Context, spec CreateSpec, v volume.Volume) (volume.Volume, error) {
	if v.RestoreFrom == "" || spec.restoredFrom(v) {
		return v, nil
	}
	if !s.mayDelete(v) {
		return volume.Volume{}, volume.AfterWrite(volume.Errorf(volume.Conflict, "volume %s waits for the restore of backup %s, but this driver did not create it for this request, or it is in use. "+
			"If nobody needs it, delete it in Cinder", v.ID, v.RestoreFrom).Cause(cause.CreateRestore).Op("create"))
	}
	if err := s.restores.check(v.ID); err != nil {
		return volume.Volume{}, err
	}
	if err := s.sendRestore(ctx, spec, v); err != nil {
		return volume.Volume{}, s.restoreRefused(ctx, spec, v, err)
	}
	return s.awaitRestored(ctx, spec, v.ID)
}

// sendRestore sends the restore. Like a create, the request outlives its caller.
func (s *Service) sendRestore(ctx context.Context, spec CreateSpec, v volume.Volume) error {
	request := inflight.Request{
		Verb: "restore", Object: "backup " + string(spec.Snapshot) + " into volume " + string(v.ID), Service: "Cinder", Log: s.log,
		Release: s.locks.Share("volume "+spec.Name, "create"),
	}
	_, err := inflight.Complete(ctx, s.resource.Requests, request, func(ctx context.Context) (struct{}, error) {
		s.restores.sent(v.ID)
		err := s.cloud.RestoreBackup(ctx, spec.Snapshot, v.ID)
		if err != nil && !volume.MayHaveWritten(err) {
			s.restores.allow(v.ID) // Cinder refused it
		}
		return struct{}{}, err
	})
	return err
}

// restoreRefused returns the error of a restore that was not accepted. If no retry of this volume can succeed, it deletes the volume first.
func (s *Service) restoreRefused(ctx context.Context, spec CreateSpec, v volume.Volume, refusal error) error {
	err := s.explainRestoreRefusal(ctx, spec, refusal)
	if !idempotent.Final(err) {
		return volume.AfterWrite(err)
	}
	if failed := s.resource.Discard(ctx, v, "Cinder does not restore the backup into it"); failed != nil {
		return volume.AfterWrite(volume.Errorf(volume.KindOf(failed), "%w; the driver could not delete the empty volume %s either, and a retry tries again: %w", err, v.ID, failed))
	}
	return err
}

// explainRestoreRefusal finds out why Cinder refused a restore. It answers 404 if it does not find the backup, the volume or a service. It
// answers 400 if the backup or the volume is not available.
func (s *Service) explainRestoreRefusal(ctx context.Context, spec CreateSpec, refusal error) error {
	missing := volume.Is(refusal, volume.NotFound)
	if volume.MayHaveWritten(refusal) || !missing && !volume.Is(refusal, volume.Busy) {
		return refusal
	}
	from := source{name: "backup " + string(spec.Snapshot)}
	b, err := s.cloud.Backup(ctx, spec.Snapshot)
	switch {
	case volume.Is(err, volume.NotFound):
		return volume.Errorf(volume.NotFound, "the source, %s, does not exist any more: %w", from.name, refusal).Op("create")
	case err != nil:
		return volume.AfterWrite(err)
	}
	if err := from.usable(b.Status, b.Status.SnapshotMeaning().Source); err != nil && !volume.Is(err, volume.Busy) {
		return err
	}
	if missing {
		return volume.Errorf(volume.Unavailable, "Cinder shows %s, but does not find it, its new volume or a cinder-backup service for the restore; check that cinder-backup runs: %w", from.name, refusal).Cause(cause.BackupService).Op("create")
	}
	return refusal
}

// awaitRestored waits until Cinder has restored the backup, or could not. Cinder sets the status restoring-backup before it answers, but a
// database server that lags may still show the volume as available.
func (s *Service) awaitRestored(ctx context.Context, spec CreateSpec, id volume.ID) (volume.Volume, error) {
	written, exists := volume.JustWritten(), false
	v, err := s.volumes.Await(ctx, id, "get the data of backup "+string(spec.Snapshot), func(v volume.Volume, ok bool) (bool, error) {
		if exists = ok; !ok {
			return written.Shows(), nil
		}
		step := v.Status.Meaning().Create
		return step != volume.Wait && (step != volume.Proceed || spec.restoredFrom(v)), nil
	})
	if err != nil {
		return volume.Volume{}, volume.AfterWrite(err)
	}
	if !exists {
		return volume.Volume{}, disappeared(id)
	}
	return s.usable(ctx, spec, v)
}

// finishRestore writes the metadata of a restored volume: a restore leaves that of the volume that was backed up, which may be of another cluster.
// The same request says that the restore is done, if the key is still there: the original had no metadata, or the same key. The mark of another
// cluster stays, unless the description proves that the driver created the volume for this request: then the backup brought the mark.
func (s *Service) finishRestore(ctx context.Context, spec CreateSpec, v volume.Volume) (volume.Volume, error) {
	if v.BackupID == "" {
		return v, nil
	}
	if mark := v.Metadata[contract.MetadataCluster]; mark != "" && mark != s.owner.Cluster && !s.createdForName(v) {
		return v, nil
	}
	own := map[string]string{}
	if !s.owner.Marked(v.Name, v.Metadata) {
		own = s.ownMetadata(ctx, spec, v)
	}
	if v.RestoreFrom != "" {
		own[contract.MetadataRestore] = contract.RestoreDone
	}
	if len(own) == 0 {
		return v, nil
	}
	if err := s.cloud.AddMetadata(ctx, v.ID, own); err != nil {
		return volume.Volume{}, volume.AfterWrite(err)
	}
	v.Metadata, v.RestoreFrom = maps.Clone(v.Metadata), ""
	maps.Copy(v.Metadata, own)
	s.recent.Put(v)
	return v, nil
}

// ownMetadata is what a create gives a volume. That of the class is left out where it would be too large with what the backup brought. Else each restore
// of a backup of a restore would add to it, until the object is too large for every list of the project.
func (s *Service) ownMetadata(ctx context.Context, spec CreateSpec, v volume.Volume) map[string]string {
	own := s.createMetadata(spec)
	all := maps.Clone(own)
	for key, value := range v.Metadata {
		if _, replaced := own[key]; !replaced {
			all[key] = value
		}
	}
	if err := contract.CheckMetadataSize(all); err != nil {
		s.log.WarnContext(ctx, "the volume keeps the metadata of its backup, and does not get that of its StorageClass", "volume", v.ID, "backup", v.BackupID, "reason", err)
		return contract.WrittenMetadata(own)
	}
	return own
}

// restoreHoldOff is how long another restore into a volume may still be on its way: one whose answer was lost, or one of another replica. It is as long as
// for a create, for the same reasons (package idempotent).
const restoreHoldOff = 2 * time.Minute

// restoreTurns say from when on this replica may send the restore into a volume. Cinder checks and sets the statuses without a lock. So it may accept
// two restores that arrive together. It also accepts one that arrives late, whenever the volume is available. Such a restore would write into
// a volume that a call has returned. So only the replica that created the volume sends the restore at once. Another one waits until the first
// has surely sent it, or has stopped.
//
// A restart loses the times, and the driver waits again.
type restoreTurns struct {
	mu    sync.Mutex // never held across a call
	begin map[volume.ID]time.Time
}

func (r *restoreTurns) set(id volume.ID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(id, at)
}

// put removes the times of volumes that nobody asked for in an hour. The caller holds r.mu.
func (r *restoreTurns) put(id volume.ID, at time.Time) {
	if r.begin == nil {
		r.begin = map[volume.ID]time.Time{}
	}
	maps.DeleteFunc(r.begin, func(_ volume.ID, begin time.Time) bool { return time.Since(begin) > time.Hour })
	r.begin[id] = at
}

// allow says that no restore into the volume is on its way: this replica has just created it, or Cinder has refused the restore.
func (r *restoreTurns) allow(id volume.ID) { r.set(id, time.Now()) }

// sent says that this replica sends a restore now.
func (r *restoreTurns) sent(id volume.ID) { r.set(id, time.Now().Add(restoreHoldOff)) }

// check returns nil if this replica may send the restore, or a retryable error that says from when on it may. The first check of a volume that
// this replica did not create begins the wait.
func (r *restoreTurns) check(id volume.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin, known := r.begin[id]
	if !known {
		begin = time.Now().Add(restoreHoldOff)
		r.put(id, begin)
	}
	if !time.Now().Before(begin) {
		return nil
	}
	return volume.AfterWrite(volume.Errorf(volume.Busy, "volume %s is empty and waits for the restore of its backup. Another request may still start the restore; the driver starts it after %s",
		id, begin.UTC().Format("15:04:05 MST")).Cause(cause.CreateRestore).Op("create"))
}
