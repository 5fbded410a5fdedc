package volume

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDetachReturnsOnceCinderAndNovaAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(attachedTo(serverA))
		start := time.Now()
		if err := attaching(c).Detach(within(t, 60), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.read(id(1)); v.Status != Available || len(c.servers[serverA]) != 0 || time.Since(start) < 3*time.Second {
			t.Errorf("%v, Nova lists %v after %v", v, c.servers, time.Since(start))
		}
	})
}

func TestDetachWithoutAServerIsFromAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(attachedTo(serverA, serverB))
		if err := attaching(c).Detach(within(t, 60), id(1), ""); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.read(id(1)); v.Status != Available || len(v.Attachments) != 0 {
			t.Error(v)
		}
	})
}

func TestDetachLeavesOtherServersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(attachedTo(serverA, serverB))
		if err := attaching(c).Detach(within(t, 60), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		if v, _ := c.read(id(1)); v.AttachedTo(serverA) || !v.AttachedTo(serverB) {
			t.Error(v)
		}
	})
}

func TestWhatIsNotAttachedIsDetached(t *testing.T) {
	for name, test := range map[string]struct {
		volume ID
		server ServerID
	}{
		"no volume":         {id(9), serverA},
		"no volume's id":    {"vol", serverA},
		"another server":    {id(1), serverB},
		"no such server":    {id(1), "cccccccc-0000-4000-8000-000000000003"},
		"not a server's id": {id(1), "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(attachedTo(serverA))
			if err := attaching(c).Detach(t.Context(), test.volume, test.server); err != nil || c.count("Detach") != 0 {
				t.Errorf("got %v after %v", err, c.calls)
			}
		})
	}
}

func TestADetachUnderWayIsAwaitedAndNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := attachedTo(serverA)
		v.Status = Detaching
		c := newCloud(v)
		c.later(id(1), func(v *Volume) {
			v.Status, v.Attachments = Available, nil
			c.servers[serverA] = nil
		})
		if err := attaching(c).Detach(within(t, 60), id(1), serverA); err != nil || c.count("Detach") != 0 {
			t.Errorf("got %v after %v", err, c.calls)
		}
	})
}

func TestAnAttachUnderWayIsAwaitedAndThenDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(Volume{ID: id(1), Status: Attaching})
		c.servers[serverA] = []ID{id(1)}
		c.later(id(1), func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: serverA}} })
		if err := attaching(c).Detach(within(t, 60), id(1), serverA); err != nil || c.count("Detach") != 1 {
			t.Errorf("got %v after %v", err, c.calls)
		}
	})
}

func TestADetachThatTheHostGivesUpIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(attachedTo(serverA))
		c.refuse = true
		wantKind(t, attaching(c).Detach(within(t, 60), id(1), serverA), Failed, true)
	})
}

func TestNovasRefusalToDetachIsToldByTheVolumesState(t *testing.T) {
	for name, test := range map[string]struct {
		refusal Kind
		now     Status
		want    Kind // Unknown means that the detach is awaited to its end
	}{
		"detaching meanwhile": {InvalidArgument, Detaching, Unknown},
		"locked server":       {Conflict, InUse, Busy},
		"no task meanwhile":   {Busy, InUse, Busy},
		"forbidden":           {PermissionDenied, InUse, PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(attachedTo(serverA))
				c.fail["Detach"] = Errorf(test.refusal, "no")
				c.hook["Detach"] = func() {
					c.change(id(1), func(v *Volume) { v.Status = test.now })
					if test.now == InUse {
						return
					}
					c.later(id(1), func(v *Volume) { v.Status, v.Attachments = Available, nil })
					c.mu.Lock()
					c.servers[serverA] = nil
					c.mu.Unlock()
				}
				err := attaching(c).Detach(within(t, 60), id(1), serverA)
				if test.want == Unknown {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantKind(t, err, test.want, false)
			})
		})
	}
}

func TestADetachThatNeverEndsTellsWhatWasSeenLast(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(c *fakeCloud)
		text  string
	}{
		"Cinder shows it": {func(c *fakeCloud) { c.stuck = true }, "it is detaching"},
		"Nova lists it":   {func(c *fakeCloud) { c.listsForever = true }, "Nova still lists it there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(attachedTo(serverA))
				test.spoil(c)
				err := attaching(c).Detach(within(t, 60), id(1), serverA)
				if KindOf(err) != DeadlineExceeded || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), string(serverA)) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestADetachIsDoneOnceNovaHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // of a volume that the host has given back: Cinder has it available, Nova lists it
		c := newCloud(ofOurs(1, Available))
		c.servers[serverA] = []ID{id(1)}
		time.AfterFunc(5*time.Second, func() { c.restore(serverA, nil) })
		if err := attaching(c).Detach(within(t, 60), id(1), serverA); err != nil || c.count("Detach") != 0 {
			t.Errorf("%v after %v", err, c.calls)
		}
	})
}

func TestOneVolumeIsAttachedOrDetachedByOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, Available))
		s := attaching(c)
		done := make(chan error)
		go func() { _, err := s.Attach(within(t, 60), id(1), serverA); done <- err }()
		synctest.Wait()
		began := time.Now()
		_, again := s.Attach(t.Context(), id(1), serverA)
		for _, err := range []error{again, s.Detach(t.Context(), id(1), serverA), s.Detach(t.Context(), id(1), "")} {
			wantKind(t, err, Busy, false)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("told after %v", took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestDetachFromAllLeavesAHostsAttachmentAndSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		cloud *fakeCloud
		spoil func(c *fakeCloud)
		text  string
	}{
		"alone":                   {cloud: hostAttached(), text: "host kvm-7, no server of Nova's (attachment " + rowID("") + ")"},
		"beside a server":         {cloud: hostAttached(serverA), text: "host kvm-7"},
		"on its way there":        {cloud: newCloud(Volume{ID: id(1), Status: Attaching}), spoil: recordOfNobody(AttachmentAttaching), text: "(attachment nobody's)"},
		"on its way from there":   {cloud: newCloud(Volume{ID: id(1), Status: Detaching}), spoil: recordOfNobody(AttachmentDetaching), text: "(attachment nobody's)"},
		"records that are hidden": {cloud: hostAttached(), spoil: func(c *fakeCloud) { c.fail["Rows"] = Errorf(PermissionDenied, "no") }, text: "host kvm-7"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.spoil != nil {
					test.spoil(test.cloud)
				}
				err := attaching(test.cloud).Detach(within(t, 60), id(1), "")
				wantKind(t, err, Conflict, false)
				if !strings.Contains(err.Error(), test.text) || test.cloud.count("DeleteRow") != 0 {
					t.Errorf("%v after %v", err, test.cloud.calls)
				}
				if v, _ := test.cloud.read(id(1)); v.AttachedTo(serverA) {
					t.Error("the server still has it")
				}
			})
		})
	}
}

func recordOfNobody(status AttachStatus) func(*fakeCloud) {
	return func(c *fakeCloud) { c.rows = []Row{{ID: "nobody's", Volume: id(1), Status: status}} }
}

func TestNovaIsNotSaidToKnowAHostThatItWasNotAskedFor(t *testing.T) {
	c := hostAttached()
	v, _ := c.read(id(1))
	seen, err := attaching(c).observe(t.Context(), v, "")
	if err != nil || seen.novaSays != novaUnknown || c.count("Listed")+c.count("Server") != 0 {
		t.Errorf("%v, %v after %v", seen, err, c.calls)
	}
}

func TestAVolumeThatAHostHasIsRefusedByItsName(t *testing.T) {
	_, err := attaching(hostAttached()).Attach(t.Context(), id(1), serverA)
	wantKind(t, err, Conflict, false)
	if !strings.Contains(err.Error(), "host kvm-7") {
		t.Errorf("attach: %v", err)
	}
}

func TestTheFirstOfSeveralErrorsKeepsWhatTheOthersSay(t *testing.T) {
	plain, written := Errorf(NotFound, "plain"), Errorf(Busy, "written").AfterWrite()
	err := firstOf([]error{plain, nil, written})
	if !MayHaveWritten(err) || !errors.Is(err, plain) || !errors.Is(err, written) || KindOf(err) != NotFound {
		t.Errorf("got %v", err)
	}
}
