package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// ServerID is the UUID of a Nova server; the node ID of a CSINode holds it.
type ServerID string

// Exists reports whether a server can have this ID, as ID.Exists does for a volume.
func (id ServerID) Exists() bool { return contract.IsUUID(string(id)) }

// ParseServerID does for a server what ParseID does for a volume.
func ParseServerID(id string) ServerID { return ServerID(strings.ToLower(id)) }

// Server is a Nova server (Nova API reference, "Show server details").
type Server struct {
	ID        ServerID
	Name      string
	Status    string // ACTIVE, SHUTOFF, ERROR, …
	TaskState string // empty if no operation is in progress
	Zone      string // compute zone
	Metadata  map[string]string
	Tags      []string
}

// ServerMetadata is what a server must have, in its metadata or as tags KEY=VALUE. HyperShift gives the servers of a hosted cluster a tag.
type ServerMetadata map[string]string

// Missing returns the first pair that s has neither in its metadata nor as a tag, as KEY=VALUE; empty if it has all.
func (m ServerMetadata) Missing(s Server) string {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pair := key + "=" + m[key]
		if value, has := s.Metadata[key]; (!has || value != m[key]) && !slices.Contains(s.Tags, pair) {
			return pair
		}
	}
	return ""
}

// NoServer is the error of a server that does not exist.
func NoServer(id ServerID) *Error {
	return Errorf(NotFound, "server %q does not exist", id).Cause(cause.ServerMissing)
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

// AttachStatus is the status of an attachment in Cinder (objects/fields.py, VolumeAttachStatus). A detached or deleted attachment does not
// exist any more.
type AttachStatus string

// The attach statuses.
const (
	AttachmentNone           AttachStatus = ""
	AttachmentReserved       AttachStatus = "reserved"  // the API of Nova has claimed the volume
	AttachmentAttaching      AttachStatus = "attaching" // the backend has connected it to the host of the server
	AttachmentAttached       AttachStatus = "attached"  // the server has it
	AttachmentDetaching      AttachStatus = "detaching"
	AttachmentErrorAttaching AttachStatus = "error_attaching"
	AttachmentErrorDetaching AttachStatus = "error_detaching"
	AttachmentHidden         AttachStatus = "hidden" // not of Cinder: the cloud does not show its attachments
)

// Same reports whether both are the same attachment in the same status. It ignores Host and Device, which not every list shows.
func (a Attachment) Same(b Attachment) bool {
	return a.ID == b.ID && a.Volume == b.Volume && a.Server == b.Server && a.Status == b.Status
}

// Holder names the server or host that has the volume, for errors.
func (a Attachment) Holder() string {
	if a.Server.Exists() {
		return "server " + string(a.Server)
	}
	host := "a host"
	if a.Host != "" {
		host = "host " + a.Host
	}
	return host + ", which is no Nova server (attachment " + a.ID + ")"
}

// AttachedTo reports whether Cinder lists an attachment of v to server.
func (v Volume) AttachedTo(server ServerID) bool {
	return slices.ContainsFunc(v.Attachments, func(a Attachment) bool { return a.Server == server })
}

// Holders names the servers and hosts that have v, for errors.
func (v Volume) Holders() string {
	names := make([]string, len(v.Attachments))
	for i, a := range v.Attachments {
		names[i] = a.Holder()
	}
	return Few(names)
}

// Few joins names for a message. The cloud chooses how many there are, so a message has the first few and the number of the rest.
func Few(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
