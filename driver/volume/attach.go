package volume

import (
	"context"
	"time"
)

// Attach attaches a volume to a server and returns once Cinder shows it there.
//
// Conflict, before Nova is asked, when another server has it and its type does not allow two; NotFound when there is no such
// volume or server; Failed when the server's host could not attach it, which Nova tells by no error: the volume just goes back.
func (s *AttachService) Attach(ctx context.Context, id ID, server ServerID) (Volume, error) {
	if !id.Exists() {
		return Volume{}, NoVolume(id).Op("attach")
	}
	if !server.Exists() {
		return Volume{}, NoServer(server).Op("attach")
	}
	unlock, err := s.locks.Take(VolumeKey(id), "attach")
	if err != nil {
		return Volume{}, err
	}
	defer unlock()
	v, err := s.attach(ctx, id, server)
	if err == nil {
		s.lostAttaches.confirmed(id, server)
	}
	return v, err
}

// attach looks and acts by the table until the volume is there, or cannot be.
func (s *AttachService) attach(ctx context.Context, id ID, server ServerID) (Volume, error) {
	var err error
	v, free := s.recent.TakeAvailable(id)
	if !free {
		v, err = s.cloud.Volume(ctx, id)
	}
	var refusal error // Nova's, of what the volume's own state seemed to allow
	var doubt staleCandidate
	for looking := false; err == nil; {
		// The volume's status alone answers for what is free and for what is simply elsewhere.
		seen := observation{volume: v, server: server, novaSays: novaOmits}
		if looking || inTransition(v.Status) || v.Status == InUse && v.AttachedTo(server) {
			if seen, err = s.observe(ctx, v, server); err != nil {
				break
			}
		}
		switch next := attachAction(v.Status, seen.attachment.Status, seen.novaSays); {
		case next == done:
			return v, nil
		case next == send, next == attachedElsewhere && v.Status == InUse && v.Multiattach:
			if refusal != nil {
				return Volume{}, refusal
			}
			if err := s.heldOff(id, server); err != nil {
				return Volume{}, err
			}
			if refusal = s.askToAttach(ctx, v, server); refusal == nil {
				if v, err = s.attached(ctx, id, server); err == nil {
					s.recent.Put(v)
				}
				return v, AfterWrite(err)
			}
			if !RefusedByState(refusal) {
				return Volume{}, s.unattachable(ctx, server, refusal)
			}
			looking = true
			if v, err = s.cloud.Volume(ctx, id); err != nil {
				return Volume{}, refusal
			}
			if free { // it was a moment ago: that it is refused now is no contradiction
				refusal, free = nil, false
			}
		case next == waitForChange, next == attachedElsewhere && inTransition(v.Status):
			refusal = nil
			v, err = s.awaitChange(ctx, seen, "become attachable")
		case next == waitForNova:
			refusal = nil
			v, err = s.readAfter(ctx, seen, novaPollInterval)
		case next == deleteStale, next == conflict:
			v, err = s.resolveStale(ctx, &doubt, seen, next)
		default:
			return Volume{}, s.notAttachable(ctx, seen, next)
		}
	}
	return Volume{}, WithOp(err, "attach")
}

func (s *AttachService) askToAttach(ctx context.Context, v Volume, server ServerID) error {
	return s.askNova(ctx, "attach", v.ID, server, func(ctx context.Context) error {
		sent := time.Now()
		s.lostAttaches.resends(v.ID, server)
		err := s.cloud.Attach(ctx, server, v)
		if MayHaveWritten(err) {
			s.lostAttaches.lost(v.ID, server, sent)
		}
		return err
	})
}

// notAttachable is the error of what an attach cannot go on with.
func (s *AttachService) notAttachable(ctx context.Context, seen observation, why action) error {
	v := seen.volume
	switch why {
	case attachedElsewhere:
		return Errorf(Conflict, "volume %s is attached to %s and its type allows one server only; detach it there first", v.ID, v.Holders()).Op("attach")
	case volumeDeleting:
		return Errorf(NotFound, "volume %s is being deleted", v.ID).Op("attach")
	case serverNotFound:
		return NoServer(seen.server).Op("attach")
	case novaSilent:
		return seen.novaUnavailable("attach")
	default:
		return Errorf(Conflict, "volume %s is in status %s%s; it cannot be attached until an administrator resets that", v.ID, v.Status, s.volumes.FailureReason(ctx, v.ID)).Op("attach")
	}
}

// inUseAt reports whether an attachment of v to server is complete and not about to end.
func inUseAt(v Volume, server ServerID) bool { return v.Status == InUse && v.AttachedTo(server) }

// attached waits until Cinder shows the volume at the server. Nova has answered 200, and the volume was reserved before that:
// one that is available again was given up by the server's host. So was one that is in use elsewhere, once Cinder has no record
// that it is on its way to this server.
func (s *AttachService) attached(ctx context.Context, id ID, server ServerID) (Volume, error) {
	for {
		v, err := s.volumes.Await(ctx, id, "become attached to server "+string(server), func(v Volume, ok bool) (bool, error) {
			switch {
			case !ok:
				return true, NoVolume(id)
			case v.Status == InUse:
				return true, nil
			case v.Status == Available:
				return true, givenUp(id, server)
			case v.Status.Meaning().Attach == Refuse:
				return true, Errorf(Failed, "volume %s went to status %s while it was being attached to server %s", id, v.Status, server).Op("attach")
			}
			return false, nil
		})
		if err != nil || inUseAt(v, server) {
			return v, err
		}
		if err := s.onItsWay(ctx, v, server); err != nil {
			return v, err
		}
		if v, err = s.readAfter(ctx, observation{volume: v, server: server}, novaPollInterval); err != nil || inUseAt(v, server) {
			return v, err
		}
	}
}

func givenUp(id ID, server ServerID) *Error {
	return Errorf(Failed, "Nova took the request, but the host of server %s could not attach volume %s and gave it back without a reason; see nova-compute's log there",
		server, id).Op("attach")
}

// onItsWay is an error unless Cinder, or Nova where Cinder's records are hidden, has an attach of the volume to the server under way.
func (s *AttachService) onItsWay(ctx context.Context, v Volume, server ServerID) error {
	row, _, err := s.attachmentAt(ctx, v, server)
	if err != nil {
		return err
	}
	switch row.Status {
	case AttachmentReserved, AttachmentAttaching, AttachmentAttached:
		return nil
	case AttachmentHidden:
		if listed, err := s.listed(ctx, v.ID, server); err != nil || listed {
			return err
		}
	}
	return givenUp(v.ID, server)
}

// unattachable tells a server that is not there from a volume that is not: Nova answers 404 for both.
func (s *AttachService) unattachable(ctx context.Context, server ServerID, refusal error) error {
	if !Is(refusal, NotFound) {
		return refusal
	}
	switch _, err := s.cloud.Server(ctx, server); KindOf(err) {
	case NotFound:
		return NoServer(server).Op("attach")
	case PermissionDenied:
		return Errorf(NotFound, "%w; which of the two is missing cannot be told: %w", refusal, err)
	}
	return refusal
}
