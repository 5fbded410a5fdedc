package volume

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const goneServer ServerID = "cccccccc-0000-4000-8000-000000000003"

// leftover is a cloud with one volume that has a record for a server which no longer exists.
func leftover() *fakeCloud {
	c := newCloud(attachedTo(goneServer))
	delete(c.servers, goneServer)
	return c
}

func TestTheRecordOfADeletedServerGoesAfterTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := leftover()
		began := time.Now()
		if err := attaching(c).Detach(within(t, 60), id(1), goneServer); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.read(id(1)); v.Status != Available || len(v.Attachments) != 0 || c.count("DeleteRow") != 1 || time.Since(began) < staleConfirmInterval {
			t.Errorf("%v after %v and %v", v, time.Since(began), c.calls)
		}
		if c.count("Server") < 2 {
			t.Errorf("Nova was not asked twice for the server: %v", c.calls)
		}
	})
}

func TestAStaleRecordStaysUnlessEverythingAgrees(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *fakeCloud)
		kind  Kind
		text  string
	}{
		"Nova answers 500 for the server":  {func(c *fakeCloud) { c.fail["Server"] = Errorf(Unavailable, "HTTP 500") }, Unavailable, "HTTP 500"},
		"Nova forbids to read the server":  {func(c *fakeCloud) { c.fail["Server"] = Errorf(PermissionDenied, "HTTP 403") }, PermissionDenied, "HTTP 403"},
		"the server's cell is down":        {func(c *fakeCloud) { c.servers[goneServer] = nil; c.serverStatus = "UNKNOWN" }, Unavailable, "UNKNOWN"},
		"the server is being built":        {func(c *fakeCloud) { c.servers[goneServer] = nil; c.serverStatus = "BUILD" }, DeadlineExceeded, "BUILD"},
		"the server is there":              {func(c *fakeCloud) { c.servers[goneServer] = nil }, Conflict, "volume attachment delete " + rowID(goneServer)},
		"the server comes back":            {func(c *fakeCloud) { time.AfterFunc(5*time.Second, func() { c.restore(goneServer, nil) }) }, Conflict, "may still use the disk"},
		"Cinder finds that Nova uses it":   {func(c *fakeCloud) { c.fail["DeleteRow"] = Errorf(Busy, "HTTP 409") }, Busy, "a person with a password can"},
		"a policy forbids to delete it":    {func(c *fakeCloud) { c.fail["DeleteRow"] = Errorf(PermissionDenied, "HTTP 403") }, PermissionDenied, "volume attachment delete " + rowID(goneServer)},
		"it cannot be read once more":      {func(c *fakeCloud) { c.fail["Row"] = Errorf(PermissionDenied, "HTTP 403") }, PermissionDenied, "a person with a password can"},
		"the volume's status is an error":  {func(c *fakeCloud) { c.change(id(1), func(v *Volume) { v.Status = "error_restoring" }) }, Conflict, "error_restoring"},
		"somebody else is at work on it":   {func(c *fakeCloud) { c.change(id(1), func(v *Volume) { v.Status = "backing-up" }) }, DeadlineExceeded, "backing-up"},
		"the caller does not wait so long": {func(c *fakeCloud) { c.hook["Server"] = func() { time.Sleep(55 * time.Second) } }, DeadlineExceeded, "Nova has no such server"},
		"Cinder does not answer meanwhile": {func(c *fakeCloud) {
			time.AfterFunc(5*time.Second, func() { c.breaks("Volume", Errorf(Unavailable, "HTTP 503")) })
		}, Unavailable, "HTTP 503"},
		"Nova answers 404 for its list only": {func(c *fakeCloud) { c.fail["Listed"] = Errorf(NotFound, "no list"); c.servers[goneServer] = nil }, Unavailable, "does not know the volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := leftover()
				test.spoil(c)
				err := attaching(c).Detach(within(t, 60), id(1), goneServer)
				wantKind(t, err, test.kind, false)
				if v, _ := c.read(id(1)); !strings.Contains(err.Error(), test.text) || !v.AttachedTo(goneServer) {
					t.Errorf("%v: %v", v, err)
				}
			})
		})
	}
}

func TestARecordThatComesToLifeIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: Reserved})
		c.rows = []Row{{ID: rowID(serverA), Volume: id(1), Server: serverA, Status: AttachmentReserved}}
		c.hook["Row"] = func() { // another replica's attach was faster than the second look
			c.mu.Lock()
			defer c.mu.Unlock()
			c.rows[0].Status = AttachmentAttaching
			c.servers[serverA] = []ID{id(1)}
		}
		c.later(id(1), func(*Volume) {})
		wantKind(t, attaching(c).Detach(within(t, 60), id(1), serverA), DeadlineExceeded, false)
		if c.count("Row") == 0 || c.count("DeleteRow") != 0 {
			t.Error(c.calls)
		}
	})
}

func TestARecordThatIsNewAtTheSecondLookWaitsForAThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: Reserved})
		c.rows = []Row{{ID: "first", Volume: id(1), Server: serverA, Status: AttachmentReserved}}
		time.AfterFunc(5*time.Second, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.rows[0].ID = "second"
		})
		wantKind(t, attaching(c).Detach(within(t, 15), id(1), serverA), DeadlineExceeded, false)
		if c.count("DeleteRow") != 0 {
			t.Error(c.calls)
		}
	})
}

func TestWhatAFailedAttachHasLeftIsClearedAway(t *testing.T) {
	for _, status := range []AttachStatus{AttachmentReserved, AttachmentAttaching, AttachmentErrorAttaching} {
		for _, verb := range []string{"attach", "detach"} {
			t.Run(string(status)+", "+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCloud(Volume{ID: id(1), Status: Reserved})
					c.rows = []Row{{ID: rowID(serverA), Volume: id(1), Server: serverA, Status: status}}
					var err error
					want := Available
					if verb == "attach" {
						want = InUse
						_, err = attaching(c).Attach(within(t, 60), id(1), serverA)
					} else {
						err = attaching(c).Detach(within(t, 60), id(1), serverA)
					}
					if v, _ := c.read(id(1)); err != nil || v.Status != want || c.count("DeleteRow") != 1 {
						t.Errorf("%v, %v after %v", v, err, c.calls)
					}
				})
			})
		}
	}
}

func TestRecordsOfOtherServersAreNeverTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: Reserved})
		c.rows = []Row{{ID: rowID(goneServer), Volume: id(1), Server: goneServer, Status: AttachmentReserved}, {ID: "nobody's", Volume: id(1), Status: AttachmentReserved}}
		_, err := attaching(c).Attach(within(t, 60), id(1), serverA)
		wantKind(t, err, DeadlineExceeded, false)
		if !strings.Contains(err.Error(), rowID(goneServer)+" to server "+string(goneServer)+" is reserved") {
			t.Errorf("does not tell who has it: %v", err)
		}
		if err := attaching(c).Detach(within(t, 60), id(1), serverA); err != nil {
			t.Error(err)
		}
		if c.count("DeleteRow") != 0 || c.count("Attach") != 0 {
			t.Error(c.calls)
		}
	})
}

func TestDetachFromAllClearsEveryServersRecordAndNobodysStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: InUse, Multiattach: true, Attachments: []Attachment{{Server: serverA}, {Server: goneServer}}})
		delete(c.servers, goneServer)
		c.rows = []Row{{ID: rowID(serverB), Volume: id(1), Server: serverB, Status: AttachmentReserved}, {ID: "nobody's", Volume: id(1), Status: AttachmentReserved}}
		if err := attaching(c).Detach(within(t, 120), id(1), ""); err != nil {
			t.Fatal(err)
		}
		left := c.recorded(id(1))
		if len(left) != 1 || left[0].ID != "nobody's" || c.count("Detach") != 2 || c.count("DeleteRow") != 2 { // of the server that is gone, too
			t.Errorf("left %v after %v", left, c.calls)
		}
	})
}

// A cloud whose policy hides its records is served by what the volume and Nova tell.
func TestACloudThatHidesItsRecordsIsGoneOnWith(t *testing.T) {
	for _, kind := range []Kind{PermissionDenied, NotFound, Unimplemented} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(ofOurs(1, Attaching))
			c.fail["Rows"] = Errorf(kind, "no records")
			c.servers[serverA] = []ID{id(1)}
			c.later(id(1), func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: serverA}} })
			if _, err := attaching(c).Attach(within(t, 60), id(1), serverA); err != nil {
				t.Errorf("%v: attach: %v", kind, err)
			}
			if err := attaching(c).Detach(within(t, 60), id(1), serverA); err != nil {
				t.Errorf("%v: detach: %v", kind, err)
			}
		})
	}
}
