package status

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// snapshotsOf is a cloud in which snapshots go after ten seconds.
type snapshotsOf struct {
	begin        time.Time
	ids          []volume.SnapshotID
	reads, lists atomic.Int32
}

func (c *snapshotsOf) Snapshot(_ context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	c.reads.Add(1)
	if time.Since(c.begin) >= 10*time.Second {
		return volume.Snapshot{}, volume.Errorf(volume.NotFound, "gone")
	}
	return volume.Snapshot{ID: id, Status: volume.Deleting}, nil
}

func (c *snapshotsOf) Snapshots(_ context.Context, page volume.SnapshotPage) ([]volume.Snapshot, bool, error) {
	c.lists.Add(1)
	if page.Marker != "" || time.Since(c.begin) >= 10*time.Second {
		return nil, false, nil
	}
	var all []volume.Snapshot
	for _, id := range c.ids {
		all = append(all, volume.Snapshot{ID: id, Status: volume.Deleting})
	}
	return all, false, nil
}

func snapshotGone(_ volume.Snapshot, ok bool) (bool, error) { return !ok, nil }

func TestSnapshotsAreAwaitedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &snapshotsOf{begin: time.Now()}
		for n := range 50 {
			c.ids = append(c.ids, volume.SnapshotID(fmt.Sprint("snapshot ", n)))
		}
		hub := NewSnapshotHub(c)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = hub.Run(ctx) }()
		var group sync.WaitGroup
		for _, id := range c.ids {
			group.Go(func() {
				if p, err := hub.Await(ctx, id, snapshotGone); err != nil {
					t.Errorf("%s: %v, %v", id, p, err)
				}
			})
		}
		group.Wait()
		// Absence from a list proves nothing: each that is missing there is read once.
		if took := time.Since(c.begin); took > 12*time.Second || c.lists.Load() > 45 || c.reads.Load() > 60 {
			t.Errorf("%d lists and %d reads in %v", c.lists.Load(), c.reads.Load(), took)
		}
	})
}

func TestAWaitForASnapshotThatDoesNotEndSaysHowItLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := NewSnapshotHub(&snapshotsOf{begin: time.Now()})
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = hub.Run(ctx) }()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := hub.Await(short, "s", snapshotGone)
		if !volume.Is(err, volume.DeadlineExceeded) || !strings.Contains(err.Error(), "snapshot s: its status is deleting") {
			t.Errorf("got %v", err)
		}
		stop()
		synctest.Wait()
		if _, err := hub.Await(t.Context(), "s", snapshotGone); !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), "snapshot s") {
			t.Errorf("after the end: %v", err)
		}
	})
}
