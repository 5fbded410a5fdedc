package attach

import (
	"context"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// staleConfirmInterval is the time between the two observations before the driver deletes a stale attachment or reports a conflict.
const staleConfirmInterval = 10 * time.Second

// confirmation is the first of two observations that must agree.
type confirmation struct {
	seen  observation
	since time.Time
}

// confirmed reports whether now agrees with an observation at least staleConfirmInterval old. If not, a later one may confirm now.
func (c *confirmation) confirmed(now observation) bool {
	same := c.seen.attachment.Same(now.attachment) && c.seen.nova == now.nova && c.seen.volume.Status == now.volume.Status
	if !same || c.since.IsZero() {
		c.seen, c.since = now, time.Now()
		return false
	}
	return time.Since(c.since) >= staleConfirmInterval
}

// resolveStale deletes a stale attachment after two observations that agree, and reads the volume again. Conflict where the attachment may be in
// use: the error says what an administrator must do.
func (s *Service) resolveStale(ctx context.Context, before *confirmation, seen observation, next action) (volume.Volume, error) {
	if next == conflict {
		return volume.Volume{}, staleConflict(seen)
	}
	if err := s.deleteStaleAttachment(ctx, seen); err != nil {
		return volume.Volume{}, err
	}
	*before = confirmation{}
	return s.cloud.Volume(ctx, seen.volume.ID)
}

// deleteStaleAttachment reads an attachment again and deletes it if it is unchanged. Nova and Cinder belong to one cloud and region, and the
// call names the server of the attachment, or no server.
func (s *Service) deleteStaleAttachment(ctx context.Context, seen observation) error {
	a, err := s.cloud.ShowAttachment(ctx, seen.attachment.ID)
	switch {
	case volume.Is(err, volume.NotFound), err == nil && !a.Same(seen.attachment):
		return nil // it has changed: the caller observes again
	case err != nil:
		return staleNotDeletable(seen, err)
	}
	if seen.nova == novaServerGone { // in the other states, Nova has shown a list
		if err := s.cloud.NovaAnswers(ctx); err != nil {
			return volume.Errorf(volume.KindOf(err), "volume %s is %s; %s. The driver deletes nothing, because Nova does not answer now: %w", seen.volume.ID, seen.volume.Status, seen, err)
		}
	}
	switch err := s.cloud.DeleteAttachment(ctx, a.ID); {
	case volume.Is(err, volume.NotFound):
	case err != nil:
		return staleNotDeletable(seen, err)
	default:
		s.log.WarnContext(ctx, "deleted a stale attachment", "volume", a.Volume, "server", a.Server, "attachment", a.ID,
			"status", a.Status, "nova", seen.nova.String())
	}
	return nil
}

// deleteCommand is the command by which an administrator deletes an attachment.
func deleteCommand(a volume.Attachment) string {
	return "openstack --os-volume-api-version 3.27 volume attachment delete " + shell.ID(a.ID, "ATTACHMENT") // the cloud chooses it
}

// staleNotDeletable is the error where Cinder refuses to delete a stale attachment. Cinder 21 answers 500 if the attachment is attached and
// the driver logs in with an application credential (measured 2026-11). Cinder then asks Nova on behalf of the user, and Keystone issues no
// token for that. It deletes reserved attachments.
func staleNotDeletable(seen observation, err error) error {
	return volume.Errorf(volume.KindOf(err), "volume %s is %s; %s. The attachment is stale, but the driver cannot delete it: some clouds do not allow that with an application credential. "+
		"An administrator who logs in with a password can run: %s: %w", seen.volume.ID, seen.volume.Status, seen, deleteCommand(seen.attachment), err).Cause(cause.AttachStale)
}

func staleConflict(seen observation) error {
	if seen.attachment.Status == volume.AttachmentHidden {
		return volume.Errorf(volume.Conflict, "volume %s is %s; %s. Unless another server gets the volume now, a failed operation has left a reservation that the driver cannot see. "+
			"An administrator can find it, and delete it if no server uses it: openstack --os-volume-api-version 3.27 volume attachment list --volume-id %s", seen.volume.ID, seen.volume.Status, seen, seen.volume.ID).Cause(cause.AttachReserved)
	}
	return volume.Errorf(volume.Conflict, "volume %s is %s; %s. The server may still use the disk, so the driver changes nothing. "+
		"If the server does not use it, an administrator can run: %s", seen.volume.ID, seen.volume.Status, seen, deleteCommand(seen.attachment)).Cause(cause.AttachReserved)
}

// listedByNovaOnly is the error of a volume that only Nova shows at the server. A failed attach or detach leaves such an entry. Nova 28 (2023.2)
// removes it when the server is rebooted.
func listedByNovaOnly(seen observation) error {
	return volume.Errorf(volume.Conflict, "volume %s is %s; %s. Most likely a failed attach or detach left that entry in Nova, and only an administrator can remove it. "+
		"Nova of 2023.2 or later removes it at a reboot: openstack server reboot %s. For an older one see %s", seen.volume.ID, seen.volume.Status, seen, seen.server, pages.FreeAStuckVolume).Cause(cause.AttachLeftover)
}
