package attach

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/attachments.txt")

// every status of an attachment record (Cinder 21, objects/fields.py, VolumeAttachStatus.ALL, without detached and deleted), detaching,
// which its database knows besides, and the two ways to have none.
var everyAttachStatus = []volume.AttachStatus{
	volume.AttachmentNone, volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentAttached, volume.AttachmentDetaching, volume.AttachmentErrorAttaching, volume.AttachmentErrorDetaching, volume.AttachmentHidden,
}

var everyOpinion = []novaState{novaLists, novaOmits, novaServerChanging, novaServerGone, novaUnknown}

func eachCell(f func(status volume.Status, attachment volume.AttachStatus, nova novaState)) {
	for _, attachment := range everyAttachStatus {
		for _, nova := range everyOpinion {
			for _, status := range volumetest.EveryStatus {
				f(status, attachment, nova)
			}
		}
	}
}

// The table as a whole is reviewed test data: what is done with a volume in each status, under each record of Cinder's and each
// opinion of Nova's.
func TestTheTableOfAttachmentsIsAsReviewed(t *testing.T) {
	var b strings.Builder
	for _, attachment := range everyAttachStatus {
		for _, nova := range everyOpinion {
			name := map[volume.AttachStatus]string{volume.AttachmentNone: "no record", volume.AttachmentHidden: "records hidden"}[attachment]
			if name == "" {
				name = string(attachment)
			}
			fmt.Fprintf(&b, "%s, Nova: %s\n", name, nova)
			for verb, next := range map[string]func(volume.Status, volume.AttachStatus, novaState) action{"attach": attachAction} {
				writeMoves(&b, verb, attachment, nova, next)
			}
			writeMoves(&b, "detach", attachment, nova, detachAction)
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

func writeMoves(b *strings.Builder, verb string, attachment volume.AttachStatus, nova novaState, next func(volume.Status, volume.AttachStatus, novaState) action) {
	by := map[action][]string{}
	for _, status := range volumetest.EveryStatus {
		m := next(status, attachment, nova)
		by[m] = append(by[m], string(status))
	}
	for m := range actionNames {
		if list := by[action(m)]; len(list) == len(volumetest.EveryStatus) {
			fmt.Fprintf(b, "  %s: %s in every status\n", verb, action(m))
		} else if len(list) > 0 {
			slices.Sort(list)
			fmt.Fprintf(b, "  %s: %s in %s\n", verb, action(m), strings.Join(list, " "))
		}
	}
}

func TestEveryRecordAndOpinionHasAMeaning(t *testing.T) {
	for _, attachment := range everyAttachStatus {
		for _, nova := range everyOpinion {
			if _, ok := attachmentActions[attachment][nova]; !ok {
				t.Errorf("%q, %s: not in the table", attachment, nova)
			}
		}
	}
	if len(attachmentActions) != len(everyAttachStatus) {
		t.Errorf("the table has %d records, the tests %d", len(attachmentActions), len(everyAttachStatus))
	}
}

// What must hold in every cell, whatever else is changed in the table.
func TestNoCellHarms(t *testing.T) {
	leftover := []volume.AttachStatus{volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentErrorAttaching}
	eachCell(func(status volume.Status, attachment volume.AttachStatus, nova novaState) {
		recorded := attachment != volume.AttachmentNone && attachment != volume.AttachmentHidden
		for verb, m := range map[string]action{"attach": attachAction(status, attachment, nova), "detach": detachAction(status, attachment, nova)} {
			at := fmt.Sprintf("%s of a volume %s, record %q, Nova: %s: %s", verb, status, attachment, nova, m)
			if m == deleteStale && !(recorded && nova == novaServerGone || slices.Contains(leftover, attachment) && nova == novaOmits) {
				t.Errorf("%s: a record is deleted that may be used", at)
			}
			if m == deleteStale && !inTransition(status) && status != volume.InUse && status != volume.Available {
				t.Errorf("%s: the volume's status would be made anew", at)
			}
			if m == send && (verb == "detach" && (status != volume.InUse || nova != novaLists) || verb == "attach" && status != volume.Available) {
				t.Errorf("%s: Nova is asked for what Cinder refuses", at)
			}
			if m == done && verb == "detach" && (recorded || nova == novaLists || nova == novaUnknown) {
				t.Errorf("%s: Cinder or Nova has it still", at)
			}
			if m == done && verb == "attach" && (attachment != volume.AttachmentAttached || status != volume.InUse || nova != novaLists && nova != novaUnknown) {
				t.Errorf("%s: it is not attached", at)
			}
			if nova == novaUnknown && slices.Contains([]action{deleteStale, conflict, waitForNova}, m) || nova == novaServerChanging && slices.Contains([]action{deleteStale, conflict}, m) {
				t.Errorf("%s: nobody knows", at)
			}
		}
	})
}

// place puts a volume into one cell of the table.
func place(status volume.Status, attachment volume.AttachStatus, nova novaState) *volumetest.Cloud {
	v := volume.Volume{ID: volumetest.VolumeID(1), Status: status}
	if attachment == volume.AttachmentAttached {
		v.Attachments = []volume.Attachment{{Volume: v.ID, Server: volumetest.ServerA}}
	}
	c := volumetest.NewCloud(v)
	c.Servers[volumetest.ServerA] = nil
	switch nova {
	case novaLists:
		c.Servers[volumetest.ServerA] = []volume.ID{v.ID}
	case novaServerChanging:
		c.Task = "migrating"
	case novaServerGone:
		delete(c.Servers, volumetest.ServerA)
	case novaUnknown:
		c.Fail["ServerAttachments"] = volume.Errorf(volume.Unavailable, "Nova is down")
	}
	switch attachment {
	case volume.AttachmentHidden:
		c.Fail["VolumeAttachments"] = volume.Errorf(volume.PermissionDenied, "no")
	case volume.AttachmentReserved, volume.AttachmentAttaching, volume.AttachmentDetaching, volume.AttachmentErrorAttaching, volume.AttachmentErrorDetaching:
		c.AttachmentRecords = []volume.Attachment{{ID: volumetest.AttachmentID(volumetest.ServerA), Volume: v.ID, Server: volumetest.ServerA, Status: attachment}}
	}
	return c
}

// wrote is what a call has sent.
func wrote(c *volumetest.Cloud) string {
	return fmt.Sprintf("attach %d, detach %d, delete %d", c.Count("Attach"), c.Count("Detach"), c.Count("DeleteAttachment"))
}

// Every cell is walked through Attach: what is sent, and what the caller is told.
func TestAttachInEveryCell(t *testing.T) {
	eachCell(func(status volume.Status, attachment volume.AttachStatus, nova novaState) {
		if nova == novaServerChanging && (attachment == volume.AttachmentNone || attachment == volume.AttachmentHidden) {
			return // the server is asked about only where there is a record
		}
		t.Run(fmt.Sprintf("%s/%s/%s", status, attachment, nova), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := place(status, attachment, nova)
				began := time.Now()
				_, err := attaching(c).Attach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
				next := attachAction(status, attachment, nova)
				if !inTransition(status) && !(status == volume.InUse && attachment == volume.AttachmentAttached) {
					next = attachAction(status, volume.AttachmentNone, novaOmits) // the volume's status alone decides
				}
				want, kind := "attach 0, detach 0, delete 0", volume.DeadlineExceeded
				switch {
				case next == done:
					kind = volume.Unknown
				case next == attachedElsewhere && inTransition(status):
				case next == attachedElsewhere, next == statusForbids:
					kind = volume.Conflict
				case next == volumeDeleting, next == serverNotFound:
					kind = volume.NotFound
				case next == novaSilent:
					kind = volume.Unavailable
				case next == conflict:
					kind = volume.Conflict
				case next == deleteStale:
					want, kind = "attach 1, detach 0, delete 1", volume.Unknown
				case next == send && nova == novaServerGone:
					want, kind = "attach 1, detach 0, delete 0", volume.NotFound
				case next == send:
					want, kind = "attach 1, detach 0, delete 0", volume.Unknown
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
	eachCell(func(status volume.Status, attachment volume.AttachStatus, nova novaState) {
		if nova == novaServerChanging && (attachment == volume.AttachmentNone || attachment == volume.AttachmentHidden) {
			return
		}
		t.Run(fmt.Sprintf("%s/%s/%s", status, attachment, nova), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := place(status, attachment, nova)
				began := time.Now()
				err := attaching(c).Detach(volumetest.Within(t, 60), volumetest.VolumeID(1), volumetest.ServerA)
				want, kind := "attach 0, detach 0, delete 0", volume.DeadlineExceeded
				next := detachAction(status, attachment, nova)
				asked := 0
				if status == volume.InUse && attachment == volume.AttachmentAttached {
					asked = 1 // Nova is asked before anybody looks
				}
				switch next {
				case done:
					kind = volume.Unknown
				case statusForbids, conflict:
					kind = volume.Conflict
				case novaSilent:
					kind = volume.Unavailable
				case deleteStale:
					want, kind = "attach 0, detach 0, delete 1", volume.Unknown
				case send:
					want, kind = "attach 0, detach 1, delete 0", volume.Unknown
				}
				if next == send && attachment == volume.AttachmentErrorDetaching {
					kind = volume.Conflict // Nova has forgotten it, Cinder keeps its record
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

func wantEnd(t *testing.T, c *volumetest.Cloud, err error, want string, kind volume.Kind, sent bool) {
	t.Helper()
	if got := wrote(c); got != want {
		t.Errorf("want %s, got %s; %v", want, got, err)
	}
	if kind == volume.Unknown {
		if err != nil {
			t.Error(err)
		}
		return
	}
	volumetest.WantKind(t, err, kind, sent)
}
