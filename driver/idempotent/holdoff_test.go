package idempotent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// creator creates one kind of object.
type creator struct {
	call   string // the create request that goes wrong
	create func(ctx context.Context, s services) (id string, err error)
}

func createsVolume(ctx context.Context, s services) (string, error) {
	v, err := s.volumes.Create(ctx, provision.CreateSpec{Name: "pvc-new", Size: volumeSpec.Size})
	return string(v.ID), err
}

func creates(w snapshot.Spec) func(context.Context, services) (string, error) {
	return func(ctx context.Context, s services) (string, error) {
		p, err := s.snapshots.Create(ctx, w)
		return string(p.ID), err
	}
}

var creators = map[string]creator{
	"volume":             {"CreateVolume", createsVolume},
	"snapshot":           {"CreateSnapshot", creates(snapshotSpec)},
	"backup":             {"CreateBackup", creates(backupSpec)},
	"temporary snapshot": {"CreateSnapshot", creates(backupSpec)},
}

// eachCreator runs a test for each kind of object, in a cloud with the source of snapshots alone.
func eachCreator(t *testing.T, test func(t *testing.T, c *cloudtest.Cloud, s services, x creator)) {
	for name, x := range creators {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume)
				test(t, c, newServices(c), x)
			})
		})
	}
}

func TestACreateWithoutAnAnswerIsNotSentAgainForTwoMinutes(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, s services, x creator) {
		c.Fail[x.call] = cloudtest.ErrLost
		_, err := x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		delete(c.Fail, x.call)
		first := time.Now()
		until := first.Add(2 * time.Minute).UTC().Format("15:04:05 UTC")
		for time.Since(first) < 2*time.Minute {
			_, err = x.create(cloudtest.Within(t, 60), s)
			cloudtest.WantKind(t, err, volume.Unavailable, true)
			for _, text := range []string{"outcome unknown (HTTP 504)", "checks by name", "retries the create after " + until} {
				if !strings.Contains(err.Error(), text) {
					t.Fatalf("%q is not in %v", text, err)
				}
			}
			if n := c.Count(x.call); n != 1 {
				t.Fatalf("the create was sent %d times after %s", n, time.Since(first))
			}
			time.Sleep(10 * time.Second)
		}
		if id, err := x.create(cloudtest.Within(t, 60), s); err != nil || id == "" || c.Count(x.call) != 2 {
			t.Errorf("after the hold-off: %q, %v after %v", id, err, c.Calls)
		}
	})
}

func TestAnObjectThatALostCreateMadeLaterIsUsed(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, s services, x creator) {
		c.Loses(x.call, 90*time.Second)
		_, err := x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		time.Sleep(80 * time.Second)
		_, err = x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		time.Sleep(20 * time.Second)
		if id, err := x.create(cloudtest.Within(t, 60), s); err != nil || id == "" || c.Count(x.call) != 1 {
			t.Errorf("got %q, %v after %v", id, err, c.Calls)
		}
	})
}

// An API that restarts, or that cannot reach its message queue, costs seconds and not minutes.
func TestACreateThatCinderItselfFailedIsSentAgainAfterSeconds(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, s services, x creator) {
		failed := volume.Errorf(volume.Unavailable, "HTTP 500").AfterWrite()
		failed.Answered = true
		c.Fail[x.call] = failed
		c.Hook[x.call] = func() { failed.SentAt = time.Now(); time.Sleep(20 * time.Second) }
		_, err := x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		clear(c.Fail)
		clear(c.Hook)
		time.Sleep(2 * time.Second)
		_, err = x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		if n := c.Count(x.call); n != 1 {
			t.Errorf("the create was sent %d times after two seconds", n)
		}
		time.Sleep(time.Second)
		if id, err := x.create(cloudtest.Within(t, 60), s); err != nil || id == "" {
			t.Errorf("after three seconds: %q, %v", id, err)
		}
	})
}

// Cinder processes the request from the time at which it was sent, not from the time at which its answer was lost.
func TestTheHoldOffBeginsWhenTheRequestWasSent(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, s services, x creator) {
		lost := volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		c.Fail[x.call] = lost
		c.Hook[x.call] = func() { lost.SentAt = time.Now(); time.Sleep(time.Minute) }
		_, err := x.create(cloudtest.Within(t, 100), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		clear(c.Fail)
		clear(c.Hook)
		time.Sleep(59 * time.Second)
		_, err = x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		time.Sleep(time.Second)
		if _, err = x.create(cloudtest.Within(t, 60), s); err != nil {
			t.Error(err)
		}
	})
}

// A refused or unsent request cannot create anything: a full quota is final at once, so that the scheduler tries another node.
func TestACreateThatWasRefusedOrNotSentBeginsNoHoldOff(t *testing.T) {
	for kind := range volume.KindCount {
		eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, s services, x creator) {
			c.Fail[x.call] = volume.Errorf(kind, "not sent")
			if _, err := x.create(cloudtest.Within(t, 60), s); err == nil {
				t.Fatal("no error")
			}
			c.Fail[x.call] = volume.Errorf(volume.Exhausted, "HTTP 413")
			_, err := x.create(cloudtest.Within(t, 60), s)
			cloudtest.WantKind(t, err, volume.Exhausted, false)
		})
	}
}

func TestNoFinalErrorDuringAHoldOff(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, s services, x creator) {
		c.Fail[x.call] = cloudtest.ErrLost
		_, err := x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		c.Fail[x.call] = volume.Errorf(volume.Exhausted, "HTTP 413")
		c.Remove(cloudtest.SourceVolume.ID) // a snapshot of it would be NotFound
		_, err = x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		time.Sleep(2 * time.Minute)
		_, err = x.create(cloudtest.Within(t, 60), s)
		if volume.KindOf(err) != volume.Exhausted && volume.KindOf(err) != volume.NotFound || volume.MayHaveWritten(err) {
			t.Errorf("after the hold-off: %v", err)
		}
	})
}

func TestAnIncompatibleVolumeIsFinalDuringAHoldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := newServices(c).volumes
		c.Fail["CreateVolume"] = cloudtest.ErrLost
		_, err := s.Create(cloudtest.Within(t, 60), volumeSpec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		other := cloudtest.ForeignVolume(1, volume.Available)
		other.Size = volume.GiB(7)
		c.Put(other)
		w := volumeSpec
		w.Size.Limit = volume.GiB(2)
		_, err = s.Create(cloudtest.Within(t, 60), w)
		cloudtest.WantKind(t, err, volume.Incompatible, false)
	})
}

// The outcome of the create is known once its object is found: its failure is final.
func TestAHoldOffEndsWhenTheObjectIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := newServices(c).volumes
		c.Loses("CreateVolume", time.Second)
		_, err := s.Create(cloudtest.Within(t, 60), volumeSpec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		time.Sleep(2 * time.Second)
		c.Change(c.Volumes()[0], func(v *volume.Volume) { v.Status = volume.ErrorStatus })
		_, err = s.Create(cloudtest.Within(t, 60), volumeSpec)
		if cloudtest.WantKind(t, err, volume.Failed, false); len(c.Remaining()) != 0 {
			t.Errorf("left %v", c.Remaining())
		}
		if _, err = s.Create(cloudtest.Within(t, 60), volumeSpec); err != nil || c.Count("CreateVolume") != 2 {
			t.Errorf("still held off: %v after %v", err, c.Calls)
		}
	})
}

// A volume that this driver did not create for the request does not show the outcome of the create.
func TestAForeignVolumeDoesNotEndAHoldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := newServices(c).volumes
		c.Fail["CreateVolume"] = cloudtest.ErrLost
		_, err := s.Create(cloudtest.Within(t, 60), volumeSpec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		clear(c.Fail)
		c.Put(cloudtest.ForeignVolume(1, volume.ErrorStatus))
		_, err = s.Create(cloudtest.Within(t, 60), volumeSpec)
		cloudtest.WantKind(t, err, volume.Failed, true)
		c.Remove(cloudtest.VolumeID(1)) // by hand
		_, err = s.Create(cloudtest.Within(t, 60), volumeSpec)
		if cloudtest.WantKind(t, err, volume.Unavailable, true); c.Count("CreateVolume") != 1 {
			t.Errorf("sent again: %v", c.Calls)
		}
	})
}

// A backup of another replica may fail while a lost create of its temporary snapshot is still in progress. The deletion of the temporary
// snapshot of that replica does not show the outcome of the lost create, so the failure is not final.
func TestTheCleanUpAfterAFailedBackupEndsNoHoldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.SourceVolume)
		s := newServices(c).snapshots
		c.Fail["CreateSnapshot"] = cloudtest.ErrLost
		_, err := s.Create(cloudtest.Within(t, 60), backupSpec)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		clear(c.Fail)
		temporary := cloudtest.OwnSnapshot(1, volume.Available)
		temporary.Metadata[contract.MetadataTemporary] = string(contract.KindBackup)
		c.WithSnapshots(temporary).WithBackups(cloudtest.OwnSnapshot(2, volume.ErrorStatus))
		_, err = s.Create(cloudtest.Within(t, 60), backupSpec)
		if cloudtest.WantKind(t, err, volume.Failed, true); len(c.Objects(false))+len(c.Objects(true)) != 0 {
			t.Errorf("left: %v and %v", c.Objects(false), c.Objects(true))
		}
		_, err = s.Create(cloudtest.Within(t, 60), backupSpec)
		if cloudtest.WantKind(t, err, volume.Unavailable, true); c.Count("CreateSnapshot") != 1 {
			t.Errorf("sent again: %v", c.Calls)
		}
	})
}

// Once a call has returned, the driver changes nothing in the cloud.
func TestNothingRunsAfterACreateHasReturned(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *cloudtest.Cloud, s services, x creator) {
		c.Loses(x.call, 20*time.Second)
		_, err := x.create(cloudtest.Within(t, 60), s)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		// Another replica, which has no hold-off, creates one and returns it.
		other := newServices(c)
		if _, err := x.create(cloudtest.Within(t, 60), other); err != nil {
			t.Fatal(err)
		}
		if _, err := x.create(cloudtest.Within(t, 60), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // all objects are ready, the late one too
		c.Sim.ResetRequests()
		time.Sleep(10 * time.Minute)
		if later := c.Sim.Requests(); len(later) != 0 {
			t.Errorf("sent after the answer: %v", later)
		}
	})
}
