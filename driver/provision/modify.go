package provision

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// Change describes what Modify changes in a volume. What is empty stays unchanged.
type Change struct {
	// Type is the name or ID of a volume type.
	Type string
	// Migrate allows Cinder to copy the volume to another backend for that type.
	Migrate bool
	// Metadata is what Modify adds to the metadata of the volume; it replaces other values of the same keys.
	Metadata map[string]string
	// Remove holds the metadata keys that Modify removes.
	Remove []string
}

// Modify changes a volume and returns once Cinder shows the change (CSI specification, ControllerModifyVolume). It sends nothing that the
// volume has already.
//
// The type comes first: only that change can be impossible, and then nothing has changed. InvalidArgument where the volume can never get the
// type, Conflict where it cannot in its present status.
func (s *Service) Modify(ctx context.Context, id volume.ID, c Change) (err error) {
	if !id.Exists() {
		return volume.NoVolume(id).Op("modify")
	}
	lock := s.locks.Work(inflight.VolumeKey(id), "modify")
	defer lock.End()
	if _, err := lock.Lock(); err != nil {
		return err
	}
	s.recent.Take(id) // the reading is out of date after the change
	v, err := s.volumes.Get(ctx, id)
	if err == nil {
		err = v.CheckRestored("modify")
	}
	if err != nil {
		return volume.WithOp(err, "modify")
	}
	if v.Status.Meaning().Extend == volume.BeingDeleted {
		return volume.Errorf(volume.NotFound, "volume %s is being deleted", id).Op("modify")
	}
	if err := c.checkSize(v); err != nil {
		return err
	}
	wrote := false
	defer func() {
		if wrote {
			err = volume.AfterWrite(err)
		}
	}()
	if c.Type != "" && v.Type != c.Type {
		retyped, err := s.retype(ctx, lock, v, c)
		if err != nil {
			return err
		}
		wrote = retyped
		if v, err = s.relocked(ctx, lock, v); err != nil {
			return volume.WithOp(err, "modify")
		}
	}
	if missing := c.missing(v); len(missing) > 0 {
		err = s.cloud.AddMetadata(ctx, id, missing)
		if err != nil {
			return err
		}
		wrote = true
	}
	return s.removeMetadata(ctx, v, c.Remove)
}

// checkSize refuses metadata that is too large together with what v has. What is large already does not stop a change of something else.
func (c Change) checkSize(v volume.Volume) error {
	missing := c.missing(v)
	if len(missing) == 0 {
		return nil
	}
	all := map[string]string{}
	maps.Copy(all, v.Metadata)
	maps.Copy(all, missing)
	if err := contract.CheckMetadataSize(all); err != nil {
		return volume.Errorf(volume.InvalidArgument, "volume %s, with what the class adds: %w", v.ID, err).Op("modify")
	}
	return nil
}

// missing is the metadata of the change that v lacks, or has with another value.
func (c Change) missing(v volume.Volume) map[string]string {
	missing := map[string]string{}
	for key, value := range c.Metadata {
		if has, ok := v.Metadata[key]; !ok || has != value {
			missing[key] = value
		}
	}
	return missing
}

// removeMetadata removes the keys that v has, one request for each. Cinder can also replace all metadata at once, but that would undo
// what others have changed since v was read.
func (s *Service) removeMetadata(ctx context.Context, v volume.Volume, keys []string) error {
	removed := false
	for _, key := range keys {
		if _, has := v.Metadata[key]; !has {
			continue
		}
		err := s.cloud.RemoveMetadata(ctx, v.ID, key)
		if volume.Is(err, volume.NotFound) {
			err = s.explainMissingKey(ctx, v.ID, key, err)
		}
		if removed {
			err = volume.AfterWrite(err)
		}
		if err != nil {
			return err
		}
		removed = true
	}
	return nil
}

// explainMissingKey returns nil if a volume no longer has a key that could not be removed. Cinder answers 404 for the key as for the volume.
func (s *Service) explainMissingKey(ctx context.Context, id volume.ID, key string, missing error) error {
	v, err := s.cloud.Volume(ctx, id)
	if err != nil {
		return volume.WithOp(err, "modify")
	}
	if _, has := v.Metadata[key]; has {
		return volume.AfterWrite(volume.Errorf(volume.Unavailable, "Cinder does not find metadata key %q of volume %s, but shows it: %w", key, id, missing).Cause(cause.CloudAnswer).Op("modify"))
	}
	return nil
}

// retype gives v the type that c names. Sent reports whether it sent a request to Cinder; it sends none where v has that type already, under
// another name.
func (s *Service) retype(ctx context.Context, lock *inflight.Work, v volume.Volume, c Change) (sent bool, err error) {
	types, err := s.cloud.Types(ctx)
	if err != nil {
		return false, err
	}
	target, err := findType(types, c.Type)
	if err != nil {
		return false, err
	}
	// The volume may be changing, perhaps to this very type.
	if v, err = s.settled(ctx, lock, v, "become ready for a retype", observe.ForExtend); err != nil {
		return false, err
	}
	switch {
	case v.Type == target.Name:
		return false, nil
	case v.Status.Meaning().Extend == volume.BeingDeleted:
		return false, volume.Errorf(volume.NotFound, "volume %s is being deleted", v.ID).Op("modify")
	case v.Status.Meaning().Extend != volume.Proceed:
		return false, s.volumes.Stuck(ctx, v, "Cinder does not change its type").Op("modify")
	}
	if err := s.checkRetypeEnds(ctx, v); err != nil {
		return false, err
	}
	if err := s.cloud.Retype(ctx, v.ID, target.ID, c.Migrate); err != nil {
		return false, s.explainRetypeRefusal(ctx, v, target, err)
	}
	lock.Unlock()
	return true, s.awaitType(ctx, v, target, c.Migrate)
}

// checkRetypeEnds refuses a retype that would never end. Cinder 24 and later leave a volume in status retyping if it has a snapshot with metadata.
// The reason is that cinder-volume fails to store the result ("snapshots changed"). Seen on Cinder 26. Every snapshot of this driver has metadata.
func (s *Service) checkRetypeEnds(ctx context.Context, v volume.Volume) error {
	var with volume.Snapshot
	err := paging.Walk(paging.MaxItems, func(marker string) ([]volume.Snapshot, bool, error) {
		page, more, err := s.cloud.Snapshots(ctx, volume.SnapshotPage{Volume: v.ID, Marker: volume.SnapshotID(marker)})
		return page, more, volume.ListChanged(err, marker)
	}, func(p volume.Snapshot) string { return string(p.ID) }, func(page []volume.Snapshot) bool {
		if i := slices.IndexFunc(page, func(p volume.Snapshot) bool { return len(p.Metadata) > 0 }); i >= 0 {
			with = page[i]
		}
		return with.ID == ""
	})
	if err = observe.EndlessList(err, "the snapshots of volume "+string(v.ID)); err != nil || with.ID == "" {
		return volume.WithOp(err, "modify")
	}
	never, err := s.cloud.SnapshotStopsRetype(ctx, with.ID)
	switch {
	case volume.Is(err, volume.NotFound):
		return volume.Errorf(volume.Busy, "snapshot %s of volume %s is gone meanwhile; the driver retries", with.ID, v.ID).Op("modify")
	case err != nil:
		return volume.WithOp(err, "modify")
	case never:
		return volume.Errorf(volume.Conflict, "the driver does not change the type of volume %s, because the volume has snapshot %s with metadata. This Cinder would leave the volume "+
			"in status retyping, and only an administrator could end that. Delete the snapshots of the volume first", v.ID, with.ID).Cause(cause.VolumeModifySnapshots).Op("modify")
	}
	return nil
}

// findType finds a type by name or ID. The database of Cinder may ignore the case of names.
func findType(types []volume.Type, nameOrID string) (volume.Type, error) {
	for _, same := range []func(volume.Type) bool{
		func(t volume.Type) bool { return t.Name == nameOrID || strings.EqualFold(t.ID, nameOrID) },
		func(t volume.Type) bool { return strings.EqualFold(t.Name, nameOrID) },
	} {
		if i := slices.IndexFunc(types, same); i >= 0 {
			return types[i], nil
		}
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	hint := ""
	if near, ok := contract.Nearest(nameOrID, names); ok {
		hint = "; did you mean " + near + "?"
	}
	return volume.Type{}, volume.Errorf(volume.InvalidArgument, "the project has no access to a volume type %q%s", nameOrID, hint).Cause(cause.CreateType)
}

// explainRetypeRefusal returns the error for a refused retype, or nil where the volume has the type meanwhile. Cinder has one text for
// several causes: another status or type, a migration in progress, a group, or front-end QoS of a volume in use. A read shows the first two.
func (s *Service) explainRetypeRefusal(ctx context.Context, before volume.Volume, target volume.Type, refusal error) error {
	if !volume.Is(refusal, volume.Conflict) || volume.MayHaveWritten(refusal) {
		return refusal
	}
	v, err := s.cloud.Volume(ctx, before.ID)
	if err == nil && v.Type == before.Type && v.Status == before.Status { // Cinder may know more than a database server that lags
		v, err = s.rereadAfterLag(ctx, before.ID)
	}
	switch {
	case err != nil:
		return refusal
	case v.Type == target.Name:
		return nil
	case v.Status.Meaning().Extend == volume.Wait:
		return volume.Errorf(volume.Busy, "volume %s changed to status %s before Cinder could change its type; the driver retries: %w", v.ID, v.Status, refusal).Op("modify")
	}
	return refusal
}

// rereadAfterLag reads a volume again once reads show what Cinder knows now.
func (s *Service) rereadAfterLag(ctx context.Context, id volume.ID) (volume.Volume, error) {
	if volume.Sleep(ctx, volume.Lag) != nil {
		return volume.Volume{}, volume.Interrupted(ctx, "volume %s", id)
	}
	return s.cloud.Volume(ctx, id)
}

// awaitType waits until a retype has ended. Cinder sets the status retyping before it answers 202. Where it gives up, it restores the old
// status, mostly without a message: only the type shows the outcome, once reads show that.
func (s *Service) awaitType(ctx context.Context, before volume.Volume, target volume.Type, migrate bool) error {
	v, err := s.volumes.AwaitEffect(ctx, before.ID, "become of type "+target.Name, observe.ForExtend, func(v volume.Volume) bool { return v.Type == target.Name })
	switch {
	case err != nil:
		return volume.AfterWrite(err)
	case v.Type == target.Name && v.Status.Meaning().Extend == volume.Proceed:
		return nil
	}
	reason := s.volumes.FailureReason(ctx, v.ID)
	switch {
	case v.Status.Meaning().Extend != volume.Proceed:
		return volume.AfterWrite(volume.Errorf(volume.Failed, "volume %s went to status %s while Cinder changed its type from %s to %s%s",
			v.ID, v.Status, before.Type, target.Name, reason).Cause(cause.VolumeModifyError).Op("modify"))
	case migrate:
		return volume.Errorf(volume.Failed, "Cinder accepted the type change of volume %s from %s to %s, but did not carry it out, although it may move the volume%s. "+
			"Cinder cannot move a volume that has snapshots or replicas, nor any volume if no backend of the new type has room. It cannot move a volume in use if Nova does not replace its disk. "+
			"On Ceph, it cannot encrypt or decrypt one. An administrator of the cloud finds the reason in the logs of Cinder",
			v.ID, v.Type, target.Name, reason).Cause(cause.VolumeModifyError).Op("modify")
	}
	return volume.Errorf(volume.InvalidArgument, "Cinder accepted the type change of volume %s from %s to %s, but did not carry it out%s. "+
		"If the new type is on another backend, allow the move with parameter %s: %s", v.ID, v.Type, target.Name, reason, contract.ParameterPolicy, contract.PolicyOnDemand).Cause(cause.VolumeModifyError).Op("modify")
}
