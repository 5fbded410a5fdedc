package idempotent_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// lagging is a cloud whose lists by name come from a database server that has no object younger than lag.
type lagging struct {
	volume.Cloud
	lag time.Duration
}

func seen[T any](found []T, err error, lag time.Duration, created func(T) time.Time) ([]T, error) {
	return slices.DeleteFunc(found, func(object T) bool { return time.Since(created(object)) < lag }), err
}

func (l lagging) VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error) {
	found, err := l.Cloud.VolumesNamed(ctx, name)
	return seen(found, err, l.lag, func(v volume.Volume) time.Time { return v.CreatedAt })
}

func (l lagging) Select(ctx context.Context, s volume.Selection) ([]volume.Volume, bool, error) {
	found, more, err := l.Cloud.Select(ctx, s)
	found, err = seen(found, err, l.lag, func(v volume.Volume) time.Time { return v.CreatedAt })
	return found, more, err
}

func (l lagging) SnapshotsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	found, err := l.Cloud.SnapshotsNamed(ctx, name)
	return seen(found, err, l.lag, func(p volume.Snapshot) time.Time { return p.CreatedAt })
}

func (l lagging) BackupsNamed(ctx context.Context, name string) ([]volume.Snapshot, error) {
	found, err := l.Cloud.BackupsNamed(ctx, name)
	return seen(found, err, l.lag, func(b volume.Snapshot) time.Time { return b.CreatedAt })
}

func laggingServices(c *cloudtest.Cloud, lag time.Duration) services {
	late := lagging{c, lag}
	return services{
		provision.New(late, c, provision.Options{Owner: cloudtest.TestOwner}),
		snapshot.New(late, c, c.SnapshotWaiter, c.BackupWaiter, snapshot.Options{Owner: cloudtest.TestOwner}),
	}
}

// The driver knows the ID of what it has created. If it took that for deleted, each retry would create another.
func TestAListThatLagsMakesNoSecondObject(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, _ services, x creator) {
		if id, err := x.create(cloudtest.Within(t, 60), laggingServices(c, 5*time.Second)); err != nil || id == "" || c.Count(x.call) != 1 {
			t.Errorf("got %q, %v after %v", id, err, c.Calls)
		}
	})
}

// A list without the driver's own object does not show either whether an older one exists. So the object may not be returned.
func TestAListThatLagsForLongEndsInARetryAndNoSecondObject(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, _ services, x creator) {
		s := laggingServices(c, 100*time.Second)
		_, err := x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Busy, true)
		if !strings.Contains(err.Error(), "does not show it") {
			t.Error(err)
		}
		_, err = x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		id := ""
		for begin := time.Now(); err != nil && time.Since(begin) < 5*time.Minute; time.Sleep(10 * time.Second) { // a backup needs two objects
			id, err = x.create(cloudtest.Within(t, 60), s)
		}
		if err != nil || id == "" || c.Count(x.call) != 1 {
			t.Errorf("got %q, %v after %v", id, err, c.Calls)
		}
	})
}

// Two replicas create one volume, and the lists lag. Neither may return a volume that the other then deletes as a duplicate.
func TestNoReplicaReturnsAVolumeWhileTheListsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		first, second := laggingServices(c, 30*time.Second), laggingServices(c, 30*time.Second)
		_, _ = createsVolume(cloudtest.Within(t, 60), first)
		_, err := createsVolume(cloudtest.Within(t, 60), second)
		cloudtest.WantKind(t, err, volume.Busy, true)
		time.Sleep(time.Minute)
		a, err := createsVolume(cloudtest.Within(t, 60), first)
		if err != nil {
			t.Fatal(err)
		}
		b, err := createsVolume(cloudtest.Within(t, 60), second)
		if err != nil || a != b {
			t.Errorf("got %s and %s, %v", a, b, err)
		}
	})
}
