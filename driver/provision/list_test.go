package provision

import (
	"context"
	"slices"
	"strings"
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
		page, more, err := s.List(t.Context(), p, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page {
			for n := 1; n <= 7; n++ {
				if v.ID == cloudtest.VolumeID(n) {
					seen = append(seen, n)
				}
			}
		}
		if !more {
			return seen
		}
		p = volume.PositionOf(page[len(page)-1])
		if deletions > 0 {
			c.Remove(p.After)
			deletions--
		}
	}
}

func TestListFromADeletedVolumeNeedsItsCreationTime(t *testing.T) {
	_, _, err := service(sevenVolumes(t)).List(t.Context(), volume.Position{After: cloudtest.VolumeID(9)}, 0)
	cloudtest.WantKind(t, err, volume.NotFound, false)
}

// An RPC keeps a list while it reads servers, and external-attacher asks for all volumes. A cloud chooses how long the texts of a volume are.
func TestAListKeepsOnlyWhatItsCallersUse(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	backup := string(cloudtest.SnapshotID(1))
	shown := volume.Volume{
		ID: cloudtest.VolumeID(1), Name: long, Status: volume.Status(long), Size: volume.GiB(1), Zone: long, Type: long, Multiattach: true, Description: long, RestoreFrom: backup,
		Metadata: map[string]string{"key": long}, Attachments: []volume.Attachment{{ID: long, Server: cloudtest.ServerA, Host: long, Device: long}, {Server: volume.ServerID(long)}},
	}
	want := volume.Volume{
		ID: shown.ID, Status: volume.Status(long).Short(), Size: shown.Size, Multiattach: true, RestoreFrom: backup, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}, {}},
	}
	for _, limit := range []int{0, 1} {
		page, _, err := New(oneVolume{shown: shown}, nil, Options{}).List(t.Context(), volume.Position{}, limit)
		if diff := cmp.Diff([]volume.Volume{want}, page); diff != "" || err != nil {
			t.Errorf("limit %d: %v, (-want +got):\n%s", limit, err, diff)
		}
	}
}

// An RPC keeps a page, and a cloud chooses how many attachments it shows.
func TestAPageHasABoundedNumberOfAttachments(t *testing.T) {
	for attachments, kind := range map[int]volume.Kind{100: volume.Unknown, 101: volume.Unavailable} {
		shown := volume.Volume{ID: cloudtest.VolumeID(1), Attachments: make([]volume.Attachment, attachments)}
		_, _, err := New(oneVolume{shown: shown, times: mostAttachments / 100}, nil, Options{}).List(t.Context(), volume.Position{}, 0)
		if volume.KindOf(err) != kind {
			t.Errorf("%d attachments of each volume: %v", attachments, err)
		}
	}
}

// oneVolume is a cloud whose list has a volume once, or some times.
type oneVolume struct {
	volume.Cloud
	shown volume.Volume
	times int
}

func (c oneVolume) Select(context.Context, volume.Selection) ([]volume.Volume, bool, error) {
	return slices.Repeat([]volume.Volume{c.shown}, max(1, c.times)), false, nil
}
