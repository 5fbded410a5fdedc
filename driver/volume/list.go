package volume

import (
	"context"
	"time"
)

// Place is a place in one of the project's lists, right after one object. The zero Place is the list's beginning.
type Place[I ~string] struct {
	After I
	// Created is that object's CreatedAt. With it the list goes on even when the object itself is gone: Cinder answers 404 for
	// a marker that no longer exists.
	Created time.Time
}

// Position is a place in the project's list of volumes.
type Position = Place[ID]

// PositionOf is the place right after v.
func PositionOf(v Volume) Position { return Position{After: v.ID, Created: v.CreatedAt} }

// List reads at most limit of the project's volumes from p on, whoever made them; limit 0 means all. With a limit only an empty
// answer is surely the list's end, since a cloud may give less than was asked for. NotFound when the volume of p is gone and p
// does not know when it was created.
func (s *Volumes) List(ctx context.Context, p Position, limit int) ([]Volume, error) {
	var all []Volume
	for {
		more := true
		page, err := pageFrom(p, limit, PositionOf, func(after ID, limit int) (page []Volume, err error) {
			if c, can := s.cloud.(Selector); can {
				page, more, err = c.Select(ctx, Selection{Page: Page{Marker: after, Limit: limit}})
				return page, err
			}
			return s.cloud.Volumes(ctx, Page{Marker: after, Limit: limit})
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if limit > 0 || len(page) == 0 || !more {
			return all, nil
		}
		p = PositionOf(page[len(page)-1])
	}
}

// pageFrom reads from p on. Where p's object is gone the list is walked from its beginning to the first object behind p: Cinder's
// order is by creation time, then id, both descending.
func pageFrom[I ~string, T any](p Place[I], limit int, placeOf func(T) Place[I], read func(after I, limit int) ([]T, error)) ([]T, error) {
	page, err := read(p.After, limit)
	if p.After == "" || p.Created.IsZero() || !Is(err, NotFound) {
		return page, err
	}
	var marker I
	for {
		page, err := read(marker, 0)
		if err != nil || len(page) == 0 {
			return nil, err
		}
		for i, object := range page {
			at := placeOf(object)
			if marker = at.After; at.Created.Before(p.Created) || at.Created.Equal(p.Created) && at.After < p.After {
				rest := page[i:]
				if limit > 0 && len(rest) > limit {
					rest = rest[:limit]
				}
				return rest, nil
			}
		}
	}
}
