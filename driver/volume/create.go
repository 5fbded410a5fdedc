package volume

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Wish is what a new volume shall be.
type Wish struct {
	// Name is the request's identity: two wishes of one name are the same volume.
	Name string
	Size Range
	// Type is the name or id of a volume type; empty means the cloud's default type.
	Type string
	// Zones are the volume zones that will do, best first; none means any, which is Cinder's default.
	Zones []string
	// Shared says that several servers will use the volume at a time, which takes a multiattach type.
	Shared bool
	// Source is the volume to clone, Snapshot the snapshot or backup to restore; at most one of them.
	Source   ID
	Snapshot SnapshotID
	// Metadata is added to what every volume of the driver carries.
	Metadata map[string]string
}

// Create makes the volume of a wish, or finds it where an earlier call made it, and returns it once Cinder says that it exists.
//
// The outcome does not rest on memory: whatever an earlier call, another replica or a lost answer left behind is found by name.
// Of several volumes of that name the oldest counts, then the lowest id. A volume that Cinder could not make is removed before
// the failure is told, so that a retry begins anew. Errors are marked AfterWrite wherever a volume may exist.
func (s *Volumes) Create(ctx context.Context, w Wish) (Volume, error) {
	size, err := s.check(w)
	if err != nil {
		return Volume{}, err
	}
	unlock, err := s.locks.take("volume "+w.Name, "create")
	if err != nil {
		return Volume{}, AfterWrite(err)
	}
	defer unlock()
	found, err := s.named(ctx, w.Name)
	if err != nil {
		return Volume{}, err
	}
	var made ID
	if len(found) == 0 {
		if made, found, err = s.order(ctx, w, size); err != nil {
			return Volume{}, err
		}
	}
	v := found[0]
	differs := matches(w, v)
	if differs == nil {
		if v, err = s.finished(ctx, v); err != nil {
			return Volume{}, err
		}
		differs = matches(w, v) // what backup it is of is sure only now
	}
	if err := s.removeYounger(ctx, found, made); err != nil {
		return Volume{}, err
	}
	if differs != nil {
		return Volume{}, differs
	}
	if v.BackupID != "" && !s.ours(v) {
		if err := s.relabel(ctx, v, w); err != nil {
			return Volume{}, err
		}
	}
	if w.Shared && !v.Multiattach {
		return Volume{}, s.notShared(ctx, v, made)
	}
	return v, nil
}

func (s *Volumes) check(w Wish) (Size, error) {
	if w.Name == "" {
		return 0, Errorf(InvalidArgument, "a volume needs a name").Op("create")
	}
	return w.Size.Smallest()
}

// named reads the volumes of that name, oldest first, once those that are on their way out are gone. Its errors are marked
// AfterWrite: an earlier call may have left a volume.
func (s *Volumes) named(ctx context.Context, name string) ([]Volume, error) {
	for {
		found, err := s.cloud.VolumesNamed(ctx, name)
		if err != nil {
			return nil, AfterWrite(err)
		}
		i := slices.IndexFunc(found, func(v Volume) bool { return statuses[v.Status].create == leaving })
		if i < 0 {
			slices.SortFunc(found, func(a, b Volume) int {
				return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
			})
			return found, nil
		}
		if err := s.gone(ctx, found[i].ID); err != nil {
			return nil, AfterWrite(err)
		}
	}
}

// order asks Cinder for the volume and reads again who has the name, since another replica may have asked too.
func (s *Volumes) order(ctx context.Context, w Wish, size Size) (ID, []Volume, error) {
	o, err := s.place(ctx, w, size)
	if err != nil {
		return "", nil, err
	}
	o.Name, o.Type, o.Description, o.Metadata = w.Name, w.Type, contract.Description, s.metadata(w.Name, w.Metadata)
	v, err := s.cloud.CreateVolume(ctx, o)
	if err != nil && refused(err) {
		return "", nil, err
	}
	if err != nil {
		return "", nil, AfterWrite(err)
	}
	found, err := s.named(ctx, w.Name)
	if err != nil {
		return "", nil, err
	}
	if !slices.ContainsFunc(found, func(f Volume) bool { return f.ID == v.ID }) {
		return "", nil, AfterWrite(Errorf(Busy, "volume %s was deleted by someone else while it was being created", v.ID).Op("create"))
	}
	return v.ID, found, nil
}

// refused reports whether the cloud answered a request with a no, so that nothing can have come of it.
func refused(err error) bool {
	if MayHaveWritten(err) {
		return false
	}
	switch KindOf(err) {
	case InvalidArgument, NotFound, Conflict, OutOfRange, Exhausted, Unauthenticated, PermissionDenied, Unimplemented:
		return true
	}
	return false
}

// sameZone compares zones that may come from labels.
func sameZone(a, b string) bool { return contract.SanitizeZone(a) == contract.SanitizeZone(b) }

func first(zones []string) string {
	if len(zones) == 0 {
		return ""
	}
	return zones[0]
}

// matches says how a volume of the wished name differs from the wish, as an Incompatible error. The zone is not compared:
// Cinder may choose another, and the volume's is what counts. While a volume is made it may be restored from any backup: for a
// moment its metadata, which tells the backup, is that of the volume that was backed up.
func matches(w Wish, v Volume) error {
	differs := func(what, is, want string) error {
		return Errorf(Incompatible, "volume %s is named %s already and its %s is %q, not %q", v.ID, w.Name, what, is, want).Op("create")
	}
	switch {
	case !w.Size.Allows(v.Size):
		return Errorf(Incompatible, "volume %s is named %s already and has %s, which is not within %s and %s", v.ID, w.Name, v.Size, w.Size.Required, w.Size.Limit).Op("create")
	case w.Type != "" && !isUUID(w.Type) && v.Type != w.Type:
		return differs("type", v.Type, w.Type)
	case v.SourceID != w.Source:
		return differs("source volume", string(v.SourceID), string(w.Source))
	case cmp.Or(v.SnapshotID, v.BackupID) == string(w.Snapshot):
	case v.SnapshotID == "" && w.Snapshot != "" && statuses[v.Status].create == wait:
	default:
		return differs("snapshot or backup", cmp.Or(v.SnapshotID, v.BackupID), string(w.Snapshot))
	}
	return nil
}

// finished waits until Cinder has made v. A volume it could not make is removed if it is ours.
func (s *Volumes) finished(ctx context.Context, v Volume) (Volume, error) {
	if statuses[v.Status].create == wait {
		id, exists := v.ID, false
		var err error
		v, err = s.until(ctx, id, "become available", func(v Volume, ok bool) (bool, error) {
			exists = ok
			return !ok || statuses[v.Status].create != wait, nil
		})
		if err != nil {
			return Volume{}, AfterWrite(err)
		}
		if !exists {
			return Volume{}, AfterWrite(Errorf(Busy, "volume %s was deleted by someone else while it was being created", id).Op("create"))
		}
	}
	switch statuses[v.Status].create {
	case proceed:
		return v, nil
	case leaving:
		return Volume{}, AfterWrite(Errorf(Busy, "volume %s is being deleted by someone else", v.ID).Op("create"))
	default:
		return Volume{}, s.failed(ctx, v)
	}
}

// relabel gives a restored volume its metadata again: Cinder replaces it with that of the volume that was backed up, which may be
// another cluster's.
func (s *Volumes) relabel(ctx context.Context, v Volume, w Wish) error {
	return AfterWrite(s.cloud.AddMetadata(ctx, v.ID, s.metadata(w.Name, w.Metadata)))
}

// failed tells why Cinder could not make v, and removes it where it is ours.
func (s *Volumes) failed(ctx context.Context, v Volume) error {
	reason := s.reason(ctx, v.ID)
	if reason == "" && v.BackupID != "" {
		reason = s.reason(ctx, ID(v.BackupID)) // what goes wrong with a restore is told of the backup
	}
	if !s.ours(v) {
		return AfterWrite(Errorf(Failed, "volume %s is named %s and in status %s%s; it was not made by this driver for this request, so delete it by hand",
			v.ID, v.Name, v.Status, reason).Op("create"))
	}
	if err := s.discard(ctx, v, "Cinder could not make it"); err != nil {
		return AfterWrite(Errorf(KindOf(err), "Cinder could not make volume %s%s; removing it failed too: %w", v.ID, reason, err))
	}
	return Errorf(kindOfFailure(reason), "Cinder could not make volume %s%s; the failed volume was removed", v.ID, reason).Op("create")
}

// kindOfFailure is Exhausted where there was no room (Cinder's message_field.py, details 003 and 006), so that another zone may
// be tried. Failed otherwise, also where a backend failed (012) and the scheduler then found no other.
func kindOfFailure(reason string) Kind {
	if strings.Contains(reason, "Driver failed") {
		return Failed
	}
	for _, full := range []string{"Could not find any available weighted backend", "Not enough quota resource"} {
		if strings.Contains(reason, full) {
			return Exhausted
		}
	}
	return Failed
}

// discard deletes a volume of ours and waits until it is gone.
func (s *Volumes) discard(ctx context.Context, v Volume, why string) error {
	s.o.Log.InfoContext(ctx, "removing a volume of our own", "volume", v.ID, "name", v.Name, "status", v.Status, "reason", why)
	if err := s.cloud.DeleteVolume(ctx, v.ID); err != nil && !Is(err, NotFound) {
		return err
	}
	return s.gone(ctx, v.ID)
}

// removeYounger removes the volumes that two replicas made at once, all but the one that counts. A volume that another call
// may have answered with is none of them: times have whole seconds, so only a strictly younger volume, or the very one that
// this call made, is surely nobody's.
func (s *Volumes) removeYounger(ctx context.Context, found []Volume, made ID) error {
	for _, v := range found[1:] {
		if !s.ours(v) || !v.CreatedAt.After(found[0].CreatedAt) && v.ID != made {
			continue
		}
		if statuses[v.Status].delete == wait {
			_, err := s.until(ctx, v.ID, "become removable as a duplicate", func(v Volume, ok bool) (bool, error) {
				return !ok || statuses[v.Status].delete != wait, nil
			})
			if err != nil {
				return AfterWrite(err)
			}
		}
		if err := s.discard(ctx, v, "volume "+string(found[0].ID)+" has the same name and is older"); err != nil {
			s.o.Log.WarnContext(ctx, "a duplicate volume stays", "volume", v.ID, "name", v.Name, "error", err)
		}
	}
	return nil
}

// notShared refuses a volume that only one server can use where several shall. The volume goes if this call made it; one that
// was there before may have been wished for without sharing.
func (s *Volumes) notShared(ctx context.Context, v Volume, made ID) error {
	if v.ID != made || !s.ours(v) {
		return Errorf(Incompatible, "volume %s of type %s is named %s already and cannot be attached to several servers", v.ID, v.Type, v.Name).Op("create")
	}
	if err := s.discard(ctx, v, "its type does not allow several servers"); err != nil {
		return AfterWrite(err)
	}
	return Errorf(InvalidArgument, "volumes of type %s cannot be attached to several servers; choose a type with the extra spec multiattach", v.Type).Op("create")
}
