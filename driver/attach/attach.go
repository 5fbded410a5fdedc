package attach

import (
	"context"
	"errors"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Attach attaches a volume to a server and returns once Cinder shows the attachment (CSI spec, ControllerPublishVolume).
//
// Errors:
//   - NotFound where the volume or the server does not exist;
//   - Conflict where another server has the volume and its type is not multiattach, or where the volume status forbids an attach. The
//     driver then sends nothing to Nova;
//   - Failed where the compute host could not attach the volume. Nova reports no error in that case, and the volume becomes available again;
//   - Busy where another call changes the volume just now, or the queue of the server is full.
func (s *Service) Attach(ctx context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error) {
	if !id.Exists() {
		return volume.Volume{}, volume.NoVolume(id).Op("attach")
	}
	if !server.Exists() {
		return volume.Volume{}, volume.NoServer(server).Op("attach")
	}
	lock := s.locks.Work(inflight.VolumeKey(id), "attach")
	defer lock.End()
	a := attachCall{call: call{Service: s, lock: lock, verb: "attach", rules: attachRules, server: server}, id: id}
	if err := a.run(ctx); err != nil {
		return volume.Volume{}, volume.WithOp(err, "attach")
	}
	s.unconfirmedAttaches.confirm(id, server)
	return a.volume, nil
}

type attachCall struct {
	call
	id     volume.ID
	cached bool // the volume comes from the cache and may be out of date
}

// run observes and acts until the volume is attached, or cannot be.
func (a *attachCall) run(ctx context.Context) (err error) {
	if _, err = a.lock.Lock(); err != nil {
		return err
	}
	if a.volume, a.cached = a.recent.TakeAvailable(a.id); !a.cached {
		if a.volume, err = a.cloud.Volume(ctx, a.id); err != nil {
			return err
		}
	}
	if err := a.volume.CheckRestored("attach"); err != nil {
		return err
	}
	for attached := false; !attached && err == nil; {
		attached, err = a.step(ctx)
	}
	return err
}

// step observes once and acts once.
func (a *attachCall) step(ctx context.Context) (attached bool, err error) {
	if err := a.relock(ctx); err != nil {
		return false, err
	}
	seen, next, err := a.observeNext(ctx)
	if err == nil && (next == send || next == deleteStale) {
		err = a.checkServer(ctx, a.server, "gets")
	}
	switch {
	case err != nil:
		return false, err
	case next == done:
		return true, nil
	case next == send:
		return a.send(ctx)
	}
	return false, a.carryOut(ctx, seen, next)
}

// inUseAt reports whether the attachment of v to server is complete, and no detach from it is in progress.
func inUseAt(v volume.Volume, server volume.ServerID) bool {
	return v.Status == volume.InUse && v.AttachedTo(server)
}

// send sends the attach to Nova and waits for its end. Nova refuses a volume in an unsuitable state. Then the next step observes
// Cinder and Nova, and explains the refusal or sends the request again. A second refusal in a row is returned.
func (a *attachCall) send(ctx context.Context) (attached bool, err error) {
	if a.refusal != nil {
		return false, a.refusal
	}
	if err := a.checkUnconfirmedDetach(a.id, a.server); err != nil {
		return false, err
	}
	refusal := a.sendAttach(ctx, a.lock, a.volume, a.server)
	if refusal == nil {
		v, err := a.awaitAttached(ctx, a.id, a.server)
		if err != nil {
			return false, volume.AfterWrite(err)
		}
		a.volume = v
		a.recent.Put(v)
		return true, nil
	}
	outdated := a.cached && volume.Is(refusal, volume.Unimplemented) // a volume that has become multiattach needs a newer request
	another := errors.Is(refusal, errOutdated)
	if !volume.RefusedByState(refusal) && !outdated && !another {
		return false, a.explainNotFound(ctx, a.server, refusal)
	}
	a.observeAll = true
	if a.volume, err = a.cloud.Volume(ctx, a.id); err != nil {
		if another {
			return false, err
		}
		return false, refusal
	}
	if !a.cached && !another { // a refusal of an outdated reading does not count
		a.refusal = refusal
	}
	a.cached = false
	return false, nil
}

func (s *Service) sendAttach(ctx context.Context, lock *inflight.Work, v volume.Volume, server volume.ServerID) error {
	return s.sendToNova(ctx, lock, request{"attach", v.ID, server, func(ctx context.Context) error {
		sent := time.Now()
		s.unconfirmedAttaches.resend(v.ID, server)
		err := s.cloud.Attach(ctx, server, v)
		if volume.MayHaveWritten(err) {
			s.unconfirmedAttaches.add(v.ID, server, sent)
		}
		return err
	}})
}

// awaitAttached waits until Cinder shows the attachment. Nova reserved the volume before it accepted the request. The compute host has
// failed if the volume is available again. It has also failed if the volume is in use elsewhere without an attachment to this server. Both may be
// the state before the request.
func (s *Service) awaitAttached(ctx context.Context, id volume.ID, server volume.ServerID) (volume.Volume, error) {
	written := volume.JustWritten()
	for {
		v, err := s.volumes.Await(ctx, id, "become attached to server "+string(server), func(v volume.Volume, ok bool) (bool, error) {
			switch {
			case !ok:
				return true, volume.NoVolume(id)
			case v.Status == volume.InUse:
				return v.AttachedTo(server) || written.Shows(), nil
			case v.Status == volume.Available && written.Shows():
				return true, hostFailedToAttach(id, server)
			case v.Status.Meaning().Attach == volume.Refuse:
				return true, volume.Errorf(volume.Failed, "volume %s changed to status %s while Nova attached it to server %s; an administrator must reset the status", id, v.Status, server).Cause(cause.VolumeError)
			}
			return false, nil
		})
		if err != nil || inUseAt(v, server) {
			return v, err
		}
		if err := s.checkAttachInProgress(ctx, v, server); err != nil && (!volume.Is(err, volume.Failed) || written.Shows()) {
			return v, err
		}
		if v, err = s.readAfter(ctx, observation{volume: v, server: server}, novaPollInterval); err != nil || inUseAt(v, server) {
			return v, err
		}
	}
}

// checkAttachInProgress returns an error unless Cinder shows an unfinished attachment of the volume to the server, or Nova lists it where
// Cinder hides attachments.
func (s *Service) checkAttachInProgress(ctx context.Context, v volume.Volume, server volume.ServerID) error {
	seen, err := s.observeCinder(ctx, v, server)
	if err != nil {
		return err
	}
	switch seen.attachment.Status {
	case volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentAttached:
		return nil
	case volume.AttachmentHidden:
		if listed, err := s.novaLists(ctx, v.ID, server); err != nil || listed {
			return err
		}
	}
	return hostFailedToAttach(v.ID, server)
}

func hostFailedToAttach(id volume.ID, server volume.ServerID) *volume.Error {
	return volume.Errorf(volume.Failed, "Nova accepted the request, but the host of server %s failed to attach volume %s. Nova gives no reason; see the nova-compute log of that host",
		server, id).Cause(cause.AttachHost)
}

// explainNotFound finds out whether the volume or the server is missing: Nova answers 404 for both.
func (s *Service) explainNotFound(ctx context.Context, server volume.ServerID, refusal error) error {
	if !volume.Is(refusal, volume.NotFound) {
		return refusal
	}
	switch _, err := s.cloud.Server(ctx, server); volume.KindOf(err) {
	case volume.NotFound:
		return volume.NoServer(server)
	case volume.PermissionDenied:
		return volume.Errorf(volume.NotFound, "%w; the driver cannot find out whether the volume or server %s is missing: %w", refusal, server, err)
	}
	return refusal
}
