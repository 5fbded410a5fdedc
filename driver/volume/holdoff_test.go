package volume

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// creator creates one kind of object and tells what there is of it.
type creator struct {
	call   string // the create request that goes wrong
	create func(ctx context.Context, s services) (id string, err error)
}

func createsVolume(ctx context.Context, s services) (string, error) {
	v, err := s.volumes.Create(ctx, CreateSpec{Name: "pvc-new", Size: volumeSpec.Size})
	return string(v.ID), err
}

func creates(w SnapshotSpec) func(context.Context, services) (string, error) {
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
func eachCreator(t *testing.T, test func(t *testing.T, c *fakeCloud, s services, x creator)) {
	for name, x := range creators {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				test(t, c, both(c), x)
			})
		})
	}
}

func TestACreateWithoutAnAnswerIsNotSentAgainForTwoMinutes(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *fakeCloud, s services, x creator) {
		c.fail[x.call] = errLost
		_, err := x.create(within(t, 60), s)
		wantKind(t, err, Unavailable, true)
		delete(c.fail, x.call)
		first := time.Now()
		until := first.Add(2 * time.Minute).UTC().Format("15:04:05 UTC")
		for time.Since(first) < 2*time.Minute {
			_, err = x.create(within(t, 60), s)
			wantKind(t, err, Unavailable, true)
			for _, text := range []string{"outcome unknown (HTTP 504)", "checks by name", "retries the create after " + until} {
				if !strings.Contains(err.Error(), text) {
					t.Fatalf("%q is not in %v", text, err)
				}
			}
			if n := c.count(x.call); n != 1 {
				t.Fatalf("the create was sent %d times after %s", n, time.Since(first))
			}
			time.Sleep(10 * time.Second)
		}
		if id, err := x.create(within(t, 60), s); err != nil || id == "" || c.count(x.call) != 2 {
			t.Errorf("after the hold-off: %q, %v after %v", id, err, c.calls)
		}
	})
}

func TestWhatACreateWithoutAnAnswerMadeLaterIsUsed(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *fakeCloud, s services, x creator) {
		c.late = map[string]time.Duration{x.call: 90 * time.Second}
		_, err := x.create(within(t, 60), s)
		wantKind(t, err, Unavailable, true)
		time.Sleep(80 * time.Second)
		_, err = x.create(within(t, 60), s)
		wantKind(t, err, Unavailable, true)
		time.Sleep(20 * time.Second)
		if id, err := x.create(within(t, 60), s); err != nil || id == "" || c.count(x.call) != 1 {
			t.Errorf("got %q, %v after %v", id, err, c.calls)
		}
	})
}

// The API of Cinder has worked on the request since it was sent, not since its answer was lost.
func TestTheHoldOffBeginsWhenTheRequestWasSent(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *fakeCloud, s services, x creator) {
		lost := Errorf(Unavailable, "HTTP 504").AfterWrite()
		c.fail[x.call] = lost
		c.hook[x.call] = func() { lost.SentAt = time.Now(); time.Sleep(time.Minute) }
		_, err := x.create(within(t, 100), s)
		wantKind(t, err, Unavailable, true)
		clear(c.fail)
		clear(c.hook)
		time.Sleep(59 * time.Second)
		_, err = x.create(within(t, 60), s)
		wantKind(t, err, Unavailable, true)
		time.Sleep(time.Second)
		if _, err = x.create(within(t, 60), s); err != nil {
			t.Error(err)
		}
	})
}

// A refused or unsent request cannot create anything: a full quota is final at once, so that the scheduler tries another node.
func TestACreateThatWasRefusedOrNotSentHoldsNothingBack(t *testing.T) {
	for _, kind := range Kinds() {
		eachCreator(t, func(t *testing.T, c *fakeCloud, s services, x creator) {
			c.fail[x.call] = Errorf(kind, "not sent")
			if _, err := x.create(within(t, 60), s); err == nil {
				t.Fatal("no error")
			}
			c.fail[x.call] = Errorf(Exhausted, "HTTP 413")
			_, err := x.create(within(t, 60), s)
			wantKind(t, err, Exhausted, false)
		})
	}
}

func TestNoFinalErrorDuringAHoldOff(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *fakeCloud, s services, x creator) {
		c.fail[x.call] = errLost
		_, err := x.create(within(t, 60), s)
		wantKind(t, err, Unavailable, true)
		c.fail[x.call] = Errorf(Exhausted, "HTTP 413")
		c.remove(source.ID) // a snapshot of it would be NotFound
		_, err = x.create(within(t, 60), s)
		wantKind(t, err, Unavailable, true)
		time.Sleep(2 * time.Minute)
		_, err = x.create(within(t, 60), s)
		if KindOf(err) != Exhausted && KindOf(err) != NotFound || MayHaveWritten(err) {
			t.Errorf("after the hold-off: %v", err)
		}
	})
}

func TestAnIncompatibleVolumeIsFinalDuringAHoldOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := both(c).volumes
		c.fail["CreateVolume"] = errLost
		_, err := s.Create(within(t, 60), volumeSpec)
		wantKind(t, err, Unavailable, true)
		other := ofOthers(1, Available)
		other.Size = GiB(7)
		c.put(other)
		w := volumeSpec
		w.Size.Limit = GiB(2)
		_, err = s.Create(within(t, 60), w)
		wantKind(t, err, Incompatible, false)
	})
}

// What the create made is known once it is found: its failure is final.
func TestAHoldOffEndsWhenTheObjectIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := both(c).volumes
		c.late = map[string]time.Duration{"CreateVolume": time.Second}
		_, err := s.Create(within(t, 60), volumeSpec)
		wantKind(t, err, Unavailable, true)
		time.Sleep(2 * time.Second)
		c.change(id(101), func(v *Volume) { v.Status = ErrorSt })
		_, err = s.Create(within(t, 60), volumeSpec)
		if wantKind(t, err, Failed, false); len(c.left()) != 0 {
			t.Errorf("left %v", c.left())
		}
		if _, err = s.Create(within(t, 60), volumeSpec); err != nil || c.count("CreateVolume") != 2 {
			t.Errorf("still held off: %v after %v", err, c.calls)
		}
	})
}

// A volume that this driver did not create for the request says nothing about the lost create.
func TestAHoldOffGoesOnBesideAVolumeOfSomeoneElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := both(c).volumes
		c.fail["CreateVolume"] = errLost
		_, err := s.Create(within(t, 60), volumeSpec)
		wantKind(t, err, Unavailable, true)
		clear(c.fail)
		c.put(ofOthers(1, ErrorSt))
		_, err = s.Create(within(t, 60), volumeSpec)
		wantKind(t, err, Failed, true)
		c.remove(id(1)) // by hand
		_, err = s.Create(within(t, 60), volumeSpec)
		if wantKind(t, err, Unavailable, true); c.count("CreateVolume") != 1 {
			t.Errorf("sent again: %v", c.calls)
		}
	})
}

// Once a call has returned, the driver changes nothing in the cloud: nobody could tell an operator why.
func TestNothingRunsAfterACreateHasReturned(t *testing.T) {
	eachCreator(t, func(t *testing.T, c *fakeCloud, s services, x creator) {
		c.late = map[string]time.Duration{x.call: 20 * time.Second}
		_, err := x.create(within(t, 60), s)
		wantKind(t, err, Unavailable, true)
		// Another replica, which knows nothing of the lost create, creates one and returns it.
		other := both(c)
		if _, err := x.create(within(t, 60), other); err != nil {
			t.Fatal(err)
		}
		if _, err := x.create(within(t, 60), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // those that need time, and the late one, are there
		before := len(c.calls)
		time.Sleep(10 * time.Minute)
		if later := c.calls[before:]; len(later) != 0 {
			t.Errorf("sent after the answer: %v", later)
		}
	})
}
