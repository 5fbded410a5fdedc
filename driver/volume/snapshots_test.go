package volume

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

func TestEverySnapshotStatusOfCinderHasAMeaning(t *testing.T) {
	want := slices.Sorted(slices.Values(everySnapshotStatus))
	if diff := cmp.Diff(want, SnapshotStatuses()); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

var (
	picture = SnapshotSpec{Name: "snapshot-1", Volume: id(1)}
)

// wishes are those for both things that a handle can name.
var wishes = map[string]SnapshotSpec{"snapshot": picture, "backup": archive()}

// retried calls every five seconds as external-snapshotter does, until there is a result or a final error. It keeps the first ID that
// it gets, so what that names must be ready.
func retried(t *testing.T, s *Snapshots, w SnapshotSpec) (Snapshot, error) {
	t.Helper()
	for range 60 {
		p, err := s.Create(within(t, 60), w)
		if err == nil && !p.Ready() {
			t.Fatalf("%s was returned in status %s", p.ID, p.Status)
		}
		if !MayHaveWritten(err) {
			return p, err
		}
		time.Sleep(5 * time.Second)
	}
	t.Fatal("it never ends")
	return Snapshot{}, nil
}

func TestASnapshotIsReturnedOnceItIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source)
		s, began, w := snapshots(c), time.Now(), picture
		w.Metadata = map[string]string{contract.MetadataSnapshotName: "shop"}
		first, err := s.Create(within(t, 60), w)
		if took := time.Since(began); err != nil || !first.Ready() || took < time.Second || took > 2*time.Second {
			t.Fatalf("got %v, %v after %v", first, err, took)
		}
		want := map[string]string{
			contract.MetadataSnapshotName: "shop", contract.MetadataCluster: "cluster", contract.MetadataRequest: first.Metadata[contract.MetadataRequest],
			contract.MetadataSent: first.Metadata[contract.MetadataSent],
		}
		if diff := cmp.Diff(want, first.Metadata); diff != "" || first.Metadata[contract.MetadataRequest] == "" {
			t.Error("metadata, -want +got\n", diff)
		}
		second, err := s.Create(within(t, 60), w)
		if err != nil || !second.Ready() || second.ID != first.ID || second.Size != GiB(3) || c.count("CreateSnapshot") != 1 {
			t.Errorf("got %v, %v after %v", second, err, c.calls)
		}
	})
}

// A wait that ends first is no final error, and the retry resumes it by name, also in another process.
func TestASnapshotThatIsNotAvailableInTimeIsWaitedForByTheRetry(t *testing.T) {
	for name, w := range wishes {
		for _, whose := range []string{"ours", "upstream's"} {
			t.Run(name+", "+whose, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCloud(source)
					p := pictureOfOurs(2, Creating)
					if p.CreatedAt = time.Now(); whose != "ours" {
						p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
					}
					c.putSnapshot(w.Backup != nil, p)
					_, err := snapshots(c).Create(within(t, 30), w)
					wantKind(t, err, DeadlineExceeded, true)
					c.mu.Lock()
					c.kept(w.Backup != nil)[p.ID].Status = Available
					c.mu.Unlock()
					if got, err := retried(t, snapshots(c), w); err != nil || got.ID != p.ID || c.count("Create")+c.count("Delete") != 0 {
						t.Errorf("got %v, %v after %v", got, err, c.calls)
					}
				})
			})
		}
	}
}

// Nobody can have the ID of what was never available, so the replica that sees the failure removes it, whichever created it.
func TestWhatFailsWhileItIsWaitedForIsRemovedByWhoeverSeesIt(t *testing.T) {
	for name, w := range wishes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				c.outcome, c.backupOutcome, c.reason = ErrorSt, ErrorSt, ": the store is full"
				if w.Backup != nil {
					c.outcome = "" // of its temporary snapshot
				}
				errs := make(chan error, 2)
				for _, after := range []time.Duration{0, 1500 * time.Millisecond} {
					go func() {
						time.Sleep(after)
						_, err := snapshots(c).Create(within(t, 60), w)
						errs <- err
					}()
				}
				final := 0
				for range 2 {
					err := <-errs
					if KindOf(err) == Failed && !MayHaveWritten(err) && strings.Contains(err.Error(), "the store is full") {
						final++
					} else if !MayHaveWritten(err) {
						t.Errorf("got %v", err)
					}
				}
				if left := c.left(); final == 0 || len(left) != 1 { // the volume
					t.Errorf("%d failures were final; left %v after %v", final, left, c.calls)
				}
				c.outcome, c.backupOutcome = "", ""
				if p, err := retried(t, snapshots(c), w); err != nil || len(c.left()) != 2 {
					t.Errorf("a retry does not begin anew: %v, %v; left %v", p, err, c.left())
				}
			})
		})
	}
}

// The names are read again after the wait: another replica's older one may have appeared meanwhile.
func TestAnOlderOneThatAppearsDuringTheWaitCounts(t *testing.T) {
	for name, w := range wishes {
		for _, found := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, found %t", name, found), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, begin := newCloud(source), time.Now()
					if found {
						c.putSnapshot(w.Backup != nil, snapshotCreatedAt(pictureOfOurs(2, Creating), begin))
						time.AfterFunc(10*time.Second, func() {
							c.mu.Lock()
							defer c.mu.Unlock()
							c.kept(w.Backup != nil)[sid(2)].Status = Available
						})
					}
					time.AfterFunc(1200*time.Millisecond, func() { // the temporary snapshot takes one second
						c.putSnapshot(w.Backup != nil, snapshotCreatedAt(pictureOfOurs(1, Creating), begin.Add(-time.Second)))
						time.AfterFunc(20*time.Second, func() {
							c.mu.Lock()
							defer c.mu.Unlock()
							c.kept(w.Backup != nil)[sid(1)].Status = Available
						})
					})
					if !found && w.Backup == nil {
						c.slowSnapshots = 5 * time.Second
					}
					p, err := snapshots(c).Create(within(t, 50), w)
					if err != nil || p.ID != sid(1) || len(c.kept(w.Backup != nil)) != 1 {
						t.Errorf("got %v, %v; left %v", p, err, c.left())
					}
				})
			})
		}
	}
}

// While the oldest is not available, a younger one stays: the oldest may fail and be removed, and then the younger one counts.
func TestAYoungerOneStaysUntilTheOldestIsAvailable(t *testing.T) {
	for name, w := range wishes {
		for _, end := range []Status{Available, ErrorSt} {
			t.Run(name+" "+string(end), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, begin := newCloud(source), time.Now()
					c.putSnapshot(w.Backup != nil, snapshotCreatedAt(pictureOfOurs(1, Creating), begin))
					c.putSnapshot(w.Backup != nil, snapshotCreatedAt(pictureOfOurs(2, Available), begin.Add(time.Second)))
					time.AfterFunc(10*time.Second, func() {
						if c.count("Delete") != 0 {
							t.Errorf("too early: %v", c.calls)
						}
						c.mu.Lock()
						defer c.mu.Unlock()
						c.kept(w.Backup != nil)[sid(1)].Status = end
					})
					want := sid(1)
					if end == ErrorSt {
						_, err := snapshots(c).Create(within(t, 60), w)
						wantKind(t, err, Failed, true)
						want = sid(2)
					}
					if p, err := retried(t, snapshots(c), w); err != nil || p.ID != want || len(c.kept(w.Backup != nil)) != 1 {
						t.Errorf("got %v, %v; left %v", p, err, c.left())
					}
				})
			})
		}
	}
}

func TestAVolumeInUseIsSnapshotInTheWayItsCloudKnows(t *testing.T) {
	old := Errorf(Unimplemented, "no such microversion")
	for name, test := range map[string]struct {
		status Status
		old    bool
		force  bool
		calls  []string
		kind   Kind
	}{
		"available":                        {status: Available, calls: []string{"CreateSnapshot"}},
		"available, by force":              {status: Available, force: true, calls: []string{"CreateSnapshot"}},
		"in use":                           {status: InUse, calls: []string{"CreateSnapshot in use"}},
		"in use, old cloud, without force": {status: InUse, old: true, calls: []string{"CreateSnapshot in use"}, kind: Conflict},
		"in use, old cloud, by force":      {status: InUse, old: true, force: true, calls: []string{"CreateSnapshot in use", "CreateSnapshot by force"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := source
				v.Status = test.status
				c := newCloud(v)
				if test.old {
					c.fail["CreateSnapshot in use"] = old
				}
				w := picture
				w.Force = test.force
				_, err := snapshots(c).Create(within(t, 60), w)
				if test.kind != Unknown {
					wantKind(t, err, test.kind, false)
					if !strings.Contains(err.Error(), "force-create") {
						t.Errorf("it does not say what to do: %v", err)
					}
				} else if err != nil {
					t.Error(err)
				}
				asked := slices.DeleteFunc(c.calls, func(call string) bool { return !strings.HasPrefix(call, "CreateSnapshot") })
				if diff := cmp.Diff(test.calls, asked); diff != "" {
					t.Error("-want +got\n", diff)
				}
			})
		})
	}
}

// A snapshot is asked of a volume in every status: it comes at once, after the status has changed, or not at all.
func TestASnapshotOfAVolumeInEveryStatus(t *testing.T) {
	for _, status := range everyStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := source
				v.Status = status
				c := newCloud(v)
				_, err := snapshots(c).Create(within(t, 60), picture)
				switch {
				case status == Available || status == InUse:
					if err != nil {
						t.Error(err)
					}
					return
				case status.Meaning().Extend == Wait:
					wantKind(t, err, DeadlineExceeded, false)
				case status.Meaning().Extend == BeingDeleted:
					wantKind(t, err, NotFound, false)
				default:
					wantKind(t, err, Conflict, false)
				}
				if c.count("CreateSnapshot") != 0 {
					t.Error(c.calls)
				}
			})
		})
	}
}

func TestASnapshotOfWhatIsChangingWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := source
		v.Status = "attaching"
		c := newCloud(v)
		c.later(v.ID, func(v *Volume) { v.Status = InUse })
		if _, err := snapshots(c).Create(within(t, 60), picture); err != nil || c.count("CreateSnapshot in use") != 1 {
			t.Error(err, c.calls)
		}
	})
}

func TestASnapshotInEveryStatusIsAnsweredWhenAskedForAgain(t *testing.T) {
	for _, status := range everySnapshotStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).withSnapshots(pictureOfOurs(1, status))
				p, err := snapshots(c).Create(within(t, 60), picture)
				switch status.SnapshotMeaning().Create {
				case Proceed, Wait, BeingDeleted:
					if status != Available {
						wantKind(t, err, DeadlineExceeded, true)
					} else if err != nil || p.ID != sid(1) {
						t.Errorf("got %v, %v", p, err)
					}
				default:
					if status == "error" {
						wantKind(t, err, Failed, false)
					}
					if c.count("DeleteSnapshot"+string(sid(1))) != 1 {
						t.Error("it was not removed")
					}
				}
				if c.count("CreateSnapshot") != 0 {
					t.Error("another was asked for")
				}
			})
		})
	}
}

func TestASnapshotOnItsWayOutIsAwaitedAndMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source).withSnapshots(pictureOfOurs(1, Deleting))
		time.AfterFunc(time.Second, func() { c.mu.Lock(); defer c.mu.Unlock(); delete(c.snaps, sid(1)) })
		p, err := snapshots(c).Create(within(t, 60), picture)
		if err != nil || p.ID != sid(101) {
			t.Errorf("got %v, %v", p, err)
		}
	})
}

func TestAFailedSnapshotIsRemovedAndTheReasonReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source).withSnapshots(pictureOfOurs(1, ErrorSt))
		c.reason = "create snapshot:the disk is full"
		s := snapshots(c)
		_, err := retried(t, s, picture)
		wantKind(t, err, Failed, false)
		if !strings.Contains(err.Error(), c.reason) || len(c.snaps) != 0 {
			t.Errorf("%v; left: %v", err, c.snaps)
		}
		if _, err := retried(t, s, picture); err != nil {
			t.Errorf("a retry does not begin anew: %v", err)
		}
	})
}

func TestAFailedSnapshotOfSomeoneElseIsNeverRemoved(t *testing.T) {
	p := pictureOfOurs(1, "error")
	p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
	c := newCloud(source).withSnapshots(p)
	_, err := snapshots(c).Create(t.Context(), picture)
	wantKind(t, err, Failed, true)
	if c.count("DeleteSnapshot") != 0 {
		t.Error(c.calls)
	}
}

func TestANameOfAnotherVolumesSnapshotIsIncompatible(t *testing.T) {
	p := pictureOfOurs(1, Available)
	p.Volume = id(2)
	c := newCloud(source).withSnapshots(p)
	_, err := snapshots(c).Create(t.Context(), picture)
	wantKind(t, err, Incompatible, false)
}

func TestOfSeveralSnapshotsTheOldestCountsAndOurYoungerGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		old, young, foreign := pictureOfOurs(3, Available), pictureOfOurs(1, Creating), pictureOfOurs(2, Available)
		old, young, foreign = snapshotCreatedAt(old, begin), snapshotCreatedAt(young, begin.Add(time.Second)), snapshotCreatedAt(foreign, begin.Add(2*time.Second))
		foreign.Metadata = nil
		c := newCloud(source).withSnapshots(old, young, foreign)
		c.changeSnapshot(young.ID, func(p *Snapshot) { p.Status = Available })
		p, err := snapshots(c).Create(within(t, 60), picture)
		if err != nil || p.ID != old.ID {
			t.Errorf("got %v, %v", p, err)
		}
		if _, left := c.snaps[young.ID]; left || len(c.snaps) != 2 {
			t.Errorf("left: %v", c.snaps)
		}
	})
}

func TestASnapshotOfAnotherReplicaThatIsOlderCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(source)
		c.hook["CreateSnapshot"] = func() {
			other := pictureOfOurs(1, Available)
			other.CreatedAt = time.Now().Add(-time.Second)
			c.withSnapshots(other)
		}
		p, err := snapshots(c).Create(within(t, 60), picture)
		if err != nil || p.ID != sid(1) || len(c.snaps) != 1 {
			t.Errorf("got %v, %v; left: %v", p, err, c.snaps)
		}
	})
}

func TestSnapshotErrorsAreFinalOnlyWhereNothingExists(t *testing.T) {
	for _, kind := range Kinds() {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(source)
			c.fail["CreateSnapshot"] = Errorf(kind, "no")
			_, err := snapshots(c).Create(within(t, 60), picture)
			wantKind(t, err, kind, false)
			c = newCloud(source)
			c.fail["SnapshotsNamed"] = Errorf(kind, "no")
			_, err = snapshots(c).Create(within(t, 60), picture)
			wantKind(t, err, kind, true)
			if c.count("CreateSnapshot") != 0 {
				t.Errorf("%s: a snapshot was asked for", kind)
			}
		})
	}
}

func TestSnapshotsThatCannotBeAreRefusedBeforeTheCloudIsAskedForThem(t *testing.T) {
	for name, test := range map[string]struct {
		wish SnapshotSpec
		kind Kind
	}{
		"no name":           {SnapshotSpec{Volume: id(1)}, InvalidArgument},
		"no such volume":    {SnapshotSpec{Name: "s", Volume: id(9)}, NotFound},
		"no UUID for an id": {SnapshotSpec{Name: "s", Volume: "../types"}, NotFound},
	} {
		c := newCloud(source)
		_, err := snapshots(c).Create(t.Context(), test.wish)
		if KindOf(err) != test.kind || MayHaveWritten(err) || c.count("CreateSnapshot") != 0 {
			t.Errorf("%s: got %v after %v", name, err, c.calls)
		}
	}
}

func TestDeletingASnapshotInEveryStatus(t *testing.T) {
	for _, status := range everySnapshotStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).withSnapshots(pictureOfOurs(1, status))
				err := snapshots(c).Delete(within(t, 60), sid(1))
				switch status.SnapshotMeaning().Delete {
				case Proceed:
					if err != nil || len(c.snaps) != 0 {
						t.Errorf("%v; left: %v", err, c.snaps)
					}
					return
				case Refuse:
					wantKind(t, err, Conflict, false)
				default:
					wantKind(t, err, DeadlineExceeded, false)
				}
				if c.count("DeleteSnapshot") != 0 {
					t.Error(c.calls)
				}
			})
		})
	}
}

func TestDeletingASnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		id    SnapshotID
		cloud func(*fakeCloud)
		kind  Kind // Unknown: no error
		sent  bool
		text  string
	}{
		"that is not there":            {id: sid(9)},
		"with an id that is no UUID":   {id: "../volumes"},
		"that goes meanwhile":          {id: sid(1), cloud: func(c *fakeCloud) { c.fail["DeleteSnapshot"] = Errorf(NotFound, "gone") }},
		"that its backend still needs": {id: sid(1), cloud: func(c *fakeCloud) { c.undeletable, c.reason = Available, "delete snapshot:busy" }, kind: Conflict, sent: true, text: "busy; most likely"},
		"that fails in its backend":    {id: sid(1), cloud: func(c *fakeCloud) { c.undeletable, c.reason = "error_deleting", "why" }, kind: Failed, sent: true, text: "why"},
		"of a group":                   {id: sid(1), cloud: func(c *fakeCloud) { c.fail["DeleteSnapshot"] = Errorf(Conflict, "must not be part of a group") }, kind: Conflict, text: "group snapshot"},
		"that a policy protects":       {id: sid(1), cloud: func(c *fakeCloud) { c.fail["DeleteSnapshot"] = Errorf(PermissionDenied, "policy") }, kind: PermissionDenied, text: "policy"},
		"that cannot be read":          {id: sid(1), cloud: func(c *fakeCloud) { c.fail["Snapshot"] = Errorf(Unavailable, "down") }, kind: Unavailable, text: "down"},
		"that someone begins to back up": {id: sid(1), cloud: func(c *fakeCloud) {
			c.hook["DeleteSnapshot"] = func() { c.snaps[sid(1)].Status = "backing-up" }
			c.fail["DeleteSnapshot"] = Errorf(Conflict, "status must be available")
		}, kind: Busy, text: "backing-up"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source).withSnapshots(pictureOfOurs(1, Available))
				if test.cloud != nil {
					test.cloud(c)
				}
				err := snapshots(c).Delete(within(t, 60), test.id)
				if test.kind == Unknown {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Errorf("%q is not in %v", test.text, err)
				}
			})
		})
	}
}

func TestTheListOfSnapshotsGoesOnWhereItStopped(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := newCloud(source)
	for n := range 9 {
		p := pictureOfOurs(n, Available)
		p.CreatedAt = begin.Add(-time.Duration(n/2) * time.Second) // two of each second
		p.Volume = id(1 + n%2)
		c.withSnapshots(p)
	}
	for of, want := range map[ID]int{"": 9, id(1): 5, id(2): 4, id(3): 0, "x": 0} {
		s, seen, at := snapshots(c), map[SnapshotID]bool{}, SnapshotPosition{}
		for {
			page, err := s.List(t.Context(), of, at, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, p := range page {
				if seen[p.ID] || of != "" && p.Volume != of {
					t.Errorf("of %q: %v", of, p)
				}
				seen[p.ID] = true
			}
			at = SnapshotPositionOf(page[len(page)-1])
			delete(c.snaps, at.After) // the marker vanishes
		}
		if len(seen) != want {
			t.Errorf("of %q: %d snapshots, want %d", of, len(seen), want)
		}
		for n := range 9 {
			p := pictureOfOurs(n, Available)
			p.CreatedAt, p.Volume = begin.Add(-time.Duration(n/2)*time.Second), id(1+n%2)
			c.withSnapshots(p)
		}
	}
	if _, err := snapshots(c).List(t.Context(), "", SnapshotPosition{PagePosition: PagePosition[SnapshotID]{After: sid(77)}}, 2); !Is(err, NotFound) {
		t.Errorf("got %v", err)
	}
}

func TestReadingASnapshot(t *testing.T) {
	c := newCloud(source).withSnapshots(pictureOfOurs(1, Creating))
	if p, err := snapshots(c).Get(t.Context(), sid(1)); err != nil || p.Ready() || !p.Alive() {
		t.Errorf("got %v, %v", p, err)
	}
	for _, id := range []SnapshotID{sid(2), "../types"} {
		if _, err := snapshots(c).Get(t.Context(), id); !Is(err, NotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAFailureOfASnapshotIsNotTheLastWordWhileAnotherIsThereOrMayCome(t *testing.T) {
	for name, w := range wishes {
		call := map[bool]string{true: "CreateBackup", false: "CreateSnapshot"}[w.Backup != nil]
		t.Run(name+" refused while another replica's is there", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				c.fail[call] = Errorf(Exhausted, "HTTP 413")
				c.hook[call] = func() {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.kept(w.Backup != nil)[sid(7)] = new(pictureOfOurs(7, Available))
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
				c.kept(w.Backup != nil)[sid(1)], c.kept(w.Backup != nil)[sid(7)] = new(pictureOfOurs(1, ErrorSt)), new(pictureOfOurs(7, Available))
				_, err := snapshots(c).Create(within(t, 60), w)
				wantKind(t, err, Failed, true)
				if p, err := snapshots(c).Create(within(t, 60), w); err != nil || p.ID != sid(7) {
					t.Errorf("the next try: got %v, %v", p, err)
				}
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
