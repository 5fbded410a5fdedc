package observe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/observe"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// pagesOf reads a list of volumes in pages of two, as Cinder does: 404 for a marker that does not exist.
func pagesOf(all []volume.Volume) func(after volume.ID, limit int) ([]volume.Volume, error) {
	return func(after volume.ID, limit int) ([]volume.Volume, error) {
		from := 0
		for after != "" && (from == 0 || all[from-1].ID != after) {
			if from++; from > len(all) {
				return nil, volume.NoVolume(after)
			}
		}
		if limit == 0 || limit > 2 {
			limit = 2
		}
		return all[from:min(from+limit, len(all))], nil
	}
}

func TestPageFromContinuesAfterAnObjectThatNoLongerExists(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 11, 22, 8, 0, second, 0, time.UTC) }
	all := []volume.Volume{{ID: "e", CreatedAt: at(5)}, {ID: "d", CreatedAt: at(3)}, {ID: "b", CreatedAt: at(3)}, {ID: "a", CreatedAt: at(1)}}
	for name, test := range map[string]struct {
		position volume.Position
		limit    int
		want     []volume.ID
	}{
		"from the beginning":        {want: []volume.ID{"e", "d"}},
		"after an object":           {position: volume.Position{After: "e", Created: at(5)}, want: []volume.ID{"d", "b"}},
		"after one that is gone":    {position: volume.Position{After: "x", Created: at(4)}, want: []volume.ID{"d"}},
		"of the same second":        {position: volume.Position{After: "c", Created: at(3)}, want: []volume.ID{"b", "a"}},
		"with a limit":              {position: volume.Position{After: "c", Created: at(3)}, limit: 1, want: []volume.ID{"b"}},
		"after the oldest, is gone": {position: volume.Position{After: "x", Created: at(0)}},
	} {
		page, err := observe.PageFrom(test.position, test.limit, volume.PositionOf, pagesOf(all))
		var got []volume.ID
		for _, v := range page {
			got = append(got, v.ID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got\n%s", name, err, diff)
		}
	}
}

func TestPageFromReturnsNotFoundWithoutACreationTime(t *testing.T) {
	t.Parallel()
	_, err := observe.PageFrom(volume.Position{After: "x"}, 0, volume.PositionOf, pagesOf(nil))
	cloudtest.WantKind(t, err, volume.NotFound, false)
}

func TestPageFromReportsAListThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	now := time.Now()
	_, err := observe.PageFrom(volume.Position{After: "gone", Created: now}, 0, volume.PositionOf, func(after volume.ID, _ int) ([]volume.Volume, error) {
		if after == "gone" {
			return nil, volume.NoVolume(after)
		}
		return []volume.Volume{{ID: "a", CreatedAt: now.Add(time.Second)}}, nil
	})
	cloudtest.WantKind(t, err, volume.Unavailable, false)
}
