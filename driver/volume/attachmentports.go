package volume

import "context"

// AttachmentCloud is what the domain asks of Cinder's own records of attachments (3.27). Nova makes and ends them; the domain only
// reads them, and deletes one that nothing stands behind any more.
type AttachmentCloud interface {
	// VolumeAttachments reads the attachment records of a volume, in every status. A cloud whose policy shows them to nobody, or that is older
	// than they are, answers PermissionDenied, NotFound or Unimplemented. GET /v3/attachments?volume_id=….
	VolumeAttachments(ctx context.Context, id ID) ([]Attachment, error)
	// ShowAttachment reads one attachment record. GET /v3/attachments/{id}.
	ShowAttachment(ctx context.Context, id string) (Attachment, error)
	// DeleteAttachment deletes one attachment record; the volume's status follows. Busy when Nova still uses it, which Cinder asks Nova for
	// records that have reached a host (Cinder's fix of CVE-2023-2088), and for no others. DELETE /v3/attachments/{id}.
	DeleteAttachment(ctx context.Context, id string) error
}

// AttachStatus is an attachment record's status (Cinder's objects/fields.py, VolumeAttachStatus).
type AttachStatus string

// What an attachment record can be. A record that is detached or deleted is none.
const (
	AttachmentNone           AttachStatus = ""
	AttachmentReserved       AttachStatus = "reserved"  // Nova's API has claimed the volume
	AttachmentAttaching      AttachStatus = "attaching" // the backend has given it to the server's host
	AttachmentAttached       AttachStatus = "attached"  // the server has it
	AttachmentDetaching      AttachStatus = "detaching"
	AttachmentErrorAttaching AttachStatus = "error_attaching"
	AttachmentErrorDetaching AttachStatus = "error_detaching"
	AttachmentHidden         AttachStatus = "hidden" // the cloud does not show its records
)
