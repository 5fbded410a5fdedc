package attach

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// A guard holds too where the read behind it fails.
func TestAServerWhoseMetadataCannotBeReadGetsNoVolume(t *testing.T) {
	for _, kind := range []volume.Kind{volume.Unavailable, volume.PermissionDenied, volume.Unknown} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
			c.Fail["Server"] = volume.Errorf(kind, "HTTP 500")
			_, err := New(c, c, Options{ServerMetadata: map[string]string{"role": "node"}}).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
			if cloudtest.WantKind(t, err, kind, false); c.Count("Attach") != 0 {
				t.Error(c.Calls)
			}
		})
	}
}

// Nova changes the volumes of such a server only if somebody asks for it. Every other status of the Nova API reference is one in which it may.
func TestAnIncompleteAttachmentIsDeletedOnlyIfItsServerIsIdle(t *testing.T) {
	idle := "ACTIVE SHUTOFF PAUSED SUSPENDED RESCUE SHELVED SHELVED_OFFLOADED ERROR"
	for _, status := range strings.Fields(idle + " BUILD DELETED HARD_REBOOT MIGRATING PASSWORD REBOOT REBUILD RESIZE REVERT_RESIZE SOFT_DELETED UNKNOWN VERIFY_RESIZE LATER") {
		for _, task := range []string{"", "spawning"} {
			t.Run(status+task, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
					c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, volume.AttachmentReserved))
					c.Sim.SetServerStatus(string(cloudtest.ServerA), status, task)
					_ = newService(c).Detach(cloudtest.Within(t, 40), cloudtest.VolumeID(1), cloudtest.ServerA)
					if got, want := c.Count("DeleteAttachment") > 0, strings.Contains(" "+idle+" ", " "+status+" ") && task == ""; got != want {
						t.Errorf("deleted: %v, want %v", got, want)
					}
				})
			})
		}
	}
}

// While somebody unshelves the server, its reservation becomes an attachment.
func TestNothingIsDetachedFromAServerThatIsBeingUnshelved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
		c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, volume.AttachmentReserved))
		c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
		c.Sim.SetServerStatus(string(cloudtest.ServerA), "SHELVED_OFFLOADED", "unshelving")
		err := newService(c).Detach(cloudtest.Within(t, 40), cloudtest.VolumeID(1), cloudtest.ServerA)
		if cloudtest.WantKind(t, err, volume.DeadlineExceeded, false); c.Count("Detach") != 0 || c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

// Two observations that say different things about Nova do not confirm each other.
func TestAnotherStateInNovaAtTheSecondObservationNeedsAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
		c.Record(cloudtest.VolumeID(1), toServer(deletedServer, volume.AttachmentReserved))
		time.AfterFunc(5*time.Second, func() { c.AddServer(deletedServer, "ACTIVE") })
		cloudtest.WantKind(t, newService(c).Detach(cloudtest.Within(t, 15), cloudtest.VolumeID(1), deletedServer), volume.DeadlineExceeded, false)
		if c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestAnAttachThatEndsInAnErrorStatusIsSaidAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Sim.SetLatency(openstacksim.Attach, time.Hour)
		c.Hook["Attach"] = func() {
			time.AfterFunc(time.Second, func() { c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.ErrorStatus }) })
		}
		began := time.Now()
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.Failed, true)
		if took := time.Since(began); took > 5*time.Second || !strings.Contains(err.Error(), "status error") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// A server that migrates has two attachments. In either order, the one that has progressed further counts.
func TestOfTwoAttachmentsTheOneThatHasProgressedFurtherCounts(t *testing.T) {
	further := volume.Attachment{ID: "further", Volume: seenVolume, Server: seenServer, Status: volume.AttachmentAttaching}
	reserved := volume.Attachment{ID: "reserved", Volume: seenVolume, Server: seenServer, Status: volume.AttachmentReserved}
	for _, order := range [][]volume.Attachment{{further, reserved}, {reserved, further}} {
		s := New(reading{status: volume.Attaching, attachments: order}, nil, Options{})
		if seen, err := s.observeCinder(t.Context(), volume.Volume{ID: seenVolume, Status: volume.Attaching}, seenServer); err != nil || seen.attachment.ID != "further" {
			t.Errorf("%v, %v", seen.attachment, err)
		}
	}
}

// unreadServer fails every read of a server after the first detach was sent.
type unreadServer struct{ *cloudtest.Cloud }

func (c unreadServer) Server(ctx context.Context, id volume.ServerID) (volume.Server, error) {
	if c.Count("Detach") > 0 {
		return volume.Server{}, volume.Errorf(volume.Unavailable, "HTTP 503")
	}
	return c.Cloud.Server(ctx, id)
}

func TestADetachThatFailedAndAServerThatCannotBeReadAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
		c.HostsFail()
		err := New(unreadServer{c}, c, Options{}).Detach(cloudtest.Within(t, 120), cloudtest.VolumeID(1), cloudtest.ServerA)
		if cloudtest.WantKind(t, err, volume.Unavailable, true); !strings.Contains(err.Error(), "cannot read whether the server exists") || c.Count("Detach") != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

// The volume was deleted during its detach: it is attached to no server.
func TestAVolumeThatIsDeletedDuringItsDetachIsDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Detaching})
		c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, volume.AttachmentDetaching))
		c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
		time.AfterFunc(time.Second, func() { c.Remove(cloudtest.VolumeID(1)) })
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Error(err)
		}
	})
}

// A cached reading serves a detach only if the volume was in use at that server.
func TestADetachFromAnotherServerThanTheCachedReadingReadsTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		s := newService(c)
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		reads := c.Count("Volume")
		if err := s.Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerB); err != nil || c.Count("Volume") != reads+1 {
			t.Errorf("%v, and %d reads", err, c.Count("Volume")-reads)
		}
	})
}

// The second detach from all begins with what the first has left: a volume that is in use at one server fewer.
func TestDetachFromAllReadsTheVolumeBeforeEachServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{
			ID: cloudtest.VolumeID(1), Status: volume.InUse, Multiattach: true,
			Attachments: []volume.Attachment{{Server: cloudtest.ServerA}, {Server: cloudtest.ServerB}},
		})
		c.Hook["Detach"] = func() { // somebody else detaches from the second one meanwhile
			if c.Count("Detach "+string(cloudtest.ServerA)) == 1 {
				v, _ := c.Sim.VolumeState(string(cloudtest.VolumeID(1)))
				for _, a := range v.Attachments {
					if a.Server == string(cloudtest.ServerB) {
						c.Unrecord(cloudtest.VolumeID(1), a.ID)
					}
				}
				c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
			}
		}
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), ""); err != nil {
			t.Error(err)
		}
		if n := c.Count("Detach"); n != 1 {
			t.Errorf("%d detaches sent: %v", n, c.Calls)
		}
	})
}

func TestARefusedAttachSaysThatTheServerCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Fail["Attach"] = volume.Errorf(volume.NotFound, "HTTP 404")
		c.Fail["Server"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		if cloudtest.WantKind(t, err, volume.NotFound, false); !strings.Contains(err.Error(), "cannot find out whether the volume or server") {
			t.Error(err)
		}
	})
}

// Hidden attachments cost no read of the server: Nova's list decides.
func TestHiddenAttachmentsCostNoReadOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
		c.Fail["VolumeAttachments"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("Server") != 0 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

// A volume that is in use at another server does not change its status when it is attached here.
func TestAWaitSeesAnAttachmentWithoutAChangeOfTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(servers ...volume.ServerID) volume.Volume {
			v := volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Multiattach: true}
			for _, s := range servers {
				v.Attachments = append(v.Attachments, volume.Attachment{Server: s})
			}
			return v
		}
		c := cloudtest.New(t, at(cloudtest.ServerB))
		before, _ := c.Volume(t.Context(), cloudtest.VolumeID(1))
		time.AfterFunc(time.Second, func() { c.Put(at(cloudtest.ServerA, cloudtest.ServerB)) })
		if v, err := newService(c).awaitChange(cloudtest.Within(t, 60), shown(before, cloudtest.ServerA), "change"); err != nil || !v.AttachedTo(cloudtest.ServerA) {
			t.Error(v, err)
		}
	})
}

// Once an attach is complete, nothing of it is on its way, and the next detach does not wait.
func TestADetachDoesNotWaitForAnAttachThatIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
		s := newService(c)
		s.unconfirmedAttaches.add(cloudtest.VolumeID(1), cloudtest.ServerA, time.Now())
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		if left := s.unconfirmedAttaches.remaining(cloudtest.VolumeID(1), cloudtest.ServerA); left > 0 {
			t.Errorf("the attach may still complete for %v", left)
		}
	})
}
