package volume

import (
	"testing"
	"testing/synctest"
	"time"
)

// loseLate makes the answer to the next order be lost while the cloud is at work on it: the volume is there only so much later.
func (c *fakeCloud) loseLate(after time.Duration) {
	c.create = func(_ CreateOptions, v *Volume) error {
		late := *v
		late.Status, c.create = Available, nil
		time.AfterFunc(after, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			late.CreatedAt = c.now()
			c.volumes[late.ID] = &late
		})
		return Errorf(Unavailable, "HTTP 504").AfterWrite()
	}
}

// put adds a volume while the cloud is in use.
func (c *fakeCloud) put(v Volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.volumes[v.ID] = &v
}

// The sidecar would forget the claim, and the volume that another request for it made would be nobody's.
func TestAFailureIsNotTheLastWordWhileAnotherVolumeHasTheName(t *testing.T) {
	at := func(v Volume, second int) Volume {
		v.CreatedAt = time.Now().Add(time.Duration(second) * time.Second)
		return v
	}
	for name, test := range map[string]struct {
		begin func(c *fakeCloud)
		kind  Kind
	}{
		"the oldest failed, a younger is there": {func(c *fakeCloud) {
			c.put(at(ofOurs(1, ErrorSt), 0))
			c.put(at(ofOurs(7, Available), 2))
		}, Failed},
		"one of the same second failed": {func(c *fakeCloud) {
			c.put(at(ofOurs(1, ErrorSt), 0))
			c.put(at(ofOurs(7, Available), 0))
		}, Failed},
		"its own failed, another replica's is there": {func(c *fakeCloud) {
			c.outcome = ErrorSt
			c.hook["CreateVolume"] = func() { c.put(at(ofOurs(7, Available), -2)) }
		}, Failed},
		"refused, another replica's is there": {func(c *fakeCloud) {
			c.fail["CreateVolume"] = Errorf(Exhausted, "HTTP 413")
			c.hook["CreateVolume"] = func() { c.put(at(ofOurs(7, Creating), 0)) }
		}, Exhausted},
		"no zone can have it, another replica's is there": {func(c *fakeCloud) {
			c.fail["VolumeZones"] = Errorf(PermissionDenied, "HTTP 403")
			c.hook["VolumeZones"] = func() { c.put(at(ofOurs(7, Available), 0)) }
			c.fail["CreateVolume"] = Errorf(NotHere, "HTTP 400")
		}, NotHere},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				test.begin(c)
				s, w := service(c), zonal("az1")
				w.Name, w.Size = gib.Name, gib.Size
				_, err := s.Create(within(t, 60), w)
				wantKind(t, err, test.kind, true)
				clear(c.hook)
				c.change(id(7), func(v *Volume) { v.Status = Available })
				v, err := s.Create(within(t, 60), w)
				if err != nil || v.ID != id(7) || len(c.volumes) != 1 {
					t.Errorf("the next try: got %s, %v; left %v", v.ID, err, c.volumes)
				}
			})
		})
	}
}

func TestAFailureIsNotTheLastWordWhereTheNameCannotBeReadAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.fail["CreateVolume"] = Errorf(Exhausted, "HTTP 413")
		c.hook["CreateVolume"] = func() { c.fail["VolumesNamed"] = Errorf(Unavailable, "HTTP 503") }
		_, err := service(c).Create(within(t, 60), gib)
		wantKind(t, err, Exhausted, true)
	})
}

// A proxy gave up while Cinder's API was at work and held the quota, so that the next order is refused.
func TestARefusalIsNotTheLastWordWhileALostOrderMayBeCarriedOut(t *testing.T) {
	for name, arrives := range map[string]bool{"it is": true, "it never is": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				s := service(c)
				if arrives {
					c.loseLate(5 * time.Second)
				} else {
					c.fail["CreateVolume"] = Errorf(Unavailable, "connection reset").AfterWrite()
				}
				_, err := s.Create(within(t, 60), gib)
				wantKind(t, err, Unavailable, true)
				time.Sleep(time.Second)
				c.fail["CreateVolume"] = Errorf(Exhausted, "HTTP 413")
				_, err = s.Create(within(t, 60), gib)
				wantKind(t, err, Exhausted, true)
				time.Sleep(orderLives)
				v, err := s.Create(within(t, 60), gib)
				if !arrives {
					wantKind(t, err, Exhausted, false)
				} else if err != nil || v.ID != id(101) || len(c.volumes) != 1 {
					t.Errorf("got %s, %v; left %v", v.ID, err, c.volumes)
				}
			})
		})
	}
}

// What came of the lost order is known once it is seen: then a failure is the last word again.
func TestALostOrderWhoseVolumeWasSeenIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		c.loseLate(time.Second)
		_, err := s.Create(within(t, 60), gib)
		wantKind(t, err, Unavailable, true)
		time.Sleep(2 * time.Second)
		c.change(id(101), func(v *Volume) { v.Status = ErrorSt })
		_, err = s.Create(within(t, 60), gib)
		if wantKind(t, err, Failed, false); len(c.volumes) != 0 {
			t.Errorf("left %v", c.volumes)
		}
	})
}

// Nobody asks for a name again that was answered with a volume, so that the driver itself must look for what comes of a lost order.
func TestWhatComesOfALostOrderAfterAnAnswerIsRemoved(t *testing.T) {
	for name, deleted := range map[string]bool{"the claim stays": false, "the claim is deleted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(ofOthers(900, Available))
				c.volumes[id(900)].Name = "another"
				s := service(c)
				c.loseLate(20 * time.Second)
				_, err := s.Create(within(t, 60), gib)
				wantKind(t, err, Unavailable, true)
				v, err := s.Create(within(t, 60), gib)
				if err != nil || v.ID != id(102) {
					t.Fatalf("got %v, %v", v, err)
				}
				if deleted {
					if err := s.Delete(within(t, 60), v.ID); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(30 * time.Second)
				if c.volumes[id(101)] == nil {
					t.Fatal("nothing came late")
				}
				time.Sleep(orderLives)
				if c.volumes[id(101)] != nil || (c.volumes[id(102)] == nil) != deleted || c.volumes[id(900)] == nil {
					t.Errorf("left %v", c.volumes)
				}
			})
		})
	}
}

func TestACreateThatGoesWellReadsTheNameTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		if _, err := service(c).Create(within(t, 60), gib); err != nil || c.count("VolumesNamed") != 2 {
			t.Errorf("%v after %v", err, c.calls)
		}
	})
}
