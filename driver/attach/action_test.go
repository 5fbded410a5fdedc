package attach

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/actions.txt")

// everyAttachStatus is every attachment status of Cinder 21 (objects/fields.py, VolumeAttachStatus.ALL) except detached and deleted. It also
// has detaching, which only the database of Cinder knows, and the two for which Cinder shows no attachment.
var everyAttachStatus = []volume.AttachStatus{
	volume.AttachmentNone, volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentAttached, volume.AttachmentDetaching, volume.AttachmentErrorAttaching, volume.AttachmentErrorDetaching, volume.AttachmentHidden,
}

// everyNovaState is what the driver may have read of Nova.
var everyNovaState = everyNumber[novaState](novaStateCount)[1:]

// everyNumber returns the constants from 0 to count-1 of a type.
func everyNumber[T ~int](count int) []T {
	all := make([]T, count)
	for i := range all {
		all[i] = T(i)
	}
	return all
}

func eachCell(f func(status volume.Status, attachment volume.AttachStatus, nova novaState)) {
	for _, attachment := range everyAttachStatus {
		for _, nova := range everyNovaState {
			for _, status := range cloudtest.EveryStatus {
				f(status, attachment, nova)
			}
		}
	}
}

// The table as a whole is reviewed test data: the action for a volume in each status, for each attachment status and state of Nova.
func TestTheActionTableIsAsReviewed(t *testing.T) {
	var b strings.Builder
	for _, attachment := range everyAttachStatus {
		for _, nova := range everyNovaState {
			name := map[volume.AttachStatus]string{volume.AttachmentNone: "no attachment", volume.AttachmentHidden: "attachments hidden"}[attachment]
			if name == "" {
				name = string(attachment)
			}
			fmt.Fprintf(&b, "%s, Nova: %s\n", name, nova)
			for verb, next := range map[string]func(volume.Status, volume.AttachStatus, novaState) action{"attach": attachAction} {
				writeActions(&b, verb, attachment, nova, next)
			}
			writeActions(&b, "detach", attachment, nova, detachAction)
		}
	}
	const file = "testdata/actions.txt"
	if *update {
		testfile.Write(t, file, b.String(), 0o644)
	}
	want := testfile.Read(t, file)
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error("-want +got; write it with -update and review it\n", diff)
	}
}

func writeActions(b *strings.Builder, verb string, attachment volume.AttachStatus, nova novaState, next func(volume.Status, volume.AttachStatus, novaState) action) {
	by := map[action][]string{}
	for _, status := range cloudtest.EveryStatus {
		m := next(status, attachment, nova)
		by[m] = append(by[m], string(status))
	}
	for m := range actionNames {
		if list := by[action(m)]; len(list) == len(cloudtest.EveryStatus) {
			fmt.Fprintf(b, "  %s: %s in every status\n", verb, action(m))
		} else if len(list) > 0 {
			slices.Sort(list)
			fmt.Fprintf(b, "  %s: %s in %s\n", verb, action(m), strings.Join(list, " "))
		}
	}
}

func TestEveryActionAndNovaStateHasItsOwnName(t *testing.T) {
	for what, names := range map[string][]string{"action": actionNames[:], "Nova state": novaStateNames[:]} {
		for i, name := range names {
			if name == "" || slices.Contains(names[:i], name) {
				t.Errorf("%s %d: the name %q is empty or not its own", what, i, name)
			}
		}
	}
}

// What must hold in every cell, whatever else changes in the table.
func TestNoActionIsHarmful(t *testing.T) {
	incomplete := []volume.AttachStatus{volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentErrorAttaching}
	eachCell(func(status volume.Status, attachment volume.AttachStatus, nova novaState) {
		shown := attachment != volume.AttachmentNone && attachment != volume.AttachmentHidden
		for verb, m := range map[string]action{"attach": attachAction(status, attachment, nova), "detach": detachAction(status, attachment, nova)} {
			at := fmt.Sprintf("%s of a volume %s, attachment %q, Nova: %s: %s", verb, status, attachment, nova, m)
			if m == deleteStale && !(shown && nova == novaServerGone || slices.Contains(incomplete, attachment) && nova == novaNotListed) {
				t.Errorf("%s: deletes an attachment that may be in use", at)
			}
			if m == deleteStale && !inTransition(status) && status != volume.InUse && status != volume.Available {
				t.Errorf("%s: Cinder would compute the volume status again", at)
			}
			withoutHost := nova == novaListedOffloaded && (status == volume.InUse || inTransition(status)) // Nova does not ask Cinder
			if m == send && (verb == "detach" && !withoutHost && (status != volume.InUse || nova != novaListed) || verb == "attach" && status != volume.Available) {
				t.Errorf("%s: Cinder would refuse the request", at)
			}
			if m == done && verb == "detach" && (shown || listed(nova) || nova == novaUnknown) {
				t.Errorf("%s: Cinder or Nova still has it", at)
			}
			if m == done && verb == "attach" && (attachment != volume.AttachmentAttached || status != volume.InUse || nova != novaListed && nova != novaUnknown) {
				t.Errorf("%s: it is not attached", at)
			}
			if nova == novaUnknown && slices.Contains([]action{deleteStale, conflict, waitForNova}, m) || nova == novaServerChanging && slices.Contains([]action{deleteStale, conflict}, m) {
				t.Errorf("%s: the state is unknown or may change", at)
			}
		}
	})
}

// cloudIn is a cloud with a volume in one cell of the table.
func cloudIn(t *testing.T, status volume.Status, attachment volume.AttachStatus, nova novaState) *cloudtest.Cloud {
	v := volume.Volume{ID: cloudtest.VolumeID(1), Status: status}
	if attachment == volume.AttachmentAttached {
		v.Attachments = []volume.Attachment{{Volume: v.ID, Server: cloudtest.ServerA}}
	}
	c := cloudtest.New(t, v)
	c.List(v.ID)
	switch nova {
	case novaListedOffloaded:
		c.Sim.SetServerStatus(string(cloudtest.ServerA), "SHELVED_OFFLOADED", "")
		c.List(v.ID, cloudtest.ServerA)
	case novaListed:
		c.List(v.ID, cloudtest.ServerA)
	case novaServerChanging:
		c.Sim.SetServerStatus(string(cloudtest.ServerA), "ACTIVE", "migrating")
	case novaServerGone:
		c.RemoveServer(cloudtest.ServerA)
	case novaUnknown:
		c.Fail["ServerAttachments"] = volume.Errorf(volume.Unavailable, "Nova is down")
	}
	switch attachment {
	case volume.AttachmentHidden:
		c.Fail["VolumeAttachments"] = volume.Errorf(volume.PermissionDenied, "no")
	case volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentDetaching, volume.AttachmentErrorAttaching, volume.AttachmentErrorDetaching:
		c.Record(v.ID, toServer(cloudtest.ServerA, attachment))
	}
	return c
}

func listed(nova novaState) bool { return nova == novaListed || nova == novaListedOffloaded }

// serverNotRead reports whether the driver does not read the server, so that it sees another state of Nova.
func serverNotRead(attachment volume.AttachStatus, nova novaState) bool {
	switch nova {
	case novaServerChanging:
		return attachment == volume.AttachmentNone || attachment == volume.AttachmentHidden
	case novaListedOffloaded:
		return !slices.Contains(reservation, attachment)
	}
	return false
}

// toServer is an attachment to a server.
func toServer(server volume.ServerID, status volume.AttachStatus) volume.Attachment {
	return volume.Attachment{ID: cloudtest.AttachmentID(server), Server: server, Status: status}
}

// requestsTo describes the requests that a call has sent.
func requestsTo(c *cloudtest.Cloud) string {
	return fmt.Sprintf("attach %d, detach %d, delete %d", c.Count("Attach"), c.Count("Detach"), c.Count("DeleteAttachment"))
}

// truth waits without the hub. It reads the volume from the databases every two seconds, which saves most requests of the walks.
type truth struct{ *cloudtest.Cloud }

func (c truth) Await(ctx context.Context, id volume.ID, done func(volume.Volume, bool) (bool, error)) (volume.Volume, error) {
	for {
		v, err := c.Read(id)
		if ended, err := done(v, err == nil); ended || err != nil {
			return v, err
		}
		if volume.Sleep(ctx, 2*time.Second) != nil {
			return v, volume.Interrupted(ctx, "volume %s is %s", id, v.Status)
		}
	}
}

// patience is how many seconds the caller of an action waits.
func patience(next action) int {
	if next == waitForChange || next == attachedElsewhere {
		return 12 // and the next observation
	}
	return 60
}

// Attach in every cell: the requests that it sends, and its outcome.
func TestAttachInEveryCell(t *testing.T) {
	eachCell(func(status volume.Status, attachment volume.AttachStatus, nova novaState) {
		if serverNotRead(attachment, nova) {
			return
		}
		t.Run(fmt.Sprintf("%s/%s/%s", status, attachment, nova), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudIn(t, status, attachment, nova)
				began := time.Now()
				observed := attachAction(status, attachment, nova)
				_, err := New(c, truth{c}, Options{}).Attach(cloudtest.Within(t, patience(observed)), cloudtest.VolumeID(1), cloudtest.ServerA)
				next := observed
				if !inTransition(status) && !(status == volume.InUse && attachment == volume.AttachmentAttached) {
					next = attachAction(status, volume.AttachmentNone, novaNotListed) // the volume status alone decides
				}
				want, kind := "attach 0, detach 0, delete 0", volume.DeadlineExceeded
				switch {
				case next == done:
					kind = volume.Unknown
				case next == attachedElsewhere && inTransition(status):
				case next == attachedElsewhere, next == statusForbids, next == serverOffloaded:
					kind = volume.Conflict
				case next == volumeDeleting, next == serverNotFound:
					kind = volume.NotFound
				case next == novaStateUnknown:
					kind = volume.Unavailable
				case next == conflict:
					kind = volume.Conflict
				case next == deleteStale:
					want, kind = "attach 1, detach 0, delete 1", volume.Unknown
				case next == send && nova == novaServerGone:
					want, kind = "attach 1, detach 0, delete 0", volume.NotFound
				case next == send && listed(nova): // Nova refuses, and an observation says what next
					want = "attach 1, detach 0, delete 0"
					if observed == send || observed == waitForNova {
						kind = volume.Conflict
					}
				case next == send && nova == novaServerChanging:
					want, kind = "attach 1, detach 0, delete 0", volume.Busy
				case next == send:
					want, kind = "attach 1, detach 0, delete 0", volume.Unknown
				}
				wantOutcome(t, c, err, want, kind, false)
				if next == deleteStale && time.Since(began) < staleConfirmInterval || next == conflict && time.Since(began) < staleConfirmInterval {
					t.Errorf("after one observation, in %v", time.Since(began))
				}
			})
		})
	})
}

// Detach in every cell.
func TestDetachInEveryCell(t *testing.T) {
	eachCell(func(status volume.Status, attachment volume.AttachStatus, nova novaState) {
		if serverNotRead(attachment, nova) {
			return
		}
		t.Run(fmt.Sprintf("%s/%s/%s", status, attachment, nova), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudIn(t, status, attachment, nova)
				began := time.Now()
				next := detachAction(status, attachment, nova)
				err := New(c, truth{c}, Options{}).Detach(cloudtest.Within(t, patience(next)), cloudtest.VolumeID(1), cloudtest.ServerA)
				want, kind := "attach 0, detach 0, delete 0", volume.DeadlineExceeded
				asked := 0
				if status == volume.InUse && attachment == volume.AttachmentAttached {
					asked = 1 // the driver sends the request before it observes
				}
				switch next {
				case done:
					kind = volume.Unknown
				case statusForbids, conflict, waitForNova:
					kind = volume.Conflict
				case novaStateUnknown:
					kind = volume.Unavailable
				case deleteStale:
					want, kind = "attach 0, detach 0, delete 1", volume.Unknown
				case send:
					want, kind = "attach 0, detach 1, delete 0", volume.Unknown
				}
				if next == send && attachment == volume.AttachmentErrorDetaching {
					kind = volume.Busy // Nova refuses to detach what Cinder does not show as attached
				}
				if next == send && attachment == volume.AttachmentHidden && inTransition(status) {
					kind = volume.Conflict // this cloud has nothing that the detach ends, so the volume stays in its status
				}
				want = strings.Replace(want, "detach 0", fmt.Sprint("detach ", asked), 1)
				wantOutcome(t, c, err, want, kind, false)
				if (next == deleteStale || next == conflict) && time.Since(began) < staleConfirmInterval {
					t.Errorf("after one observation, in %v", time.Since(began))
				}
			})
		})
	})
}

func wantOutcome(t *testing.T, c *cloudtest.Cloud, err error, want string, kind volume.Kind, sent bool) {
	t.Helper()
	if got := requestsTo(c); got != want {
		t.Errorf("want %s, got %s; %v", want, got, err)
	}
	if kind == volume.Unknown {
		if err != nil {
			t.Error(err)
		}
		return
	}
	cloudtest.WantKind(t, err, kind, sent)
}
