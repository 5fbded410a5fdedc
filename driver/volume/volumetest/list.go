package volumetest

import (
	"cmp"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// sorted returns copies of the objects that match, in the order of Cinder: by creation time, then ID, both descending.
func sorted[I ~string, T any](c *Cloud, objects map[I]*T, position func(T) volume.PagePosition[I], match func(T) bool) []T {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var all []T
	for _, object := range objects {
		if match(*object) {
			all = append(all, *object)
		}
	}
	slices.SortFunc(all, func(a, b T) int {
		x, y := position(a), position(b)
		return cmp.Or(y.Created.Compare(x.Created), cmp.Compare(y.After, x.After))
	})
	return all
}

// largestPage is how many objects a page holds at most, whatever the limit is.
const largestPage = 3

// pageOf returns one page of a list, and whether more objects follow. NotFound where the object of the marker is gone.
func pageOf[I ~string, T any](all []T, position func(T) volume.PagePosition[I], marker I, limit int) (page []T, more bool, err error) {
	if marker != "" {
		i := slices.IndexFunc(all, func(object T) bool { return position(object).After == marker })
		if i < 0 {
			return nil, false, volume.Errorf(volume.NotFound, "the marker %s does not exist", marker)
		}
		all = all[i+1:]
	}
	size := largestPage
	if limit > 0 {
		size = min(size, limit)
	}
	size = min(size, len(all))
	return all[:size], len(all) > size, nil
}

// snapshotPage returns a page of snapshots or backups.
func (c *Cloud) snapshotPage(objects map[volume.SnapshotID]*volume.Snapshot, page volume.SnapshotPage) ([]volume.Snapshot, error) {
	all := sorted(c, objects, volume.SnapshotPagePosition, func(p volume.Snapshot) bool { return page.Volume == "" || p.Volume == page.Volume })
	found, _, err := pageOf(all, volume.SnapshotPagePosition, page.Marker, page.Limit)
	return found, err
}

// snapshotsNamed returns the snapshots or backups of that name.
func (c *Cloud) snapshotsNamed(objects map[volume.SnapshotID]*volume.Snapshot, name string) []volume.Snapshot {
	return sorted(c, objects, volume.SnapshotPagePosition, func(p volume.Snapshot) bool { return p.Name == name })
}
