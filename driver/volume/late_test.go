package volume

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// fakeLate says which calls are answered by a proxy that gave up, and how long after that the cloud has done them all the same: each
// once, by method.
type fakeLate struct{ late map[string]time.Duration }

var errLost = Errorf(Unavailable, "HTTP 504").AfterWrite()

// loses reports whether the answer to a call is lost, whose work is done later then. It needs c.mu.
func (c *fakeCloud) loses(method string, work func()) bool {
	after, lost := c.late[method]
	if lost {
		delete(c.late, method)
		time.AfterFunc(after, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			work()
		})
	}
	return lost
}

// left are the ids of all that there is.
func (c *fakeCloud) left() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id := range c.volumes {
		ids = append(ids, string(id))
	}
	for _, objects := range []map[SnapshotID]*Snapshot{c.snaps, c.backups} {
		for id := range objects {
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	return ids
}

// onlyForATime wants one thing to come within a minute, and to go again, and all else to stay.
func (c *fakeCloud) onlyForATime(t *testing.T) {
	t.Helper()
	before := c.left()
	time.Sleep(time.Minute)
	if now := c.left(); len(now) != len(before)+1 {
		t.Fatalf("nothing came late: %v, and then %v", before, now)
	}
	time.Sleep(orderLives)
	if diff := cmp.Diff(before, c.left()); diff != "" {
		t.Error("-before +after\n", diff)
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
				if err != nil || v.ID != id(7) || len(c.left()) != 1 {
					t.Errorf("the next try: got %s, %v; left %v", v.ID, err, c.left())
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
					c.late = map[string]time.Duration{"CreateVolume": 5 * time.Second}
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
				} else if err != nil || v.ID != id(101) || len(c.left()) != 1 {
					t.Errorf("got %s, %v; left %v", v.ID, err, c.left())
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
		c.late = map[string]time.Duration{"CreateVolume": time.Second}
		_, err := s.Create(within(t, 60), gib)
		wantKind(t, err, Unavailable, true)
		time.Sleep(2 * time.Second)
		c.change(id(101), func(v *Volume) { v.Status = ErrorSt })
		_, err = s.Create(within(t, 60), gib)
		if wantKind(t, err, Failed, false); len(c.left()) != 0 {
			t.Errorf("left %v", c.left())
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
				c.late = map[string]time.Duration{"CreateVolume": 20 * time.Second}
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
				c.onlyForATime(t)
			})
		})
	}
}

// Another replica that was asked for the name meanwhile would have answered with it: of the same second, it has the lower id.
func TestWhatComesLateAndCountsBeforeTheAnswerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		c.late = map[string]time.Duration{"CreateVolume": 20 * time.Second}
		_, err := s.Create(within(t, 60), gib)
		wantKind(t, err, Unavailable, true)
		v, err := s.Create(within(t, 60), gib)
		if err != nil || v.ID != id(102) {
			t.Fatalf("got %v, %v", v, err)
		}
		time.Sleep(time.Minute)
		c.change(id(101), func(late *Volume) { late.CreatedAt = v.CreatedAt })
		time.Sleep(2 * orderLives)
		if diff := cmp.Diff([]string{string(id(101)), string(id(102))}, c.left()); diff != "" {
			t.Errorf("-want +left\n%s", diff)
		}
	})
}

// A snapshot that was ready when it was answered with has no mark, by which it would count first; a backup always has one.
func TestASnapshotThatComesLateAndCountsBeforeTheAnswerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source)
		s := snapshots(c)
		c.late = map[string]time.Duration{"CreateSnapshot": 40 * time.Second}
		_, err := s.Create(within(t, 60), picture)
		wantKind(t, err, Unavailable, true)
		c.withSnapshots(pictureOfOurs(7, Available))
		p, err := s.Create(within(t, 60), picture)
		if err != nil || p.ID != sid(7) {
			t.Fatalf("got %v, %v", p, err)
		}
		time.Sleep(time.Minute)
		c.mu.Lock()
		c.snaps[sid(101)].CreatedAt = p.CreatedAt.Add(-time.Second)
		c.mu.Unlock()
		time.Sleep(2 * orderLives)
		if left := c.left(); len(left) != 3 { // the source among them
			t.Errorf("want the one that came late left too, got %v", left)
		}
	})
}

func TestACreateThatGoesWellReadsTheNameTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		if _, err := service(c).Create(within(t, 60), gib); err != nil || c.count("VolumesNamed") != 2 {
			t.Errorf("%v after %v", err, c.calls)
		}
	})
}

// Whatever a backup or snapshot is made of may come late of an order whose answer was lost.
func TestWhatComesOfALostOrderOfASnapshotAfterAnAnswerIsRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		wish    SnapshotWish
		call    string
		another bool // another replica's is there by then, ready
	}{
		"snapshot":                        {picture, "CreateSnapshot", false},
		"snapshot, for another replica's": {picture, "CreateSnapshot", true},
		"temporary snapshot":              {archive(), "CreateSnapshot", false},
		"backup":                          {archive(), "CreateBackup", false},
	} {
		for _, deleted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", and its owner is deleted"}[deleted], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCloud(source).withSnapshots(Snapshot{ID: sid(900), Name: "another", Status: Available})
					s := snapshots(c)
					c.late = map[string]time.Duration{test.call: 40 * time.Second}
					_, err := s.Create(within(t, 60), test.wish)
					wantKind(t, err, Unavailable, true)
					if test.another {
						c.withSnapshots(pictureOfOurs(7, Available))
					}
					p, err := (&snapshotter{s: s}).retried(t, test.wish)
					if err != nil {
						t.Fatal(err)
					}
					if deleted {
						if err := s.Delete(within(t, 60), p.ID); err != nil {
							t.Fatal(err)
						}
					}
					c.onlyForATime(t)
				})
			})
		}
	}
}

// As with volumes: whoever forgets the VolumeSnapshot now leaves what is there, or what comes.
func TestAFailureOfASnapshotIsNotTheLastWordWhileAnotherIsThereOrMayCome(t *testing.T) {
	for name, w := range wishes {
		call := map[bool]string{true: "CreateBackup", false: "CreateSnapshot"}[w.Backup != nil]
		t.Run(name+" refused while a lost order may be carried out", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				s := snapshots(c)
				c.fail[call] = Errorf(Unavailable, "connection reset").AfterWrite()
				_, err := s.Create(within(t, 60), w)
				wantKind(t, err, Unavailable, true)
				c.fail[call] = Errorf(Exhausted, "HTTP 413")
				_, err = s.Create(within(t, 60), w)
				wantKind(t, err, Exhausted, true)
				time.Sleep(orderLives)
				_, err = s.Create(within(t, 60), w)
				if wantKind(t, err, Exhausted, false); len(c.left()) != 1 {
					t.Errorf("left besides the source: %v", c.left())
				}
			})
		})
		t.Run(name+" refused while another replica's is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				c.fail[call] = Errorf(Exhausted, "HTTP 413")
				c.hook[call] = func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.kept(w)[sid(7)] = new(pictureOfOurs(7, Available))
				}
				_, err := snapshots(c).Create(within(t, 60), w)
				wantKind(t, err, Exhausted, true)
				if p, err := snapshots(c).Create(within(t, 60), w); err != nil || p.ID != sid(7) {
					t.Errorf("the next try: got %v, %v", p, err)
				}
			})
		})
		t.Run(name+" failed while one of the same second is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				c.kept(w)[sid(1)], c.kept(w)[sid(7)] = new(pictureOfOurs(1, ErrorSt)), new(pictureOfOurs(7, Available))
				_, err := snapshots(c).Create(within(t, 60), w)
				wantKind(t, err, Failed, true)
				if p, err := snapshots(c).Create(within(t, 60), w); err != nil || p.ID != sid(7) {
					t.Errorf("the next try: got %v, %v", p, err)
				}
			})
		})
		// Its VolumeSnapshot can be deleted only after a final answer.
		t.Run(name+" that was answered with is, whatever else is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				told := pictureOfOurs(1, ErrorSt)
				told.Description = contract.DescriptionAnswered
				c.kept(w)[sid(1)], c.kept(w)[sid(7)] = &told, new(pictureOfOurs(7, Available))
				_, err := snapshots(c).Create(within(t, 60), w)
				wantKind(t, err, Failed, false)
			})
		})
		t.Run(name+" refused and its name cannot be read", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				c.fail[call] = Errorf(Exhausted, "HTTP 413")
				c.hook[call] = func() {
					c.fail["SnapshotsNamed"], c.fail["BackupsNamed"] = Errorf(Unavailable, "HTTP 503"), Errorf(Unavailable, "HTTP 503")
				}
				_, err := snapshots(c).Create(within(t, 60), w)
				wantKind(t, err, Exhausted, true)
			})
		})
	}
}
