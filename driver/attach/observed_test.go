package attach

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

const (
	seenVolume volume.ID       = "aaaaaaaa-0000-4000-8000-000000000001"
	seenServer volume.ServerID = "bbbbbbbb-0000-4000-8000-000000000001"
)

// reading is a cloud with one volume that answers reads of attachments and servers only.
type reading struct {
	volume.Cloud
	status      volume.Status
	attachments []volume.Attachment
	refusal     error // Cinder's answer in place of the attachments
	nova        error // Nova's answer about every server
}

func (r reading) Volume(context.Context, volume.ID) (volume.Volume, error) {
	return volume.Volume{ID: seenVolume, Status: r.status}, nil
}

func (r reading) VolumeAttachments(context.Context, volume.ID) ([]volume.Attachment, error) {
	return r.attachments, r.refusal
}

func (r reading) Server(context.Context, volume.ServerID) (volume.Server, error) {
	return volume.Server{}, r.nova
}

func (r reading) ServerAttachments(context.Context, volume.ServerID) ([]volume.Attachment, error) {
	return nil, r.nova
}

// Every call meets the same refusal. One line in the log says so; one for each call would hide the rest.
func TestTheLogSaysOnceThatCinderHidesAttachments(t *testing.T) {
	for name, test := range map[string]struct {
		hidden error
		want   int
	}{
		"denied":           {volume.Errorf(volume.PermissionDenied, "HTTP 403"), 1},
		"an older Cinder":  {volume.Errorf(volume.Unimplemented, "HTTP 406"), 0}, // nobody can change that by a policy
		"nothing attached": {nil, 0},
	} {
		var log bytes.Buffer
		s := New(reading{status: volume.Available, refusal: test.hidden}, nil, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 3 {
			if err := s.Detach(t.Context(), seenVolume, ""); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := strings.Count(log.String(), "Cinder does not show attachments"); got != test.want {
			t.Errorf("%s: want %d warnings for three calls, got %d:\n%s", name, test.want, got, log.String())
		}
	}
}

// A reservation without a server is not the driver's, and it may be why nobody can delete the volume later.
func TestTheLogNamesAnAttachmentThatADetachKeeps(t *testing.T) {
	var log bytes.Buffer
	cloud := reading{status: volume.Reserved, attachments: []volume.Attachment{{ID: "attachment-1", Volume: seenVolume, Status: volume.AttachmentReserved}}}
	if err := New(cloud, nil, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}).Detach(t.Context(), seenVolume, ""); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"level=WARN", "keeps attachments", "attachment-1 in status reserved", "volume=" + string(seenVolume)} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("want %q in the log, got %q", part, log.String())
		}
	}
}

func TestAnErrorNamesWhoElseHasTheVolume(t *testing.T) {
	cloud := reading{status: volume.Reserved, nova: volume.Errorf(volume.PermissionDenied, "HTTP 403"), attachments: []volume.Attachment{
		{ID: "attachment-1", Server: "cccccccc-0000-4000-8000-000000000001", Status: volume.AttachmentAttaching},
		{ID: "attachment-2", Status: volume.AttachmentReserved},
	}}
	err := New(cloud, nil, Options{}).Detach(t.Context(), seenVolume, seenServer)
	const want = "attachment attachment-1 to server cccccccc-0000-4000-8000-000000000001 is attaching; attachment attachment-2 to a host that is no Nova server is reserved"
	if !volume.Is(err, volume.PermissionDenied) || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q in the error, got %v", want, err)
	}
}

// The page of operations in progress shows it to a person who wonders what the call waits for.
func TestACallThatWaitsNotesWhatItHasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := reading{status: volume.Reserved, nova: volume.Errorf(volume.NotFound, "HTTP 404"), attachments: []volume.Attachment{
			{ID: "attachment-1", Server: seenServer, Status: volume.AttachmentReserved},
		}}
		ctx, progress := volume.WithProgress(t.Context())
		ctx, cancel := context.WithTimeout(ctx, staleConfirmInterval/2)
		defer cancel()
		time.AfterFunc(time.Second, func() {
			state := progress.State()
			for _, part := range []string{string(seenVolume), "status is reserved", "attachment-1", "Nova has no such server"} {
				if !strings.Contains(state, part) {
					t.Errorf("want %q in the state of the call that waits, got %q", part, state)
				}
			}
		})
		if err := New(cloud, nil, Options{}).Detach(ctx, seenVolume, seenServer); !volume.Is(err, volume.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline in the middle of the wait", err)
		}
	})
}

// What the driver could not read may be an attach in progress, so it neither sends a request nor waits for a change.
func TestACallEndsWhereCinderDoesNotShowTheAttachments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := volume.Errorf(volume.Unavailable, "HTTP 503")
		s := New(reading{status: volume.Attaching, refusal: down}, nil, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, attach := s.Attach(ctx, seenVolume, seenServer)
		for verb, err := range map[string]error{"attach": attach, "detach": s.Detach(ctx, seenVolume, seenServer), "detach from all": s.Detach(ctx, seenVolume, "")} {
			if !errors.Is(err, down) || !volume.Is(err, volume.Unavailable) {
				t.Errorf("%s: want the error of Cinder, got %v", verb, err)
			}
		}
	})
}

// A cloud chooses how many attachments there are, and an observation is put into words at every step.
func TestAnObservationOfManyAttachmentsIsAShortText(t *testing.T) {
	t.Parallel()
	attachments := make([]volume.Attachment, 10_000)
	for i := range attachments {
		attachments[i] = volume.Attachment{ID: "a", Status: volume.AttachStatus(strings.Repeat("x", 900))}
	}
	attachments[9_999] = volume.Attachment{ID: "own", Server: seenServer, Status: volume.AttachmentReserved}
	seen, err := New(reading{attachments: attachments}, nil, Options{}).observeCinder(t.Context(), volume.Volume{ID: seenVolume}, seenServer)
	if err != nil || seen.attachment.ID != "own" || cap(seen.others) > 2*fewOthers {
		t.Errorf("want its own attachment and a few others, got %+v, %d others and %v", seen.attachment, cap(seen.others), err)
	}
	if text := seen.String(); len(text) > 8<<10 || !strings.HasSuffix(text, "; and 9994 more") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}
