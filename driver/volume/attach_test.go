package volume

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAttachReturnsOnceCinderShowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOthers(1, Available))
		v, err := attaching(c).Attach(within(t, 60), id(1), serverA)
		if err != nil || v.Status != InUse || !v.AttachedTo(serverA) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAttachAgainAsksNobodyForAnything(t *testing.T) {
	c := newCloud(Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverA}}})
	if _, err := attaching(c).Attach(t.Context(), id(1), serverA); err != nil || c.count("Attach") != 0 {
		t.Errorf("got %v after %v", err, c.calls)
	}
}

func TestAttachWhenAlreadyAttachedElsewhereIsRefusedBeforeNovaIsAsked(t *testing.T) {
	c := newCloud(Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverB}}})
	_, err := attaching(c).Attach(t.Context(), id(1), serverA)
	wantKind(t, err, Conflict, false)
	if !strings.Contains(err.Error(), string(serverB)) || c.count("Attach") != 0 {
		t.Errorf("got %v after %v", err, c.calls)
	}
}

func TestAMultiattachVolumeIsAttachedToTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: InUse, Multiattach: true, Attachments: []Attachment{{Server: serverB}}})
		v, err := attaching(c).Attach(within(t, 60), id(1), serverA)
		if err != nil || !v.AttachedTo(serverA) || !v.AttachedTo(serverB) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAnAttachThatTheHostGivesUpIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, Available))
		c.refuse = true
		start := time.Now()
		_, err := attaching(c).Attach(within(t, 60), id(1), serverA)
		wantKind(t, err, Failed, true)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("told after %v only", took)
		}
	})
}

// A volume that is in use elsewhere stays so, whatever becomes of the attach: its record tells, or Nova's list where there is none.
func TestAnAttachOfASharedVolumeThatTheHostGivesUpIsNoticedEarly(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(Volume{ID: id(1), Status: InUse, Multiattach: true, Attachments: []Attachment{{Server: serverB}}})
			c.refuse = true
			if hidden {
				c.fail["Rows"] = Errorf(PermissionDenied, "no")
			}
			start := time.Now()
			_, err := attaching(c).Attach(within(t, 60), id(1), serverA)
			wantKind(t, err, Failed, true)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("hidden %v: told after %v only", hidden, took)
			}
		})
	}
}

// Cinder may show a shared volume as in use, because of another server, while this one's record is on its way.
func TestAnAttachOfASharedVolumeIsAwaitedWhileItsRecordIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: InUse, Multiattach: true, Attachments: []Attachment{{Server: serverB}}})
		c.hook["Attach"] = func() {
			time.AfterFunc(500*time.Millisecond, func() { c.change(id(1), func(v *Volume) { v.Status = InUse }) })
		}
		v, err := attaching(c).Attach(within(t, 60), id(1), serverA)
		if err != nil || !v.AttachedTo(serverA) || c.count("Rows") == 0 {
			t.Errorf("%v, %v after %v", v, err, c.calls)
		}
	})
}

func TestAnAttachUnderWayIsAwaited(t *testing.T) {
	for name, test := range map[string]struct {
		server ServerID
		kind   Kind
	}{"to this server": {server: serverA}, "to another": {server: serverB, kind: Conflict}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(ofOurs(1, Attaching))
				c.servers[test.server] = []ID{id(1)}
				c.rows = []Row{{ID: rowID(test.server), Volume: id(1), Server: test.server, Status: AttachmentAttaching}}
				c.later(id(1), func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: test.server}} })
				_, err := attaching(c).Attach(within(t, 60), id(1), serverA)
				if test.kind != Unknown {
					wantKind(t, err, test.kind, false)
				} else if err != nil {
					t.Error(err)
				}
				if c.count("Attach") != 0 {
					t.Error("Nova was asked")
				}
			})
		})
	}
}

func TestAttachToWhatIsNotThere(t *testing.T) {
	for name, test := range map[string]struct {
		volume ID
		server ServerID
	}{
		"no volume":      {id(2), serverA},
		"no server":      {id(1), "cccccccc-0000-4000-8000-000000000003"},
		"no volume's id": {"vol", serverA},
		"no server's id": {id(1), "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := attaching(newCloud(ofOurs(1, Available))).Attach(t.Context(), test.volume, test.server)
			wantKind(t, err, NotFound, false)
		})
	}
}

func TestNovasRefusalIsToldByTheVolumesState(t *testing.T) {
	for name, test := range map[string]struct {
		refusal Kind
		now     Volume // what the volume is once Nova has refused
		want    Kind   // Unknown means that it is attached in the end
		asked   int
	}{
		"attached elsewhere meanwhile": {InvalidArgument, Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverB}}}, Conflict, 1},
		"attached here meanwhile":      {InvalidArgument, Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverA}}}, Unknown, 1},
		"changing":                     {InvalidArgument, Volume{ID: id(1), Status: Reserved}, Unknown, 2},
		"nothing to see":               {InvalidArgument, Volume{ID: id(1), Status: Available}, InvalidArgument, 1},
		"locked":                       {Busy, Volume{ID: id(1), Status: Available}, Busy, 1},
		"full":                         {Exhausted, Volume{ID: id(1), Status: Available}, Exhausted, 1},
		"forbidden":                    {PermissionDenied, Volume{ID: id(1), Status: Available}, PermissionDenied, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(ofOurs(1, Available))
				c.fail["Attach"] = Errorf(test.refusal, "no")
				c.hook["Attach"] = func() {
					if c.count("Attach") > 1 { // it has changed, and Nova takes it
						delete(c.fail, "Attach")
						return
					}
					c.volumes[id(1)] = &test.now
					if test.now.AttachedTo(serverA) {
						c.servers[serverA] = []ID{id(1)}
					}
					if test.now.Status == Reserved {
						c.later(id(1), func(v *Volume) { v.Status = Available })
					}
				}
				_, err := attaching(c).Attach(within(t, 60), id(1), serverA)
				if test.want != Unknown {
					wantKind(t, err, test.want, false)
				} else if err != nil {
					t.Error(err)
				}
				if c.count("Attach") != test.asked {
					t.Errorf("want Nova asked %d times, got %v", test.asked, c.calls)
				}
			})
		})
	}
}

func testAttachIn(t *testing.T, status Status) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, status))
		_, err := attaching(c).Attach(within(t, 60), id(1), serverA)
		sent := c.count("Attach") == 1
		switch status.Meaning().Attach {
		case Proceed:
			if err != nil || !sent {
				t.Errorf("got %v, sent %v", err, sent)
			}
		case Wait:
			wantKind(t, err, DeadlineExceeded, false)
		case BeingDeleted:
			wantKind(t, err, NotFound, false)
		default:
			wantKind(t, err, Conflict, false)
		}
		if sent && status.Meaning().Attach != Proceed {
			t.Error("Nova was asked")
		}
	})
}

// What an attach does with a volume in each status: the requests it sends, the end it comes to.
func TestAttachInEveryStatus(t *testing.T) {
	for _, status := range everyStatus {
		t.Run(string(status), func(t *testing.T) { testAttachIn(t, status) })
	}
}
