package provision

import (
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Change is what shall become of a volume. What is empty stays as it is.
type Change struct {
	// Type is the name or id of a volume type.
	Type string
	// Migrate allows Cinder to copy the volume to another backend for that type.
	Migrate bool
	// Metadata is what the volume's metadata shall hold besides what it has.
	Metadata map[string]string
}

// Modify changes a volume and returns once Cinder shows the change. Nothing is written where the volume is so already.
//
// The type comes first: it is what can be impossible, and then nothing was changed. InvalidArgument where the volume cannot become
// what is asked, Conflict where it cannot as long as it is in use.
func (s *Service) Modify(ctx context.Context, id volume.ID, c Change) error {
	if !id.Exists() {
		return volume.NoVolume(id).Op("modify")
	}
	unlock, err := s.locks.Take(inflight.VolumeKey(id), "modify")
	if err != nil {
		return err
	}
	defer unlock()
	s.recent.Take(id) // what is changed looks different afterwards
	v, err := s.cloud.Volume(ctx, id)
	if err != nil {
		return err
	}
	if v.Status.Meaning().Extend == volume.BeingDeleted {
		return volume.Errorf(volume.NotFound, "volume %s is being deleted", id).Op("modify")
	}
	written := false
	if c.Type != "" && v.Type != c.Type {
		if written, err = s.retype(ctx, v, c); err != nil {
			return err
		}
	}
	missing := map[string]string{}
	for key, value := range c.Metadata {
		if has, ok := v.Metadata[key]; !ok || has != value {
			missing[key] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err = s.cloud.AddMetadata(ctx, id, missing)
	if written {
		err = volume.AfterWrite(err)
	}
	return err
}

// retype gives v the type that c names. It reports whether Cinder was asked to: not where v is of that type under another name.
func (s *Service) retype(ctx context.Context, v volume.Volume, c Change) (asked bool, err error) {
	wanted, err := s.typeNamed(ctx, c.Type)
	if err != nil {
		return false, err
	}
	if v.Status.Meaning().Extend == volume.Wait { // a retype under way among others, perhaps the one that is asked for
		v, err = s.volumes.Await(ctx, v.ID, "settle before its type is changed", func(v volume.Volume, ok bool) (bool, error) {
			if !ok {
				return true, volume.NoVolume(v.ID)
			}
			return v.Status.Meaning().Extend != volume.Wait, nil
		})
		if err != nil {
			return false, err
		}
	}
	switch {
	case v.Type == wanted.Name:
		return false, nil
	case v.Status.Meaning().Extend == volume.BeingDeleted:
		return false, volume.Errorf(volume.NotFound, "volume %s is being deleted", v.ID).Op("modify")
	case v.Status.Meaning().Extend != volume.Proceed:
		return false, volume.Errorf(volume.Conflict, "volume %s is in status %s%s; its type cannot be changed until an administrator resets that",
			v.ID, v.Status, s.volumes.FailureReason(ctx, v.ID)).Op("modify")
	}
	if err := s.cloud.Retype(ctx, v.ID, wanted.ID, c.Migrate); err != nil {
		return s.unretypable(ctx, v, wanted, err)
	}
	return true, s.retyped(ctx, v, wanted, c.Migrate)
}

// typeNamed finds the type of a name or id. Cinder's database may ignore the case of names.
func (s *Service) typeNamed(ctx context.Context, name string) (volume.Type, error) {
	types, err := s.cloud.Types(ctx)
	if err != nil {
		return volume.Type{}, err
	}
	return findType(types, name)
}

func findType(types []volume.Type, name string) (volume.Type, error) {
	for _, same := range []func(volume.Type) bool{
		func(t volume.Type) bool { return t.Name == name || strings.EqualFold(t.ID, name) },
		func(t volume.Type) bool { return strings.EqualFold(t.Name, name) },
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
	if near, ok := contract.Nearest(name, names); ok {
		hint = "; did you mean " + near + "?"
	}
	return volume.Type{}, volume.Errorf(volume.InvalidArgument, "the project may use no volume type %q%s", name, hint)
}

// unretypable turns Cinder's refusal into what the volume's state says about it: one text stands for a status that has changed, a
// type that has, a migration under way, a group and front-end QoS of a volume in use.
func (s *Service) unretypable(ctx context.Context, before volume.Volume, wanted volume.Type, refusal error) (asked bool, err error) {
	if !volume.Is(refusal, volume.Conflict) || volume.MayHaveWritten(refusal) {
		return false, refusal
	}
	switch v, err := s.cloud.Volume(ctx, before.ID); {
	case err != nil:
		return false, refusal
	case v.Type == wanted.Name:
		return false, nil
	case v.Status.Meaning().Extend == volume.Wait:
		return false, volume.Errorf(volume.Busy, "volume %s is in status %s and cannot get another type right now; try again: %w", v.ID, v.Status, refusal).Op("modify")
	}
	return false, refusal
}

// retyped waits until a retype has ended. Cinder puts a volume into retyping before it answers 202, and back into the status it was
// in when it gives up, mostly without a message: only the type tells.
func (s *Service) retyped(ctx context.Context, before volume.Volume, wanted volume.Type, migrate bool) error {
	v, err := s.volumes.Await(ctx, before.ID, "be of type "+wanted.Name, func(v volume.Volume, ok bool) (bool, error) {
		if !ok {
			return true, volume.NoVolume(before.ID)
		}
		return v.Status.Meaning().Extend != volume.Wait, nil
	})
	switch {
	case err != nil:
		return volume.AfterWrite(err)
	case v.Type == wanted.Name && v.Status.Meaning().Extend == volume.Proceed:
		return nil
	case v.Status.Meaning().Extend != volume.Proceed:
		return volume.AfterWrite(volume.Errorf(volume.Failed, "volume %s went to status %s while its type was changed from %s to %s%s",
			v.ID, v.Status, before.Type, wanted.Name, s.volumes.FailureReason(ctx, v.ID)).Op("modify"))
	case migrate:
		return volume.Errorf(volume.Failed, "Cinder took the request to change the type of volume %s from %s to %s and left it as it was, although it might move it%s; "+
			"it moves no volume that has snapshots or replicas, or for which no backend of the type has room; an administrator sees more",
			v.ID, v.Type, wanted.Name, s.volumes.FailureReason(ctx, v.ID)).Op("modify")
	}
	return volume.Errorf(volume.InvalidArgument, "Cinder took the request to change the type of volume %s from %s to %s and left it as it was%s; where that takes another "+
		"backend, allow the move with the parameter %s: %s", v.ID, v.Type, wanted.Name, s.volumes.FailureReason(ctx, v.ID), contract.ParameterPolicy, contract.PolicyOnDemand).Op("modify")
}
