package attach

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

func TestDetachReturnsOnceCinderAndNovaAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA))
		start := time.Now()
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(volumetest.VolumeID(1)); v.Status != volume.Available || len(c.Servers[volumetest.ServerA]) != 0 || time.Since(start) < 3*time.Second {
			t.Errorf("%v, Nova lists %v after %v", v, c.Servers, time.Since(start))
		}
	})
}

func TestDetachWithoutAServerDetachesFromAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA, volumetest.ServerB))
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), ""); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(volumetest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 {
			t.Error(v)
		}
	})
}

func TestDetachLeavesOtherServersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA, volumetest.ServerB))
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(volumetest.VolumeID(1)); v.AttachedTo(volumetest.ServerA) || !v.AttachedTo(volumetest.ServerB) {
			t.Error(v)
		}
	})
}

func TestDetachOfAVolumeThatIsNotAttachedSucceeds(t *testing.T) {
	for name, test := range map[string]struct {
		volume volume.ID
		server volume.ServerID
	}{
		"no volume":         {volumetest.VolumeID(9), volumetest.ServerA},
		"no volume's id":    {"vol", volumetest.ServerA},
		"another server":    {volumetest.VolumeID(1), volumetest.ServerB},
		"no such server":    {volumetest.VolumeID(1), "cccccccc-0000-4000-8000-000000000003"},
		"not a server's id": {volumetest.VolumeID(1), "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA))
			if err := newService(c).Detach(t.Context(), test.volume, test.server); err != nil || c.Count("Detach") != 0 {
				t.Errorf("got %v after %v", err, c.Calls)
			}
		})
	}
}

func TestADetachInProgressIsAwaitedAndNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := volumetest.AttachedVolume(volumetest.ServerA)
		v.Status = volume.Detaching
		c := volumetest.NewCloud(v)
		c.Later(volumetest.VolumeID(1), func(v *volume.Volume) {
			v.Status, v.Attachments = volume.Available, nil
			c.Servers[volumetest.ServerA] = nil
		})
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil || c.Count("Detach") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestAnAttachInProgressIsAwaitedAndThenDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Attaching})
		c.Servers[volumetest.ServerA] = []volume.ID{volumetest.VolumeID(1)}
		c.Later(volumetest.VolumeID(1), func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: volumetest.ServerA}}
		})
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil || c.Count("Detach") != 1 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestADetachThatTheHostFailsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA))
		c.Refuse = true
		volumetest.WantKind(t, newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA), volume.Failed, true)
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
				c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA))
				c.Fail["Detach"] = volume.Errorf(test.refusal, "no")
				c.Hook["Detach"] = func() {
					c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status = test.now })
					if test.now == volume.InUse {
						return
					}
					c.Later(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
					c.Mu.Lock()
					c.Servers[volumetest.ServerA] = nil
					c.Mu.Unlock()
				}
				err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
				if test.want == volume.Unknown {
					if err != nil {
						t.Error(err)
					}
					return
				}
				volumetest.WantKind(t, err, test.want, false)
			})
		})
	}
}

func TestADetachThatTimesOutSaysWhatWasObservedLast(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *volumetest.Cloud)
		text  string
	}{
		"Cinder shows it": {func(c *volumetest.Cloud) { c.Stuck = true }, "it is detaching"},
		"Nova lists it":   {func(c *volumetest.Cloud) { c.ListsForever = true }, "Nova still lists it there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA))
				test.spoil(c)
				err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
				if volume.KindOf(err) != volume.DeadlineExceeded || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), string(volumetest.ServerA)) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestDetachReturnsOnceNovaNoLongerListsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the host failed an attach: Cinder shows the volume as available, Nova still lists it
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		c.Servers[volumetest.ServerA] = []volume.ID{volumetest.VolumeID(1)}
		time.AfterFunc(5*time.Second, func() { c.Restore(volumetest.ServerA, nil) })
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil || c.Count("Detach") != 0 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

func TestOneCallAtATimeWorksOnAVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Available))
		s := newService(c)
		done := make(chan error)
		go func() {
			_, err := s.Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		_, again := s.Attach(t.Context(), volumetest.VolumeID(1), volumetest.ServerA)
		for _, err := range []error{again, s.Detach(t.Context(), volumetest.VolumeID(1), volumetest.ServerA), s.Detach(t.Context(), volumetest.VolumeID(1), "")} {
			volumetest.WantKind(t, err, volume.Busy, false)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("told after %v", took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestDetachFromAllKeepsTheAttachmentToAHostAndReportsIt(t *testing.T) {
	for name, test := range map[string]struct {
		cloud *volumetest.Cloud
		spoil func(c *volumetest.Cloud)
		text  string
	}{
		"alone":                  {cloud: volumetest.HostAttached(), text: "host kvm-7, which is no Nova server (attachment " + volumetest.AttachmentID("") + ")"},
		"beside a server":        {cloud: volumetest.HostAttached(volumetest.ServerA), text: "host kvm-7"},
		"attaching there":        {cloud: volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Attaching}), spoil: attachmentToNoServer(volume.AttachmentAttaching), text: "(attachment foreign)"},
		"detaching from there":   {cloud: volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Detaching}), spoil: attachmentToNoServer(volume.AttachmentDetaching), text: "(attachment foreign)"},
		"attachments are hidden": {cloud: volumetest.HostAttached(), spoil: func(c *volumetest.Cloud) { c.Fail["VolumeAttachments"] = volume.Errorf(volume.PermissionDenied, "no") }, text: "host kvm-7"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.spoil != nil {
					test.spoil(test.cloud)
				}
				err := newService(test.cloud).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), "")
				volumetest.WantKind(t, err, volume.Conflict, false)
				if !strings.Contains(err.Error(), test.text) || test.cloud.Count("DeleteAttachment") != 0 {
					t.Errorf("%v after %v", err, test.cloud.Calls)
				}
				if v, _ := test.cloud.Read(volumetest.VolumeID(1)); v.AttachedTo(volumetest.ServerA) {
					t.Error("the server still has it")
				}
			})
		})
	}
}

func attachmentToNoServer(status volume.AttachStatus) func(*volumetest.Cloud) {
	return func(c *volumetest.Cloud) {
		c.AttachmentRecords = []volume.Attachment{{ID: "foreign", Volume: volumetest.VolumeID(1), Status: status}}
	}
}

func TestNovaIsNotAskedForAHostThatIsNoServer(t *testing.T) {
	c := volumetest.HostAttached()
	v, _ := c.Read(volumetest.VolumeID(1))
	seen, err := newService(c).observe(t.Context(), v, "")
	if err != nil || seen.nova != novaUnknown || c.Count("ServerAttachments")+c.Count("Server") != 0 {
		t.Errorf("%v, %v after %v", seen, err, c.Calls)
	}
}

func TestTheErrorOfAnAttachNamesTheHostThatHasTheVolume(t *testing.T) {
	_, err := newService(volumetest.HostAttached()).Attach(t.Context(), volumetest.VolumeID(1), volumetest.ServerA)
	volumetest.WantKind(t, err, volume.Conflict, false)
	if !strings.Contains(err.Error(), "host kvm-7") {
		t.Errorf("attach: %v", err)
	}
}

// The sidecar must not take the error for final if any of the detaches may have reached Nova.
func TestDetachFromAllReturnsTheErrorsOfAllServersAndTheKindOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volumetest.AttachedVolume(volumetest.ServerA, volumetest.ServerB))
		forbidden, lost := volume.Errorf(volume.PermissionDenied, "HTTP 403"), volume.Errorf(volume.Unavailable, "HTTP 504").AfterWrite()
		c.Hook["Detach"] = func() {
			c.Breaks("Detach", map[int]error{1: forbidden, 2: lost}[c.Count("Detach")])
		}
		err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), "")
		volumetest.WantKind(t, err, volume.PermissionDenied, true)
		if !errors.Is(err, forbidden) || !errors.Is(err, lost) || c.Count("Detach") != 2 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}
