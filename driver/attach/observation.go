package attach

import (
	"context"
	"fmt"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"slices"
	"time"
)

// How long the domain waits before it looks again, where a change of the volume does not wake it.
const (
	novaPollInterval     = 200 * time.Millisecond // Nova forgets a volume some 0.1 s after Cinder has (2026-11, a small cloud)
	novaPollLongest      = 2 * time.Second
	recheckInterval      = 10 * time.Second // while an attach or a detach of somebody's seems to be under way
	staleConfirmInterval = 10 * time.Second // between the two looks before a record is deleted
)

// observation is what Cinder and Nova say of a volume and a server at one time.
type observation struct {
	volume      volume.Volume
	server      volume.ServerID
	attachment  volume.Attachment   // Cinder's record of the volume at the server; without an id where there is none to see
	others      []volume.Attachment // Cinder's records of the volume at other servers, as far as it shows them
	novaSays    novaState
	serverState string // the server's status and task, where Nova was asked
	novaErr     error  // why Nova's opinion is unknown
	asked       bool   // somebody was asked, besides for the volume
}

// observe asks Cinder and Nova. Its error says that Cinder does not answer; Nova's silence is an opinion.
func (s *Service) observe(ctx context.Context, v volume.Volume, server volume.ServerID) (observation, error) {
	seen := observation{volume: v, server: server, asked: true}
	var err error
	if seen.attachment, seen.others, err = s.attachmentAt(ctx, v, server); err != nil {
		return seen, err
	}
	seen.novaSays, seen.serverState, seen.novaErr = s.askNovaState(ctx, v.ID, server, seen.attachment.Status)
	if seen.novaSays == novaUnknown && ctx.Err() != nil {
		return seen, seen.novaErr
	}
	return seen, nil
}

// attachmentAt gives Cinder's record of a volume at a server, the furthest of several (a server on its way to another host has two), and
// the volume's other records. An attached one the volume itself shows.
func (s *Service) attachmentAt(ctx context.Context, v volume.Volume, server volume.ServerID) (attachment volume.Attachment, others []volume.Attachment, err error) {
	for _, a := range v.Attachments {
		if a.Server == server {
			return a, nil, nil
		}
	}
	attachments, hidden, err := s.volumeAttachments(ctx, v.ID)
	if hidden {
		attachment.Status = volume.AttachmentHidden
	}
	for _, r := range attachments {
		switch {
		case r.Server != server:
			others = append(others, r)
		case progress(r.Status) > progress(attachment.Status):
			attachment = r
		}
	}
	return attachment, others, err
}

// progress is how far a record has come. One that a later Cinder adds goes before all: nothing is done about it but to wait.
func progress(far volume.AttachStatus) int {
	order := []volume.AttachStatus{volume.AttachmentNone, volume.AttachmentErrorAttaching, volume.AttachmentErrorDetaching, volume.AttachmentReserved, volume.AttachmentDetaching, volume.AttachmentAttaching, volume.AttachmentAttached}
	if i := slices.Index(order, far); i >= 0 {
		return i
	}
	return len(order)
}

// volumeAttachments reads Cinder's records of a volume, or that it does not show any.
func (s *Service) volumeAttachments(ctx context.Context, id volume.ID) (attachments []volume.Attachment, hidden bool, err error) {
	attachments, err = s.cloud.VolumeAttachments(ctx, id)
	switch volume.KindOf(err) {
	case volume.PermissionDenied, volume.NotFound, volume.Unimplemented:
		if volume.Is(err, volume.PermissionDenied) && s.hidden.CompareAndSwap(false, true) {
			s.log.WarnContext(ctx, "Cinder does not show its records of attachments; stale ones cannot be told and stay", "error", err)
		}
		return nil, true, nil
	}
	return attachments, false, err
}

// askNovaState asks Nova; what cannot be a server's id is unknown to it, never gone. The server itself is asked about only where Cinder has a record that may be stale.
func (s *Service) askNovaState(ctx context.Context, id volume.ID, server volume.ServerID, attachment volume.AttachStatus) (says novaState, state string, why error) {
	if !server.Exists() { // the adapter's NotFound of such an id would be nobody's word: Nova was not asked
		return novaUnknown, "", volume.Errorf(volume.Conflict, "what has the volume is no server of Nova's")
	}
	attachments, err := s.cloud.ServerAttachments(ctx, server)
	switch {
	case err != nil && !volume.Is(err, volume.NotFound):
		return novaUnknown, "", err
	case slices.ContainsFunc(attachments, func(a volume.Attachment) bool { return a.Volume == id }):
		return novaLists, "", nil
	case attachment != volume.AttachmentNone && attachment != volume.AttachmentHidden:
		return s.serverState(ctx, server, err != nil)
	case err != nil:
		return novaServerGone, "", nil
	}
	return novaOmits, "", nil
}

// serverState says whether the server is there and at rest. Its list was not there or has not the volume; one whose cell is down
// is UNKNOWN, and may have it.
func (s *Service) serverState(ctx context.Context, id volume.ServerID, missing bool) (says novaState, state string, why error) {
	server, err := s.cloud.Server(ctx, id)
	switch {
	case volume.Is(err, volume.NotFound):
		return novaServerGone, "", nil
	case err != nil:
		return novaUnknown, "", err
	case missing || server.Status == "UNKNOWN":
		return novaUnknown, server.Status, volume.Errorf(volume.Unavailable, "Nova does not know the volumes of server %s, whose status is %s", id, server.Status)
	case server.TaskState != "":
		return novaServerChanging, server.Status + ", " + server.TaskState, nil
	case slices.Contains(atRest, server.Status):
		return novaOmits, server.Status, nil
	}
	return novaServerChanging, server.Status, nil
}

// atRest are the statuses of a server whose volumes Nova changes on request only (Nova API reference, "Server status").
var atRest = []string{"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "RESCUE", "SHELVED", "SHELVED_OFFLOADED", "ERROR"}

// String is what was seen, as the end of a sentence about the volume.
func (seen observation) String() string {
	text := "Cinder has no attachment of it to server " + string(seen.server)
	switch {
	case seen.attachment.Status == volume.AttachmentHidden:
		text = "Cinder does not show its attachments"
	case seen.attachment.Status != volume.AttachmentNone:
		text = fmt.Sprintf("Cinder has attachment %s of it to server %s, %s", seen.attachment.ID, seen.server, seen.attachment.Status)
	}
	switch seen.novaSays {
	case novaLists:
		text += "; Nova lists it there"
	case novaOmits, novaServerChanging:
		text += "; Nova does not list it there"
	case novaServerGone:
		text += "; Nova has no such server"
	case novaUnknown:
		text += "; Nova does not say"
	}
	if seen.serverState != "" {
		text += ", and the server is " + seen.serverState
	}
	for _, attachment := range seen.others {
		to := "server " + string(attachment.Server)
		if !attachment.Server.Exists() {
			to = "no server of Nova's"
		}
		text += fmt.Sprintf("; attachment %s to %s is %s", attachment.ID, to, attachment.Status)
	}
	return text
}

// novaUnavailable is the error of a sighting in which Nova does not say what it has.
func (seen observation) novaUnavailable(verb string) error {
	return volume.Errorf(volume.KindOf(seen.novaErr), "volume %s is %s; %s: %w", seen.volume.ID, seen.volume.Status, seen, seen.novaErr).Op(verb)
}

// awaitChange waits until the volume no longer looks as it did, or a look at its attachments is due again.
func (s *Service) awaitChange(ctx context.Context, seen observation, what string) (volume.Volume, error) {
	v, due := seen.volume, time.Now().Add(recheckInterval)
	if seen.asked {
		what += " (" + seen.String() + ")"
	}
	exists := true
	now, err := s.volumes.Await(ctx, v.ID, what, func(now volume.Volume, ok bool) (bool, error) {
		exists = ok
		return !ok || now.Status != v.Status || now.AttachedTo(seen.server) != v.AttachedTo(seen.server) || seen.asked && !time.Now().Before(due), nil
	})
	if err == nil && !exists {
		return volume.Volume{}, volume.NoVolume(v.ID)
	}
	return now, err
}

// readAfter reads the volume again after a while.
func (s *Service) readAfter(ctx context.Context, seen observation, after time.Duration) (volume.Volume, error) {
	if err := sleep(ctx, after); err != nil {
		return volume.Volume{}, volume.Errorf(volume.KindOf(err), "volume %s is %s; %s; a retry looks again: %w", seen.volume.ID, seen.volume.Status, seen, err)
	}
	return s.cloud.Volume(ctx, seen.volume.ID)
}

// sleep waits; its error is the context's.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
