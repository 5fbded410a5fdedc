package snapshot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// guarded is a waiter that asks whose the backup is once the wait ends, as driver/ownership does. The answer takes some time.
type guarded struct {
	backup volume.Snapshot
	takes  time.Duration
	refuse error
}

func (g guarded) Await(ctx context.Context, _ volume.SnapshotID, done func(volume.Snapshot, bool) (bool, error)) (volume.Snapshot, error) {
	for {
		if ended, err := done(g.backup, true); ended || err != nil {
			time.Sleep(g.takes)
			return volume.Snapshot{}, errors.Join(g.refuse, err)
		}
		select {
		case <-ctx.Done():
			return volume.Snapshot{}, volume.Interrupted(ctx, "backup: a retry resumes the wait")
		case <-time.After(time.Second):
		}
	}
}

func TestARefusalThatEndsAWaitForABackupIsTheAnswer(t *testing.T) {
	unsure := errors.New("the wait goes on")
	for name, wait := range map[string]struct {
		age  time.Duration
		done func() (bool, error)
	}{
		"available":            {0, func() (bool, error) { return true, nil }},
		"available and old":    {time.Hour, func() (bool, error) { return true, nil }},
		"young":                {0, func() (bool, error) { return false, nil }},
		"old":                  {time.Hour, func() (bool, error) { return false, nil }},
		"not what is expected": {time.Hour, func() (bool, error) { return false, unsure }},
	} {
		for _, kind := range []volume.Kind{volume.NotOwned, volume.Unavailable, volume.PermissionDenied, volume.DeadlineExceeded, volume.Canceled} {
			for _, takes := range []time.Duration{0, 2 * longestBackupRead} { // also one that comes after bounded has ended
				synctest.Test(t, func(t *testing.T) {
					refusal := volume.Errorf(kind, "the driver leaves it alone")
					g := guarded{volume.Snapshot{Status: "uploading", CreatedAt: time.Now().Add(-wait.age)}, takes, refusal}
					_, err := awaitWith(g, "backup").bounded(t.Context(), "id", "become available", func(volume.Snapshot, bool) (bool, error) { return wait.done() })
					if !errors.Is(err, refusal) || volume.KindOf(err) != kind {
						t.Errorf("%s, %v after %v: got %v", name, kind, takes, err)
					}
				})
			}
		}
	}
}
