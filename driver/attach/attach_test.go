package attach

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func newService(c *cloudtest.Cloud) *Service { return New(c, c, Options{}) }

func TestAttachReturnsOnceCinderShowsTheAttachment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.ForeignVolume(1, volume.Available))
		v, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		if err != nil || v.Status != volume.InUse || !v.AttachedTo(cloudtest.ServerA) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAttachOfAnAttachedVolumeSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}}})
		if _, err := newService(c).Attach(t.Context(), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("Attach") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestAttachWhenAlreadyAttachedElsewhereIsRefusedBeforeNovaIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Attachments: []volume.Attachment{{Server: cloudtest.ServerB}}})
		_, err := newService(c).Attach(t.Context(), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Conflict, false)
		if !strings.Contains(err.Error(), string(cloudtest.ServerB)) || c.Count("Attach") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

func TestAMultiattachVolumeIsAttachedToTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Multiattach: true, Attachments: []volume.Attachment{{Server: cloudtest.ServerB}}})
		v, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		if err != nil || !v.AttachedTo(cloudtest.ServerA) || !v.AttachedTo(cloudtest.ServerB) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

// Without the look at the server nobody knows whether it may have the volume.
func TestAnAttachIsRefusedWhereTheServerCannotBeChecked(t *testing.T) {
	for _, kind := range []volume.Kind{volume.Unavailable, volume.PermissionDenied} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
			c.Fail["Server"] = volume.Errorf(kind, "no")
			_, err := New(c, c, Options{ServerMetadata: map[string]string{"role": "node"}}).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
			cloudtest.WantKind(t, err, kind, false)
			if c.Count("Attach") != 0 {
				t.Errorf("it was sent: %v", c.Calls)
			}
		})
	}
}

// A detach by force, or somebody who sets a status, leaves such a volume.
func TestAVolumeThatIsInUseByNobodyNamesTheCommandThatFreesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.InUse))
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Conflict, false)
		if text := err.Error(); volume.CauseOf(err) != cause.VolumeError || !strings.Contains(text, "is in status in-use; Cinder shows no attachment") ||
			!strings.Contains(text, "openstack volume set --state available "+string(cloudtest.VolumeID(1))) {
			t.Error(volume.CauseOf(err), err)
		}
	})
}

func TestAnAttachThatEndsInAnErrorStatusIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Sim.SetLatency(openstacksim.Attach, time.Hour)
		c.Hook["Attach"] = func() { c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.ErrorStatus }) }
		began := time.Now()
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Failed, true)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAnAttachThatTheHostFailsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.HostsFail()
		start := time.Now()
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Failed, true)
		if took := time.Since(start); took < volume.Lag || took > volume.Lag+time.Second { // before that it may be the state before the request
			t.Errorf("reported after %v", took)
		}
	})
}

// A volume that is in use elsewhere stays in use when the host fails the attach. The attachment shows the failure, or Nova's list.
func TestAFailedAttachOfAMultiattachVolumeIsReportedEarly(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Multiattach: true, Attachments: []volume.Attachment{{Server: cloudtest.ServerB}}})
			c.HostsFail()
			if hidden {
				c.Fail["VolumeAttachments"] = volume.Errorf(volume.PermissionDenied, "no")
			}
			start := time.Now()
			_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
			cloudtest.WantKind(t, err, volume.Failed, true)
			if took := time.Since(start); took < volume.Lag || took > volume.Lag+time.Second {
				t.Errorf("hidden %v: reported after %v", hidden, took)
			}
		})
	}
}

// Cinder may show a multiattach volume as in use, because of another server, while this attachment is in progress.
func TestAnAttachOfAMultiattachVolumeIsAwaitedWhileInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Multiattach: true, Attachments: []volume.Attachment{{Server: cloudtest.ServerB}}})
		c.Sim.SetLatency(openstacksim.Attach, 2*volume.Lag)
		c.Hook["Attach"] = func() {
			time.AfterFunc(volume.Lag+time.Second, func() { c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.InUse }) })
		}
		v, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		if err != nil || !v.AttachedTo(cloudtest.ServerA) || c.Count("VolumeAttachments") == 0 {
			t.Errorf("%v, %v after %v", v, err, c.Calls)
		}
	})
}

// An error of that read is the answer: it says more than the end of the caller's time.
func TestAReadThatFailsWhileAnAttachIsInProgressEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Multiattach: true, Attachments: []volume.Attachment{{Server: cloudtest.ServerB}}})
		c.Sim.SetLatency(openstacksim.Attach, 2*volume.Lag)
		c.Hook["Attach"] = func() {
			time.AfterFunc(volume.Lag+time.Second, func() { c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.InUse }) })
		}
		c.Hook["VolumeAttachments"] = func() {
			if c.Count("Attach") > 0 {
				c.Fail["Volume"] = volume.Errorf(volume.PermissionDenied, "no")
			}
		}
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.PermissionDenied, true)
	})
}

// Cinder reserves a multiattach volume once it is in use, not while another server attaches it.
func TestAnAttachOfAMultiattachVolumeWaitsForThatOfAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Attaching, Multiattach: true})
		c.List(cloudtest.VolumeID(1), cloudtest.ServerB)
		c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerB, volume.AttachmentAttaching))
		c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerB}}
		})
		v, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		if err != nil || !v.AttachedTo(cloudtest.ServerA) || !v.AttachedTo(cloudtest.ServerB) || c.Count("Attach") != 1 {
			t.Errorf("%v, %v after %v", v, err, c.Calls)
		}
	})
}

func TestAnAttachInProgressIsAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		server volume.ServerID
		kind   volume.Kind
	}{"to this server": {server: cloudtest.ServerA}, "to another": {server: cloudtest.ServerB, kind: volume.Conflict}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Attaching))
				c.List(cloudtest.VolumeID(1), test.server)
				c.Record(cloudtest.VolumeID(1), toServer(test.server, volume.AttachmentAttaching))
				c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) {
					v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: test.server}}
				})
				_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
				if test.kind != volume.Unknown {
					cloudtest.WantKind(t, err, test.kind, false)
				} else if err != nil {
					t.Error(err)
				}
				if c.Count("Attach") != 0 {
					t.Error("Nova was asked")
				}
			})
		})
	}
}

func TestAttachWithoutVolumeOrServerIsNotFound(t *testing.T) {
	for name, test := range map[string]struct {
		volume volume.ID
		server volume.ServerID
	}{
		"no volume":      {cloudtest.VolumeID(2), cloudtest.ServerA},
		"no server":      {cloudtest.VolumeID(1), cloudtest.NoServer},
		"no volume's id": {"vol", cloudtest.ServerA},
		"no server's id": {cloudtest.VolumeID(1), "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := newService(cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))).Attach(t.Context(), test.volume, test.server)
				cloudtest.WantKind(t, err, volume.NotFound, false)
			})
		})
	}
}

func TestARefusedAttachIsExplainedByTheVolume(t *testing.T) {
	for name, test := range map[string]struct {
		refusal volume.Kind
		now     volume.Volume // what the volume is once Nova has refused
		want    volume.Kind   // Unknown means that it is attached in the end
		asked   int
	}{
		"attached elsewhere meanwhile": {volume.InvalidArgument, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Attachments: []volume.Attachment{{Server: cloudtest.ServerB}}}, volume.Conflict, 1},
		"attached here meanwhile":      {volume.InvalidArgument, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}}}, volume.Unknown, 1},
		"changing":                     {volume.InvalidArgument, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved}, volume.Unknown, 2},
		"nothing to see":               {volume.InvalidArgument, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available}, volume.InvalidArgument, 1},
		"locked":                       {volume.Busy, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available}, volume.Busy, 1},
		"full":                         {volume.Exhausted, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available}, volume.Exhausted, 1},
		"forbidden":                    {volume.PermissionDenied, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Available}, volume.PermissionDenied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
				c.Fail["Attach"] = volume.Errorf(test.refusal, "no")
				c.Hook["Attach"] = func() {
					if c.Count("Attach") > 1 { // it has changed, and Nova takes it
						delete(c.Fail, "Attach")
						return
					}
					c.Put(test.now)
					if test.now.Status == volume.Reserved {
						c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.Available })
					}
				}
				_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
				if test.want != volume.Unknown {
					cloudtest.WantKind(t, err, test.want, false)
				} else if err != nil {
					t.Error(err)
				}
				if c.Count("Attach") != test.asked {
					t.Errorf("want Nova asked %d times, got %v", test.asked, c.Calls)
				}
			})
		})
	}
}

func testAttachIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, status))
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		sent := c.Count("Attach") == 1
		cloudtest.WantStep(t, status.Meaning().Attach, err, sent)
		if sent && status.Meaning().Attach != volume.Proceed {
			t.Error("the request was sent")
		}
	})
}

// What an attach does with a volume in each status: the requests that it sends, and its outcome.
func TestAttachInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testAttachIn(t, status) })
	}
}
