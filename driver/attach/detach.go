package attach

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Detach detaches a volume from a server, or from every server where server is empty. It returns once Cinder no longer shows the
// attachment and Nova no longer lists the volume (CSI spec, ControllerUnpublishVolume). A volume that does not exist or is not attached
// counts as detached.
//
// Errors:
//   - NotOwned where the volume or the server is not the driver's to act on;
//   - Conflict where the volume status forbids a detach, Cinder and Nova disagree, or a host that is no Nova server has the volume;
//   - Failed where the compute host could not detach the volume;
//   - Busy where another call changes the volume just now, the queue of the server is full, or Nova refuses the request for now.
func (s *Service) Detach(ctx context.Context, id volume.ID, server volume.ServerID) error {
	if !id.Exists() || server != "" && !server.Exists() {
		return nil
	}
	lock := s.locks.Work(inflight.VolumeKey(id), "detach")
	defer lock.End()
	if _, err := lock.Lock(); err != nil {
		return err
	}
	v, cached := s.recent.Take(id)
	if !cached || server == "" || !inUseAt(v, server) {
		var err error
		v, err = s.cloud.Volume(ctx, id)
		switch {
		case volume.Is(err, volume.NotOwned):
			return volume.Errorf(volume.NotOwned, "%w. If a node of this cluster has the volume, an administrator of the cloud can run: openstack server remove volume SERVER %s", err, id).Op("detach")
		case err != nil:
			return volume.IgnoreNotFound(err)
		}
	}
	if server == "" {
		return s.detachAll(ctx, lock, v)
	}
	return s.detachFrom(ctx, lock, v, server)
}

// detachAll detaches a volume from every server to which Cinder shows an attachment. It returns the errors of all servers. It also returns
// one for each host that is no Nova server, because the driver did not attach the volume there.
func (s *Service) detachAll(ctx context.Context, lock *inflight.Work, v volume.Volume) error {
	attachments, _, err := s.volumeAttachments(ctx, v.ID)
	if err != nil {
		return err
	}
	servers, foreign := s.attachedTo(ctx, v, attachments)
	var errs []error
	for i, server := range servers {
		if i > 0 { // the detach before has changed the volume
			if v, err = s.cloud.Volume(ctx, v.ID); err != nil {
				return errors.Join(append(errs, volume.IgnoreNotFound(err))...)
			}
		}
		errs = append(errs, s.detachFrom(ctx, lock, v, server))
	}
	if len(foreign) > 0 {
		errs = append(errs, volume.Errorf(volume.Conflict, "volume %s is attached to %s; the host may use the disk, so only an administrator can detach the volume there",
			v.ID, volume.Volume{Attachments: foreign}.Holders()).Cause(cause.DetachForeign).Op("detach"))
	}
	return errors.Join(errs...) // its kind is that of the first
}

// attachedTo returns each server to which Cinder shows an attachment, or to which an attach may still complete. Foreign are the attachments
// to hosts that are no Nova servers. An attachment without a server that has not reached a host is a reservation, which the driver ignores.
func (s *Service) attachedTo(ctx context.Context, v volume.Volume, attachments []volume.Attachment) (servers []volume.ServerID, foreign []volume.Attachment) {
	for _, a := range v.Attachments {
		if a.Server.Exists() {
			servers = append(servers, a.Server)
		} else {
			foreign = append(foreign, a)
		}
	}
	var kept []string
	for _, a := range attachments {
		switch {
		case a.Server.Exists():
			servers = append(servers, a.Server)
			continue
		case slices.ContainsFunc(foreign, func(known volume.Attachment) bool { return known.ID == a.ID }):
		case slices.Contains(reachedHost, a.Status):
			foreign = append(foreign, a)
		}
		kept = append(kept, a.ID+" in status "+string(a.Status))
	}
	if len(kept) > 0 {
		s.log.WarnContext(ctx, "the driver keeps attachments to hosts that are no Nova servers", "volume", v.ID, "attachments", volume.Few(kept))
	}
	servers = append(servers, s.unconfirmedAttaches.servers(v.ID)...)
	slices.Sort(servers)
	return slices.Compact(servers), foreign
}

// reachedHost are the statuses of attachments whose volume a host may use.
var reachedHost = []volume.AttachStatus{volume.AttachmentAttaching, volume.AttachmentAttached, volume.AttachmentDetaching, volume.AttachmentErrorDetaching}

func (s *Service) detachFrom(ctx context.Context, lock *inflight.Work, v volume.Volume, server volume.ServerID) error {
	d := detachCall{call{Service: s, lock: lock, verb: "detach", rules: detachRules, server: server, volume: v}}
	for {
		detached, err := d.step(ctx)
		switch {
		case detached, volume.Is(err, volume.NotFound): // a volume that does not exist is attached to no server
			s.unconfirmedDetaches.confirm(v.ID, server)
			return nil
		case err != nil:
			return volume.WithOp(err, "detach")
		}
	}
}

type detachCall struct{ call }

// step observes once and acts once. What Nova may still carry out is part of the end: see awaitUnconfirmedAttach.
func (d *detachCall) step(ctx context.Context) (detached bool, err error) {
	if err := d.relock(ctx); err != nil {
		return false, err
	}
	seen, next, err := d.observeNext(ctx)
	if err == nil && (next == send || next == deleteStale) {
		err = volume.IgnoreNotFound(d.checkServer(ctx, d.server, "loses")) // a server that is gone has nothing to lose
	}
	switch {
	case err != nil:
		return false, err
	case next == send:
		return d.send(ctx, seen)
	case next != done:
		err := d.carryOut(ctx, seen, next)
		if err != nil && ctx.Err() == nil && next == deleteStale && harmless(seen) {
			d.log.WarnContext(ctx, "the driver cannot delete an attachment that never became complete; the volume is available, so it harms nothing", "volume", d.volume.ID, "attachment", seen.attachment.ID, "error", err)
			return true, nil
		}
		return false, err
	}
	left := d.unconfirmedAttaches.remaining(d.volume.ID, d.server)
	if left <= 0 || seen.nova == novaServerGone {
		return true, nil
	}
	d.lock.Unlock()
	d.volume, err = d.awaitUnconfirmedAttach(ctx, seen, left)
	return false, err
}

// harmless reports whether an attachment stops neither an attach nor a delete: Cinder shows the volume as available in spite of it.
func harmless(seen observation) bool {
	return stateOf(seen.volume) == stateAvailable && slices.Contains(incomplete, seen.attachment.Status)
}

// send sends the detach to Nova and waits for its end. The volume is detached at once where nothing else can change it.
func (d *detachCall) send(ctx context.Context, seen observation) (detached bool, err error) {
	v := d.volume
	if d.refusal != nil {
		return false, volume.Errorf(volume.Busy, "volume %s is in status %s, but Nova refuses for now to detach it from server %s; retry later: %w", v.ID, v.Status, d.server, d.refusal)
	}
	d.unconfirmedAttaches.confirm(v.ID, d.server) // it has completed
	var complete bool
	if complete, d.refusal, err = d.sendDetach(ctx, d.lock, v.ID, d.server); err != nil {
		return false, err
	}
	if complete && seen.attachment.Status == volume.AttachmentAttached && d.unconfirmedAttaches.remaining(v.ID, d.server) <= 0 {
		return true, nil
	}
	d.observeAll = true
	d.volume, err = d.cloud.Volume(ctx, v.ID)
	return false, err
}

// sendDetach sends the request and waits until Cinder and Nova show its end. If not both do, complete is false, and
// the next observation says why. Nova has refused, or it lists the volume for long, or the server is gone and Cinder keeps the attachment, or another call was faster.
func (s *Service) sendDetach(ctx context.Context, lock *inflight.Work, id volume.ID, server volume.ServerID) (complete bool, refusal, err error) {
	err = s.sendToNova(ctx, lock, request{"detach", id, server, func(ctx context.Context) error {
		sent := time.Now()
		s.unconfirmedDetaches.resend(id, server)
		err := s.cloud.Detach(ctx, server, id)
		if volume.MayHaveWritten(err) {
			s.unconfirmedDetaches.add(id, server, sent)
		}
		return err
	}})
	switch {
	case errors.Is(err, errOutdated):
		return false, nil, nil
	case volume.RefusedByState(err), volume.Is(err, volume.NotFound): // 404: Nova has no such server, or no such attachment
		return false, err, nil
	case err != nil:
		return false, nil, err
	}
	v, detached, err := s.awaitDetached(ctx, id, server)
	if detached {
		complete, err = s.awaitUnlisted(ctx, id, server)
	}
	// A volume in another status may have further attachments of this server, such as one that a failed live migration has left.
	return complete && (v.ID == "" || v.Status == volume.Available), nil, volume.AfterWrite(err)
}

// awaitDetached waits until Cinder no longer shows the attachment, and returns the volume; the zero Volume if it is gone. Nova sets the volume to
// detaching before it answers. So a volume that is in use after that was kept by the compute host, unless the server is gone. A volume that an
// administrator moves to another backend never shows detaching (begin_detaching in cinder/volume/api.py). So it counts as kept only after as long
// as Nova may need. A multiattach volume is in use either way.
func (s *Service) awaitDetached(ctx context.Context, id volume.ID, server volume.ServerID) (v volume.Volume, detached bool, err error) {
	written, began, begun := volume.JustWritten(), time.Now(), false
	v, err = s.volumes.Await(ctx, id, "become detached from server "+string(server), func(v volume.Volume, ok bool) (bool, error) {
		begun = begun || v.Status == volume.Detaching
		switch detached = !ok || !v.AttachedTo(server); {
		case detached:
			return v.Status != volume.Detaching || written.Shows(), nil // the attachment goes first, then the status changes
		case v.Status != volume.InUse || v.Multiattach:
			return false, nil
		}
		return begun && written.Shows() || time.Since(began) >= unconfirmedFor, nil
	})
	switch {
	case err != nil:
		return v, false, err
	case detached:
		if v.ID != "" {
			s.recent.Put(v)
		}
		return v, true, nil
	}
	switch _, err := s.cloud.Server(ctx, server); {
	case volume.Is(err, volume.NotFound):
		return v, false, nil
	case err != nil:
		return v, false, volume.Errorf(volume.KindOf(err), "Nova accepted the request, but volume %s is still attached to server %s, and the driver cannot read whether the server exists: %w", id, server, err)
	}
	return v, false, volume.Errorf(volume.Failed, "Nova accepted the request, but the host of server %s failed to detach volume %s. Nova gives no reason; see the nova-compute log of that host",
		server, id).Cause(cause.AttachHost)
}

// awaitUnlisted waits until Nova no longer lists the volume for the server. It gives up after staleConfirmInterval.
func (s *Service) awaitUnlisted(ctx context.Context, id volume.ID, server volume.ServerID) (unlisted bool, err error) {
	defer volume.BeginStep(ctx, "waiting until Nova no longer lists volume "+string(id)+" for server "+string(server))()
	began := time.Now()
	for wait := novaPollInterval; ; wait = min(2*wait, novaPollLongest) {
		listed, err := s.novaLists(ctx, id, server)
		if err != nil || !listed || time.Since(began) >= staleConfirmInterval {
			return err == nil && !listed, err
		}
		if err := volume.Sleep(ctx, wait); err != nil {
			return false, volume.Errorf(volume.KindOf(err), "volume %s: Cinder has detached it from server %s, but Nova still lists it there; a retry continues to wait: %w", id, server, err)
		}
	}
}
