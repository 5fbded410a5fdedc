package volume

import "context"

// Attach attaches a volume to a server and returns once Cinder shows it there.
//
// Conflict, before Nova is asked, when another server has it and its type does not allow two; NotFound when there is no such
// volume or server; Failed when the server's host could not attach it, which Nova tells by no error: the volume just goes back.
func (s *Volumes) Attach(ctx context.Context, id ID, server ServerID) (Volume, error) {
	if !id.Exists() {
		return Volume{}, notFound(id).Op("attach")
	}
	if !server.Exists() {
		return Volume{}, noServer(server).Op("attach")
	}
	unlock, err := s.locks.take("volume "+string(id), "attach")
	if err != nil {
		return Volume{}, err
	}
	defer unlock()
	v, err := s.attachable(ctx, id, server)
	if err != nil || inUseAt(v, server) {
		return v, err
	}
	if err := s.cloud.Attach(ctx, server, v); err != nil {
		return Volume{}, s.unattachable(ctx, id, server, err)
	}
	v, err = s.attached(ctx, id, server)
	return v, AfterWrite(err)
}

// attachable reads a volume once Nova may be asked to attach it to server, or it is attached there already.
func (s *Volumes) attachable(ctx context.Context, id ID, server ServerID) (Volume, error) {
	v, err := s.cloud.Volume(ctx, id)
	if err != nil {
		return Volume{}, err
	}
	if statuses[v.Status].attach == wait {
		v, err = s.until(ctx, id, "become attachable", func(v Volume, ok bool) (bool, error) {
			if !ok {
				return true, notFound(id)
			}
			return statuses[v.Status].attach != wait, nil
		})
		if err != nil {
			return Volume{}, err
		}
	}
	switch step := statuses[v.Status].attach; {
	case step == proceed:
		return v, nil
	case step == look && (inUseAt(v, server) || v.Multiattach):
		return v, nil
	case step == look:
		return v, elsewhere(v)
	case step == leaving:
		return v, Errorf(NotFound, "volume %s is being deleted", id).Op("attach")
	}
	return v, Errorf(Conflict, "volume %s is in status %s%s; it cannot be attached until an administrator resets that", id, v.Status, s.reason(ctx, id)).Op("attach")
}

// inUseAt reports whether an attachment of v to server is complete and not about to end.
func inUseAt(v Volume, server ServerID) bool { return v.Status == InUse && v.AttachedTo(server) }

func elsewhere(v Volume) error {
	return Errorf(Conflict, "volume %s is attached to server %s and its type allows one server only; detach it there first", v.ID, servers(v)).Op("attach")
}

func noServer(id ServerID) *Error { return Errorf(NotFound, "there is no server %q", id) }

// attached waits until Cinder shows the volume at the server. Nova has answered 200, and the volume was reserved before that:
// one that is available again was given up by the server's host.
func (s *Volumes) attached(ctx context.Context, id ID, server ServerID) (Volume, error) {
	return s.until(ctx, id, "become attached to server "+string(server), func(v Volume, ok bool) (bool, error) {
		switch {
		case !ok:
			return true, notFound(id)
		case inUseAt(v, server):
			return true, nil
		case v.Status == Available:
			return true, Errorf(Failed, "Nova took the request, but the host of server %s could not attach volume %s and gave it back without a reason; see nova-compute's log there",
				server, id).Op("attach")
		case statuses[v.Status].attach == refuse:
			return true, Errorf(Failed, "volume %s went to status %s while it was being attached to server %s", id, v.Status, server).Op("attach")
		}
		return false, nil
	})
}

// unattachable turns Nova's refusal into what the volume's state says about it: Nova answers 400 alike for a volume that is
// attached to this server already, to another one, and for one that is changing.
func (s *Volumes) unattachable(ctx context.Context, id ID, server ServerID, refusal error) error {
	switch KindOf(refusal) {
	case InvalidArgument, Conflict, Busy:
	case NotFound:
		if _, err := s.cloud.Server(ctx, server); Is(err, NotFound) {
			return noServer(server).Op("attach")
		}
		return refusal
	default:
		return refusal
	}
	v, err := s.cloud.Volume(ctx, id)
	switch {
	case err != nil:
		return refusal
	case v.AttachedTo(server), statuses[v.Status].attach == wait:
		return Errorf(Busy, "volume %s is in status %s and cannot be attached to server %s right now; try again: %w", id, v.Status, server, refusal).Op("attach")
	case statuses[v.Status].attach == look && !v.Multiattach:
		return elsewhere(v)
	}
	return refusal
}
