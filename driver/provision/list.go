package provision

import (
	"context"
	"fmt"

	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// List reads at most limit volumes of the project after position p, also those that others created (CSI specification, ListVolumes). Limit 0 means all
// of them, and then it returns only IDs, sizes, statuses and servers. With a limit only an empty page is the end of the list: a cloud may
// return fewer volumes than asked for. NotFound where the volume of p is gone and p lacks its creation time.
func (s *Service) List(ctx context.Context, p volume.Position, limit int) ([]volume.Volume, error) {
	if limit > 0 {
		page, _, err := s.listFrom(ctx, p, limit, nil)
		return page, err
	}
	var all []volume.Volume
	attachments := 0
	servers := func(of []volume.Attachment) (only []volume.Attachment) { // a cloud chooses how long the other texts are
		for _, a := range of {
			only = append(only, volume.Attachment{Server: a.Server})
		}
		return only
	}
	err := s.walk(ctx, p, nil, func(page []volume.Volume) bool {
		for _, v := range page {
			attachments += len(v.Attachments)
			all = append(all, volume.Volume{ID: v.ID, Size: v.Size, Status: v.Status, Multiattach: v.Multiattach, Attachments: servers(v.Attachments), CreatedAt: v.CreatedAt})
		}
		return attachments <= paging.MaxItems
	})
	if err == nil && attachments > paging.MaxItems {
		err = endlessVolumes(fmt.Errorf("%w: its volumes have more than %d attachments", paging.ErrEndless, paging.MaxItems))
	}
	return all, err
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
