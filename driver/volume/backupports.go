package volume

import "context"

// A snapshot handle names a Cinder snapshot or a Cinder backup: VolumeSnapshots of a class of type backup have the latter. Both are
// a Snapshot here, and every status that a backup can be in is one of a snapshot's too, with the same meaning.

// BackupCloud is what the domain asks of Cinder about backups, by the rules of Cloud, which includes it.
type BackupCloud interface {
	// CreateBackup asks Cinder for a backup and returns its id; it is creating then. POST /v3/backups (Cinder API reference,
	// "Create a backup"; 3.43 has its metadata, 3.51 its zone).
	CreateBackup(ctx context.Context, o BackupOptions) (SnapshotID, error)
	// Backup reads one backup, but not its metadata. GET /v3/backups/{id} (Cinder API reference, "Show backup detail").
	Backup(ctx context.Context, id SnapshotID) (Snapshot, error)
	// BackupsNamed reads every backup of the project with exactly that name; names are not unique in Cinder.
	// GET /v3/backups/detail?name=… (3.43).
	BackupsNamed(ctx context.Context, name string) ([]Snapshot, error)
	// Backups reads one page of the project's backups in Cinder's order, created_at descending. GET /v3/backups/detail (3.43).
	Backups(ctx context.Context, page SnapshotPage) ([]Snapshot, error)
	// DeleteBackup asks Cinder to delete one backup. NotFound is also the answer where no cinder-backup could do it.
	// DELETE /v3/backups/{id}.
	DeleteBackup(ctx context.Context, id SnapshotID) error
}

// BackupOptions is what a new backup is made with.
type BackupOptions struct {
	Name        string
	Volume      ID
	Snapshot    SnapshotID // of that volume, whose data it holds
	Zone        string     // of the cinder-backup that makes it; empty means any
	Incremental bool       // it holds what changed since the volume's latest backup
	Description string
	Metadata    map[string]string
}
