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
		v, err := service(c).Attach(within(t, 60), id(1), serverA)
		if err != nil || v.Status != InUse || !v.AttachedTo(serverA) {
			t.Errorf("got %v, %v", v, err)
		}
	})
}

func TestAttachAgainAsksNobodyForAnything(t *testing.T) {
	c := newCloud(Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverA}}})
	if _, err := service(c).Attach(t.Context(), id(1), serverA); err != nil || c.count("Attach") != 0 {
		t.Errorf("got %v after %v", err, c.calls)
	}
}

func TestAttachWhenAlreadyAttachedElsewhereIsRefusedBeforeNovaIsAsked(t *testing.T) {
	c := newCloud(Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverB}}})
	_, err := service(c).Attach(t.Context(), id(1), serverA)
	wantKind(t, err, Conflict, false)
	if !strings.Contains(err.Error(), string(serverB)) || c.count("Attach") != 0 {
		t.Errorf("got %v after %v", err, c.calls)
	}
}

func TestAMultiattachVolumeIsAttachedToTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: InUse, Multiattach: true, Attachments: []Attachment{{Server: serverB}}})
		v, err := service(c).Attach(within(t, 60), id(1), serverA)
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
		_, err := service(c).Attach(within(t, 60), id(1), serverA)
		wantKind(t, err, Failed, true)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("told after %v only", took)
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
				c.later(id(1), func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: test.server}} })
				_, err := service(c).Attach(within(t, 60), id(1), serverA)
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
			_, err := service(newCloud(ofOurs(1, Available))).Attach(t.Context(), test.volume, test.server)
			wantKind(t, err, NotFound, false)
		})
	}
}

func TestNovasRefusalIsToldByTheVolumesState(t *testing.T) {
	for name, test := range map[string]struct {
		refusal Kind
		now     Volume // what the volume is once Nova has refused
		want    Kind
	}{
		"attached elsewhere meanwhile": {InvalidArgument, Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverB}}}, Conflict},
		"attached here meanwhile":      {InvalidArgument, Volume{ID: id(1), Status: InUse, Attachments: []Attachment{{Server: serverA}}}, Busy},
		"changing":                     {InvalidArgument, Volume{ID: id(1), Status: Reserved}, Busy},
		"nothing to see":               {InvalidArgument, Volume{ID: id(1), Status: Available}, InvalidArgument},
		"locked":                       {Busy, Volume{ID: id(1), Status: Available}, Busy},
		"full":                         {Exhausted, Volume{ID: id(1), Status: Available}, Exhausted},
		"forbidden":                    {PermissionDenied, Volume{ID: id(1), Status: Available}, PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(ofOurs(1, Available))
			c.fail["Attach"] = Errorf(test.refusal, "no")
			c.hook["Attach"] = func() { c.volumes[id(1)] = &test.now }
			_, err := service(c).Attach(t.Context(), id(1), serverA)
			wantKind(t, err, test.want, false)
		})
	}
}

func testAttachIn(t *testing.T, status Status) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, status))
		_, err := service(c).Attach(within(t, 60), id(1), serverA)
		sent := c.count("Attach") == 1
		switch statuses[status].attach {
		case proceed:
			if err != nil || !sent {
				t.Errorf("got %v, sent %v", err, sent)
			}
		case wait:
			wantKind(t, err, DeadlineExceeded, false)
		case leaving:
			wantKind(t, err, NotFound, false)
		default:
			wantKind(t, err, Conflict, false)
		}
		if sent && statuses[status].attach != proceed {
			t.Error("Nova was asked")
		}
	})
}
