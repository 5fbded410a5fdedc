package provision

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// CreateSpec is what a new volume shall be.
type CreateSpec struct {
	// Name is the request's identity: two wishes of one name are the same volume.
	Name string
	Size volume.Range
	// Type is the name or id of a volume type; empty means the cloud's default type.
	Type string
	// Zone is the one volume zone that will do; empty means that Zones decide.
	Zone string
	// Zones are the volume zones that will do, best first, by name or label; none means any, which is Cinder's default.
	Zones []string
	// AnyZone says that the volume may end up in another zone than Zones all the same, where Cinder falls back to its default.
	AnyZone bool
	// Shared says that several servers will use the volume at a time, which takes a multiattach type.
	Shared bool
	// Source is the volume to clone, Snapshot the snapshot or backup to restore; at most one of them.
	Source   volume.ID
	Snapshot volume.SnapshotID
	// Metadata is added to what every volume of the driver carries.
	Metadata map[string]string
	// Hints are for Cinder's scheduler.
	Hints contract.Hints
	// MoreHints reads further hints; nil knows none. It is asked only when a volume is to be made, and nothing is left of the name.
	MoreHints func(ctx context.Context) (contract.Hints, error)
	// HintsNamespace is the namespace whose users write MoreHints: they may name the volumes of its claims only.
	HintsNamespace string
}

// Create makes the volume of a wish, or finds it where an earlier call made it, and returns it once Cinder says that it exists.
//
// The outcome does not rest on memory: whatever an earlier call, another replica or a lost answer left behind is found by name.
// Of several volumes of that name the oldest counts, then the lowest id. A volume that Cinder could not make is removed before
// the failure is told, so that a retry begins anew. Zones that will do are tried in turn, each only once nothing is left of the
// attempt before; NotHere when none could have the volume. A create whose answer was lost is not sent again for createHoldOff. Errors are
// marked AfterWrite wherever a volume of that name exists, may exist, or may still be created by a request without an answer.
func (s *Service) Create(ctx context.Context, w CreateSpec) (volume.Volume, error) {
	size, err := s.check(w)
	if err != nil {
		return volume.Volume{}, err
	}
	unlock, err := s.locks.Take("volume "+w.Name, "create")
	if err != nil {
		return volume.Volume{}, volume.AfterWrite(err)
	}
	defer unlock()
	return s.findOrMake(ctx, w, size)
}

// findOrMake finds the volume of a wish or makes it, in the zones that will do one after the other.
func (s *Service) findOrMake(ctx context.Context, w CreateSpec, size volume.Size) (volume.Volume, error) {
	found, err := s.resource.Named(ctx, w.Name)
	if err != nil {
		return volume.Volume{}, err
	}
	var failed error // in the zone that was tried last
	tried := ""
	if len(found) > 0 {
		tried = found[0].Zone
		v, err := s.settle(ctx, w, found, "")
		if err = s.resource.FinalOrRetryable(ctx, w.Name, err); !notHere(err) {
			return v, err
		}
		failed = err
	}
	if err := s.resource.HeldOff(w.Name); err != nil {
		return volume.Volume{}, err
	}
	p, err := s.place(ctx, w, size)
	if err != nil {
		return volume.Volume{}, s.resource.FinalOrRetryable(ctx, w.Name, err)
	}
	for _, zone := range p.zones {
		if zone != "" && zone == tried {
			continue // an earlier call's attempt there has just failed
		}
		p.options.Zone = zone
		v, err := s.create(ctx, w, p.options)
		if err = s.resource.FinalOrRetryable(ctx, w.Name, err); !notHere(err) {
			return v, err
		}
		s.log.InfoContext(ctx, "a zone cannot have a volume", "name", w.Name, "zone", zone, "reason", err)
		failed = err
	}
	return volume.Volume{}, p.nowhere(w, failed)
}

// notHere reports whether another zone may be tried: this one cannot have the volume, and nothing is left in it.
func notHere(err error) bool { return volume.Is(err, volume.NotHere) && !volume.MayHaveWritten(err) }

// settle waits for the volume that counts among those of the wished name, and removes what must not stay. Made is the one that
// this call made, if it is among them. NotHere when the volume could not be made in its zone, or came to be in one that will not
// do; it is gone then.
func (s *Service) settle(ctx context.Context, w CreateSpec, found []volume.Volume, made volume.ID) (volume.Volume, error) {
	v := found[0]
	// Nobody was told of a volume that is not made yet, but by drivers that leave no request token.
	untold := v.ID == made || s.ours(v) && v.Status.Meaning().Create == volume.Wait
	differs := matches(w, v)
	if differs == nil {
		var err error
		if v, err = s.finished(ctx, w, v); err != nil {
			return volume.Volume{}, err
		}
		differs = matches(w, v) // what backup it is of is sure only now
	}
	if err := s.resource.DeleteYounger(ctx, found, string(made)); err != nil {
		return volume.Volume{}, err
	}
	if differs != nil {
		return volume.Volume{}, s.other(ctx, v, made, differs)
	}
	if v.BackupID != "" && !s.owner.Marked(v.Name, v.Metadata) {
		if err := s.relabel(ctx, v, w); err != nil {
			return volume.Volume{}, err
		}
	}
	if untold && !w.allows(v.Zone) {
		return volume.Volume{}, s.misplaced(ctx, w, v)
	}
	if w.Shared && !v.Multiattach {
		return volume.Volume{}, s.notShared(ctx, v, made)
	}
	return v, nil
}

// other refuses a volume that is not what was wished for. One that this very call has asked for goes: nobody was told of it, and nobody
// would come back for it.
func (s *Service) other(ctx context.Context, v volume.Volume, made volume.ID, differs error) error {
	if v.ID != made {
		return differs
	}
	if err := s.removable(ctx, v); err != nil {
		return volume.AfterWrite(err)
	}
	if err := s.resource.Discard(ctx, v, "Cinder made something else than it was asked for"); err != nil {
		return volume.AfterWrite(err)
	}
	return volume.Errorf(volume.Failed, "Cinder made something else than it was asked for, which was removed: %w", differs).Op("create")
}

// misplaced removes a volume that Cinder silently made in another zone than asked, as it does with
// allow_availability_zone_fallback: nodes for which it was wished may not reach it.
func (s *Service) misplaced(ctx context.Context, w CreateSpec, v volume.Volume) error {
	if err := s.resource.Discard(ctx, v, "Cinder made it in zone "+v.Zone+" instead"); err != nil {
		return volume.AfterWrite(err)
	}
	return volume.Errorf(volume.NotHere, "Cinder made volume %s in zone %s instead of %s; it was removed", v.ID, v.Zone, strings.Join(w.Zones, " or ")).Op("create")
}

func (s *Service) check(w CreateSpec) (volume.Size, error) {
	if w.Name == "" {
		return 0, volume.Errorf(volume.InvalidArgument, "a volume needs a name").Op("create")
	}
	return w.Size.Smallest()
}

// create sends the create request, waits for the volume, and reads again who has the name, since another replica may have created one too.
func (s *Service) create(ctx context.Context, w CreateSpec, o volume.CreateOptions) (volume.Volume, error) {
	now := time.Now()
	o.Metadata = maps.Clone(o.Metadata)
	o.Metadata[contract.MetadataSent] = idempotent.FormatSent(now)
	if o.BackupID != "" {
		o.Description = contract.DescriptionOfRestored(s.owner.Token(w.Name), now)
	}
	v, err := s.cloud.CreateVolume(ctx, o)
	if volume.MayHaveWritten(err) {
		return volume.Volume{}, s.resource.Lost(w.Name, err)
	}
	if err != nil { // refused, or never sent
		return volume.Volume{}, err
	}
	// Only then are the names read: what another replica ordered before it could see this volume is listed by now.
	if v, err = s.finished(ctx, w, v); err != nil {
		return volume.Volume{}, err
	}
	found, err := s.resource.Named(ctx, w.Name)
	if err != nil {
		return volume.Volume{}, err
	}
	if !slices.ContainsFunc(found, func(f volume.Volume) bool { return f.ID == v.ID }) {
		return volume.Volume{}, volume.AfterWrite(volume.Errorf(volume.Busy, "volume %s was deleted by someone else while it was being created", v.ID).Op("create"))
	}
	return s.settle(ctx, w, found, v.ID)
}

// matches says how a volume of the wished name differs from the wish, as an Incompatible error. The zone is not compared:
// Cinder may choose another, and the volume's is what counts. While a volume is made it may be restored from any backup: for a
// moment its metadata, which tells the backup, is that of the volume that was backed up. Names and ids are compared as Cinder's
// database may find them, without regard to case.
func matches(w CreateSpec, v volume.Volume) error {
	differs := func(what, is, want string) error {
		return volume.Errorf(volume.Incompatible, "volume %s is named %s already and its %s is %q, not %q", v.ID, w.Name, what, is, want).Op("create")
	}
	switch {
	case !w.Size.Allows(v.Size):
		return volume.Errorf(volume.Incompatible, "volume %s is named %s already and has %s, which is not within %s and %s", v.ID, w.Name, v.Size, w.Size.Required, w.Size.Limit).Op("create")
	case w.Type != "" && !volume.ID(w.Type).Exists() && !strings.EqualFold(v.Type, w.Type):
		return differs("type", v.Type, w.Type)
	case !strings.EqualFold(string(v.SourceID), string(w.Source)):
		return differs("source volume", string(v.SourceID), string(w.Source))
	case strings.EqualFold(cmp.Or(v.SnapshotID, v.BackupID), string(w.Snapshot)):
	case v.SnapshotID == "" && w.Snapshot != "" && v.Status.Meaning().Create == volume.Wait:
	default:
		return differs("snapshot or backup", cmp.Or(v.SnapshotID, v.BackupID), string(w.Snapshot))
	}
	return nil
}

// finished waits until Cinder has made v. A volume it could not make is removed if it is ours.
func (s *Service) finished(ctx context.Context, w CreateSpec, v volume.Volume) (volume.Volume, error) {
	if v.Status.Meaning().Create == volume.Wait {
		id, exists := v.ID, false
		var err error
		v, err = s.volumes.Await(ctx, id, "become available", func(v volume.Volume, ok bool) (bool, error) {
			exists = ok
			return !ok || v.Status.Meaning().Create != volume.Wait, nil
		})
		if err != nil {
			return volume.Volume{}, volume.AfterWrite(err)
		}
		if !exists {
			return volume.Volume{}, volume.AfterWrite(volume.Errorf(volume.Busy, "volume %s was deleted by someone else while it was being created", id).Op("create"))
		}
	}
	switch v.Status.Meaning().Create {
	case volume.Proceed:
		s.recent.Put(v)
		return v, nil
	case volume.BeingDeleted:
		return volume.Volume{}, volume.AfterWrite(volume.Errorf(volume.Busy, "volume %s is being deleted by someone else", v.ID).Op("create"))
	default:
		return volume.Volume{}, s.failed(ctx, w, v)
	}
}

// relabel gives a restored volume its metadata again: Cinder replaces it with that of the volume that was backed up, which may be
// another cluster's.
func (s *Service) relabel(ctx context.Context, v volume.Volume, w CreateSpec) error {
	return volume.AfterWrite(s.cloud.AddMetadata(ctx, v.ID, s.createMetadata(w)))
}

// failed tells why Cinder could not make v, and removes it where it is ours.
func (s *Service) failed(ctx context.Context, w CreateSpec, v volume.Volume) error {
	reason := s.volumes.FailureReason(ctx, v.ID)
	if reason == "" && v.BackupID != "" {
		reason = s.volumes.FailureReason(ctx, volume.ID(v.BackupID)) // what goes wrong with a restore is told of the backup
	}
	if !s.ours(v) {
		return volume.AfterWrite(volume.Errorf(volume.Failed, "volume %s is named %s and in status %s%s; it was not made by this driver for this request, so delete it by hand",
			v.ID, v.Name, v.Status, reason).Op("create"))
	}
	if err := s.resource.Discard(ctx, v, "Cinder could not make it"); err != nil {
		return volume.AfterWrite(volume.Errorf(volume.KindOf(err), "Cinder could not make volume %s%s; removing it failed too: %w", v.ID, reason, err))
	}
	return volume.Errorf(kindOfFailure(reason, w.zonal()), "Cinder could not make volume %s%s; the failed volume was removed", v.ID, reason).Op("create")
}

// kindOfFailure is NotHere where the zone had no room (Cinder's message_field.py, detail 003) and another will do, Exhausted where
// no other will or a quota is full (006). Failed otherwise, also where a backend failed (012) and the scheduler then found no other.
func kindOfFailure(reason string, zonal bool) volume.Kind {
	switch {
	case strings.Contains(reason, "Driver failed"):
		return volume.Failed
	case strings.Contains(reason, "Not enough quota resource"):
		return volume.Exhausted
	case strings.Contains(reason, "Could not find any available weighted backend") && zonal:
		return volume.NotHere
	case strings.Contains(reason, "Could not find any available weighted backend"):
		return volume.Exhausted
	}
	return volume.Failed
}

// removable waits until Cinder takes a DELETE of a volume of ours, or never will.
func (s *Service) removable(ctx context.Context, v volume.Volume) error {
	if v.Status.Meaning().Delete != volume.Wait {
		return nil
	}
	_, err := s.volumes.Await(ctx, v.ID, "become removable", func(v volume.Volume, ok bool) (bool, error) {
		return !ok || v.Status.Meaning().Delete != volume.Wait, nil
	})
	return err
}

// notShared refuses a volume that only one server can use where several shall. The volume goes if this call made it, or its metadata
// says that an earlier one did for the same wish, which nobody was told of; any other may have been wished for without sharing.
func (s *Service) notShared(ctx context.Context, v volume.Volume, made volume.ID) error {
	if v.ID != made && v.Metadata[contract.MetadataShared] == "" || !s.ours(v) {
		return volume.Errorf(volume.Incompatible, "volume %s of type %s is named %s already and cannot be attached to several servers", v.ID, v.Type, v.Name).Op("create")
	}
	if err := s.resource.Discard(ctx, v, "its type does not allow several servers"); err != nil {
		return volume.AfterWrite(err)
	}
	return volume.Errorf(volume.InvalidArgument, "volumes of type %s cannot be attached to several servers; name a type with the extra spec multiattach in the parameter %s of the class", v.Type, contract.ParameterType).Op("create")
}
