package openstack

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

const attachmentID = "72f3c0de-0000-4000-8000-000000000000"

var attachmentOperations = []operation{
	{"volume attachments", false, answer{status: 200, body: `{"attachments": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.VolumeAttachments(ctx, volumeID)
		return err
	}},
	{"attachment", false, answer{status: 200, body: `{"attachment": {"id": "` + attachmentID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.ShowAttachment(ctx, attachmentID)
		return err
	}},
	{"delete attachment", true, answer{status: 200, body: `{"attachments": []}`}, func(ctx context.Context, c *Cloud) error { return c.DeleteAttachment(ctx, attachmentID) }},
}

// The body is the answer of Cinder 21.3, and an attachment of another volume, as from a proxy that drops the query.
func TestAttachmentsOfAVolumeAreReadWhateverTheirStatus(t *testing.T) {
	t.Parallel()
	c, f := connect(t, answer{status: 200, body: `{"attachments": [
		{"id": "` + attachmentID + `", "status": "reserved", "instance": "` + serverID + `", "volume_id": "` + volumeID + `"},
		{"id": "1", "status": "attaching", "instance": null, "volume_id": "` + volumeID + `"},
		{"id": "2", "status": "detached", "instance": "` + serverID + `", "volume_id": "` + volumeID + `"},
		{"id": "3", "status": "attached", "instance": "` + serverID + `", "volume_id": "` + snapshotID + `"}]}`})
	got, err := c.VolumeAttachments(t.Context(), volumeID)
	if err != nil {
		t.Fatal(err)
	}
	want := []volume.Attachment{
		{ID: attachmentID, Volume: volumeID, Server: serverID, Status: volume.AttachmentReserved},
		{ID: "1", Volume: volumeID, Status: volume.AttachmentAttaching},
		{ID: "2", Volume: volumeID, Server: serverID, Status: volume.AttachmentNone},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attachments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]seen{{"GET", "/v3/p/attachments", "limit=1000&volume_id=" + volumeID, "3.27", ""}}, f.seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAnAttachmentThatNovaUsesIsBusy(t *testing.T) {
	t.Parallel()
	c, f := connect(t, answer{status: 409, body: `{"conflictingRequest": {"code": 409, "message": "ConflictNovaUsingAttachment: Detach volume from instance x using the Compute API"}}`})
	if err := c.DeleteAttachment(t.Context(), attachmentID); !volume.Is(err, volume.Busy) || volume.MayHaveWritten(err) {
		t.Errorf("got %v", err)
	}
	for _, id := range []string{"", "x", "../volumes/" + volumeID} {
		if err := c.DeleteAttachment(t.Context(), id); !volume.Is(err, volume.NotFound) {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := c.VolumeAttachments(t.Context(), volume.ID(id)); !volume.Is(err, volume.NotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if len(f.seen) != 1 {
		t.Errorf("requests %v", f.seen)
	}
}
