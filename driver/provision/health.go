package provision

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// statusIssues says what is wrong with a volume in each status that does not change by itself (Cinder API reference, "Volume statuses"). A
// server may still be able to use an attached volume in such a status.
var statusIssues = map[volume.Status]struct{ reason, advice string }{
	"error":                   {"Error", "the backend lost it or could not create it; an administrator must find the cause and reset the status"},
	"error_deleting":          {"ErrorDeleting", "somebody deleted it and the backend could not; its data may be gone"},
	"error_restoring":         {"ErrorRestoring", "Cinder did not restore its backup completely; delete it and restore the backup again"},
	"error_extending":         {"ErrorExtending", "Cinder could not expand it; an administrator must check its size in the backend and reset the status"},
	"error_backing-up":        {"ErrorBackingUp", "a backup of it failed; an administrator must reset the status"},
	"error_managing":          {"ErrorManaging", "Cinder could not import it from its backend; an administrator must find the cause"},
	"error_managing_deleting": {"ErrorManagingDeleting", "Cinder could not remove it from its management; an administrator must find the cause"},
	"awaiting-transfer":       {"AwaitingTransfer", "it is offered to another project; cancel the transfer to use it again"},
}

// Health reads one volume and what is wrong with it. NotFound where the volume does not exist.
func (s *Service) Health(ctx context.Context, id volume.ID) (volume.Health, error) {
	v, err := s.Get(ctx, id)
	if err != nil {
		return volume.Health{}, err
	}
	missing := map[volume.ServerID]bool{}
	if err := s.missingServers(ctx, []volume.Volume{v}, missing); err != nil {
		return volume.Health{}, err
	}
	h := healthOf(v, missing)
	if _, faulty := statusIssues[v.Status]; faulty {
		h.Issues[0].Message += s.volumes.FailureReason(ctx, id)
	}
	return h, nil
}

// ListHealth reads a page of volumes as List does, and what is wrong with each. Only Health adds the message of Cinder about the cause. Missing has the
// servers that earlier pages named, and whether Nova lacks each.
func (s *Service) ListHealth(ctx context.Context, p volume.Position, missing map[volume.ServerID]bool) ([]volume.Health, bool, error) {
	page, more, err := s.List(ctx, p, 0)
	if err != nil {
		return nil, false, err
	}
	if err := s.missingServers(ctx, page, missing); err != nil {
		return nil, false, err
	}
	health := make([]volume.Health, len(page))
	for i, v := range page {
		health[i] = healthOf(v, missing)
	}
	return health, more, nil
}

func healthOf(v volume.Volume, missing map[volume.ServerID]bool) volume.Health {
	h := volume.Health{Volume: v}
	if issue, faulty := statusIssues[v.Status]; faulty {
		severity := volume.Inaccessible
		if len(v.Attachments) > 0 {
			severity = volume.Degraded
		}
		h.Issues = append(h.Issues, volume.HealthIssue{Severity: severity, Reason: issue.reason, Message: fmt.Sprintf("the volume is in status %s: %s", v.Status, issue.advice)})
	}
	if v.RestoreFrom != "" {
		h.Issues = append(h.Issues, volume.HealthIssue{Severity: volume.Inaccessible, Reason: "NotRestored", Message: "the volume does not have the data of backup " + v.RestoreFrom +
			" yet. The driver restores it while the claim waits for its volume. If nobody needs the volume, delete it"})
	}
	var servers []string
	for _, a := range v.Attachments {
		if missing[a.Server] {
			servers = append(servers, string(a.Server))
		}
	}
	if len(servers) > 0 {
		severity := volume.Inaccessible
		if v.Multiattach {
			severity = volume.Degraded
		}
		h.Issues = append(h.Issues, volume.HealthIssue{Severity: severity, Reason: "AttachedToMissingServer", Message: fmt.Sprintf("Cinder shows the volume as attached to server %s, which does not exist in Nova. "+
			"Delete its VolumeAttachment to detach it, or ask an administrator of the cloud to delete the attachment", volume.Few(servers))})
	}
	return h
}

// parallelServers is how many servers the driver reads at the same time, and mostServers how many for one call. The cloud chooses how many
// attachments it shows; further servers count as existing.
const parallelServers, mostServers = 8, 1000

// missingServers adds the servers that volumes are attached to, and whether Nova lacks each, to those that are known. A server that the driver may not
// read counts as existing.
func (s *Service) missingServers(ctx context.Context, volumes []volume.Volume, known map[volume.ServerID]bool) error {
	var ids []volume.ServerID
	for _, v := range volumes {
		for _, a := range v.Attachments {
			if _, asked := known[a.Server]; a.Server.Exists() && !asked { // an attachment to a host has no Nova server
				ids = append(ids, a.Server)
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	ids = ids[:max(0, min(len(ids), mostServers-len(known)))]
	isMissing := make([]bool, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelServers)
	for i, id := range ids {
		group.Go(func() error {
			err := panics.Try(func() error {
				_, err := s.cloud.Server(ctx, id)
				return err
			})
			switch volume.KindOf(err) {
			case volume.NotFound:
				isMissing[i] = true
			case volume.PermissionDenied, volume.Unimplemented:
			default:
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, id := range ids {
		known[id] = isMissing[i]
	}
	return nil
}
