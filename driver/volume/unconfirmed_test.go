package volume

import (
	"testing"
	"testing/synctest"
	"time"
)

// The retry of a lost attach succeeds by itself; the lost one is carried out after the detach has begun.
func TestADetachOutlastsALostAttachThatWasSentOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, Available))
		c.fail["Attach"] = Errorf(Unavailable, "HTTP 504").AfterWrite()
		s := attaching(c)
		_, err := s.Attach(within(t, 60), id(1), serverA)
		wantKind(t, err, Unavailable, true)
		c.breaks("Attach", nil)
		if _, err := s.Attach(within(t, 60), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { _ = c.Attach(t.Context(), serverA, ofOurs(1, Available)) })
		time.Sleep(20 * time.Second)
		if err := s.Detach(within(t, 180), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if v, _ := c.read(id(1)); v.Status != Available || len(v.Attachments) != 0 {
			t.Errorf("the detach was done, and then the volume is %s at %v", v.Status, v.Attachments)
		}
	})
}

// A lost detach that is carried out after the next attach would take the disk away under a mounted file system.
func TestAnAttachWaitsUntilALostDetachFromTheSameServerIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, Available))
		s := attaching(c)
		if _, err := s.Attach(within(t, 60), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		c.fail["Detach"] = Errorf(Unavailable, "HTTP 504").AfterWrite()
		wantKind(t, s.Detach(within(t, 60), id(1), serverA), Unavailable, true)
		c.breaks("Detach", nil)
		if err := s.Detach(within(t, 60), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		_, err := s.Attach(within(t, 60), id(1), serverA)
		wantKind(t, err, Busy, false)
		if _, err := s.Attach(within(t, 60), id(1), serverB); err != nil {
			t.Errorf("to another server: %v", err)
		}
		if err := s.Detach(within(t, 60), id(1), serverB); err != nil {
			t.Fatal(err)
		}
		time.Sleep(novaGoesOn)
		if _, err := s.Attach(within(t, 60), id(1), serverA); err != nil {
			t.Errorf("once it is over: %v", err)
		}
	})
}

// The volume has left the server and the detach was sent once: nothing else can come of it.
func TestAnAttachDoesNotWaitForALostDetachThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(ofOurs(1, Available))
		s := attaching(c)
		if _, err := s.Attach(within(t, 60), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		c.hook["Detach"] = func() {
			c.change(id(1), func(v *Volume) { v.Status, v.Attachments = Available, nil })
			delete(c.servers, serverA)
			c.servers[serverA] = nil
		}
		c.fail["Detach"] = Errorf(Unavailable, "connection reset").AfterWrite()
		wantKind(t, s.Detach(within(t, 60), id(1), serverA), Unavailable, true)
		c.breaks("Detach", nil)
		c.hook["Detach"] = nil
		if err := s.Detach(within(t, 60), id(1), serverA); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Attach(within(t, 60), id(1), serverA); err != nil {
			t.Error(err)
		}
	})
}
