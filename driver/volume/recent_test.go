package volume

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// made gives a cloud, its service, and the volume that Create has just made there.
func made(t *testing.T) (*fakeCloud, provisionAndAttach, ID) {
	t.Helper()
	c := newCloud()
	recent := &Recent{}
	s := provisionAndAttach{NewVolumes(c, c, Options{Owner: testOwner, Recent: recent}), NewAttachService(c, c, AttachOptions{Recent: recent}), recent}
	v, err := s.Create(within(t, 60), CreateSpec{Name: "pvc-1", Size: Range{Required: GiB(1)}})
	if err != nil {
		t.Fatal(err)
	}
	c.calls = nil
	return c, s, v.ID
}

// provisionAndAttach are services that share what was seen last.
type provisionAndAttach struct {
	provision
	attach
	recent *Recent
}

type (
	provision = *Volumes
	attach    = *AttachService
)

func TestWhatWasJustSeenIsNotLookedAtBeforeItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := made(t)
		if _, err := s.Attach(within(t, 60), id, serverA); err != nil || c.count("Volume") != 0 {
			t.Errorf("attach: %v after %v", err, c.calls)
		}
		if err := s.Detach(within(t, 60), id, serverA); err != nil || c.count("Volume") != 0 {
			t.Errorf("detach: %v after %v", err, c.calls)
		}
		if err := s.Delete(within(t, 60), id); err != nil || c.count("Volume") != 0 || len(c.volumes) != 0 {
			t.Errorf("delete: %v after %v", err, c.calls)
		}
	})
}

func TestAGlimpseIsGoodForAFewSecondsAndOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := made(t)
		c.fail["Attach"] = Errorf(Unavailable, "not now")
		for range 2 {
			_, err := s.Attach(within(t, 60), id, serverA)
			wantKind(t, err, Unavailable, false)
		}
		if c.count("Volume") != 1 {
			t.Errorf("the second attach did not look: %v", c.calls)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s, id := made(t)
		time.Sleep(5 * time.Second)
		if err := s.Delete(within(t, 60), id); err != nil || c.count("Volume") != 1 {
			t.Errorf("%v after %v", err, c.calls)
		}
	})
}

// Whatever has become of a volume since it was seen, its attach ends as if nothing had been seen.
func TestAnAttachOfWhatHasChangedSinceLooksAndDecides(t *testing.T) {
	for name, test := range map[string]struct {
		now  func(v *Volume)
		want Kind // Unknown means that it is attached in the end
	}{
		"attached elsewhere":             {func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: serverB}} }, Conflict},
		"attached here":                  {func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: serverA}} }, Unknown},
		"retyped to one for two servers": {func(v *Volume) { v.Multiattach = true }, Unknown},
		"in error":                       {func(v *Volume) { v.Status = "error" }, Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, id := made(t)
				c.change(id, test.now)
				if c.volumes[id].AttachedTo(serverA) {
					c.servers[serverA] = []ID{id}
				}
				c.hook["Attach"] = func() { // Nova's answer to what does not fit; it takes what does
					if delete(c.fail, "Attach"); c.count("Attach") == 1 {
						c.fail["Attach"] = Errorf(InvalidArgument, "no")
					}
				}
				v, err := s.Attach(within(t, 60), id, serverA)
				if test.want == Unknown && (err != nil || (v.Status != InUse || !v.AttachedTo(serverA))) {
					t.Errorf("got %v, %v after %v", v, err, c.calls)
				}
				if test.want != Unknown {
					wantKind(t, err, test.want, false)
				}
			})
		})
	}
}

func TestADeleteOfWhatHasChangedSinceIsRefusedByTheCloudAndThenDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := made(t)
		c.change(id, func(v *Volume) { v.Status, v.Attachments = InUse, []Attachment{{Server: serverB}} })
		c.fail["DeleteVolume"] = Errorf(InvalidArgument, "Volume status must be available or error")
		wantKind(t, s.Delete(within(t, 60), id), Conflict, false)
	})
}

func TestAModifiedVolumeIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, id := made(t)
		if err := s.Modify(within(t, 60), id, Change{Metadata: map[string]string{"team": "storage"}}); err != nil {
			t.Fatal(err)
		}
		if _, kept := s.recent.Take(id); kept {
			t.Error("what was seen before the change is kept")
		}
	})
}

func TestADetachOfWhatHasLeftSinceLooksAndIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := made(t)
		if _, err := s.Attach(within(t, 60), id, serverA); err != nil {
			t.Fatal(err)
		}
		c.change(id, func(v *Volume) { v.Status, v.Attachments = Available, nil })
		c.servers[serverA] = nil
		c.fail["Detach"] = Errorf(NotFound, "no such attachment")
		if err := s.Detach(within(t, 60), id, serverA); err != nil || c.count("Volume") != 1 {
			t.Errorf("%v after %v", err, c.calls)
		}
	})
}

func TestADeletionThatIsNotSeenToEndIsNotTakenForARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s, id := made(t)
		blind := NewVolumes(c, refusing{c, Errorf(InvalidArgument, "no such list")}, Options{Owner: testOwner, Recent: s.recent})
		wantKind(t, blind.Delete(within(t, 60), id), InvalidArgument, true)
		if c.count("DeleteVolume") != 1 || c.count("Volume") != 0 {
			t.Errorf("asked %v", c.calls)
		}
	})
}

// refusing is a waiter that the cloud does not tell anything.
type refusing struct {
	*fakeCloud
	err error
}

func (r refusing) Await(context.Context, ID, func(Volume, bool) (bool, error)) (Volume, error) {
	return Volume{}, r.err
}
