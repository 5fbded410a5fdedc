package observe

import (
	"errors"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// EndlessList turns paging.ErrEndless into an Unavailable error that names the listed objects. It returns any other error unchanged.
func EndlessList(err error, objects string) error {
	if !errors.Is(err, paging.ErrEndless) {
		return err
	}
	return volume.Errorf(volume.Unavailable, "%s: %w; Cinder or a proxy in front of it is faulty, report this to the cloud administrator", objects, err).Cause(cause.CloudAnswer).Op("list")
}

// PageFrom reads one page of at most limit objects that starts after a position; a limit of 0 leaves the size to Cinder. If the object of
// the position no longer exists, PageFrom lists from the beginning and skips to the first object after it. Cinder lists by creation
// time, then ID, both descending.
func PageFrom[I ~string, T any](p volume.PagePosition[I], limit int, positionOf func(T) volume.PagePosition[I], read func(after I, limit int) ([]T, error)) ([]T, error) {
	page, err := read(p.After, limit)
	if p.After == "" || p.Created.IsZero() || !volume.Is(err, volume.NotFound) {
		return page, err
	}
	var rest []T
	err = paging.Walk(paging.MaxItems, func(marker string) ([]T, bool, error) {
		page, err := read(I(marker), 0)
		return page, true, err
	}, func(object T) string { return string(positionOf(object).After) }, func(page []T) bool {
		first := slices.IndexFunc(page, func(object T) bool {
			at := positionOf(object)
			return at.Created.Before(p.Created) || at.Created.Equal(p.Created) && at.After < p.After
		})
		if first < 0 {
			return true
		}
		rest = page[first:]
		return false
	})
	if limit > 0 && len(rest) > limit {
		rest = rest[:limit]
	}
	return rest, EndlessList(err, "the objects after one that no longer exists")
}
