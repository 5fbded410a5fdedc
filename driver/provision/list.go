package provision

import (
	"context"
	"fmt"

	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud/paging"
)

// List reads at most limit volumes of the project after position p, also those that others created (CSI specification, ListVolumes). Limit 0 means all
// of them, and then it returns only IDs, sizes, statuses and attachments. With a limit only an empty page is the end of the list: a cloud may
// return fewer volumes than asked for. NotFound where the volume of p is gone and p lacks its creation time.
func (s *Service) List(ctx context.Context, p volume.Position, limit int) ([]volume.Volume, error) {
	if limit > 0 {
		page, _, err := s.listFrom(ctx, p, limit)
		return page, err
	}
	var all []volume.Volume
	attachments := 0
	err := paging.Walk(paging.MaxItems, func(string) (page []volume.Volume, more bool, err error) {
		page, more, err = s.listFrom(ctx, p, 0)
		if len(page) > 0 {
			p = volume.PositionOf(page[len(page)-1])
		}
		return page, more, err
	}, func(v volume.Volume) string { return string(v.ID) }, func(page []volume.Volume) bool {
		for _, v := range page {
			attachments += len(v.Attachments)
			all = append(all, volume.Volume{ID: v.ID, Size: v.Size, Status: v.Status, Multiattach: v.Multiattach, Attachments: v.Attachments, CreatedAt: v.CreatedAt})
		}
		return attachments <= paging.MaxItems
	})
	if err == nil && attachments > paging.MaxItems {
		err = fmt.Errorf("%w: its volumes have more than %d attachments", paging.ErrEndless, paging.MaxItems)
	}
	return all, observe.EndlessList(err, "the project's volumes")
}

// listFrom reads one page, and whether another page may follow.
func (s *Service) listFrom(ctx context.Context, p volume.Position, limit int) (page []volume.Volume, more bool, err error) {
	page, err = observe.PageFrom(p, limit, volume.PositionOf, func(after volume.ID, limit int) (page []volume.Volume, err error) {
		page, more, err = s.cloud.Select(ctx, volume.Selection{Page: volume.Page{Marker: after, Limit: limit}})
		return page, err
	})
	return page, more, err
}
