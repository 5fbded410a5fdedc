// Package volume is the vocabulary of the domain: what a volume, a snapshot, an attachment and a server are, what their statuses mean, the
// kinds of errors, and the ports through which the other packages ask the cloud.
//
// It knows neither gRPC nor HTTP, calls nothing and keeps nothing.
package volume

import (
	"strings"
	"time"
)

// ID is the UUID of a Cinder volume, as it stands in a PersistentVolume's volumeHandle.
type ID string

// ServerID is the UUID of a Nova server, as it stands in a CSINode's nodeID.
type ServerID string

// Status is a Cinder volume's status (Cinder API reference, "Volume statuses").
type Status string

// The statuses the domain names in code; the tables of status.go list every one Cinder has.
const (
	Creating  Status = "creating"
	Available Status = "available"
	Reserved  Status = "reserved"
	Attaching Status = "attaching"
	Detaching Status = "detaching"
	InUse     Status = "in-use"
	Deleting  Status = "deleting"
	ErrorSt   Status = "error"
)

// Exists reports whether id can be that of a volume at all: the canonical text of a UUID. Anything else means "does not exist"
// and is never put into a URL.
func (id ID) Exists() bool { return isUUID(string(id)) }

// Exists reports whether id can be that of a server at all, as ID.Exists does.
func (id ServerID) Exists() bool { return isUUID(string(id)) }

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return true
}

// Volume is what Cinder says of one volume.
type Volume struct {
	ID          ID
	Name        string
	Status      Status
	Size        Size
	Zone        string // the volume zone it really is in, which may not be the one asked for
	Type        string // the name of its volume type
	Multiattach bool
	Bootable    bool
	Encrypted   bool
	SnapshotID  string // the snapshot it was made from, if any
	SourceID    ID     // the volume it was cloned from, if any
	BackupID    string // the backup it was restored from, if any; sure once it is made
	Description string
	Metadata    map[string]string
	Attachments []Attachment
	CreatedAt   time.Time
	UpdatedAt   time.Time // zero until it first changes
}

// Attachment connects a volume to a server. Three lists show attachments:
//   - Volume.Attachments shows the attached ones only (Cinder API reference, "Show a volume's details");
//   - AttachmentCloud shows them in every status, without Host and Device (Cinder API reference, "Attachments", microversion 3.27);
//   - Nova's list for a server shows Volume, Server and Device (Nova API reference, "List volume attachments for an instance").
type Attachment struct {
	ID     string // Cinder's attachment ID; empty in Nova's list
	Volume ID
	Server ServerID     // empty where no Nova server has the volume: a host attached it, or somebody reserved it
	Status AttachStatus // empty in Nova's list
	Host   string       // the compute host of the server, or the host that attached the volume; Cinder shows it to administrators only
	Device string       // the device name that Nova asked the hypervisor for, such as /dev/vdb; a hint only
}

// Same reports whether both are the same attachment in the same status. It ignores Host and Device, which not every list shows.
func (a Attachment) Same(b Attachment) bool {
	return a.ID == b.ID && a.Volume == b.Volume && a.Server == b.Server && a.Status == b.Status
}

// holder is who has the volume, for a sentence.
func (a Attachment) Holder() string {
	if a.Server.Exists() {
		return "server " + string(a.Server)
	}
	host := "a host"
	if a.Host != "" {
		host = "host " + a.Host
	}
	return host + ", no server of Nova's (attachment " + a.ID + ")"
}

// AttachedTo reports whether Cinder lists an attachment of v to server.
func (v Volume) AttachedTo(server ServerID) bool {
	for _, a := range v.Attachments {
		if a.Server == server {
			return true
		}
	}
	return false
}

// Server is what Nova says of one server.
type Server struct {
	ID        ServerID
	Name      string
	Status    string // ACTIVE, SHUTOFF, ERROR, …
	TaskState string // empty when nothing is under way
	Zone      string // compute zone
}

// Holders lists what v is attached to, for a sentence.
func (v Volume) Holders() string {
	names := make([]string, len(v.Attachments))
	for i, a := range v.Attachments {
		names[i] = a.Holder()
	}
	return strings.Join(names, ", ")
}

// NoVolume is the error of a volume that does not exist.
func NoVolume(id ID) *Error { return Errorf(NotFound, "there is no volume %q", id) }

// NoServer is the error of a server that does not exist.
func NoServer(id ServerID) *Error { return Errorf(NotFound, "there is no server %q", id) }

// NoSnapshot is the error of a snapshot or backup that does not exist.
func NoSnapshot(id SnapshotID) *Error { return Errorf(NotFound, "there is no snapshot %q", id) }
