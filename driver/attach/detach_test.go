package attach

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestDetachReturnsOnceCinderAndNovaAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
		start := time.Now()
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.Available || len(c.Lists(v.ID)) != 0 || time.Since(start) < 3*time.Second {
			t.Errorf("%v, Nova lists it for %v after %v", v, c.Lists(v.ID), time.Since(start))
		}
	})
}

func TestDetachWithoutAServerDetachesFromAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA, cloudtest.ServerB))
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), ""); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
			t.Error(v)
		}
	})
}

func TestDetachLeavesOtherServersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA, cloudtest.ServerB))
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(cloudtest.VolumeID(1)); v.AttachedTo(cloudtest.ServerA) || !v.AttachedTo(cloudtest.ServerB) {
			t.Error(v)
		}
	})
}

// everySecond shows the next volume each second, and then the last one.
type everySecond []volume.Volume

func (all everySecond) Await(_ context.Context, _ volume.ID, done func(volume.Volume, bool) (bool, error)) (volume.Volume, error) {
	for i := 0; ; i++ {
		v := all[min(i, len(all)-1)]
		if finished, err := done(v, v.ID != ""); finished || err != nil {
			return v, err
		}
		time.Sleep(time.Second)
	}
}

// Cinder deletes the attachment first and then changes the status. A status that stays is no reason to wait longer than reads may lag.
func TestADetachEndsWithTheStatusAfterTheAttachment(t *testing.T) {
	attached := func(s volume.Status) volume.Volume {
		return volume.Volume{ID: cloudtest.VolumeID(1), Status: s, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}}}
	}
	free := func(s volume.Status) volume.Volume { return volume.Volume{ID: cloudtest.VolumeID(1), Status: s} }
	for name, test := range map[string]struct {
		shown everySecond
		want  volume.Status
		takes time.Duration
	}{
		"at once":            {everySecond{free(volume.Available)}, volume.Available, 0},
		"both together":      {everySecond{attached(volume.Detaching), free(volume.Available)}, volume.Available, time.Second},
		"status later":       {everySecond{attached(volume.Detaching), free(volume.Detaching), free(volume.Available)}, volume.Available, 2 * time.Second},
		"status never":       {everySecond{free(volume.Detaching)}, volume.Detaching, volume.Lag},
		"the volume is gone": {everySecond{attached(volume.Detaching), {}}, "", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				v, detached, err := New(cloudtest.New(t), test.shown, Options{}).awaitDetached(t.Context(), cloudtest.VolumeID(1), cloudtest.ServerA)
				if took := time.Since(begin); err != nil || !detached || v.Status != test.want || took != test.takes {
					t.Errorf("got %q, %t, %v after %v; want %q after %v", v.Status, detached, err, took, test.want, test.takes)
				}
			})
		})
	}
}

// Nova deletes server B while server A gives its volume back. Cinder then computes the status again: in-use, because A still has the volume.
func TestAMultiattachVolumeThatIsInUseAgainIsNotKeptByTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA, cloudtest.ServerB))
		c.Sim.SetLatency(openstacksim.Detach, 10*time.Second) // longer than a database may lag
		time.AfterFunc(500*time.Millisecond, func() {
			c.Sim.RemoveServer(string(cloudtest.ServerB), false)
			if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.InUse || !v.AttachedTo(cloudtest.ServerA) {
				t.Errorf("the volume is %s at %v: this tests nothing", v.Status, v.Attachments)
			}
		})
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Error(err)
		}
		if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
			t.Errorf("after the detach the volume is %s at %v", v.Status, v.Attachments)
		}
	})
}

func TestDetachOfAVolumeThatIsNotAttachedSucceeds(t *testing.T) {
	for name, test := range map[string]struct {
		volume volume.ID
		server volume.ServerID
	}{
		"no volume":         {cloudtest.VolumeID(9), cloudtest.ServerA},
		"no volume's id":    {"vol", cloudtest.ServerA},
		"another server":    {cloudtest.VolumeID(1), cloudtest.ServerB},
		"no such server":    {cloudtest.VolumeID(1), cloudtest.NoServer},
		"not a server's id": {cloudtest.VolumeID(1), "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
				if err := newService(c).Detach(t.Context(), test.volume, test.server); err != nil || c.Count("Detach") != 0 {
					t.Errorf("got %v after %v", err, c.Calls)
				}
			})
		})
	}
}

func TestADetachInProgressIsAwaitedAndNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := cloudtest.AttachedVolume(cloudtest.ServerA)
		v.Status = volume.Detaching
		c := cloudtest.New(t, v)
		c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) {
			v.Status, v.Attachments = volume.Available, nil
			c.List(v.ID)
		})
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("Detach") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestAnAttachInProgressIsAwaitedAndThenDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Attaching})
		c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
		c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerA}}
		})
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("Detach") != 1 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestADetachThatTheHostFailsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
		c.HostsFail()
		cloudtest.WantKind(t, newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA), volume.Failed, true)
	})
}

func TestARefusedDetachIsExplainedByTheVolume(t *testing.T) {
	for name, test := range map[string]struct {
		refusal volume.Kind
		now     volume.Status
		want    volume.Kind // Unknown means that the detach is awaited to its end
	}{
		"detaching meanwhile": {volume.InvalidArgument, volume.Detaching, volume.Unknown},
		"locked server":       {volume.Conflict, volume.InUse, volume.Busy},
		"no task meanwhile":   {volume.Busy, volume.InUse, volume.Busy},
		"forbidden":           {volume.PermissionDenied, volume.InUse, volume.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
				c.Fail["Detach"] = volume.Errorf(test.refusal, "no")
				c.Hook["Detach"] = func() {
					c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = test.now })
					if test.now == volume.InUse {
						return
					}
					c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
					c.List(cloudtest.VolumeID(1))
				}
				err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
				if test.want == volume.Unknown {
					if err != nil {
						t.Error(err)
					}
					return
				}
				cloudtest.WantKind(t, err, test.want, false)
			})
		})
	}
}

func TestADetachThatTimesOutSaysWhatWasObservedLast(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *cloudtest.Cloud)
		text  string
	}{
		"Cinder shows it": {func(c *cloudtest.Cloud) { c.Sim.SetLatency(openstacksim.Detach, time.Hour) }, "its status is detaching"},
		"Nova lists it": {func(c *cloudtest.Cloud) {
			c.Sim.SetLatency(openstacksim.Detach, time.Hour)
			c.Sim.SetTiming(openstacksim.Timing{Forget: time.Hour - time.Second})
		}, "Nova still lists it there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
				test.spoil(c)
				err := newService(c).Detach(cloudtest.Within(t, 5), cloudtest.VolumeID(1), cloudtest.ServerA)
				if volume.KindOf(err) != volume.DeadlineExceeded || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), string(cloudtest.ServerA)) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestDetachReturnsOnceNovaNoLongerListsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the host failed an attach: Cinder shows the volume as available, Nova still lists it
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
		time.AfterFunc(5*time.Second, func() { c.List(cloudtest.VolumeID(1)) })
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("Detach") != 0 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

func TestOneRequestAtATimeChangesAVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		delayNova(c, "Attach", 5*time.Second)
		s := newService(c)
		done := make(chan error)
		go func() {
			_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		_, again := s.Attach(t.Context(), cloudtest.VolumeID(1), cloudtest.ServerA)
		for _, err := range []error{again, s.Detach(t.Context(), cloudtest.VolumeID(1), cloudtest.ServerA), s.Detach(t.Context(), cloudtest.VolumeID(1), "")} {
			cloudtest.WantKind(t, err, volume.Busy, false)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("told after %v", took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The request waits for its turn at a server whose host is slow, and a detach comes. It begins at once, and the attach reads the volume again.
func TestARequestInTheQueueOfAServerKeepsNoOtherCallOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available), cloudtest.OwnVolume(2, volume.Available))
		delayNova(c, "Attach", 20*time.Second)
		s := newService(c)
		go func() { _, _ = s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA) }()
		synctest.Wait()
		queued := make(chan error)
		go func() {
			_, err := s.Attach(cloudtest.Within(t, 90), cloudtest.VolumeID(2), cloudtest.ServerA)
			queued <- err
		}()
		synctest.Wait()
		began := time.Now()
		if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(2), cloudtest.ServerB); err != nil || time.Since(began) > time.Second {
			t.Errorf("the detach ended after %v: %v", time.Since(began), err)
		}
		read := c.Count("Volume")
		if err := <-queued; err != nil || c.Count("Volume") == read {
			t.Errorf("the queued attach: %v after %v", err, c.Calls)
		}
	})
}

func TestDetachFromAllKeepsTheAttachmentToAHostAndReportsIt(t *testing.T) {
	for name, test := range map[string]struct {
		volume volume.Volume
		spoil  func(c *cloudtest.Cloud)
		text   string
	}{
		"alone":                  {volume: cloudtest.HostAttached(), text: "host kvm-7, which is no Nova server (attachment " + cloudtest.AttachmentID("") + ")"},
		"beside a server":        {volume: cloudtest.HostAttached(cloudtest.ServerA), text: "host kvm-7"},
		"attaching there":        {volume: volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Attaching}, spoil: attachmentToNoServer(volume.AttachmentAttaching), text: "(attachment " + cloudtest.AttachmentID("") + ")"},
		"detaching from there":   {volume: volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Detaching}, spoil: attachmentToNoServer(volume.AttachmentDetaching), text: "(attachment " + cloudtest.AttachmentID("") + ")"},
		"attachments are hidden": {volume: cloudtest.HostAttached(), spoil: func(c *cloudtest.Cloud) { c.Fail["VolumeAttachments"] = volume.Errorf(volume.PermissionDenied, "no") }, text: "host kvm-7"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.NewWith(t, cloudtest.AsAdmin, test.volume)
				if test.spoil != nil {
					test.spoil(c)
				}
				err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), "")
				cloudtest.WantKind(t, err, volume.Conflict, false)
				if !strings.Contains(err.Error(), test.text) || c.Count("DeleteAttachment") != 0 {
					t.Errorf("%v after %v", err, c.Calls)
				}
				if v, _ := c.Read(cloudtest.VolumeID(1)); v.AttachedTo(cloudtest.ServerA) {
					t.Error("the server still has it")
				}
			})
		})
	}
}

func attachmentToNoServer(status volume.AttachStatus) func(*cloudtest.Cloud) {
	return func(c *cloudtest.Cloud) {
		c.Record(cloudtest.VolumeID(1), toServer("", status))
	}
}

func TestNovaIsNotAskedForAHostThatIsNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.HostAttached())
		v, _ := c.Read(cloudtest.VolumeID(1))
		seen, err := newService(c).observe(t.Context(), v, "")
		if err != nil || seen.nova != novaUnknown || c.Count("ServerAttachments")+c.Count("Server") != 0 {
			t.Errorf("%v, %v after %v", seen, err, c.Calls)
		}
	})
}

func TestTheErrorOfAnAttachNamesTheHostThatHasTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := newService(cloudtest.NewWith(t, cloudtest.AsAdmin, cloudtest.HostAttached())).Attach(t.Context(), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Conflict, false)
		if !strings.Contains(err.Error(), "host kvm-7") {
			t.Errorf("attach: %v", err)
		}
	})
}

// The sidecar must not take the error for final if any of the detaches may have reached Nova.
func TestDetachFromAllReturnsTheErrorsOfAllServersAndTheKindOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA, cloudtest.ServerB))
		forbidden, lost := volume.Errorf(volume.PermissionDenied, "HTTP 403"), volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		c.Hook["Detach"] = func() {
			c.Breaks("Detach", map[int]error{1: forbidden, 2: lost}[c.Count("Detach")])
		}
		err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), "")
		cloudtest.WantKind(t, err, volume.PermissionDenied, true)
		if !errors.Is(err, forbidden) || !errors.Is(err, lost) || c.Count("Detach") != 2 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}
