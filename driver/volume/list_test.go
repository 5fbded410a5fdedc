package volume

import (
	"slices"
	"testing"
	"time"
)

// seven volumes, of which 2 and 3 were made in the same second; the list is 7 6 5 4 3 2 1.
func sevenVolumes() *fakeCloud {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var all []Volume
	for n := 1; n <= 7; n++ {
		v := Volume{ID: id(n), Status: Available, CreatedAt: start.Add(time.Duration(n) * time.Second)}
		if n == 3 {
			v.CreatedAt = start.Add(2 * time.Second)
		}
		all = append(all, v)
	}
	return newCloud(all...)
}

func TestAWalkOverTheListSeesEveryVolumeOnce(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 5} {
		if got := walk(t, sevenVolumes(), limit, 0); !slices.Equal(got, []int{7, 6, 5, 4, 3, 2, 1}) {
			t.Errorf("limit %d: got %v", limit, got)
		}
	}
}

func TestAWalkGoesOnWhenTheLastVolumeOfEveryPageIsDeleted(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 5} {
		if got := walk(t, sevenVolumes(), limit, 9); !slices.Equal(got, []int{7, 6, 5, 4, 3, 2, 1}) {
			t.Errorf("limit %d: got %v", limit, got)
		}
	}
}

// walk lists page by page, and deletes the last volume of as many pages as are told.
func walk(t *testing.T, c *fakeCloud, limit, deletions int) []int {
	t.Helper()
	s := service(c)
	var seen []int
	for p := (Position{}); ; {
		page, err := s.List(t.Context(), p, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return seen
		}
		for _, v := range page {
			for n := 1; n <= 7; n++ {
				if v.ID == id(n) {
					seen = append(seen, n)
				}
			}
		}
		p = PositionOf(page[len(page)-1])
		if deletions > 0 {
			c.remove(p.After)
			deletions--
		}
	}
}

func TestAPositionWithoutATimeEndsWithItsVolume(t *testing.T) {
	_, err := service(sevenVolumes()).List(t.Context(), Position{After: id(9)}, 0)
	wantKind(t, err, NotFound, false)
}
