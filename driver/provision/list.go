package provision

import (
	"context"
	"fmt"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// List reads at most limit volumes of the project after position p, also those that others created (CSI specification, ListVolumes). Limit 0 means all
// of them. With a limit only an empty page is the end of the list: a cloud may return fewer volumes than asked for. NotFound where the volume of p is
// gone and p lacks its creation time.
func (s *Service) List(ctx context.Context, p volume.Position, limit int) ([]volume.Volume, error) {
	if limit > 0 {
		page, _, err := s.listFrom(ctx, p, limit, nil)
		for i, v := range page {
			page[i] = listed(v)
		}
		return page, err
	}
	var all []volume.Volume
	attachments := 0
	err := s.walk(ctx, p, nil, func(page []volume.Volume) bool {
		for _, v := range page {
			attachments += len(v.Attachments)
			all = append(all, listed(v))
		}
		return attachments <= paging.MaxItems
	})
	if err == nil && attachments > paging.MaxItems {
		err = endlessVolumes(fmt.Errorf("%w: its volumes have more than %d attachments", paging.ErrEndless, paging.MaxItems))
	}
	return all, err
}

// longestStatus is longer than each status of Cinder.
const longestStatus = 64

// listed is what the callers of a list use of a volume. A cloud chooses how much the rest is, and an RPC keeps all of the list.
func listed(v volume.Volume) volume.Volume {
	brief := volume.Volume{ID: v.ID, Size: v.Size, Multiattach: v.Multiattach, CreatedAt: v.CreatedAt}
	brief.Status = volume.Status(strings.Clone(string(v.Status[:min(len(v.Status), longestStatus)])))
	if volume.SnapshotID(v.RestoreFrom).Exists() {
		brief.RestoreFrom = v.RestoreFrom
	}
	for _, a := range v.Attachments {
		if !a.Server.Exists() {
			a.Server = ""
		}
		brief.Attachments = append(brief.Attachments, volume.Attachment{Server: a.Server})
	}
	return brief
}

// walk reads the volumes of the project after position p that have this metadata, page by page, until visit returns false.
func (s *Service) walk(ctx context.Context, p volume.Position, metadata map[string]string, visit func(page []volume.Volume) bool) error {
	return endlessVolumes(paging.Walk(paging.MaxItems, func(string) (page []volume.Volume, more bool, err error) {
		page, more, err = s.listFrom(ctx, p, 0, metadata)
		if len(page) > 0 {
			p = volume.PositionOf(page[len(page)-1])
		}
		return page, more, err
	}, func(v volume.Volume) string { return string(v.ID) }, visit))
}

func endlessVolumes(err error) error { return observe.EndlessList(err, "the project's volumes") }

// listFrom reads one page, and whether another page may follow.
func (s *Service) listFrom(ctx context.Context, p volume.Position, limit int, metadata map[string]string) (page []volume.Volume, more bool, err error) {
	page, err = observe.PageFrom(p, limit, volume.PositionOf, func(after volume.ID, limit int) (page []volume.Volume, err error) {
		page, more, err = s.cloud.Select(ctx, volume.Selection{Page: volume.Page{Marker: after, Limit: limit}, Metadata: metadata})
		return page, err
	})
	return page, more, err
}
