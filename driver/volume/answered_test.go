package volume

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// snapshotter is external-snapshotter with one VolumeSnapshot. It keeps the first handle that it is answered with, whatever comes
// later (updateSnapshotContentStatus of 8.7).
type snapshotter struct {
	s      *Snapshots
	handle SnapshotID
}

// retried asks every five seconds, until the snapshot or backup is ready or an answer is final. What is ready is the handle's.
func (x *snapshotter) retried(t *testing.T, w SnapshotWish) (Snapshot, error) {
	t.Helper()
	for range 60 {
		p, err := x.s.Create(within(t, 60), w)
		if err != nil && !MayHaveWritten(err) {
			return p, err
		}
		if err == nil && x.handle == "" {
			x.handle = p.ID
		}
		if err == nil && p.ID != x.handle {
			t.Fatalf("the answer is %s; the VolumeSnapshot has %s, for good", p.ID, x.handle)
		}
		if err == nil && p.Ready() {
			return p, nil
		}
		time.Sleep(5 * time.Second)
	}
	t.Fatal("it never ends")
	return Snapshot{}, nil
}

// wishes are those for both things that a handle can name.
var wishes = map[string]SnapshotWish{"snapshot": picture, "backup": archive()}

// kept is what a cloud has of the kind that w asks for.
func (c *fakeCloud) kept(w SnapshotWish) map[SnapshotID]*Snapshot {
	if w.Backup != nil {
		return c.backups
	}
	return c.snaps
}

// Whatever was answered with is neither removed nor replaced when Cinder fails to make it: another would be nobody's, and the handle
// would name nothing.
func TestWhatWasAnsweredWithStaysThoughItFails(t *testing.T) {
	for name, w := range wishes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				c.outcome, c.backupOutcome, c.reason = ErrorSt, ErrorSt, ": the store is full"
				if w.Backup != nil {
					c.outcome = "" // of its temporary snapshot
				}
				sidecar := snapshotter{s: snapshots(c)}
				for range 3 {
					_, err := sidecar.retried(t, w)
					wantKind(t, err, Failed, false)
					for _, text := range []string{"the store is full", string(sidecar.handle), "delete the VolumeSnapshot"} {
						if !strings.Contains(err.Error(), text) {
							t.Errorf("%q is not in %v", text, err)
						}
					}
					if c.outcome, c.backupOutcome = "", ""; len(c.snaps)+len(c.backups) != 1 || c.kept(w)[sidecar.handle] == nil {
						t.Errorf("want %s alone, got %v and %v", sidecar.handle, c.snaps, c.backups)
					}
					time.Sleep(time.Minute)
				}
				if err := sidecar.s.Delete(within(t, 60), sidecar.handle); err != nil || len(c.snaps)+len(c.backups) != 0 {
					t.Errorf("%v; left: %v and %v", err, c.snaps, c.backups)
				}
			})
		})
	}
}

// external-snapshotter forgets a VolumeSnapshot without an ID after a final error. So the ID of a snapshot that fails after it was noted is
// returned again before the failure is: the process that noted it may have died before its reply.
func TestTheIDOfWhatFailedAfterItWasNotedIsReturnedBeforeTheFailure(t *testing.T) {
	for name, w := range wishes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				failed := pictureOfOurs(1, ErrorSt)
				failed.Description = contract.DescriptionAnswered
				c.kept(w)[sid(1)] = &failed
				for i := range returnsOfFailed {
					if i == 1 { // it is counted, and the answer is lost
						lost := AfterWrite(Errorf(Unavailable, "HTTP 504"))
						c.fail["DescribeSnapshot"], c.fail["DescribeBackup"] = lost, lost
					} else {
						delete(c.fail, "DescribeSnapshot")
						delete(c.fail, "DescribeBackup")
					}
					p, err := snapshots(c).Create(within(t, 60), w) // each time another process
					if err != nil || p.ID != sid(1) || p.Ready() {
						t.Fatalf("call %d: got %v, %v", i+1, p, err)
					}
				}
				_, err := snapshots(c).Create(within(t, 60), w)
				wantKind(t, err, Failed, false)
			})
		})
	}
}

func TestAFailureIsNotFinalWhileTheReturnOfTheIDCannotBeNoted(t *testing.T) {
	for name, w := range wishes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				failed := pictureOfOurs(1, ErrorSt)
				failed.Description = contract.DescriptionAnswered
				c.kept(w)[sid(1)] = &failed
				c.fail["DescribeSnapshot"], c.fail["DescribeBackup"] = Errorf(Conflict, "no"), Errorf(Conflict, "no")
				_, err := snapshots(c).Create(within(t, 60), w)
				wantKind(t, err, Conflict, true)
			})
		})
	}
}

// Another replica that knows of no answer reads the note: it is written before the answer, and once.
func TestTheFirstAnswerThatIsNotReadyIsNotedOnce(t *testing.T) {
	for name, w := range wishes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(source)
				first, err := snapshots(c).Create(within(t, 60), w)
				if err != nil || first.Ready() {
					t.Fatalf("got %v, %v", first, err)
				}
				if kept := c.kept(w)[first.ID]; kept.Description != contract.DescriptionAnswered || !strings.HasPrefix(kept.Description, contract.Description) {
					t.Errorf("its description is %q", kept.Description)
				}
				if p, err := (&snapshotter{s: snapshots(c), handle: first.ID}).retried(t, w); err != nil || p.ID != first.ID || c.count("Describe") != 1 {
					t.Errorf("got %v, %v after %v", p, err, c.calls)
				}
			})
		})
	}
}

func TestAnAnswerThatIsReadyNeedsNoNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, w := range wishes {
			c := newCloud(source)
			if w.Backup != nil {
				c.withBackups(backupOfOurs(2, Available))
			} else {
				c.withSnapshots(pictureOfOurs(1, Available))
			}
			if p, err := snapshots(c).Create(within(t, 60), w); err != nil || !p.Ready() || c.count("Describe") != 0 {
				t.Errorf("%s: got %v, %v after %v", name, p, err, c.calls)
			}
		}
	})
}

// What upstream left is never removed by Create, and stays as it is.
func TestWhatIsNotOursIsAnsweredWithAndNotNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pictureOfOurs(1, Creating)
		p.Metadata = map[string]string{contract.MetadataCluster: "cluster"}
		c := newCloud(source).withSnapshots(p)
		if got, err := snapshots(c).Create(within(t, 60), picture); err != nil || got.ID != p.ID || c.count("Describe") != 0 {
			t.Errorf("got %v, %v after %v", got, err, c.calls)
		}
	})
}

// Without the note there is no answer before it is ready, and no final one: it exists.
func TestWhatCannotBeNotedIsToldOfOnceItIsReady(t *testing.T) {
	for name, w := range wishes {
		for _, kind := range Kinds() {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCloud(source)
					c.fail["DescribeSnapshot"], c.fail["DescribeBackup"] = Errorf(kind, "no"), Errorf(kind, "no")
					s := snapshots(c)
					_, err := s.Create(within(t, 60), w)
					want := kind
					if kind == NotFound {
						want = Busy
					}
					if wantKind(t, err, want, true); c.count("Delete") != 0 {
						t.Error(c.calls)
					}
					if p, err := (&snapshotter{s: s}).retried(t, w); err != nil || !p.Ready() || len(c.snaps)+len(c.backups) != 1 {
						t.Errorf("got %v, %v after %v", p, err, c.calls)
					}
				})
			})
		}
	}
}

func TestANoteWhoseAnswerIsLostIsReadAgain(t *testing.T) {
	for name, w := range wishes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lost := AfterWrite(Errorf(Unavailable, "connection reset"))
				c := newCloud(source)
				c.fail["DescribeSnapshot"], c.fail["DescribeBackup"] = lost, lost
				if p, err := snapshots(c).Create(within(t, 60), w); err != nil || !answered(p) || !answered(*c.kept(w)[p.ID]) {
					t.Errorf("got %v, %v after %v", p, err, c.calls)
				}
			})
		})
	}
}

// Replica's clocks differ: the one that was answered with may not be the oldest.
func TestOfSeveralTheOneThatWasAnsweredWithCounts(t *testing.T) {
	for name, w := range wishes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, young, third := pictureOfOurs(1, Available), pictureOfOurs(2, Available), pictureOfOurs(3, Available)
				young.CreatedAt, third.CreatedAt = time.Now().Add(time.Second), time.Now().Add(2*time.Second)
				young.Description, third.Description = contract.DescriptionAnswered, contract.DescriptionAnswered
				c := newCloud(source)
				if w.Backup != nil {
					c.withBackups(old, young, third)
				} else {
					c.withSnapshots(old, young, third)
				}
				p, err := snapshots(c).Create(within(t, 60), w)
				if err != nil || p.ID != young.ID || len(c.kept(w)) != 3 {
					t.Errorf("got %v, %v; there are %v", p, err, c.kept(w))
				}
			})
		})
	}
}
