package volume

import "context"

// Cloud is what the domain calls in Cinder and Nova. Each method sends one query or one command and returns the answer. It does not wait for
// the effect of a command: that is what a Waiter is for.
//
// Every error is an *Error. NotFound means that the object does not exist. An error after which the cloud may have changed is marked
// AfterWrite. References are to the Cinder and Nova API references; a number such as 3.42 is the microversion that a request needs.
type Cloud interface {
	SharedReads
	VolumeCloud
	SnapshotCloud
	BackupCloud
	AttachmentCloud
	ServerCloud
	TypeCloud
	QuotaCloud
	ZoneCloud
}

// SharedReads are the reads that many RPCs make of the same object at the same time. They go through the status hubs, so callers may share one
// request, or a list of many objects. Every caller gets what was read after its call began.
type SharedReads interface {
	// Volume reads one volume. GET /v3/volumes/{id}.
	Volume(ctx context.Context, id ID) (Volume, error)
	// ServerAttachments reads the volumes that Nova lists for a server. GET /v2.1/servers/{id}/os-volume_attachments.
	ServerAttachments(ctx context.Context, server ServerID) ([]Attachment, error)
}

// ReasonHidden begins the text of Failure and SnapshotFailure where a policy hides the messages of Cinder.
const ReasonHidden = "Cinder does not show the reason"

// VolumeCloud is the part of Cloud about volumes.
type VolumeCloud interface {
	// CreateVolume requests a volume and returns it as Cinder accepted it, usually in status creating. POST /v3/volumes.
	CreateVolume(ctx context.Context, o CreateOptions) (Volume, error)
	// VolumesNamed reads every volume of the project with exactly that name; names are not unique. GET /v3/volumes/detail?name=….
	VolumesNamed(ctx context.Context, name string) ([]Volume, error)
	// Select reads one page of the matching volumes of the project, sorted by created_at descending, and whether more follow. NotFound if the
	// volume of the marker is gone. GET /v3/volumes/detail?metadata=…&updated_at=gte:…&created_at=gte:… (3.60).
	Select(ctx context.Context, s Selection) (page []Volume, more bool, err error)
	// Extend requests a larger size, in whole GiB. An attached volume needs 3.42. POST /v3/volumes/{id}/action, os-extend.
	Extend(ctx context.Context, id ID, size Size, attached bool) error
	// Retype requests another volume type, by its ID. Migrate allows Cinder to copy the volume to another backend. Cinder refuses the type that
	// the volume has already. POST /v3/volumes/{id}/action, os-retype.
	Retype(ctx context.Context, id ID, typeID string, migrate bool) error
	// AddMetadata adds metadata and replaces the values of existing keys. POST /v3/volumes/{id}/metadata.
	AddMetadata(ctx context.Context, id ID, metadata map[string]string) error
	// RemoveMetadata removes one key. NotFound if there is no such key or no such volume. DELETE /v3/volumes/{id}/metadata/{key}.
	RemoveMetadata(ctx context.Context, id ID, key string) error
	// DeleteVolume requests the delete of a volume, without its snapshots. DELETE /v3/volumes/{id}.
	DeleteVolume(ctx context.Context, id ID) error
	// Failure reads the user message in which Cinder says why it gave up on a volume; empty where there is none.
	// It begins with ReasonHidden if a policy hides the messages. GET /v3/messages?resource_uuid=… (3.5).
	Failure(ctx context.Context, id ID) (string, error)
}

// SnapshotCloud is the part of Cloud about snapshots.
type SnapshotCloud interface {
	// CreateSnapshot requests a snapshot and returns it as Cinder accepted it, usually in status creating. Unimplemented if
	// SnapshotOptions.InUse needs a newer Cinder. POST /v3/snapshots.
	CreateSnapshot(ctx context.Context, o SnapshotOptions) (Snapshot, error)
	// Snapshot reads one snapshot. GET /v3/snapshots/{id}.
	Snapshot(ctx context.Context, id SnapshotID) (Snapshot, error)
	// SnapshotsNamed reads every snapshot of the project with exactly that name; names are not unique. GET /v3/snapshots/detail?name=….
	SnapshotsNamed(ctx context.Context, name string) ([]Snapshot, error)
	// Snapshots reads one page of the snapshots of the project, sorted by created_at descending, and whether more follow. NotFound if the snapshot
	// of the marker is gone. GET /v3/snapshots/detail.
	Snapshots(ctx context.Context, p SnapshotPage) (page []Snapshot, more bool, err error)
	// DeleteSnapshot requests the delete of a snapshot. DELETE /v3/snapshots/{id}.
	DeleteSnapshot(ctx context.Context, id SnapshotID) error
	// SnapshotStopsRetype reports whether this Cinder leaves a volume in status retyping if the volume has a snapshot with metadata, such as this
	// one. Cinder 24 and later do, and they have microversion 3.71. GET /v3/snapshots/{id} (3.71).
	SnapshotStopsRetype(ctx context.Context, id SnapshotID) (bool, error)
	// SnapshotFailure does for a snapshot what Failure does for a volume.
	SnapshotFailure(ctx context.Context, id SnapshotID) (string, error)
}

// BackupCloud is the part of Cloud about backups. A CSI snapshot ID names a Cinder snapshot or a Cinder backup, so both are a Snapshot here.
// Every status of a backup is also one of a snapshot, with the same meaning.
type BackupCloud interface {
	// CreateBackup requests a backup and returns its ID; the backup is in status creating. POST /v3/backups (3.43 for its metadata, 3.51 for
	// its zone).
	CreateBackup(ctx context.Context, o BackupOptions) (SnapshotID, error)
	// Backup reads one backup. GET /v3/backups/{id} (3.43 for its metadata).
	Backup(ctx context.Context, id SnapshotID) (Snapshot, error)
	// BackupsNamed reads every backup of the project with exactly that name; names are not unique. GET /v3/backups/detail?name=… (3.43).
	BackupsNamed(ctx context.Context, name string) ([]Snapshot, error)
	// Backups does for backups what Snapshots does for snapshots. GET /v3/backups/detail (3.43).
	Backups(ctx context.Context, p SnapshotPage) (page []Snapshot, more bool, err error)
	// RestoreBackup requests that Cinder writes a backup into an existing volume, which must be available and have no attachment. It replaces all
	// data and the metadata of the volume. NotFound is also the answer if no cinder-backup service can do it. POST /v3/backups/{id}/restore.
	RestoreBackup(ctx context.Context, id SnapshotID, into ID) error
	// DeleteBackup requests the delete of a backup. NotFound is also the answer if no cinder-backup service can do it.
	// DELETE /v3/backups/{id}.
	DeleteBackup(ctx context.Context, id SnapshotID) error
}

// AttachmentCloud is the part of Cloud about the attachment records of Cinder (3.27). Nova creates and deletes them. The driver reads them,
// and deletes a stale one.
type AttachmentCloud interface {
	// VolumeAttachments reads the attachments of a volume, in every status. PermissionDenied, NotFound or Unimplemented if the cloud hides
	// them or is older. GET /v3/attachments?volume_id=….
	VolumeAttachments(ctx context.Context, id ID) ([]Attachment, error)
	// ShowAttachment reads one attachment. GET /v3/attachments/{id}.
	ShowAttachment(ctx context.Context, id string) (Attachment, error)
	// DeleteAttachment deletes one attachment, and Cinder updates the status of the volume. Busy if Nova still uses the attachment: Cinder asks
	// Nova about attachments that have reached a host (fix of CVE-2023-2088). Cinder 17 of Debian 11 does not ask. DELETE /v3/attachments/{id}.
	DeleteAttachment(ctx context.Context, id string) error
}

// ServerCloud is the part of Cloud about Nova servers.
type ServerCloud interface {
	// Server reads one server. GET /v2.1/servers/{id} (2.26).
	Server(ctx context.Context, id ServerID) (Server, error)
	// NovaAnswers returns nil if Nova answers now, with anything but 404 or 5xx, a request that names no server. GET /v2.1/, without a token.
	NovaAnswers(ctx context.Context) error
	// Attach requests that Nova attaches a volume. POST /v2.1/servers/{id}/os-volume_attachments (2.20, and 2.60 for multiattach volumes).
	Attach(ctx context.Context, server ServerID, v Volume) error
	// Detach requests that Nova detaches a volume. DELETE /v2.1/servers/{id}/os-volume_attachments/{volume} (2.20).
	Detach(ctx context.Context, server ServerID, id ID) error
}

// TypeCloud is the part of Cloud about volume types.
type TypeCloud interface {
	// Types reads the volume types that the project may use. GET /v3/types.
	Types(ctx context.Context) ([]Type, error)
	// DefaultType reads the type of volumes that are created without one. NotFound if the cloud has none. GET /v3/types/default.
	DefaultType(ctx context.Context) (Type, error)
}

// QuotaCloud is the part of Cloud about quotas.
type QuotaCloud interface {
	// Quotas reads the quotas of the project by their names in Cinder: gigabytes, volumes, per_volume_gigabytes, gigabytes_TYPE, ….
	// GET /v3/os-quota-sets/{project}?usage=true.
	Quotas(ctx context.Context) (map[string]Quota, error)
}

// ZoneCloud is the part of Cloud about availability zones.
type ZoneCloud interface {
	// VolumeZones reads the names of the volume zones, including those that are not available now. GET /v3/os-availability-zone.
	VolumeZones(ctx context.Context) ([]string, error)
}
