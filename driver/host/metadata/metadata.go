// Package metadata reads which Nova server this machine is, from the config drive, the metadata service or the
// hardware.
//
// The metadata service answers over plain HTTP, and a config drive is a disk. So every size that they name is bounded,
// and an ID that contradicts the hardware is refused. A volume is never taken for a config drive: its tenant writes
// what is on it.
package metadata

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The sources of the metadata. The first two have the names of upstream's cloud.conf; the third is ours.
const (
	ConfigDrive     = "configDrive"
	MetadataService = "metadataService"
	DMI             = "dmi" // what the firmware reports about the hardware: the server ID, no zone
)

// Sources are the sources in their default order.
var Sources = []string{ConfigDrive, MetadataService, DMI}

// Server is which Nova server this is, from meta_data.json (Nova, "Metadata service").
type Server struct {
	ID     volume.ServerID // uuid
	Zone   string          // availability_zone, as Nova spells it; empty if the source has none
	Name   string          // name, for messages
	Source string          // one of Sources
	// Skipped says why the sources before that one failed, for messages.
	Skipped string
}

// Options says where the metadata is. The zero value is the real machine.
type Options struct {
	// ConfigDriveDir is a directory that already holds the content of the config drive. If it is empty, the driver
	// reads the disk with the label config-2.
	ConfigDriveDir string
	// URL is the address of the metadata service, without /openstack/latest/meta_data.json. If it is empty, the driver
	// tries http://169.254.169.254 and then http://[fe80::a9fe:a9fe] on each interface.
	URL string
	// SearchOrder lists the sources to ask, in this order; Sources if empty. It is [Metadata] search-order of
	// upstream's cloud.conf.
	SearchOrder []string
	Transport   http.RoundTripper // requests the metadata service; one without a proxy if nil

	SysRoot string       // sysfs; /sys if empty
	Disks   *disk.Finder // the disks of this machine
}

// Reader reads the metadata and keeps it.
type Reader struct {
	order   []string
	sources map[string]func(context.Context) (Server, error)
	dmi     dmi
	disks   *disk.Finder
	drive   string // ConfigDriveDir

	drives   singleflight.Group[struct{}, configDrive] // the search for one that is in progress
	mountFAT func(node string) ([]byte, error)
	// known is a lock that holds the answer while nobody reads it. A waiter on it ends with its context, unlike one on
	// a mutex.
	known chan Server
}

// New returns a Reader. It reads nothing yet.
func New(o Options) *Reader {
	r := &Reader{order: o.SearchOrder, dmi: dmi{filepath.Join(cmp.Or(o.SysRoot, "/sys"), "class", "dmi", "id")}, disks: o.Disks, drive: o.ConfigDriveDir, mountFAT: readFAT, known: make(chan Server, 1)}
	r.sources = map[string]func(context.Context) (Server, error){
		ConfigDrive: r.readConfigDrive, MetadataService: newService(o).read, DMI: r.dmi.read,
	}
	if len(r.order) == 0 {
		r.order = Sources
	}
	r.known <- Server{}
	return r
}

// Server returns which server this is, from the first source of the search order that answers. It keeps the first
// answer with a zone, since neither changes while the server runs. It does not keep an answer without a zone: another
// source may have the zone later.
//
// Errors: Unavailable with the reason of each source, Conflict if the hardware contradicts the answer, Canceled,
// DeadlineExceeded.
func (r *Reader) Server(ctx context.Context) (Server, error) {
	var known Server
	select {
	case known = <-r.known:
	case <-ctx.Done():
		return Server{}, volume.Interrupted(ctx, "read the metadata of this server: another call is still reading it").Cause(cause.NodeIdentity)
	}
	defer func() { r.known <- known }()
	if known.ID != "" {
		return known, nil
	}
	found, err := r.search(ctx)
	if err == nil && found.Zone != "" {
		known = found
	}
	return found, err
}

func (r *Reader) search(ctx context.Context) (Server, error) {
	var reasons []string
	for _, source := range r.order {
		read, ok := r.sources[source]
		if !ok {
			reasons = append(reasons, fmt.Sprintf("%q in the search order is not one of %s", source, strings.Join(Sources, ", ")))
			continue
		}
		found, err := read(ctx)
		if err == nil {
			if err := r.dmi.checkServer(source, found.ID); err != nil {
				return Server{}, err // and no other source is asked: an attacker may have made the earlier ones fail
			}
			found.Source, found.Skipped = source, strings.Join(reasons, "; ")
			return found, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", source, err))
		if ctx.Err() != nil {
			return Server{}, volume.Interrupted(ctx, "read the metadata of this server: %s", strings.Join(reasons, "; ")).Cause(cause.NodeIdentity)
		}
	}
	return Server{}, volume.Errorf(volume.Unavailable, "read the metadata of this server: no source of the search order answers: %s", strings.Join(reasons, "; ")).Cause(cause.NodeIdentity)
}

// parseMetadata parses OpenStack's meta_data.json. It ignores keys that it does not know.
func parseMetadata(content []byte) (Server, error) {
	var m struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
		Zone string `json:"availability_zone"`
	}
	d := json.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&m); err != nil {
		return Server{}, volume.Errorf(volume.Failed, "parse meta_data.json: it is not that of OpenStack: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Server{}, volume.Errorf(volume.Failed, "parse meta_data.json: text follows its end")
	}
	if !contract.IsUUID(m.UUID) {
		return Server{}, volume.Errorf(volume.Failed, "parse meta_data.json: its uuid %.200q is not a server ID", m.UUID)
	}
	return Server{ID: volume.ServerID(m.UUID), Zone: cut(m.Zone), Name: cut(m.Name)}, nil
}

// cut bounds a text of the metadata service, in whose place somebody else may answer. Those of Nova have at most 255 characters.
func cut(text string) string { return fmt.Sprintf("%.255s", text) }

// metadataPath is where both the config drive and the metadata service have the newest form of the metadata.
const metadataPath = "openstack/latest/meta_data.json"

// metadataLimit bounds the size of meta_data.json in bytes: user metadata is at most some tens of KiB.
const metadataLimit = 1 << 20

// readBounded reads all of r, which may not be longer than metadataLimit.
func readBounded(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, metadataLimit+1))
	if err == nil && len(content) > metadataLimit {
		err = volume.Errorf(volume.Failed, "meta_data.json is longer than %d bytes", metadataLimit)
	}
	return slices.Clip(content), err
}
