package attach

import (
	"context"
	"fmt"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// fewOthers is how many attachments to other servers an observation has. The cloud chooses how many there are.
const fewOthers = 5

// observation is what Cinder and Nova show of a volume and a server at one time.
type observation struct {
	volume      volume.Volume
	server      volume.ServerID
	attachment  volume.Attachment   // of the volume to the server; without an ID where Cinder shows none
	others      []volume.Attachment // the first fewOthers to other servers, if Cinder shows them
	moreOthers  int                 // how many follow
	nova        novaState           // novaNotRead if the driver has read nothing but the volume
	serverState string              // status and task of the server, if the driver has read it
	novaErr     error               // why nova is novaUnknown
}

// shown is the observation of a volume alone. The volume lists the attachments that are attached.
func shown(v volume.Volume, server volume.ServerID) observation {
	seen := observation{volume: v, server: server}
	for _, a := range v.Attachments {
		if a.Server == server {
			seen.attachment = a
		}
	}
	return seen
}

// observe reads Cinder's attachments and Nova's state. It returns an error only where Cinder does not answer, or ctx ends; an error of
// Nova is part of the observation.
func (s *Service) observe(ctx context.Context, v volume.Volume, server volume.ServerID) (observation, error) {
	seen, err := s.observeCinder(ctx, v, server)
	if err != nil {
		return seen, err
	}
	seen.nova, seen.serverState, seen.novaErr = s.readNovaState(ctx, v.ID, server, seen.attachment.Status)
	if seen.nova == novaUnknown && ctx.Err() != nil {
		return seen, seen.novaErr
	}
	return seen, nil
}

// observeCinder reads Cinder's attachment of a volume to a server, and those to other servers. A server that Nova migrates has two: the
// result is the one that has progressed further.
func (s *Service) observeCinder(ctx context.Context, v volume.Volume, server volume.ServerID) (observation, error) {
	seen := shown(v, server)
	if seen.attachment.Status != volume.AttachmentNone {
		return seen, nil
	}
	attachments, hidden, err := s.volumeAttachments(ctx, v.ID)
	if hidden {
		seen.attachment.Status = volume.AttachmentHidden
	}
	for _, a := range attachments {
		switch {
		case a.Server != server && len(seen.others) == fewOthers:
			seen.moreOthers++
		case a.Server != server:
			seen.others = append(seen.others, a)
		case progress(a.Status) > progress(seen.attachment.Status):
			seen.attachment = a
		}
	}
	return seen, err
}

// progress orders attachment statuses. A status of a later Cinder comes last: no rule names it, so the driver only waits.
func progress(s volume.AttachStatus) int {
	order := []volume.AttachStatus{
		volume.AttachmentNone, volume.AttachmentErrorAttaching, volume.AttachmentErrorDetaching,
		volume.AttachmentReserved, volume.AttachmentDetaching, volume.AttachmentAttaching, volume.AttachmentAttached,
	}
	if i := slices.Index(order, s); i >= 0 {
		return i
	}
	return len(order)
}

// volumeAttachments reads the attachments of a volume in every status. Hidden says that Cinder does not show them.
func (s *Service) volumeAttachments(ctx context.Context, id volume.ID) (attachments []volume.Attachment, hidden bool, err error) {
	attachments, err = s.cloud.VolumeAttachments(ctx, id)
	switch volume.KindOf(err) {
	case volume.PermissionDenied, volume.NotFound, volume.Unimplemented:
		if volume.Is(err, volume.PermissionDenied) && s.warnedHidden.CompareAndSwap(false, true) {
			s.log.WarnContext(ctx, "Cinder does not show attachments; the driver cannot tell stale attachments from live ones and leaves them in place", "error", err)
		}
		return nil, true, nil
	}
	return attachments, false, err
}

// novaLists reports whether Nova lists the volume for the server. A server that does not exist has no volumes.
func (s *Service) novaLists(ctx context.Context, id volume.ID, server volume.ServerID) (bool, error) {
	attachments, err := s.cloud.ServerAttachments(ctx, server)
	return lists(attachments, id), volume.IgnoreNotFound(err)
}

func lists(attachments []volume.Attachment, id volume.ID) bool {
	return slices.ContainsFunc(attachments, func(a volume.Attachment) bool { return a.Volume == id })
}

// readNovaState reads Nova's list for the server. It reads the server itself where the list lacks an attachment that Cinder shows, and which
// may be stale. It also reads a listed server whose volume may be reserved: the server may have no host. The state of an invalid server ID is
// unknown, never gone: the driver did not ask Nova for it.
func (s *Service) readNovaState(ctx context.Context, id volume.ID, server volume.ServerID, attachment volume.AttachStatus) (nova novaState, state string, why error) {
	if !server.Exists() {
		return novaUnknown, "", volume.Errorf(volume.Conflict, "the volume is attached to a host that is no Nova server").Cause(cause.DetachForeign)
	}
	attachments, err := s.cloud.ServerAttachments(ctx, server)
	switch {
	case err != nil && !volume.Is(err, volume.NotFound):
		return novaUnknown, "", err
	case lists(attachments, id) && slices.Contains(reservation, attachment):
		return s.readListedServer(ctx, server)
	case lists(attachments, id):
		return novaListed, "", nil
	case attachment != volume.AttachmentNone && attachment != volume.AttachmentHidden:
		return s.readServerState(ctx, server, err != nil)
	case err != nil:
		return novaServerGone, "", nil
	}
	return novaNotListed, "", nil
}

// readListedServer finds out whether a server that Nova lists the volume for has no host. Without an answer, it counts as one with a host: then the
// driver only waits.
func (s *Service) readListedServer(ctx context.Context, id volume.ServerID) (nova novaState, state string, why error) {
	server, err := s.cloud.Server(ctx, id)
	switch {
	case err != nil:
		return novaListed, "", nil
	case server.Status == "SHELVED_OFFLOADED" && server.TaskState == "":
		return novaListedOffloaded, server.Status, nil
	}
	return novaListed, server.Status, nil
}

// readServerState finds out whether a server exists and is idle, after its list was missing or did not have the volume. Nova shows
// UNKNOWN for a server whose cell is down; such a server may have the volume.
func (s *Service) readServerState(ctx context.Context, id volume.ServerID, listMissing bool) (nova novaState, state string, why error) {
	server, err := s.cloud.Server(ctx, id)
	switch {
	case volume.Is(err, volume.NotFound):
		return novaServerGone, "", nil
	case err != nil:
		return novaUnknown, "", err
	case listMissing || server.Status == "UNKNOWN":
		return novaUnknown, server.Status, volume.Errorf(volume.Unavailable, "Nova cannot list the volumes of server %s, which is in status %s", id, server.Status).Cause(cause.CloudUnreachable)
	case server.TaskState != "":
		return novaServerChanging, server.Status + ", " + server.TaskState, nil
	case slices.Contains(idleStatuses, server.Status):
		return novaNotListed, server.Status, nil
	}
	return novaServerChanging, server.Status, nil
}

// idleStatuses are the statuses of a server whose volumes Nova changes on request only (Nova API reference, "Server status").
var idleStatuses = []string{"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "RESCUE", "SHELVED", "SHELVED_OFFLOADED", "ERROR"}

// String describes the observation, as the end of a sentence about the volume.
func (seen observation) String() string {
	text := "Cinder shows no attachment to server " + string(seen.server)
	switch {
	case seen.attachment.Status == volume.AttachmentHidden:
		text = "Cinder does not show its attachments"
	case seen.attachment.Status != volume.AttachmentNone:
		text = fmt.Sprintf("Cinder shows attachment %s to server %s in status %s", seen.attachment.ID, seen.server, seen.attachment.Status)
	}
	switch seen.nova {
	case novaListed, novaListedOffloaded:
		text += "; Nova lists the volume for this server"
	case novaNotListed, novaServerChanging:
		text += "; Nova does not list the volume for this server"
	case novaServerGone:
		text += "; Nova has no such server"
	case novaUnknown:
		text += "; the state in Nova is unknown"
	}
	if seen.serverState != "" {
		text += ", and the server is " + seen.serverState
	}
	for _, a := range seen.others {
		to := "server " + string(a.Server)
		if !a.Server.Exists() {
			to = "a host that is no Nova server"
		}
		text += fmt.Sprintf("; attachment %s to %s is %s", a.ID, to, a.Status)
	}
	if seen.moreOthers > 0 {
		text += fmt.Sprintf("; and %d more", seen.moreOthers)
	}
	return text
}
