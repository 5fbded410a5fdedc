package volume

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/attachments.txt")

// every status of an attachment record (Cinder 21, objects/fields.py, VolumeAttachStatus.ALL, without detached and deleted), detaching,
// which its database knows besides, and the two ways to have none.
var everyRow = []AttachStatus{
	AttachmentNone, AttachmentReserved, AttachmentAttaching, AttachmentAttached, AttachmentDetaching, AttachmentErrorAttaching, AttachmentErrorDetaching, AttachmentHidden,
}

var everyOpinion = []novaState{novaLists, novaOmits, novaServerChanging, novaServerGone, novaUnknown}

func eachCell(f func(status Status, row AttachStatus, nova novaState)) {
	for _, row := range everyRow {
		for _, nova := range everyOpinion {
			for _, status := range everyStatus {
				f(status, row, nova)
			}
		}
	}
}

// The table as a whole is reviewed test data: what is done with a volume in each status, under each record of Cinder's and each
// opinion of Nova's.
func TestTheTableOfAttachmentsIsAsReviewed(t *testing.T) {
	var b strings.Builder
	for _, row := range everyRow {
		for _, nova := range everyOpinion {
			name := map[AttachStatus]string{AttachmentNone: "no record", AttachmentHidden: "records hidden"}[row]
			if name == "" {
				name = string(row)
			}
			fmt.Fprintf(&b, "%s, Nova: %s\n", name, nova)
			for verb, next := range map[string]func(Status, AttachStatus, novaState) action{"attach": attachAction} {
				writeMoves(&b, verb, row, nova, next)
			}
			writeMoves(&b, "detach", row, nova, detachAction)
		}
	}
	const file = "testdata/attachments.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error("-want +got; write it with -update and review it\n", diff)
	}
}

func writeMoves(b *strings.Builder, verb string, row AttachStatus, nova novaState, next func(Status, AttachStatus, novaState) action) {
	by := map[action][]string{}
	for _, status := range everyStatus {
		m := next(status, row, nova)
		by[m] = append(by[m], string(status))
	}
	for m := range actionNames {
		if list := by[action(m)]; len(list) == len(everyStatus) {
			fmt.Fprintf(b, "  %s: %s in every status\n", verb, action(m))
		} else if len(list) > 0 {
			slices.Sort(list)
			fmt.Fprintf(b, "  %s: %s in %s\n", verb, action(m), strings.Join(list, " "))
		}
	}
}

func TestEveryRecordAndOpinionHasAMeaning(t *testing.T) {
	for _, row := range everyRow {
		for _, nova := range everyOpinion {
			if _, ok := attachmentActions[row][nova]; !ok {
				t.Errorf("%q, %s: not in the table", row, nova)
			}
		}
	}
	if len(attachmentActions) != len(everyRow) {
		t.Errorf("the table has %d records, the tests %d", len(attachmentActions), len(everyRow))
	}
}

// What must hold in every cell, whatever else is changed in the table.
func TestNoCellHarms(t *testing.T) {
	leftover := []AttachStatus{AttachmentReserved, AttachmentAttaching, AttachmentErrorAttaching}
	eachCell(func(status Status, row AttachStatus, nova novaState) {
		recorded := row != AttachmentNone && row != AttachmentHidden
		for verb, m := range map[string]action{"attach": attachAction(status, row, nova), "detach": detachAction(status, row, nova)} {
			at := fmt.Sprintf("%s of a volume %s, record %q, Nova: %s: %s", verb, status, row, nova, m)
			if m == deleteStale && !(recorded && nova == novaServerGone || slices.Contains(leftover, row) && nova == novaOmits) {
				t.Errorf("%s: a record is deleted that may be used", at)
			}
			if m == deleteStale && !inTransition(status) && status != InUse && status != Available {
				t.Errorf("%s: the volume's status would be made anew", at)
			}
			if m == send && (verb == "detach" && (status != InUse || nova != novaLists) || verb == "attach" && status != Available) {
				t.Errorf("%s: Nova is asked for what Cinder refuses", at)
			}
			if m == done && verb == "detach" && (recorded || nova == novaLists || nova == novaUnknown) {
				t.Errorf("%s: Cinder or Nova has it still", at)
			}
			if m == done && verb == "attach" && (row != AttachmentAttached || status != InUse || nova != novaLists && nova != novaUnknown) {
				t.Errorf("%s: it is not attached", at)
			}
			if nova == novaUnknown && slices.Contains([]action{deleteStale, conflict, waitForNova}, m) || nova == novaServerChanging && slices.Contains([]action{deleteStale, conflict}, m) {
				t.Errorf("%s: nobody knows", at)
			}
		}
	})
}

// place puts a volume into one cell of the table.
func place(status Status, row AttachStatus, nova novaState) *fakeCloud {
	v := Volume{ID: id(1), Status: status}
	if row == AttachmentAttached {
		v.Attachments = []Attachment{{Volume: v.ID, Server: serverA}}
	}
	c := newCloud(v)
	c.servers[serverA] = nil
	switch nova {
	case novaLists:
		c.servers[serverA] = []ID{v.ID}
	case novaServerChanging:
		c.task = "migrating"
	case novaServerGone:
		delete(c.servers, serverA)
	case novaUnknown:
		c.fail["Listed"] = Errorf(Unavailable, "Nova is down")
	}
	switch row {
	case AttachmentHidden:
		c.fail["Rows"] = Errorf(PermissionDenied, "no")
	case AttachmentReserved, AttachmentAttaching, AttachmentDetaching, AttachmentErrorAttaching, AttachmentErrorDetaching:
		c.rows = []Row{{ID: rowID(serverA), Volume: v.ID, Server: serverA, Status: row}}
	}
	return c
}

// wrote is what a call has sent.
func (c *fakeCloud) wrote() string {
	return fmt.Sprintf("attach %d, detach %d, delete %d", c.count("Attach"), c.count("Detach"), c.count("DeleteRow"))
}

// Every cell is walked through Attach: what is sent, and what the caller is told.
func TestAttachInEveryCell(t *testing.T) {
	eachCell(func(status Status, row AttachStatus, nova novaState) {
		if nova == novaServerChanging && (row == AttachmentNone || row == AttachmentHidden) {
			return // the server is asked about only where there is a record
		}
		t.Run(fmt.Sprintf("%s/%s/%s", status, row, nova), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := place(status, row, nova)
				began := time.Now()
				_, err := attaching(c).Attach(within(t, 60), id(1), serverA)
				next := attachAction(status, row, nova)
				if !inTransition(status) && !(status == InUse && row == AttachmentAttached) {
					next = attachAction(status, AttachmentNone, novaOmits) // the volume's status alone decides
				}
				want, kind := "attach 0, detach 0, delete 0", DeadlineExceeded
				switch {
				case next == done:
					kind = Unknown
				case next == attachedElsewhere && inTransition(status):
				case next == attachedElsewhere, next == statusForbids:
					kind = Conflict
				case next == volumeDeleting, next == serverNotFound:
					kind = NotFound
				case next == novaSilent:
					kind = Unavailable
				case next == conflict:
					kind = Conflict
				case next == deleteStale:
					want, kind = "attach 1, detach 0, delete 1", Unknown
				case next == send && nova == novaServerGone:
					want, kind = "attach 1, detach 0, delete 0", NotFound
				case next == send:
					want, kind = "attach 1, detach 0, delete 0", Unknown
				}
				wantEnd(t, c, err, want, kind, false)
				if next == deleteStale && time.Since(began) < staleConfirmInterval || next == conflict && time.Since(began) < staleConfirmInterval {
					t.Errorf("after one look, in %v", time.Since(began))
				}
			})
		})
	})
}

// Every cell is walked through Detach.
func TestDetachInEveryCell(t *testing.T) {
	eachCell(func(status Status, row AttachStatus, nova novaState) {
		if nova == novaServerChanging && (row == AttachmentNone || row == AttachmentHidden) {
			return
		}
		t.Run(fmt.Sprintf("%s/%s/%s", status, row, nova), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := place(status, row, nova)
				began := time.Now()
				err := attaching(c).Detach(within(t, 60), id(1), serverA)
				want, kind := "attach 0, detach 0, delete 0", DeadlineExceeded
				next := detachAction(status, row, nova)
				asked := 0
				if status == InUse && row == AttachmentAttached {
					asked = 1 // Nova is asked before anybody looks
				}
				switch next {
				case done:
					kind = Unknown
				case statusForbids, conflict:
					kind = Conflict
				case novaSilent:
					kind = Unavailable
				case deleteStale:
					want, kind = "attach 0, detach 0, delete 1", Unknown
				case send:
					want, kind = "attach 0, detach 1, delete 0", Unknown
				}
				if next == send && row == AttachmentErrorDetaching {
					kind = Conflict // Nova has forgotten it, Cinder keeps its record
				}
				want = strings.Replace(want, "detach 0", fmt.Sprint("detach ", asked), 1)
				wantEnd(t, c, err, want, kind, false)
				if (next == deleteStale || next == conflict) && time.Since(began) < staleConfirmInterval {
					t.Errorf("after one look, in %v", time.Since(began))
				}
			})
		})
	})
}

func wantEnd(t *testing.T, c *fakeCloud, err error, wrote string, kind Kind, sent bool) {
	t.Helper()
	if got := c.wrote(); got != wrote {
		t.Errorf("want %s, got %s; %v", wrote, got, err)
	}
	if kind == Unknown {
		if err != nil {
			t.Error(err)
		}
		return
	}
	wantKind(t, err, kind, sent)
}
