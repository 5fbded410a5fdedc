package attach

import (
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const goneServer volume.ServerID = "cccccccc-0000-4000-8000-000000000003"

// leftover is a cloud with one volume that has a record for a server which no longer exists.
func leftover() *volumetest.Cloud {
	c := volumetest.NewCloud(volumetest.AttachedVolume(goneServer))
	delete(c.Servers, goneServer)
	return c
}

func TestTheRecordOfADeletedServerGoesAfterTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftover()
		began := time.Now()
		if err := attaching(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), goneServer); err != nil {
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

func TestAStaleRecordStaysUnlessEverythingAgrees(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *volumetest.Cloud)
		kind  volume.Kind
		text  string
	}{
		"Nova answers 500 for the server": {func(c *volumetest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.Unavailable, "HTTP 500") }, volume.Unavailable, "HTTP 500"},
		"Nova forbids to read the server": {func(c *volumetest.Cloud) { c.Fail["Server"] = volume.Errorf(volume.PermissionDenied, "HTTP 403") }, volume.PermissionDenied, "HTTP 403"},
		"the server's cell is down":       {func(c *volumetest.Cloud) { c.Servers[goneServer] = nil; c.ServerStatus = "UNKNOWN" }, volume.Unavailable, "UNKNOWN"},
		"the server is being built":       {func(c *volumetest.Cloud) { c.Servers[goneServer] = nil; c.ServerStatus = "BUILD" }, volume.DeadlineExceeded, "BUILD"},
		"the server is there":             {func(c *volumetest.Cloud) { c.Servers[goneServer] = nil }, volume.Conflict, "volume attachment delete " + volumetest.AttachmentID(goneServer)},
		"the server comes back":           {func(c *volumetest.Cloud) { time.AfterFunc(5*time.Second, func() { c.Restore(goneServer, nil) }) }, volume.Conflict, "may still use the disk"},
		"Cinder finds that Nova uses it":  {func(c *volumetest.Cloud) { c.Fail["DeleteAttachment"] = volume.Errorf(volume.Busy, "HTTP 409") }, volume.Busy, "a person with a password can"},
		"a policy forbids to delete it": {func(c *volumetest.Cloud) {
			c.Fail["DeleteAttachment"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		}, volume.PermissionDenied, "volume attachment delete " + volumetest.AttachmentID(goneServer)},
		"it cannot be read once more": {func(c *volumetest.Cloud) {
			c.Fail["ShowAttachment"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
		}, volume.PermissionDenied, "a person with a password can"},
		"the volume's status is an error": {func(c *volumetest.Cloud) {
			c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status = "error_restoring" })
		}, volume.Conflict, "error_restoring"},
		"somebody else is at work on it": {func(c *volumetest.Cloud) {
			c.Change(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status = "backing-up" })
		}, volume.DeadlineExceeded, "backing-up"},
		"the caller does not wait so long": {func(c *volumetest.Cloud) { c.Hook["Server"] = func() { time.Sleep(55 * time.Second) } }, volume.DeadlineExceeded, "Nova has no such server"},
		"Cinder does not answer meanwhile": {func(c *volumetest.Cloud) {
			time.AfterFunc(5*time.Second, func() { c.Breaks("Volume", volume.Errorf(volume.Unavailable, "HTTP 503")) })
		}, volume.Unavailable, "HTTP 503"},
		"Nova answers 404 for its list only": {func(c *volumetest.Cloud) {
			c.Fail["ServerAttachments"] = volume.Errorf(volume.NotFound, "no list")
			c.Servers[goneServer] = nil
		}, volume.Unavailable, "does not know the volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftover()
				test.spoil(c)
				err := attaching(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), goneServer)
				volumetest.WantKind(t, err, test.kind, false)
				if v, _ := c.Read(volumetest.VolumeID(1)); !strings.Contains(err.Error(), test.text) || !v.AttachedTo(goneServer) {
					t.Errorf("%v: %v", v, err)
				}
			})
		})
	}
}

func TestARecordThatComesToLifeIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Reserved})
		c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(volumetest.ServerA), Volume: volumetest.VolumeID(1), Server: volumetest.ServerA, Status: volume.AttachmentReserved}}
		c.Hook["ShowAttachment"] = func() { // another replica's attach was faster than the second look
			c.Mu.Lock()
			defer c.Mu.Unlock()
			c.AttachmentRecords[0].Status = volume.AttachmentAttaching
			c.Servers[volumetest.ServerA] = []volume.ID{volumetest.VolumeID(1)}
		}
		c.Later(volumetest.VolumeID(1), func(*volume.Volume) {})
		volumetest.WantKind(t, attaching(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA), volume.DeadlineExceeded, false)
		if c.Count("ShowAttachment") == 0 || c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestARecordThatIsNewAtTheSecondLookWaitsForAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Reserved})
		c.AttachmentRecords = []volume.Attachment{{ID: "first", Volume: volumetest.VolumeID(1), Server: volumetest.ServerA, Status: volume.AttachmentReserved}}
		time.AfterFunc(5*time.Second, func() {
			c.Mu.Lock()
			defer c.Mu.Unlock()
			c.AttachmentRecords[0].ID = "second"
		})
		volumetest.WantKind(t, attaching(c).Detach(volumetest.Within(t, 15), volumetest.VolumeID(1), volumetest.ServerA), volume.DeadlineExceeded, false)
		if c.Count("DeleteAttachment") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestWhatAFailedAttachHasLeftIsClearedAway(t *testing.T) {
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
						_, err = attaching(c).Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
					} else {
						err = attaching(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
					}
					if v, _ := c.Read(volumetest.VolumeID(1)); err != nil || v.Status != want || c.Count("DeleteAttachment") != 1 {
						t.Errorf("%v, %v after %v", v, err, c.Calls)
					}
				})
			})
		}
	}
}

func TestRecordsOfOtherServersAreNeverTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Reserved})
		c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(goneServer), Volume: volumetest.VolumeID(1), Server: goneServer, Status: volume.AttachmentReserved}, {ID: "nobody's", Volume: volumetest.VolumeID(1), Status: volume.AttachmentReserved}}
		_, err := attaching(c).Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
		volumetest.WantKind(t, err, volume.DeadlineExceeded, false)
		if !strings.Contains(err.Error(), volumetest.AttachmentID(goneServer)+" to server "+string(goneServer)+" is reserved") {
			t.Errorf("does not tell who has it: %v", err)
		}
		if err := attaching(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
			t.Error(err)
		}
		if c.Count("DeleteAttachment") != 0 || c.Count("Attach") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestDetachFromAllClearsEveryServersRecordAndNobodysStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.InUse, Multiattach: true, Attachments: []volume.Attachment{{Server: volumetest.ServerA}, {Server: goneServer}}})
		delete(c.Servers, goneServer)
		c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(volumetest.ServerB), Volume: volumetest.VolumeID(1), Server: volumetest.ServerB, Status: volume.AttachmentReserved}, {ID: "nobody's", Volume: volumetest.VolumeID(1), Status: volume.AttachmentReserved}}
		if err := attaching(c).Detach(volumetest.Within(t, 120), volumetest.VolumeID(1), ""); err != nil {
			t.Fatal(err)
		}
		left := c.Recorded(volumetest.VolumeID(1))
		if len(left) != 1 || left[0].ID != "nobody's" || c.Count("Detach") != 2 || c.Count("DeleteAttachment") != 2 { // of the server that is gone, too
			t.Errorf("left %v after %v", left, c.Calls)
		}
	})
}

// A cloud whose policy hides its records is served by what the volume and Nova tell.
func TestACloudThatHidesItsRecordsIsGoneOnWith(t *testing.T) {
	for _, kind := range []volume.Kind{volume.PermissionDenied, volume.NotFound, volume.Unimplemented} {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud(volumetest.OwnVolume(1, volume.Attaching))
			c.Fail["VolumeAttachments"] = volume.Errorf(kind, "no records")
			c.Servers[volumetest.ServerA] = []volume.ID{volumetest.VolumeID(1)}
			c.Later(volumetest.VolumeID(1), func(v *volume.Volume) {
				v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: volumetest.ServerA}}
			})
			if _, err := attaching(c).Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
				t.Errorf("%v: attach: %v", kind, err)
			}
			if err := attaching(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA); err != nil {
				t.Errorf("%v: detach: %v", kind, err)
			}
		})
	}
}
