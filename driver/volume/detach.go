package volume

import (
	"context"
	"errors"
	"slices"
)

// Detach detaches a volume from a server, or from every server when none is named, and returns once Cinder no longer shows it
// there and Nova's list for the server agrees. What is not attached, and a volume that does not exist, is detached.
func (s *Volumes) Detach(ctx context.Context, id ID, server ServerID) error {
	if !id.Exists() || server != "" && !server.Exists() {
		return nil // no such volume, or no such server to have it
	}
	unlock, err := s.locks.take("volume "+string(id), "detach")
	if err != nil {
		return err
	}
	defer unlock()
	v, err := s.cloud.Volume(ctx, id)
	if Is(err, NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if server != "" {
		return s.detach(ctx, v, server)
	}
	var all []error
	for _, a := range v.Attachments {
		all = append(all, s.detach(ctx, v, a.Server))
	}
	return firstOf(all)
}

// firstOf is the first error, with the others behind it in its text.
func firstOf(all []error) error {
	all = slices.DeleteFunc(all, func(err error) bool { return err == nil })
	if len(all) < 2 {
		return errors.Join(all...)
	}
	return Errorf(KindOf(all[0]), "%w", errors.Join(all...))
}

func (s *Volumes) detach(ctx context.Context, v Volume, server ServerID) error {
	if !v.AttachedTo(server) {
		// A volume that is reserved or attaching shows no server yet, so Nova is asked too.
		listed, err := s.listed(ctx, v.ID, server)
		if err != nil || !listed {
			return err
		}
	}
	v, err := s.steady(ctx, v)
	if err != nil {
		return err
	}
	if v.AttachedTo(server) {
		if err := s.cloud.Detach(ctx, server, v.ID); err != nil {
			if err := s.undetachable(ctx, v.ID, server, err); err != nil {
				return err
			}
		}
		if err := s.released(ctx, v.ID, server); err != nil {
			return AfterWrite(err)
		}
	}
	return AfterWrite(s.unlisted(ctx, v.ID, server))
}

// steady reads the volume once no attach or detach of it is under way, to any server: Nova refuses another one until then. A
// volume that is gone has no attachments.
func (s *Volumes) steady(ctx context.Context, v Volume) (Volume, error) {
	changing := func(v Volume) bool {
		return v.Status == Detaching || v.Status == Attaching || v.Status == Reserved
	}
	if !changing(v) {
		return v, nil
	}
	exists := false
	latest, err := s.until(ctx, v.ID, "come to rest", func(v Volume, ok bool) (bool, error) {
		exists = ok
		return !ok || !changing(v), nil
	})
	if err == nil && !exists {
		return Volume{ID: v.ID}, nil
	}
	return latest, err
}

// undetachable is nil where Nova's refusal means that the detach is under way or done, so that only its end is to be awaited.
func (s *Volumes) undetachable(ctx context.Context, id ID, server ServerID, refusal error) error {
	switch KindOf(refusal) {
	case NotFound: // no such server, or not attached there in Nova's eyes; Cinder has the last word
		return nil
	case InvalidArgument, Conflict, Busy:
	default:
		return refusal
	}
	v, err := s.cloud.Volume(ctx, id)
	switch {
	case Is(err, NotFound):
		return nil
	case err != nil:
		return refusal
	case v.Status == Detaching || !v.AttachedTo(server) && v.Status == Available:
		return nil
	}
	return Errorf(Busy, "volume %s is in status %s and cannot be detached from server %s right now; try again: %w", id, v.Status, server, refusal).Op("detach")
}

// released waits until Cinder no longer shows the volume at the server. Nova puts a volume into detaching before it answers: one
// that is in use there again was kept by the server's host. A volume with several servers is in use either way.
func (s *Volumes) released(ctx context.Context, id ID, server ServerID) error {
	back := false
	_, err := s.until(ctx, id, "leave server "+string(server), func(v Volume, ok bool) (bool, error) {
		left := !ok || !v.AttachedTo(server)
		back = !left && v.Status == InUse && !v.Multiattach
		return left || back, nil
	})
	if err != nil || !back {
		return err
	}
	if _, err := s.cloud.Server(ctx, server); Is(err, NotFound) {
		return Errorf(Busy, "server %s no longer exists, but Cinder still shows volume %s attached to it; if that stays, an administrator must delete the attachment", server, id).Op("detach")
	}
	return Errorf(Failed, "volume %s is still in use at server %s after the detach; see nova-compute's log there", id, server).Op("detach")
}

// listed reports whether Nova lists the volume for the server. A server that does not exist has none.
func (s *Volumes) listed(ctx context.Context, id ID, server ServerID) (bool, error) {
	attachments, err := s.cloud.Attachments(ctx, server)
	if Is(err, NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(attachments, func(a Attachment) bool { return a.Volume == id }), nil
}

// unlisted waits until Nova's list for the server agrees that the volume is gone; each fresh reading of the volume is the clock.
func (s *Volumes) unlisted(ctx context.Context, id ID, server ServerID) error {
	for {
		listed, err := s.listed(ctx, id, server)
		if err != nil || !listed {
			return err
		}
		if _, err := s.until(ctx, id, "leave Nova's list for server "+string(server), func(Volume, bool) (bool, error) { return true, nil }); err != nil {
			return err
		}
	}
}
