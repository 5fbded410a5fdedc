package attach

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

const deletedServer volume.ServerID = "cccccccc-0000-4000-8000-000000000003"

// cloudWithStaleAttachment is a cloud with one volume that is attached to a server which no longer exists.
func cloudWithStaleAttachment() *volumetest.Cloud {
	c := volumetest.NewCloud(volumetest.AttachedVolume(deletedServer))
	delete(c.Servers, deletedServer)
	return c
}

func TestTheAttachmentToADeletedServerIsDeletedAfterTwoObservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudWithStaleAttachment()
		began := time.Now()
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), deletedServer); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(volumetest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 || c.Count("DeleteAttachment") != 1 || time.Since(began) < staleConfirmInterval {
			t.Errorf("%v after %v and %v", v, time.Since(began), c.Calls)
		}
		if c.Count("Server") < 2 {
			t.Errorf("Nova was not asked twice for the server: %v", c.Calls)
		}
	})
}

func TestAStaleAttachmentStaysUnlessCinderAndNovaAgree(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *volumetest.Cloud)
		kind  volume.Kind
		text  string
	}{
		"Nova answers 500 for the server": {func(c *volumetest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.Unavailable, "HTTP 500") }, volume.Unavailable, "HTTP 500"},
		"Nova forbids to read the server": {func(c *volumetest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.PermissionDenied, "HTTP 403") }, volume.PermissionDenied, "HTTP 403"},
		"the server's cell is down":       {func(c *volumetest.Cloud) { c.Servers[deletedServer] = nil; c.ServerStatus = "UNKNOWN" }, volume.Unavailable, "UNKNOWN"},
		"the server is being built":       {func(c *volumetest.Cloud) { c.Servers[deletedServer] = nil; c.ServerStatus = "BUILD" }, volume.DeadlineExceeded, "BUILD"},
		"the server is there":             {func(c *volumetest.Cloud) { c.Servers[deletedServer] = nil }, volume.Conflict, "volume attachment delete " + volumetest.AttachmentID(deletedServer)},
		"the server comes back":           {func(c *volumetest.Cloud) { time.AfterFunc(5*time.Second, func() { c.Restore(deletedServer, nil) }) }, volume.Conflict, "may still use the disk"},
		"Cinder finds that Nova uses it":  {func(c *volumetest.Cloud) { c.Fail["DeleteAttachment"] = volume.Errorf(volume.Busy, "HTTP 409") }, volume.Busy, "logs in with a password can run"},
		"a policy forbids to delete it": {func(c *volumetest.Cloud) {
			c.Fail["DeleteAttachment"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		}, volume.PermissionDenied, "volume attachment delete " + volumetest.AttachmentID(deletedServer)},
		"it cannot be read again": {func(c *volumetest.Cloud) {
			c.Fail["ShowAttachment"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		}, volume.PermissionDenied, "logs in with a password can run"},
		"the volume's status is an error": {func(c *volumetest.Cloud) {
			c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status = "error_restoring" })
		}, volume.Conflict, "error_restoring"},
		"another operation is in progress": {func(c *volumetest.Cloud) {
			c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status = "backing-up" })
		}, volume.DeadlineExceeded, "backing-up"},
		"the caller leaves earlier": {func(c *volumetest.Cloud) { c.Hook["Server"] = func() { time.Sleep(55 * time.Second) } }, volume.DeadlineExceeded, "Nova has no such server"},
		"Cinder does not answer meanwhile": {func(c *volumetest.Cloud) {
			time.AfterFunc(5*time.Second, func() { c.Breaks("Volume", volume.Errorf(volume.Unavailable, "HTTP 503")) })
		}, volume.Unavailable, "HTTP 503"},
		"Nova answers 404 for its list only": {func(c *volumetest.Cloud) {
			c.Fail["ServerAttachments"] = volume.Errorf(volume.NotFound, "no list")
			c.Servers[deletedServer] = nil
		}, volume.Unavailable, "cannot list the volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudWithStaleAttachment()
				test.spoil(c)
				err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), deletedServer)
				volumetest.WantKind(t, err, test.kind, false)
				if v, _ := c.Read(volumetest.VolumeID(1)); !strings.Contains(err.Error(), test.text) || !v.AttachedTo(deletedServer) {
					t.Errorf("%v: %v", v, err)
				}
			})
		})
	}
}

func TestAnAttachmentThatChangesIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Reserved})
		c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(volumetest.ServerA), Volume: volumetest.VolumeID(1), Server: volumetest.ServerA, Status: volume.AttachmentReserved}}
		c.Hook["ShowAttachment"] = func() { // another replica attached it before the second observation
			c.Mu.Lock()
			defer c.Mu.Unlock()
			c.AttachmentRecords[0].Status = volume.AttachmentAttaching
			c.Servers[volumetest.ServerA] = []volume.ID{volumetest.VolumeID(1)}
		}
		c.Later(volumetest.VolumeID(1), func(*volume.Volume) {})
		volumetest.WantKind(t, newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA), volume.DeadlineExceeded, false)
		if c.Count("ShowAttachment") == 0 || c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestANewAttachmentAtTheSecondObservationNeedsAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Reserved})
		c.AttachmentRecords = []volume.Attachment{{ID: "first", Volume: volumetest.VolumeID(1), Server: volumetest.ServerA, Status: volume.AttachmentReserved}}
		time.AfterFunc(5*time.Second, func() {
			c.Mu.Lock()
			defer c.Mu.Unlock()
			c.AttachmentRecords[0].ID = "second"
		})
		volumetest.WantKind(t, newService(c).Detach(volumetest.Within(t, 15), volumetest.VolumeID(1), volumetest.ServerA), volume.DeadlineExceeded, false)
		if c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestTheAttachmentOfAFailedAttachIsDeleted(t *testing.T) {
	for _, status := range []volume.AttachStatus{volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentErrorAttaching} {
		for _, verb := range []string{"attach", "detach"} {
			t.Run(string(status)+", "+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Reserved})
					c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(volumetest.ServerA), Volume: volumetest.VolumeID(1), Server: volumetest.ServerA, Status: status}}
					var err error
					want := volume.Available
					if verb == "attach" {
						want = volume.InUse
						_, err = newService(c).Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
					} else {
						err = newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
					}
					if v, _ := c.Read(volumetest.VolumeID(1)); err != nil || v.Status != want || c.Count("DeleteAttachment") != 1 {
						t.Errorf("%v, %v after %v", v, err, c.Calls)
					}
				})
			})
		}
	}
}

func TestAttachmentsToOtherServersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Reserved})
		c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(deletedServer), Volume: volumetest.VolumeID(1), Server: deletedServer, Status: volume.AttachmentReserved}, {ID: "reservation", Volume: volumetest.VolumeID(1), Status: volume.AttachmentReserved}}
		_, err := newService(c).Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
		if !strings.Contains(err.Error(), volumetest.AttachmentID(deletedServer)+" to server "+string(deletedServer)+" is reserved") {
			t.Errorf("does not name the server: %v", err)
		}
		if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Error(err)
		}
		if c.Count("DeleteAttachment") != 0 || c.Count("Attach") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestDetachFromAllDeletesStaleAttachmentsAndKeepsReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.InUse, Multiattach: true, Attachments: []volume.Attachment{{Server: volumetest.ServerA}, {Server: deletedServer}}})
		delete(c.Servers, deletedServer)
		c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(volumetest.ServerB), Volume: volumetest.VolumeID(1), Server: volumetest.ServerB, Status: volume.AttachmentReserved}, {ID: "reservation", Volume: volumetest.VolumeID(1), Status: volume.AttachmentReserved}}
		if err := newService(c).Detach(volumetest.Within(t, 120), volumetest.VolumeID(1), ""); err != nil {
			t.Fatal(err)
		}
		left := c.Recorded(volumetest.VolumeID(1))
		if len(left) != 1 || left[0].ID != "reservation" || c.Count("Detach") != 2 || c.Count("DeleteAttachment") != 2 { // of the server that is gone, too
			t.Errorf("left %v after %v", left, c.Calls)
		}
	})
}

// Where the policy hides attachments, the volume and Nova decide.
func TestAttachAndDetachWhereCinderHidesAttachments(t *testing.T) {
	for _, kind := range []volume.Kind{volume.PermissionDenied, volume.NotFound, volume.Unimplemented} {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Attaching))
			c.Fail["VolumeAttachments"] = volume.Errorf(kind, "no attachments")
			c.Servers[volumetest.ServerA] = []volume.ID{volumetest.VolumeID(1)}
			c.Later(volumetest.VolumeID(1), func(v *volume.Volume) {
				v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: volumetest.ServerA}}
			})
			if _, err := newService(c).Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
				t.Errorf("%v: attach: %v", kind, err)
			}
			if err := newService(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
				t.Errorf("%v: detach: %v", kind, err)
			}
		})
	}
}
