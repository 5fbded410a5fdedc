package volume

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Cloud is what the domain asks of Cinder and Nova. Every method is one question or one command to the cloud and returns once
// the cloud has answered, not once the effect is there: waiting is the Waiter's. Errors are *Error; a missing object is NotFound.
type Cloud interface {
	SnapshotCloud
	BackupCloud
	ZoneCloud
	TypeCloud
	QuotaCloud
	AttachmentCloud

	// CreateVolume asks Cinder for a volume and returns it as accepted, usually still creating.
	// POST /v3/volumes (Cinder API reference, "Create a volume").
	CreateVolume(ctx context.Context, o CreateOptions) (Volume, error)
	// Volume reads one volume. GET /v3/volumes/{id}.
	Volume(ctx context.Context, id ID) (Volume, error)
	// VolumesNamed reads every volume of the project with exactly that name; names are not unique in Cinder.
	// GET /v3/volumes/detail?name=…
	VolumesNamed(ctx context.Context, name string) ([]Volume, error)
	// Select reads one page of the project's volumes that match, in Cinder's order (created_at descending), and whether there are
	// more. Errors: NotFound when the marker's volume is gone, Unimplemented when the cloud has no such filter.
	// GET /v3/volumes/detail?status=…&updated_at=gte:… (3.60).
	Select(ctx context.Context, s Selection) (page []Volume, more bool, err error)
	// Extend asks Cinder for a larger volume. Size is in whole GiB and above the present one. An attached volume needs 3.42.
	// POST /v3/volumes/{id}/action, os-extend.
	Extend(ctx context.Context, id ID, size Size, attached bool) error
	// DeleteVolume asks Cinder to delete one volume, never its snapshots. DELETE /v3/volumes/{id}.
	DeleteVolume(ctx context.Context, id ID) error
	// AddMetadata adds to a volume's metadata, replacing what is there under the same keys. POST /v3/volumes/{id}/metadata.
	AddMetadata(ctx context.Context, id ID, metadata map[string]string) error
	// Failure reads why the cloud gave up on a volume, from Cinder's user messages; empty when it does not say.
	// GET /v3/messages?resource_uuid=… (3.5).
	Failure(ctx context.Context, id ID) (string, error)

	// Server reads one server. GET /v2.1/servers/{id}.
	Server(ctx context.Context, id ServerID) (Server, error)
	// ServerAttachments reads the volumes Nova has for a server. GET /v2.1/servers/{id}/os-volume_attachments.
	ServerAttachments(ctx context.Context, server ServerID) ([]Attachment, error)
	// Attach asks Nova to attach a volume. POST /v2.1/servers/{id}/os-volume_attachments (2.60 for multiattach volumes).
	Attach(ctx context.Context, server ServerID, v Volume) error
	// Detach asks Nova to detach a volume. DELETE /v2.1/servers/{id}/os-volume_attachments/{volume}.
	Detach(ctx context.Context, server ServerID, id ID) error
}

// Waiter answers the question every command ends with: has it happened yet? The status hub is the one there is.
type Waiter interface {
	// Await returns the volume as soon as done reports true or an error for a reading of it that was made after Await began, and
	// that error; with the context's error as Kind DeadlineExceeded or Canceled when that comes first. A volume that does not
	// exist is passed to done as ok == false.
	Await(ctx context.Context, id ID, done func(v Volume, ok bool) (bool, error)) (Volume, error)
}

// CreateOptions is what a new volume is made with.
type CreateOptions struct {
	Name        string
	Size        Size
	Type        string // name or id; empty means the cloud's default type
	Zone        string // volume zone; empty means Cinder's default zone
	SnapshotID  string
	SourceID    ID
	BackupID    string
	Description string
	Metadata    map[string]string
	Hints       contract.Hints // the volumes by id
}

// Page asks for at most Limit volumes after the one whose id is Marker. Limit 0 means as many as Cinder gives in one answer.
type Page struct {
	Marker ID
	Limit  int
}
