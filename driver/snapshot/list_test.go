package snapshot

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestListContinuesWhereItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		other := cloudtest.SourceVolume
		other.ID = cloudtest.VolumeID(2)
		c := cloudtest.NewWith(t, pagesOfThree, cloudtest.SourceVolume, other)
		for n := range 9 {
			p := cloudtest.OwnSnapshot(n, volume.Available)
			p.CreatedAt = begin.Add(-time.Duration(n/2) * time.Second) // two of each second
			p.Volume = cloudtest.VolumeID(1 + n%2)
			c.WithSnapshots(p)
		}
		for of, want := range map[volume.ID]int{"": 9, cloudtest.VolumeID(1): 5, cloudtest.VolumeID(2): 4, cloudtest.VolumeID(3): 0, "x": 0} {
			s, seen, at := snapshots(c), map[volume.SnapshotID]bool{}, volume.SnapshotPosition{}
			for {
				page, err := s.List(t.Context(), of, at, 2)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				for _, p := range page {
					if seen[p.ID] || of != "" && p.Volume != of {
						t.Errorf("of %q: %v", of, p)
					}
					seen[p.ID] = true
				}
				at = volume.SnapshotPositionOf(page[len(page)-1])
				c.Sim.Discard(string(at.After)) // the marker vanishes
			}
			if len(seen) != want {
				t.Errorf("of %q: %d snapshots, want %d", of, len(seen), want)
			}
			for n := range 9 {
				p := cloudtest.OwnSnapshot(n, volume.Available)
				p.CreatedAt, p.Volume = begin.Add(-time.Duration(n/2)*time.Second), cloudtest.VolumeID(1+n%2)
				c.WithSnapshots(p)
			}
		}
		if _, err := snapshots(c).List(t.Context(), "", volume.SnapshotPosition{PagePosition: volume.PagePosition[volume.SnapshotID]{After: cloudtest.SnapshotID(77)}}, 2); !volume.Is(err, volume.NotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func TestGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, volume.Creating))
		if p, err := snapshots(c).Get(t.Context(), cloudtest.SnapshotID(1)); err != nil || p.Ready() || !p.Alive() {
			t.Errorf("got %v, %v", p, err)
		}
		for _, id := range []volume.SnapshotID{cloudtest.SnapshotID(2), "../types"} {
			if _, err := snapshots(c).Get(t.Context(), id); !volume.Is(err, volume.NotFound) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestListReturnsSnapshotsThenBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, other := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), cloudtest.SourceVolume
		other.ID = cloudtest.VolumeID(2)
		for _, of := range []volume.ID{"", cloudtest.VolumeID(1), cloudtest.VolumeID(2)} {
			for _, vanish := range []bool{false, true} {
				c, want := cloudtest.NewWith(t, pagesOfThree, cloudtest.SourceVolume, other), 0
				for n := range 10 {
					p := volume.Snapshot{ID: cloudtest.SnapshotID(n), Status: volume.Available, CreatedAt: begin.Add(time.Duration(n/2) * time.Second), Volume: cloudtest.VolumeID(1 + n%2)}
					if of == "" || of == p.Volume {
						want++
					}
					if n < 5 {
						c.WithSnapshots(p)
					} else {
						c.WithBackups(p)
					}
				}
				s, seen, at := snapshots(c), []volume.SnapshotID{}, volume.SnapshotPosition{}
				for {
					page, err := s.List(t.Context(), of, at, 2)
					if err != nil {
						t.Fatal(err)
					}
					if len(page) == 0 {
						break
					}
					for _, p := range page {
						if slices.Contains(seen, p.ID) || p.Backup != (p.ID >= cloudtest.SnapshotID(5)) {
							t.Errorf("of %q: %v", of, p)
						}
						seen = append(seen, p.ID)
					}
					if at = volume.SnapshotPositionOf(page[len(page)-1]); vanish {
						c.Sim.Discard(string(at.After))
						c.Sim.Discard(string(at.After))
					}
				}
				if len(seen) != want {
					t.Errorf("of %q: %v, want %d", of, seen, want)
				}
			}
		}
	})
}

// A list without the backups would tell a sidecar that they are gone.
func TestAListWhoseBackupsCannotBeReadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume)
		c.Fail["Backups"] = volume.Errorf(volume.Unavailable, "down")
		_, err := snapshots(c).List(cloudtest.Within(t, 60), "", volume.SnapshotPosition{}, 0)
		cloudtest.WantKind(t, err, volume.Unavailable, false)
	})
}
