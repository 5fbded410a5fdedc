package attach

import (
	"context"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"time"
)

// staleCandidate is the first of two looks at what seems to be wrong for good.
type staleCandidate struct {
	seen  observation
	since time.Time
}

// confirmed reports whether now says the same as a look that is long enough ago; if not, now may be confirmed later.
func (d *staleCandidate) confirmed(now observation) bool {
	same := d.seen.attachment.Same(now.attachment) && d.seen.novaSays == now.novaSays && d.seen.volume.Status == now.volume.Status
	if !same || d.since.IsZero() {
		d.seen, d.since = now, time.Now()
		return false
	}
	return time.Since(d.since) >= staleConfirmInterval
}

// resolveStale deletes Cinder's record of an attachment that nothing stands behind, once two looks agree, and reads the volume again. Its
// error says what an administrator must do.
func (s *Service) resolveStale(ctx context.Context, doubt *staleCandidate, seen observation, next action) (volume.Volume, error) {
	if !doubt.confirmed(seen) {
		return s.readAfter(ctx, seen, staleConfirmInterval)
	}
	if next == conflict {
		return volume.Volume{}, staleConflict(seen)
	}
	if err := s.deleteStaleAttachment(ctx, seen); err != nil {
		return volume.Volume{}, err
	}
	*doubt = staleCandidate{}
	return s.cloud.Volume(ctx, seen.volume.ID)
}

// deleteStaleAttachment reads a record once more and deletes it if it is as it was. Nova and Cinder are those of one cloud and region, and the
// request has named the record's server, or none.
func (s *Service) deleteStaleAttachment(ctx context.Context, seen observation) error {
	attachment, err := s.cloud.ShowAttachment(ctx, seen.attachment.ID)
	switch {
	case volume.Is(err, volume.NotFound), err == nil && !attachment.Same(seen.attachment):
		return nil // it lives: the caller looks again
	case err != nil:
		return staleNotDeletable(seen, err)
	}
	switch err := s.cloud.DeleteAttachment(ctx, attachment.ID); {
	case volume.Is(err, volume.NotFound):
	case err != nil:
		return staleNotDeletable(seen, err)
	default:
		s.log.WarnContext(ctx, "deleted a stale attachment", "volume", attachment.Volume, "server", attachment.Server, "attachment", attachment.ID,
			"was", attachment.Status, "nova", seen.novaSays.String())
	}
	return nil
}

// adminCommand is what an administrator does about a record.
func adminCommand(attachment volume.Attachment) string {
	return "openstack --os-volume-api-version 3.27 volume attachment delete " + attachment.ID
}

// staleNotDeletable is the error of a record that the cloud does not let go of. Cinder 21 answers 500 to an application credential: it wants
// to ask Nova in the user's name first, and Keystone gives it no token for that (measured 2026-11; reserved records it deletes).
func staleNotDeletable(seen observation, err error) error {
	return volume.Errorf(volume.KindOf(err), "volume %s is %s; %s; that attachment is stale, but cannot be deleted (some clouds do not let an application credential); a person with a password can: %s: %w",
		seen.volume.ID, seen.volume.Status, seen, adminCommand(seen.attachment), err)
}

func staleConflict(seen observation) error {
	return volume.Errorf(volume.Conflict, "volume %s is %s; %s; the server may still use the disk, so nothing is changed: an administrator who has made sure that it does not can run: %s",
		seen.volume.ID, seen.volume.Status, seen, adminCommand(seen.attachment))
}
