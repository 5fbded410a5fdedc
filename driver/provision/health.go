package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"golang.org/x/sync/errgroup"
)

// What is wrong with a volume in each status that stays until somebody acts. One that a server still has may go on working there.
var statusIssues = map[volume.Status]struct{ reason, advice string }{
	"error":                   {"Error", "the backend lost it or could not make it; an administrator must look, and reset its status once it is well"},
	"error_deleting":          {"ErrorDeleting", "somebody deleted it and the backend could not; what it holds may be gone"},
	"error_restoring":         {"ErrorRestoring", "its backup was not restored completely; delete it and restore it again"},
	"error_extending":         {"ErrorExtending", "it did not grow; an administrator must look at its size in the backend and reset its status"},
	"error_backing-up":        {"ErrorBackingUp", "a backup of it failed; an administrator must reset its status"},
	"error_managing":          {"ErrorManaging", "Cinder could not take it over from its backend; an administrator must look"},
	"error_managing_deleting": {"ErrorManagingDeleting", "Cinder could not let go of it; an administrator must look"},
	"awaiting-transfer":       {"AwaitingTransfer", "it was offered to another project; cancel the transfer to use it again"},
}

// Health reads one volume and what is wrong with it. NotFound where there is none.
func (s *Service) Health(ctx context.Context, id volume.ID) (volume.Health, error) {
	v, err := s.Get(ctx, id)
	if err != nil {
		return volume.Health{}, err
	}
	gone, err := s.goneServers(ctx, []volume.Volume{v})
	if err != nil {
		return volume.Health{}, err
	}
	h := healthOf(v, gone)
	if _, ill := statusIssues[v.Status]; ill {
		h.Issues[0].Message += s.volumes.FailureReason(ctx, id)
	}
	return h, nil
}

// ListHealth reads a page of the project's volumes as List does, and what is wrong with each. Why an object is in an error it leaves
// to Health.
func (s *Service) ListHealth(ctx context.Context, p volume.Position, limit int) ([]volume.Health, error) {
	page, err := s.List(ctx, p, limit)
	if err != nil {
		return nil, err
	}
	gone, err := s.goneServers(ctx, page)
	if err != nil {
		return nil, err
	}
	all := make([]volume.Health, len(page))
	for i, v := range page {
		all[i] = healthOf(v, gone)
	}
	return all, nil
}

func healthOf(v volume.Volume, gone map[volume.ServerID]bool) volume.Health {
	h := volume.Health{Volume: v}
	if a, ill := statusIssues[v.Status]; ill {
		severity := volume.Inaccessible
		if len(v.Attachments) > 0 {
			severity = volume.Degraded
		}
		h.Issues = append(h.Issues, volume.HealthIssue{Severity: severity, Reason: a.reason, Message: fmt.Sprintf("the volume is in status %s: %s", v.Status, a.advice)})
	}
	var missing []string
	for _, a := range v.Attachments {
		if gone[a.Server] {
			missing = append(missing, string(a.Server))
		}
	}
	if len(missing) > 0 {
		severity := volume.Inaccessible
		if v.Multiattach {
			severity = volume.Degraded
		}
		h.Issues = append(h.Issues, volume.HealthIssue{Severity: severity, Reason: "AttachedToMissingServer", Message: fmt.Sprintf("Cinder has the volume attached to server %s, which Nova does not know; "+
			"detach it from there by deleting its VolumeAttachment, or have an administrator delete the attachment", strings.Join(missing, ", "))})
	}
	return h
}

// parallelServers is how many servers are looked at at a time.
const parallelServers = 8

// goneServers says which of the servers that volumes are attached to do not exist. One that we may not look at counts as there.
func (s *Service) goneServers(ctx context.Context, volumes []volume.Volume) (map[volume.ServerID]bool, error) {
	var ids []volume.ServerID
	for _, v := range volumes {
		for _, a := range v.Attachments {
			if a.Server.Exists() { // a host that is none of Nova's is not gone
				ids = append(ids, a.Server)
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	missing := make([]bool, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelServers)
	for i, id := range ids {
		group.Go(func() error {
			_, err := s.cloud.Server(ctx, id)
			switch volume.KindOf(err) {
			case volume.NotFound:
				missing[i] = true
			case volume.PermissionDenied, volume.Unimplemented:
			default:
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	gone := map[volume.ServerID]bool{}
	for i, id := range ids {
		gone[id] = missing[i]
	}
	return gone, nil
}
