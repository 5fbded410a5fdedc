// Package volume is the vocabulary of the domain: volumes, snapshots, attachments and servers, the meaning of their statuses, and the kinds of
// errors. It declares the interface through which the other packages call the cloud.
//
// It knows neither gRPC nor HTTP, calls nothing and keeps nothing in memory.
package volume

import (
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// ID is the UUID of a Cinder volume; the volumeHandle of a PersistentVolume holds it.
type ID string

// ParseID is an ID of a request, as Cinder writes it. The database of Cinder accepts capitals too, so every comparison of the driver would have to.
func ParseID(id string) ID { return ID(strings.ToLower(id)) }

// Exists reports whether a volume can have this ID: the canonical text of a UUID. Any other text means "does not exist", and the driver never
// puts it into a URL.
func (id ID) Exists() bool { return contract.IsUUID(string(id)) }

// Volume is a Cinder volume (Cinder API reference, "Show a volume's details").
type Volume struct {
	ID          ID
	Name        string
	Status      Status
	Size        Size
	Zone        string // the volume zone of the volume, which may differ from the requested one
	Type        string // the name of its volume type
	Multiattach bool
	Bootable    bool
	Encrypted   bool
	SnapshotID  string // the snapshot that it was created from, if any
	SourceID    ID     // the volume that it was cloned from, if any
	BackupID    string // the backup that it was restored from, if any; final only after the restore
	RestoreFrom string // the backup that the driver must restore into it before anybody uses it; empty if it has all its data
	Description string
	Metadata    map[string]string
	Attachments []Attachment
	CreatedAt   time.Time // by the clock of Cinder, like UpdatedAt
	UpdatedAt   time.Time // zero until the first change
}

// CheckRestored returns Busy for a volume into which the driver still has to restore a backup. Verb is what the caller wants to do.
func (v Volume) CheckRestored(verb string) error {
	if v.RestoreFrom == "" {
		return nil
	}
	return Errorf(Busy, "volume %s does not have the data of backup %s yet. The driver restores it while CreateVolume is called for %q. If nobody needs the volume, delete it in Cinder",
		v.ID, v.RestoreFrom, v.Name).Cause(cause.CreateRestore).Op(verb)
}

// NoVolume is the error of a volume that does not exist.
func NoVolume(id ID) *Error {
	return Errorf(NotFound, "volume %q does not exist", id).Cause(cause.VolumeMissing)
}
