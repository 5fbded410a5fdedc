package observe

import (
	"errors"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud/paging"
)

// endless turns the error of a list that does not end into one that a retry may find repaired; other errors stay as they are.
func EndlessList(err error, object string) error {
	if !errors.Is(err, paging.ErrEndless) {
		return err
	}
	return volume.Errorf(volume.Unavailable, "%s: %w; Cinder, or a proxy before it, is broken: tell the administrator of the cloud", object, err).Op("list")
}

// pageFrom reads from p on. Where p's object is gone the list is walked from its beginning to the first object behind p: Cinder's
// order is by creation time, then id, both descending.
func PageFrom[I ~string, T any](p volume.PagePosition[I], limit int, placeOf func(T) volume.PagePosition[I], read func(after I, limit int) ([]T, error)) ([]T, error) {
	page, err := read(p.After, limit)
	if p.After == "" || p.Created.IsZero() || !volume.Is(err, volume.NotFound) {
		return page, err
	}
	var rest []T
	err = paging.Walk(paging.MaxItems, func(marker string) ([]T, bool, error) {
		page, err := read(I(marker), 0)
		return page, true, err
	}, func(object T) string { return string(placeOf(object).After) }, func(page []T) bool {
		behind := slices.IndexFunc(page, func(object T) bool {
			at := placeOf(object)
			return at.Created.Before(p.Created) || at.Created.Equal(p.Created) && at.After < p.After
		})
		if behind < 0 {
			return true
		}
		rest = page[behind:]
		return false
	})
	if limit > 0 && len(rest) > limit {
		rest = rest[:limit]
	}
	return rest, EndlessList(err, "the list behind an object that is gone")
}
