package volume

import (
	"context"
	"time"
)

// Position is a place in the project's list of volumes, right after one volume. The zero Position is the list's beginning.
type Position struct {
	After ID
	// Created is that volume's CreatedAt. With it the list goes on even when the volume itself is gone: Cinder answers 404 for
	// a marker that no longer exists.
	Created time.Time
}

// PositionOf is the place right after v.
func PositionOf(v Volume) Position { return Position{After: v.ID, Created: v.CreatedAt} }

// List reads at most limit of the project's volumes from p on, whoever made them; limit 0 means as many as Cinder gives in one
// answer. Only an empty answer is surely the list's end, since a cloud may give less than was asked for. NotFound when the
// volume of p is gone and p does not know when it was created.
func (s *Volumes) List(ctx context.Context, p Position, limit int) ([]Volume, error) {
	page, err := s.cloud.Volumes(ctx, Page{Marker: p.After, Limit: limit})
	if p.After == "" || p.Created.IsZero() || !Is(err, NotFound) {
		return page, err
	}
	return s.listBehind(ctx, p, limit)
}

// listBehind walks the list from its beginning to the first volumes behind p. Cinder's order is by creation time, then id, both
// descending.
func (s *Volumes) listBehind(ctx context.Context, p Position, limit int) ([]Volume, error) {
	marker := ID("")
	for {
		page, err := s.cloud.Volumes(ctx, Page{Marker: marker})
		if err != nil || len(page) == 0 {
			return nil, err
		}
		for i, v := range page {
			if v.CreatedAt.Before(p.Created) || v.CreatedAt.Equal(p.Created) && v.ID < p.After {
				rest := page[i:]
				if limit > 0 && len(rest) > limit {
					rest = rest[:limit]
				}
				return rest, nil
			}
		}
		marker = page[len(page)-1].ID
	}
}
