package attach

import (
	"context"
	"errors"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"slices"
	"time"
)

// Detach detaches a volume from a server, or from every server when none is named, and returns once Cinder no longer shows it
// there and Nova's list for the server agrees. What is not attached, and a volume that does not exist, is detached.
func (s *Service) Detach(ctx context.Context, id volume.ID, server volume.ServerID) error {
	if !id.Exists() || server != "" && !server.Exists() {
		return nil // no such volume, or no such server to have it
	}
	unlock, err := s.locks.Take(inflight.VolumeKey(id), "detach")
	if err != nil {
		return err
	}
	defer unlock()
	v, seen := s.recent.Take(id)
	if !seen || server == "" || !inUseAt(v, server) {
		if v, err = s.cloud.Volume(ctx, id); err != nil {
			return volume.IgnoreNotFound(err)
		}
	}
	if server != "" {
		return s.detachOne(ctx, v, server)
	}
	return s.detachAll(ctx, v)
}

// detachAll detaches a volume from every server that Cinder has a record of. A host that is no server of Nova's keeps it: who attached
// it there has not asked for this.
func (s *Service) detachAll(ctx context.Context, v volume.Volume) error {
	attachments, _, err := s.volumeAttachments(ctx, v.ID)
	if err != nil {
		return err
	}
	servers, foreign := s.attachedTo(ctx, v, attachments)
	var all []error
	for i, server := range servers {
		if i > 0 { // the detach before has changed it
			if v, err = s.cloud.Volume(ctx, v.ID); err != nil {
				return errors.Join(append(all, volume.IgnoreNotFound(err))...)
			}
		}
		all = append(all, s.detachOne(ctx, v, server))
	}
	for _, a := range foreign {
		all = append(all, volume.Errorf(volume.Conflict, "volume %s is attached to %s, which only those who attached it there can detach: it may be using the disk",
			v.ID, a.Holder()).Op("detach"))
	}
	return firstOf(all)
}

// attachedTo are the servers that Cinder has a record of, or may come to have, each once, and the attachments to hosts that are none of
// Nova's. A record that names neither and has reached no host is a reservation, which is no attachment.
func (s *Service) attachedTo(ctx context.Context, v volume.Volume, attachments []volume.Attachment) (servers []volume.ServerID, foreign []volume.Attachment) {
	for _, a := range v.Attachments {
		if a.Server.Exists() {
			servers = append(servers, a.Server)
		} else {
			foreign = append(foreign, a)
		}
	}
	for _, attachment := range attachments {
		switch {
		case attachment.Server.Exists():
			servers = append(servers, attachment.Server)
			continue
		case slices.ContainsFunc(foreign, func(a volume.Attachment) bool { return a.ID == attachment.ID }):
		case slices.Contains(reachedHost, attachment.Status):
			foreign = append(foreign, volume.Attachment{ID: attachment.ID, Volume: v.ID})
		}
		s.log.WarnContext(ctx, "a volume has an attachment to no server; it stays", "volume", v.ID, "attachment", attachment.ID, "status", attachment.Status)
	}
	servers = append(servers, s.lostAttaches.servers(v.ID)...)
	slices.Sort(servers)
	return slices.Compact(servers), foreign
}

// reachedHost are the statuses of a record whose volume a host may be using.
var reachedHost = []volume.AttachStatus{volume.AttachmentAttaching, volume.AttachmentAttached, volume.AttachmentDetaching, volume.AttachmentErrorDetaching}

// firstOf is the first error, with the others behind it in its text.
func firstOf(all []error) error {
	all = slices.DeleteFunc(all, func(err error) bool { return err == nil })
	if len(all) < 2 {
		return errors.Join(all...)
	}
	return volume.Errorf(volume.KindOf(all[0]), "%w", errors.Join(all...))
}

func (s *Service) detachOne(ctx context.Context, v volume.Volume, server volume.ServerID) error {
	err := s.detach(ctx, v, server)
	if err == nil {
		s.lostDetaches.confirmed(v.ID, server)
	}
	return err
}

// detach looks and acts by the table until the volume has left the server, or cannot.
func (s *Service) detach(ctx context.Context, v volume.Volume, server volume.ServerID) error {
	var err, refusal error
	var doubt staleCandidate
	for looking := !inUseAt(v, server); err == nil; {
		// Whether Nova has what is in use there, its answer to the request says.
		seen := observation{volume: v, server: server, attachment: volume.Attachment{Status: volume.AttachmentAttached}, novaSays: novaLists}
		if looking {
			if seen, err = s.observe(ctx, v, server); err != nil {
				break
			}
		}
		switch next := detachAction(v.Status, seen.attachment.Status, seen.novaSays); next {
		case done:
			left := s.lostAttaches.left(v.ID, server)
			if left <= 0 || seen.novaSays == novaServerGone {
				return nil
			}
			v, err = s.outlast(ctx, seen, left)
		case send:
			if refusal != nil {
				return volume.Errorf(volume.Busy, "volume %s is in status %s and cannot be detached from server %s right now; try again: %w", v.ID, v.Status, server, refusal).Op("detach")
			}
			s.lostAttaches.confirmed(v.ID, server) // it is there
			var kept bool
			kept, refusal, err = s.askToDetach(ctx, v, server)
			if err != nil || refusal == nil && !kept && seen.attachment.Status == volume.AttachmentAttached && s.lostAttaches.left(v.ID, server) <= 0 {
				return err
			}
			looking = true
			v, err = s.cloud.Volume(ctx, v.ID)
		case waitForChange:
			refusal = nil
			v, err = s.awaitChange(ctx, seen, "be detachable")
		case waitForNova:
			refusal = nil
			v, err = s.readAfter(ctx, seen, novaPollInterval)
		case deleteStale, conflict:
			v, err = s.resolveStale(ctx, &doubt, seen, next)
		case novaSilent:
			return seen.novaUnavailable("detach")
		default:
			return volume.Errorf(volume.Conflict, "volume %s is in status %s%s; it cannot be detached from server %s until an administrator resets that",
				v.ID, v.Status, s.volumes.FailureReason(ctx, v.ID), server).Op("detach")
		}
	}
	return volume.IgnoreNotFound(volume.WithOp(err, "detach")) // what does not exist is attached to nothing
}

// askToDetach sends the request once it is the caller's turn at the server, and awaits its end in Cinder and in Nova. The refusal is
// one that a look at the volume explains; kept says that the server is gone and Cinder has kept the attachment.
func (s *Service) askToDetach(ctx context.Context, v volume.Volume, server volume.ServerID) (kept bool, refusal, err error) {
	err = s.askNova(ctx, "detach", v.ID, server, func(ctx context.Context) error {
		sent := time.Now()
		s.lostDetaches.resends(v.ID, server)
		err := s.cloud.Detach(ctx, server, v.ID)
		if volume.MayHaveWritten(err) {
			s.lostDetaches.lost(v.ID, server, sent)
		}
		return err
	})
	switch {
	case volume.RefusedByState(err), volume.Is(err, volume.NotFound): // 404: no such server, or not attached there in Nova's eyes
		return false, err, nil
	case err != nil:
		return false, nil, err
	}
	if kept, err = s.released(ctx, v.ID, server); err == nil && !kept {
		err = s.unlisted(ctx, v.ID, server)
	}
	return kept, nil, volume.AfterWrite(err)
}

// released waits until Cinder no longer shows the volume at the server. Nova puts a volume into detaching before it answers: one
// that is in use there again was kept by the server's host. A volume with several servers is in use either way.
func (s *Service) released(ctx context.Context, id volume.ID, server volume.ServerID) (kept bool, err error) {
	back := false
	v, err := s.volumes.Await(ctx, id, "leave server "+string(server), func(v volume.Volume, ok bool) (bool, error) {
		left := !ok || !v.AttachedTo(server)
		back = !left && v.Status == volume.InUse && !v.Multiattach
		return left || back, nil
	})
	if err != nil {
		return false, err
	}
	if !back {
		if v.ID != "" { // it may be gone
			s.recent.Put(v)
		}
		return false, nil
	}
	if _, err := s.cloud.Server(ctx, server); volume.Is(err, volume.NotFound) {
		return true, nil
	}
	return false, volume.Errorf(volume.Failed, "volume %s is still in use at server %s after the detach; see nova-compute's log there", id, server).Op("detach")
}

// listed reports whether Nova lists the volume for the server. A server that does not exist has none.
func (s *Service) listed(ctx context.Context, id volume.ID, server volume.ServerID) (bool, error) {
	attachments, err := s.cloud.ServerAttachments(ctx, server)
	if volume.Is(err, volume.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(attachments, func(a volume.Attachment) bool { return a.Volume == id }), nil
}

// unlisted waits until Nova's list for the server agrees that the volume is gone.
func (s *Service) unlisted(ctx context.Context, id volume.ID, server volume.ServerID) error {
	for wait := novaPollInterval; ; wait = min(2*wait, novaPollLongest) {
		listed, err := s.listed(ctx, id, server)
		if err != nil || !listed {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return volume.Errorf(volume.KindOf(err), "volume %s: Cinder has released it from server %s, but Nova still lists it there; a retry resumes the wait: %w", id, server, err).Op("detach")
		}
	}
}
