package attach

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// delayNova delays each request in Nova: Nova acts and answers after that time, even if the caller has left.
func delayNova(c *cloudtest.Cloud, method string, takes time.Duration) {
	request := map[string]openstacksim.Fault{
		"Attach": {Method: "POST", Path: "/compute/v2.1/servers/*/os-volume_attachments"},
		"Detach": {Method: "DELETE", Path: "/compute/v2.1/servers/*/os-volume_attachments/*"},
	}[method]
	request.Delay = takes
	c.Sim.SetFault(request)
}

// retriedWhileBusy retries f as a sidecar does. It returns how often the answer was Busy, and the last answer.
func retriedWhileBusy(t *testing.T, f func(context.Context) error) (busy int, err error) {
	t.Helper()
	for range 60 {
		if err = f(cloudtest.Within(t, 60)); !volume.Is(err, volume.Busy) {
			return busy, err
		}
		busy++
		time.Sleep(time.Second)
	}
	t.Fatal(err)
	return 0, nil
}

// The VolumeAttachment is deleted while Nova still works on the attach, whose caller has left.
func TestDetachWaitsForAnAttachInNovaWhoseCallerHasLeft(t *testing.T) {
	for _, server := range []volume.ServerID{cloudtest.ServerA, ""} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
			delayNova(c, "Attach", 20*time.Second)
			s := newService(c)
			began := time.Now()
			_, err := s.Attach(cloudtest.Within(t, 2), cloudtest.VolumeID(1), cloudtest.ServerA)
			cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
			if took := time.Since(began); took != 2*time.Second || !strings.Contains(err.Error(), "Nova has not answered yet") {
				t.Errorf("%v after %v", err, took)
			}
			busy, err := retriedWhileBusy(t, func(ctx context.Context) error { return s.Detach(ctx, cloudtest.VolumeID(1), server) })
			if err != nil || busy == 0 {
				t.Errorf("detached from %q: %v, after %d times busy", server, err, busy)
			}
			time.Sleep(time.Minute)
			if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
				t.Errorf("after the detach the volume is %s at %v", v.Status, v.Attachments)
			}
			if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerB); err != nil {
				t.Errorf("an attach elsewhere: %v", err)
			}
		})
	}
}

func TestARetriedAttachObservesTheOutcomeOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		delayNova(c, "Attach", 20*time.Second)
		s := newService(c)
		_, err := s.Attach(cloudtest.Within(t, 2), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
		_, err = retriedWhileBusy(t, func(ctx context.Context) error {
			_, err := s.Attach(ctx, cloudtest.VolumeID(1), cloudtest.ServerA)
			return err
		})
		if err != nil || c.Count("Attach") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

// A late detach in Nova must not remove a volume that was attached after it.
func TestAttachIsRefusedWhileADetachWhoseCallerHasLeftIsInNova(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
		delayNova(c, "Detach", 20*time.Second)
		s := newService(c)
		cloudtest.WantKind(t, s.Detach(cloudtest.Within(t, 2), cloudtest.VolumeID(1), cloudtest.ServerA), volume.DeadlineExceeded, true)
		_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Busy, false)
		_, err = retriedWhileBusy(t, func(ctx context.Context) error { return s.Detach(ctx, cloudtest.VolumeID(1), cloudtest.ServerA) })
		if err != nil || c.Count("Detach") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

func TestTheQueueOfAServerWaitsUntilNovaHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available), cloudtest.OwnVolume(2, volume.Available))
		delayNova(c, "Attach", 20*time.Second)
		s := newService(c)
		_, err := s.Attach(cloudtest.Within(t, 2), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
		_, err = s.Attach(cloudtest.Within(t, 5), cloudtest.VolumeID(2), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
		if c.Count("Attach") != 1 {
			t.Errorf("Nova has two requests at a time: %v", c.Calls)
		}
		_, err = s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(2), cloudtest.ServerA)
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if s.queues.length() != 0 || s.locked(cloudtest.VolumeID(1)) {
			t.Errorf("%d queues are left; volume locked: %v", s.queues.length(), s.locked(cloudtest.VolumeID(1)))
		}
	})
}

// A cloud that never answers does not lock a volume and the queue of a server forever.
func TestARequestTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available)))
		lock := s.locks.Work(inflight.VolumeKey(cloudtest.VolumeID(1)), "attach")
		if _, err := lock.Lock(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := s.sendToNova(cloudtest.Within(t, 2), lock, request{"attach", cloudtest.VolumeID(1), cloudtest.ServerA, func(ctx context.Context) error {
			if by, ok := volume.StartBy(ctx); !ok || by.Sub(began) != 2*time.Second {
				t.Errorf("it may start until %v", by.Sub(began))
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
		lock.End()
		if _, err := s.locks.Take(inflight.VolumeKey(cloudtest.VolumeID(1)), "detach"); !volume.Is(err, volume.Busy) {
			t.Errorf("the volume is not locked: %v", err)
		}
		s.Drain(t.Context())
		if took := time.Since(began); took != inflight.RequestTimeout || s.queues.length() != 0 || s.locked(cloudtest.VolumeID(1)) {
			t.Errorf("ended after %v; %d queues are left; volume locked: %v", took, s.queues.length(), s.locked(cloudtest.VolumeID(1)))
		}
	})
}

// The caller has two seconds and the request has thirty: package openstack gives each request its own timeout.
func TestARequestThatOutlivesItsCallerKeepsItsOwnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newService(cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))), time.Now()
		err := s.sendToNova(cloudtest.Within(t, 2), s.lockOf(t, cloudtest.VolumeID(1)), request{"attach", cloudtest.VolumeID(1), cloudtest.ServerA, func(ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			<-limited.Done()
			return limited.Err()
		}})
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
		s.Drain(t.Context())
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it ended after %v, want its own thirty seconds", took)
		}
	})
}

func TestNothingIsSentWithoutTimeForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available), cloudtest.OwnVolume(2, volume.Available))
		delayNova(c, "Attach", 5*time.Second)
		s := newService(c)
		go func() { _, _ = s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA) }()
		synctest.Wait()
		late, cancel := context.WithTimeout(t.Context(), 5*time.Second+answerTime/2)
		defer cancel()
		_, err := s.Attach(late, cloudtest.VolumeID(2), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
		if c.Count("Attach") != 1 || !strings.Contains(err.Error(), "sent nothing to Nova") {
			t.Errorf("%v after %v", err, c.Calls)
		}
		time.Sleep(time.Minute)
		if s.queues.length() != 0 {
			t.Error("the request is still in the queue")
		}
	})
}

// An empty queue gives the turn at once, also to a caller that has already left.
func TestNothingIsSentForACallerThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		s := newService(c)
		left, leave := context.WithCancel(t.Context())
		leave()
		for range 2 { // the second time the turn must be free again
			err := s.sendToNova(left, s.lockOf(t, cloudtest.VolumeID(1)), request{"attach", cloudtest.VolumeID(1), cloudtest.ServerA, func(context.Context) error { t.Error("it was sent"); return nil }})
			cloudtest.WantKind(t, err, volume.Canceled, false)
		}
		sent := false
		if err := s.sendToNova(cloudtest.Within(t, 60), s.lockOf(t, cloudtest.VolumeID(1)), request{"attach", cloudtest.VolumeID(1), cloudtest.ServerA, func(context.Context) error { sent = true; return nil }}); err != nil || !sent {
			t.Errorf("the next caller: sent %t, %v", sent, err)
		}
	})
}

func TestDrainWaitsForRequestsInNovaUntilItsContextEnds(t *testing.T) {
	for _, patience := range []time.Duration{8 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
			delayNova(c, "Attach", 20*time.Second)
			s := newService(c)
			began := time.Now()
			_, err := s.Attach(cloudtest.Within(t, 2), cloudtest.VolumeID(1), cloudtest.ServerA)
			cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
			bounded, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s.Drain(bounded)
			if took, want := time.Since(began), min(20*time.Second, 2*time.Second+patience); took != want {
				t.Errorf("want drained after %v, got %v", want, took)
			}
			time.Sleep(time.Minute)
		})
	}
}

func TestAPanicInARequestIsAnErrorAndReleasesLockAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Hook["Attach"] = func() { panic("a defect") }
		s := newService(c)
		_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Unknown, true)
		if s.queues.length() != 0 || s.locked(cloudtest.VolumeID(1)) {
			t.Errorf("%d queues are left; volume locked: %v", s.queues.length(), s.locked(cloudtest.VolumeID(1)))
		}
	})
}

// A proxy ends an attach that Nova continues. A detach waits until the attach shows in Cinder, or can no longer complete.
func TestDetachWaitsForAnUnconfirmedAttach(t *testing.T) {
	for name, test := range map[string]struct {
		comes time.Duration // when Nova attaches after all; 0 means never
		takes time.Duration // the detach
	}{
		"Nova attaches":          {comes: 40 * time.Second, takes: 45 * time.Second},
		"Nova does not attach":   {takes: unconfirmedFor},
		"Nova attaches late":     {comes: unconfirmedFor - 2*time.Second, takes: unconfirmedFor + 3*time.Second},
		"Cinder shows it late":   {comes: 92 * time.Second, takes: 96 * time.Second}, // 90 s, and the lag of a database
		"the attach is too old":  {takes: -1},
		"a retry attached it":    {comes: time.Second, takes: -2},
		"the server is gone now": {takes: -3},
	} {
		for _, server := range []volume.ServerID{cloudtest.ServerA, ""} {
			t.Run(name+" from "+string(server), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
					c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
					s := newService(c)
					_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
					cloudtest.WantKind(t, err, volume.Unavailable, true)
					c.Breaks("Attach", nil)
					if test.comes > 0 {
						time.AfterFunc(test.comes, func() { _ = c.Attach(t.Context(), cloudtest.ServerA, cloudtest.OwnVolume(1, volume.Available)) })
					}
					want := test.takes
					switch test.takes {
					case -1:
						time.Sleep(unconfirmedFor)
						want = 0
					case -2:
						time.Sleep(2 * time.Second)
						if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
							t.Fatal(err)
						}
						want = 4 * time.Second // a detach's own
					case -3:
						c.RemoveServer(cloudtest.ServerA)
						want = 0
					}
					began := time.Now()
					if err := s.Detach(cloudtest.Within(t, 180), cloudtest.VolumeID(1), server); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took < want-5*time.Second || took > want+10*time.Second {
						t.Errorf("want detached after %v, got %v", want, took)
					}
					time.Sleep(2 * time.Minute)
					if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
						t.Errorf("after the detach the volume is %s at %v", v.Status, v.Attachments)
					}
				})
			})
		}
	}
}

func TestDetachNamesTheUnconfirmedAttachWhenTheCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		s := newService(c)
		_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		err = s.Detach(cloudtest.Within(t, 15), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
		if !strings.Contains(err.Error(), "outcome of an earlier attach to server "+string(cloudtest.ServerA)+" unknown") {
			t.Error(err)
		}
		if err := s.Detach(cloudtest.Within(t, 15), cloudtest.VolumeID(1), cloudtest.ServerB); err != nil {
			t.Errorf("from a server without an attach: %v", err)
		}
		time.Sleep(unconfirmedFor)
		s.unconfirmedAttaches.add(cloudtest.VolumeID(2), cloudtest.ServerB, time.Now())
		if len(s.unconfirmedAttaches.pending) != 1 {
			t.Errorf("kept: %v", s.unconfirmedAttaches.pending)
		}
	})
}

// lockOf is the work of a call that holds the lock of a volume.
func (s *Service) lockOf(t *testing.T, id volume.ID) *inflight.Work {
	t.Helper()
	lock := s.locks.Work(inflight.VolumeKey(id), "test")
	if _, err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lock.End)
	return lock
}

// locked reports whether a call holds the lock of a volume.
func (s *Service) locked(id volume.ID) bool {
	unlock, err := s.locks.Take(inflight.VolumeKey(id), "test")
	if err == nil {
		unlock()
	}
	return err != nil
}
