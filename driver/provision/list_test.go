package provision

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// seven volumes, of which 2 and 3 were made in the same second; the list is 7 6 5 4 3 2 1.
func sevenVolumes(t *testing.T) *cloudtest.Cloud {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var all []volume.Volume
	for n := 1; n <= 7; n++ {
		v := volume.Volume{ID: cloudtest.VolumeID(n), Status: volume.Available, Size: volume.GiB(1), CreatedAt: start.Add(time.Duration(n) * time.Second)}
		if n == 3 {
			v.CreatedAt = start.Add(2 * time.Second)
		}
		all = append(all, v)
	}
	return cloudtest.NewWith(t, func(config *openstacksim.Config) { config.PageSize = 3 }, all...)
}

func TestListPagesHoldEveryVolumeOnce(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 5} {
		if got := walk(t, sevenVolumes(t), limit, 0); !slices.Equal(got, []int{7, 6, 5, 4, 3, 2, 1}) {
			t.Errorf("limit %d: got %v", limit, got)
		}
	}
}

func TestListContinuesWhereTheLastVolumeOfAPageIsDeleted(t *testing.T) {
	for _, limit := range []int{0, 1, 2, 5} {
		if got := walk(t, sevenVolumes(t), limit, 9); !slices.Equal(got, []int{7, 6, 5, 4, 3, 2, 1}) {
			t.Errorf("limit %d: got %v", limit, got)
		}
	}
}

// walk lists page by page. It deletes the last volume of the first pages, as many as deletions says.
func walk(t *testing.T, c *cloudtest.Cloud, limit, deletions int) []int {
	t.Helper()
	s := service(c)
	var seen []int
	for p := (volume.Position{}); ; {
		page, err := s.List(t.Context(), p, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return seen
		}
		for _, v := range page {
			for n := 1; n <= 7; n++ {
				if v.ID == cloudtest.VolumeID(n) {
					seen = append(seen, n)
				}
			}
		}
		p = volume.PositionOf(page[len(page)-1])
		if deletions > 0 {
			c.Remove(p.After)
			deletions--
		}
	}
}

func TestListFromADeletedVolumeNeedsItsCreationTime(t *testing.T) {
	_, err := service(sevenVolumes(t)).List(t.Context(), volume.Position{After: cloudtest.VolumeID(9)}, 0)
	cloudtest.WantKind(t, err, volume.NotFound, false)
}

// external-attacher asks for all volumes. A cloud chooses how long the texts of their attachments are, so only the servers stay.
func TestAListOfAllVolumesKeepsOfAttachmentsTheServersAlone(t *testing.T) {
	c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Size: volume.GiB(1), Attachments: []volume.Attachment{{Server: cloudtest.ServerA, Device: "/dev/vdb"}}})
	page, err := service(c).List(t.Context(), volume.Position{}, 0)
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	if diff := cmp.Diff([]volume.Attachment{{Server: cloudtest.ServerA}}, page[0].Attachments); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
