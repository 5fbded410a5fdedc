package attach

import (
	"context"
	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowNova lets Nova's API take so long for a request before it acts and answers, whatever becomes of the connection.
func slowNova(c *volumetest.Cloud, method string, takes time.Duration) {
	c.Hook[method] = func() { time.Sleep(takes) }
}

// retriedWhileBusy does f as a sidecar does, again and again, and gives how often the answer was Busy and the last one.
func retriedWhileBusy(t *testing.T, f func(context.Context) error) (busy int, err error) {
	t.Helper()
	for range 60 {
		if err = f(volumetest.Within(t, 60)); !volume.Is(err, volume.Busy) {
			return busy, err
		}
		busy++
		time.Sleep(time.Second)
	}
	t.Fatal(err)
	return 0, nil
}

// The VolumeAttachment is deleted while Nova, whose caller's time was over, still is at the attach.
func TestADetachIsNotDoneWhileNovaIsAtAnAttachWhoseCallerHasLeft(t *testing.T) {
	for _, server := range []volume.ServerID{volumetest.ServerA, ""} {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
			slowNova(c, "Attach", 20*time.Second)
			s := attaching(c)
			began := time.Now()
			_, err := s.Attach(volumetest.Within(t, 2), volumetest.VolumeID(1), volumetest.ServerA)
			volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
			if took := time.Since(began); took != 2*time.Second || !strings.Contains(err.Error(), "Nova has not answered yet") {
				t.Errorf("%v after %v", err, took)
			}
			busy, err := retriedWhileBusy(t, func(ctx context.Context) error { return s.Detach(ctx, volumetest.VolumeID(1), server) })
			if err != nil || busy == 0 {
				t.Errorf("detached from %q: %v, after %d times busy", server, err, busy)
			}
			time.Sleep(time.Minute)
			if v, _ := c.Read(volumetest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
				t.Errorf("the detach was done, and then the volume is %s at %v", v.Status, v.Attachments)
			}
			if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerB); err != nil {
				t.Errorf("an attach elsewhere: %v", err)
			}
		})
	}
}

func TestARetryOfAnAttachFindsWhatNovaMadeOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		slowNova(c, "Attach", 20*time.Second)
		s := attaching(c)
		_, err := s.Attach(volumetest.Within(t, 2), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
		_, err = retriedWhileBusy(t, func(ctx context.Context) error {
			_, err := s.Attach(ctx, volumetest.VolumeID(1), volumetest.ServerA)
			return err
		})
		if err != nil || c.Count("Attach") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

// A detach that comes to Nova late must not end what was attached after it.
func TestNobodyAttachesWhileNovaIsAtADetachWhoseCallerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA))
		slowNova(c, "Detach", 20*time.Second)
		s := attaching(c)
		volumetest.WantKind(t, s.Detach(volumetest.Within(t, 2), volumetest.VolumeID(1), volumetest.ServerA), volume.DeadlineExceeded, true)
		_, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.Busy, false)
		_, err = retriedWhileBusy(t, func(ctx context.Context) error { return s.Detach(ctx, volumetest.VolumeID(1), volumetest.ServerA) })
		if err != nil || c.Count("Detach") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

func TestATurnLastsUntilNovaHasAnsweredWhoeverHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available), volumetest.OwnVolume(2, volume.Available))
		slowNova(c, "Attach", 20*time.Second)
		s := attaching(c)
		_, err := s.Attach(volumetest.Within(t, 2), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
		_, err = s.Attach(volumetest.Within(t, 5), volumetest.VolumeID(2), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
		if c.Count("Attach") != 1 {
			t.Errorf("Nova has two requests at a time: %v", c.Calls)
		}
		_, err = s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(2), volumetest.ServerA)
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if s.queues.inUse() != 0 || s.locked(volumetest.VolumeID(1)) {
			t.Errorf("%d queues are left; volume locked: %v", s.queues.inUse(), s.locked(volumetest.VolumeID(1)))
		}
	})
}

// A cloud that never answers does not keep a volume and a server for ever.
func TestAnErrandEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := attaching(volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available)))
		unlock, err := s.locks.Take(inflight.VolumeKey(volumetest.VolumeID(1)), "attach")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = s.askNova(volumetest.Within(t, 2), "attach", volumetest.VolumeID(1), volumetest.ServerA, func(ctx context.Context) error {
			if by, ok := volume.StartBy(ctx); !ok || by.Sub(began) != 2*time.Second {
				t.Errorf("it may start until %v", by.Sub(began))
			}
			<-ctx.Done()
			return ctx.Err()
		})
		volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
		unlock()
		if _, err := s.locks.Take(inflight.VolumeKey(volumetest.VolumeID(1)), "detach"); !volume.Is(err, volume.Busy) {
			t.Errorf("the volume is not locked: %v", err)
		}
		s.Drain(t.Context())
		if took := time.Since(began); took != longestCall || s.queues.inUse() != 0 || s.locked(volumetest.VolumeID(1)) {
			t.Errorf("ended after %v; %d queues are left; volume locked: %v", took, s.queues.inUse(), s.locked(volumetest.VolumeID(1)))
		}
	})
}

// Its caller has two seconds, and the request thirty: package openstack gives each its own.
func TestARequestThatOutlivesItsCallerKeepsItsOwnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := attaching(volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))), time.Now()
		err := s.askNova(volumetest.Within(t, 2), "attach", volumetest.VolumeID(1), volumetest.ServerA, func(ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			<-limited.Done()
			return limited.Err()
		})
		volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
		s.Drain(t.Context())
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it ended after %v, want its own thirty seconds", took)
		}
	})
}

func TestNothingIsSentThatNovaCouldNotAnswerInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available), volumetest.OwnVolume(2, volume.Available))
		slowNova(c, "Attach", 5*time.Second)
		s := attaching(c)
		go func() { _, _ = s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA) }()
		synctest.Wait()
		late, cancel := context.WithTimeout(t.Context(), 5*time.Second+shortestCall/2)
		defer cancel()
		_, err := s.Attach(late, volumetest.VolumeID(2), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
		if c.Count("Attach") != 1 || !strings.Contains(err.Error(), "nothing was sent") {
			t.Errorf("%v after %v", err, c.Calls)
		}
		time.Sleep(time.Minute)
		if s.queues.inUse() != 0 {
			t.Error("its turn never ends")
		}
	})
}

// A free lane gives its turn at once, also to a caller who has left already.
func TestNothingIsSentForACallerWhoHasLeft(t *testing.T) {
	c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
	s := attaching(c)
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 2 { // the second time the turn must be free again
		err := s.askNova(left, "attach", volumetest.VolumeID(1), volumetest.ServerA, func(context.Context) error { t.Error("it was sent"); return nil })
		volumetest.WantKind(t, err, volume.Canceled, false)
	}
	sent := false
	if err := s.askNova(volumetest.Within(t, 60), "attach", volumetest.VolumeID(1), volumetest.ServerA, func(context.Context) error { sent = true; return nil }); err != nil || !sent {
		t.Errorf("the next caller: sent %t, %v", sent, err)
	}
}

func TestDrainWaitsForWhatNovaIsAtButNotForEver(t *testing.T) {
	for _, patience := range []time.Duration{8 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
			slowNova(c, "Attach", 20*time.Second)
			s := attaching(c)
			began := time.Now()
			_, err := s.Attach(volumetest.Within(t, 2), volumetest.VolumeID(1), volumetest.ServerA)
			volumetest.WantKind(t, err, volume.DeadlineExceeded, true)
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

func TestAPanicInARequestIsAnErrorAndLeavesNothingLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		c.Hook["Attach"] = func() { panic("a defect") }
		s := attaching(c)
		_, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.Unknown, true)
		if s.queues.inUse() != 0 || s.locked(volumetest.VolumeID(1)) {
			t.Errorf("%d queues are left; volume locked: %v", s.queues.inUse(), s.locked(volumetest.VolumeID(1)))
		}
	})
}

// A proxy ends an attach that Nova goes on with: until it shows in Cinder, or no longer can, a detach is not done.
func TestADetachOutlastsAnAttachWhoseAnswerWasLost(t *testing.T) {
	for name, test := range map[string]struct {
		comes time.Duration // when Nova attaches after all; 0 means never
		takes time.Duration // the detach
	}{
		"Nova attaches":          {comes: 40 * time.Second, takes: 45 * time.Second},
		"nothing comes of it":    {takes: novaGoesOn},
		"Nova attaches at last":  {comes: novaGoesOn - 2*time.Second, takes: novaGoesOn + 3*time.Second},
		"it was over long ago":   {takes: -1},
		"a retry has it done":    {comes: time.Second, takes: -2},
		"the server is gone now": {takes: -3},
	} {
		for _, server := range []volume.ServerID{volumetest.ServerA, ""} {
			t.Run(name+" from "+string(server), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
					c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
					s := attaching(c)
					_, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
					volumetest.WantKind(t, err, volume.Unavailable, true)
					c.Breaks("Attach", nil)
					if test.comes > 0 {
						time.AfterFunc(test.comes, func() { _ = c.Attach(t.Context(), volumetest.ServerA, volumetest.OwnVolume(1, volume.Available)) })
					}
					want := test.takes
					switch test.takes {
					case -1:
						time.Sleep(novaGoesOn)
						want = 0
					case -2:
						time.Sleep(2 * time.Second)
						if _, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
							t.Fatal(err)
						}
						want = 4 * time.Second // a detach's own
					case -3:
						delete(c.Servers, volumetest.ServerA)
						want = 0
					}
					began := time.Now()
					if err := s.Detach(volumetest.Within(t, 180), volumetest.VolumeID(1), server); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took < want-5*time.Second || took > want+10*time.Second {
						t.Errorf("want detached after %v, got %v", want, took)
					}
					time.Sleep(2 * time.Minute)
					if v, _ := c.Read(volumetest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
						t.Errorf("the detach was done, and then the volume is %s at %v", v.Status, v.Attachments)
					}
				})
			})
		}
	}
}

func TestWhoLeavesBeforeALostAttachHasEndedIsToldWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		c.Fail["Attach"] = volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		s := attaching(c)
		_, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.Unavailable, true)
		err = s.Detach(volumetest.Within(t, 15), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
		if !strings.Contains(err.Error(), "the answer to an attach to server "+string(volumetest.ServerA)+" was lost") {
			t.Error(err)
		}
		if err := s.Detach(volumetest.Within(t, 15), volumetest.VolumeID(1), volumetest.ServerB); err != nil {
			t.Errorf("from a server that it never was to come to: %v", err)
		}
		time.Sleep(novaGoesOn)
		s.lostAttaches.lost(volumetest.VolumeID(2), volumetest.ServerB, time.Now())
		if len(s.lostAttaches.pairs) != 1 {
			t.Errorf("kept: %v", s.lostAttaches.pairs)
		}
	})
}

// locked reports whether a call holds the lock of a volume.
func (s *Service) locked(id volume.ID) bool {
	unlock, err := s.locks.Take(inflight.VolumeKey(id), "test")
	if err == nil {
		unlock()
	}
	return err != nil
}
