package provision

import (
	"context"
	"fmt"

	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// List reads a page of at most limit volumes of the project after position p, also those that others created (CSI specification, ListVolumes).
// More is whether another page may follow. Limit 0 is the usual page of Cinder. With a limit only an empty page is the end of the list: a cloud may return
// fewer volumes than asked for. NotFound where the volume of p is gone and p lacks its creation time.
func (s *Service) List(ctx context.Context, p volume.Position, limit int) (page []volume.Volume, more bool, err error) {
	page, more, err = s.listFrom(ctx, p, limit, nil)
	attachments := 0
	for i, v := range page {
		attachments += len(v.Attachments)
		page[i] = listed(v)
	}
	if attachments > mostAttachments {
		return nil, false, endlessVolumes(fmt.Errorf("%w: the %d volumes of a page have more than %d attachments", paging.ErrEndless, len(page), mostAttachments))
	}
	return page, len(page) > 0 && (more || limit > 0), err
}

// mostAttachments are those of one page. A volume has one, or a few if it is shared.
const mostAttachments = 20_000

// listed is what the callers of a list use of a volume. A cloud chooses how much the rest is, and an RPC keeps all of the list.
func listed(v volume.Volume) volume.Volume {
	brief := volume.Volume{ID: v.ID, Size: v.Size, Multiattach: v.Multiattach, CreatedAt: v.CreatedAt}
	brief.Status = v.Status.Short()
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
