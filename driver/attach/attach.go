package attach

import (
	"context"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"time"
)

// Attach attaches a volume to a server and returns once Cinder shows it there.
//
// Conflict, before Nova is asked, when another server has it and its type does not allow two; NotFound when there is no such
// volume or server; Failed when the server's host could not attach it, which Nova tells by no error: the volume just goes back.
func (s *Service) Attach(ctx context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error) {
	if !id.Exists() {
		return volume.Volume{}, volume.NoVolume(id).Op("attach")
	}
	if !server.Exists() {
		return volume.Volume{}, volume.NoServer(server).Op("attach")
	}
	unlock, err := s.locks.Take(inflight.VolumeKey(id), "attach")
	if err != nil {
		return volume.Volume{}, err
	}
	defer unlock()
	v, err := s.attach(ctx, id, server)
	if err == nil {
		s.lostAttaches.confirmed(id, server)
	}
	return v, err
}

// attach looks and acts by the table until the volume is there, or cannot be.
func (s *Service) attach(ctx context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error) {
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
		if looking || inTransition(v.Status) || v.Status == volume.InUse && v.AttachedTo(server) {
			if seen, err = s.observe(ctx, v, server); err != nil {
				break
			}
		}
		switch next := attachAction(v.Status, seen.attachment.Status, seen.novaSays); {
		case next == done:
			return v, nil
		case next == send, next == attachedElsewhere && v.Status == volume.InUse && v.Multiattach:
			if refusal != nil {
				return volume.Volume{}, refusal
			}
			if err := s.heldOff(id, server); err != nil {
				return volume.Volume{}, err
			}
			if refusal = s.askToAttach(ctx, v, server); refusal == nil {
				if v, err = s.attached(ctx, id, server); err == nil {
					s.recent.Put(v)
				}
				return v, volume.AfterWrite(err)
			}
			if !volume.RefusedByState(refusal) {
				return volume.Volume{}, s.unattachable(ctx, server, refusal)
			}
			looking = true
			if v, err = s.cloud.Volume(ctx, id); err != nil {
				return volume.Volume{}, refusal
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
			return volume.Volume{}, s.notAttachable(ctx, seen, next)
		}
	}
	return volume.Volume{}, volume.WithOp(err, "attach")
}

func (s *Service) askToAttach(ctx context.Context, v volume.Volume, server volume.ServerID) error {
	return s.askNova(ctx, "attach", v.ID, server, func(ctx context.Context) error {
		sent := time.Now()
		s.lostAttaches.resends(v.ID, server)
		err := s.cloud.Attach(ctx, server, v)
		if volume.MayHaveWritten(err) {
			s.lostAttaches.lost(v.ID, server, sent)
		}
		return err
	})
}

// notAttachable is the error of what an attach cannot go on with.
func (s *Service) notAttachable(ctx context.Context, seen observation, why action) error {
	v := seen.volume
	switch why {
	case attachedElsewhere:
		return volume.Errorf(volume.Conflict, "volume %s is attached to %s and its type allows one server only; detach it there first", v.ID, v.Holders()).Op("attach")
	case volumeDeleting:
		return volume.Errorf(volume.NotFound, "volume %s is being deleted", v.ID).Op("attach")
	case serverNotFound:
		return volume.NoServer(seen.server).Op("attach")
	case novaSilent:
		return seen.novaUnavailable("attach")
	default:
		return volume.Errorf(volume.Conflict, "volume %s is in status %s%s; it cannot be attached until an administrator resets that", v.ID, v.Status, s.volumes.FailureReason(ctx, v.ID)).Op("attach")
	}
}

// inUseAt reports whether an attachment of v to server is complete and not about to end.
func inUseAt(v volume.Volume, server volume.ServerID) bool {
	return v.Status == volume.InUse && v.AttachedTo(server)
}

// attached waits until Cinder shows the volume at the server. Nova has answered 200, and the volume was reserved before that:
// one that is available again was given up by the server's host. So was one that is in use elsewhere, once Cinder has no record
// that it is on its way to this server.
func (s *Service) attached(ctx context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error) {
	for {
		v, err := s.volumes.Await(ctx, id, "become attached to server "+string(server), func(v volume.Volume, ok bool) (bool, error) {
			switch {
			case !ok:
				return true, volume.NoVolume(id)
			case v.Status == volume.InUse:
				return true, nil
			case v.Status == volume.Available:
				return true, givenUp(id, server)
			case v.Status.Meaning().Attach == volume.Refuse:
				return true, volume.Errorf(volume.Failed, "volume %s went to status %s while it was being attached to server %s", id, v.Status, server).Op("attach")
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

func givenUp(id volume.ID, server volume.ServerID) *volume.Error {
	return volume.Errorf(volume.Failed, "Nova took the request, but the host of server %s could not attach volume %s and gave it back without a reason; see nova-compute's log there",
		server, id).Op("attach")
}

// onItsWay is an error unless Cinder, or Nova where Cinder's records are hidden, has an attach of the volume to the server under way.
func (s *Service) onItsWay(ctx context.Context, v volume.Volume, server volume.ServerID) error {
	attachment, _, err := s.attachmentAt(ctx, v, server)
	if err != nil {
		return err
	}
	switch attachment.Status {
	case volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentAttached:
		return nil
	case volume.AttachmentHidden:
		if listed, err := s.listed(ctx, v.ID, server); err != nil || listed {
			return err
		}
	}
	return givenUp(v.ID, server)
}

// unattachable tells a server that is not there from a volume that is not: Nova answers 404 for both.
func (s *Service) unattachable(ctx context.Context, server volume.ServerID, refusal error) error {
	if !volume.Is(refusal, volume.NotFound) {
		return refusal
	}
	switch _, err := s.cloud.Server(ctx, server); volume.KindOf(err) {
	case volume.NotFound:
		return volume.NoServer(server).Op("attach")
	case volume.PermissionDenied:
		return volume.Errorf(volume.NotFound, "%w; which of the two is missing cannot be told: %w", refusal, err)
	}
	return refusal
}
