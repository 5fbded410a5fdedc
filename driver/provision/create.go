package provision

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Create finds the volume that an earlier call created, or creates it, and returns it once Cinder shows it as available.
//
// The outcome does not depend on memory: the driver finds by name what an earlier call or another replica created. If several volumes have
// the name, the oldest counts, then the lowest ID. The driver deletes a volume that Cinder could not create before it returns the error, so
// a retry starts from nothing. It tries the allowed zones one after the other, each only when the zone before holds nothing. After a
// create whose answer was lost, package idempotent holds back the next create of that name.
//
// Errors are NotInZone where no allowed zone can have the volume. They are marked AfterWrite wherever a volume of that name exists, may exist,
// or may still appear. After a final error external-provisioner forgets the volume (CSI specification, CreateVolume).
func (s *Service) Create(ctx context.Context, spec CreateSpec) (volume.Volume, error) {
	size, err := spec.validate()
	if err != nil {
		return volume.Volume{}, err
	}
	unlock, err := s.locks.Take("volume "+spec.Name, "create")
	if err != nil {
		return volume.Volume{}, volume.AfterWrite(err)
	}
	defer unlock()
	searched := time.Now()
	found, err := s.resource.FindBeforeCreate(ctx, spec.Name)
	if err != nil {
		return volume.Volume{}, err
	}
	if len(found) == 0 {
		return s.createInZones(ctx, spec, size, searched, "", nil)
	}
	v, err := s.useOldest(ctx, spec, found, "")
	if err = s.resource.FinalOrRetryable(ctx, spec.Name, err); !otherZoneMayHelp(err) {
		return v, err
	}
	return s.createInZones(ctx, spec, size, searched, found[0].Zone, err)
}

// createInZones creates the volume in the first allowed zone that can have it. The name was searched for at a time. An earlier call may have
// failed in the zone failedZone with the error failure.
func (s *Service) createInZones(ctx context.Context, spec CreateSpec, size volume.Size, searched time.Time, failedZone string, failure error) (volume.Volume, error) {
	p, err := s.placement(ctx, spec, size)
	if err != nil {
		return volume.Volume{}, s.resource.FinalOrRetryable(ctx, spec.Name, err)
	}
	for _, zone := range p.zones {
		if zone != "" && zone == failedZone {
			continue
		}
		p.options.Zone = zone
		v, err := s.create(ctx, spec, p.options, searched)
		if err = s.resource.FinalOrRetryable(ctx, spec.Name, err); !otherZoneMayHelp(err) {
			return v, err
		}
		s.log.InfoContext(ctx, "a zone cannot have a volume; the driver tries the next allowed zone", "name", spec.Name, "zone", zone, "reason", err)
		failure = err
	}
	return volume.Volume{}, p.noZone(spec, failure)
}

// otherZoneMayHelp reports whether a zone cannot have the volume and nothing is left in it.
func otherZoneMayHelp(err error) bool {
	return volume.Is(err, volume.NotInZone) && !volume.MayHaveWritten(err)
}

// create sends the create request and waits for the volume. Then it reads the volumes of that name again, since another replica may
// have created one too. A volume that the replica requested before it could see this one is listed by then.
func (s *Service) create(ctx context.Context, spec CreateSpec, o volume.CreateOptions, searched time.Time) (volume.Volume, error) {
	v, err := s.sendCreate(ctx, spec, o)
	if err == nil {
		v, err = s.awaitCreated(ctx, spec, v)
	}
	if err != nil {
		return volume.Volume{}, err
	}
	found, err := s.resource.Recheck(ctx, spec.Name, v, searched)
	if err != nil {
		return volume.Volume{}, err
	}
	if !slices.ContainsFunc(found, func(f volume.Volume) bool { return f.ID == v.ID }) {
		return volume.Volume{}, disappeared(v.ID)
	}
	return s.useOldest(ctx, spec, found, v.ID)
}

// sendCreate sends the create request. The request outlives its caller, and the name stays locked until Cinder has answered.
func (s *Service) sendCreate(ctx context.Context, spec CreateSpec, o volume.CreateOptions) (volume.Volume, error) {
	now := time.Now()
	o.Metadata = maps.Clone(o.Metadata)
	o.Metadata[contract.MetadataSent] = idempotent.FormatSent(now)
	if o.BackupID != "" || o.Metadata[contract.MetadataRestore] != "" {
		o.Description = contract.DescriptionOfRestored(s.owner.Token(spec.Name), now)
	}
	unlock := s.locks.Share("volume "+spec.Name, "create")
	return s.resource.Send(ctx, spec.Name, unlock, func(ctx context.Context) (volume.Volume, error) {
		v, err := s.cloud.CreateVolume(ctx, o)
		if err == nil && v.RestoreFrom != "" {
			s.restores.allow(v.ID)
		}
		return v, err
	})
}

// useOldest waits until the oldest of the volumes found by name is created, and deletes younger duplicates. It returns the oldest if that can
// be the result of the request. Created is the ID of the volume that this call created, if it created one. After NotInZone nothing is left: Cinder could not
// create the volume in its zone, or created it in a zone that is not allowed.
func (s *Service) useOldest(ctx context.Context, spec CreateSpec, found []volume.Volume, created volume.ID) (volume.Volume, error) {
	v, err := found[0], error(nil)
	from := s.originOf(v, created)
	if !from.created && spec.mismatch(v) == "" { // of one that does not match, the driver does not wait for the end
		v, err = s.awaitCreated(ctx, spec, v)
	}
	if err == nil {
		err = s.resource.DeleteYounger(ctx, found, string(created))
	}
	if err != nil {
		return volume.Volume{}, err
	}
	if d := spec.defect(v, from); d != nil {
		return volume.Volume{}, s.reject(ctx, v, d)
	}
	if from.created && spec.Zone != "" && !sameZone(spec.Zone, v.Zone) {
		s.log.WarnContext(ctx, "Cinder created the volume in another zone than the StorageClass names", "name", spec.Name, "volume", v.ID,
			"availability", spec.Zone, "zone", v.Zone)
	}
	if v, err = s.restoreOwed(ctx, spec, v); err != nil {
		return volume.Volume{}, err
	}
	return s.finishRestore(ctx, spec, v)
}

// awaitCreated waits until Cinder has created v. If Cinder could not, it deletes v where this driver created it.
func (s *Service) awaitCreated(ctx context.Context, spec CreateSpec, v volume.Volume) (volume.Volume, error) {
	id := v.ID
	if v.Status.Meaning().Create == volume.Wait {
		written, exists := volume.JustWritten(), false
		var err error
		v, err = s.volumes.Await(ctx, id, "become available", func(v volume.Volume, ok bool) (bool, error) {
			if exists = ok; !ok {
				return written.Shows(), nil
			}
			return v.Status.Meaning().Create != volume.Wait, nil
		})
		if err != nil {
			return volume.Volume{}, volume.AfterWrite(err)
		}
		if !exists {
			return volume.Volume{}, disappeared(id)
		}
	}
	return s.usable(ctx, spec, v)
}

// usable returns v if Cinder has created it. If Cinder could not, it deletes v where this driver created it.
func (s *Service) usable(ctx context.Context, spec CreateSpec, v volume.Volume) (volume.Volume, error) {
	switch v.Status.Meaning().Create {
	case volume.Proceed:
		s.recent.Put(v)
		return v, nil
	case volume.BeingDeleted:
		return volume.Volume{}, volume.AfterWrite(volume.Errorf(volume.Busy, "somebody is deleting volume %s; once it is gone, a retry creates the volume again", v.ID).Op("create"))
	}
	return volume.Volume{}, s.deleteFailed(ctx, spec, v)
}

// disappeared is the error of a volume that somebody deleted during its create.
func disappeared(id volume.ID) error {
	return volume.AfterWrite(volume.Errorf(volume.Busy, "somebody deleted volume %s while Cinder created it; a retry creates the volume again", id).Op("create"))
}

// deleteFailed returns why Cinder could not create v, after it has deleted v where this driver created it.
func (s *Service) deleteFailed(ctx context.Context, spec CreateSpec, v volume.Volume) error {
	about := v.ID
	if backup := spec.backupOf(v); backup != "" {
		// Cinder records the failure of a restore with the backup. A request that finds its volume may name another backup than the one before,
		// so the cloud is asked whose it is.
		if _, err := s.cloud.Backup(ctx, volume.SnapshotID(backup)); err == nil {
			about = volume.ID(backup)
		}
	}
	reason, unread := s.volumes.AwaitFailureReason(ctx, about)
	if reason == "" && unread == nil && about != v.ID {
		reason, unread = s.volumes.ReadFailureReason(ctx, v.ID)
	}
	reason = strings.TrimSuffix(reason, ".")
	if !s.mayDelete(v) {
		return volume.AfterWrite(volume.Errorf(volume.Failed, "volume %s already has the name %s and is in status %s%s; the driver did not create it for this request. Delete it by hand",
			v.ID, v.Name, v.Status, reason).Cause(cause.CreateLeftover).Op("create"))
	}
	if err := s.resource.Discard(ctx, v, "Cinder could not create it"); err != nil {
		return volume.AfterWrite(volume.Errorf(volume.KindOf(err), "Cinder could not create volume %s%s; the driver could not delete it either, and a retry tries again: %w", v.ID, reason, err))
	}
	if unread != nil && !idempotent.Final(unread) { // the message says whether another zone may have room, so the answer is not final
		return volume.AfterWrite(volume.Errorf(volume.Unavailable, "Cinder could not create volume %s, and the driver deleted it; it cannot read why, and a retry tries again: %w", v.ID, unread).Cause(cause.CreateError).Op("create"))
	}
	kind, why := failureKind(reason, spec.zonesFromTopology())
	return volume.Errorf(kind, "Cinder could not create volume %s%s; the driver deleted it", v.ID, reason).Cause(why).Op("create")
}

// failureKind is the kind and the cause of a failed create. It reads the message in which Cinder says why it gave up on a volume (message_field.py of Cinder). A zone without room (detail 003)
// is NotInZone if another zone may have room, else Exhausted. So is a reason that a policy hides. A full quota (006) is Exhausted. The rest is Failed,
// also where a backend failed (012) and the scheduler then found no other backend.
func failureKind(reason string, otherZone bool) (volume.Kind, cause.ID) {
	noBackend := cause.CreateNoBackend
	if strings.Contains(reason, "; ") { // the scheduler writes the same after a backend has failed, which writes its own message
		noBackend = cause.CreateError
	}
	switch {
	case strings.Contains(reason, "Driver failed"):
		return volume.Failed, cause.CreateError
	case strings.Contains(reason, volume.ReasonHidden) && otherZone:
		return volume.NotInZone, cause.CreateError
	case strings.Contains(reason, "Not enough quota resource"):
		return volume.Exhausted, cause.QuotaExceeded
	case strings.Contains(reason, "Could not find any available weighted backend") && otherZone:
		return volume.NotInZone, noBackend
	case strings.Contains(reason, "Could not find any available weighted backend"):
		return volume.Exhausted, noBackend
	}
	return volume.Failed, cause.CreateError
}

// awaitDeletable waits until the status of a volume allows or forbids its deletion.
func (s *Service) awaitDeletable(ctx context.Context, v volume.Volume) error {
	_, err := s.volumes.Settled(ctx, v, "become deletable", observe.ForDelete)
	return volume.IgnoreNotFound(err)
}
