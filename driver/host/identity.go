package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// The places that tell which server this is: the first two as upstream's cloud.conf names them, the third is ours.
const (
	ConfigDrive     = "configDrive"
	MetadataService = "metadataService"
	DMI             = "dmi" // what the firmware says of the hardware: the server's id, no zone
)

// Places lists the places in the order in which they are asked when nobody says.
var Places = []string{ConfigDrive, MetadataService, DMI}

// Identity is which server this is, from meta_data.json (Nova, "Metadata service").
type Identity struct {
	Server volume.ServerID // uuid
	Zone   string          // availability_zone, as Nova spells it; empty when it names none
	Name   string          // name, for messages
	Place  string          // what told it, of Places
	// Silent says why the places before that one did not, for messages.
	Silent string
}

// Identity reads which server this is from the first place of the search order that says it. The first answer with a zone is kept,
// since neither changes while the server runs; one without is not, since another place may tell the zone later. Errors: Unavailable
// with the reason of each place, Conflict when the hardware says otherwise, Canceled, DeadlineExceeded.
func (h *Host) Identity(ctx context.Context) (Identity, error) { return h.identity.get(ctx) }

// identity keeps the answer. The channel is the lock: it holds the answer while nobody reads it.
type identity struct {
	order   []string
	sources map[string]func(context.Context) (Identity, error)
	// checkServer refuses an id from a place that the hardware contradicts.
	checkServer func(place string, id volume.ServerID) error
	known       chan Identity
}

func newIdentity(o Options, h *Host) *identity {
	i := &identity{
		order: o.SearchOrder,
		sources: map[string]func(context.Context) (Identity, error){
			ConfigDrive:     configDrive{dir: o.ConfigDriveDir, host: h}.read,
			MetadataService: newMetadataService(o).read,
			DMI:             dmi{host: h}.read,
		},
		checkServer: dmi{host: h}.checkServer,
		known:       make(chan Identity, 1),
	}
	if len(i.order) == 0 {
		i.order = Places
	}
	i.known <- Identity{}
	return i
}

func (i *identity) get(ctx context.Context) (Identity, error) {
	var known Identity
	select {
	case known = <-i.known:
	case <-ctx.Done():
		return Identity{}, ended(ctx, "this server's metadata is still being read")
	}
	defer func() { i.known <- known }()
	if known.Server != "" {
		return known, nil
	}
	found, err := i.search(ctx)
	if err == nil && found.Zone != "" {
		known = found
	}
	return found, err
}

func (i *identity) search(ctx context.Context) (Identity, error) {
	var reasons []string
	for _, place := range i.order {
		read, ok := i.sources[place]
		if !ok {
			reasons = append(reasons, fmt.Sprintf("%q in the search order is none of %s", place, strings.Join(Places, ", ")))
			continue
		}
		found, err := read(ctx)
		if err == nil {
			if err := i.checkServer(place, found.Server); err != nil {
				return Identity{}, err // and no other place is asked: somebody may have silenced those
			}
			found.Place, found.Silent = place, strings.Join(reasons, "; ")
			return found, nil
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", place, err))
		if ctx.Err() != nil {
			return Identity{}, ended(ctx, "which server this is: %s", strings.Join(reasons, "; "))
		}
	}
	return Identity{}, volume.Errorf(volume.Unavailable, "which server this is cannot be found out: %s", strings.Join(reasons, "; "))
}

// parseMetadata reads OpenStack's meta_data.json. Keys it does not know are OpenStack's business.
func parseMetadata(content []byte) (Identity, error) {
	var m struct {
		UUID string `json:"uuid"`
		Name string `json:"name"`
		Zone string `json:"availability_zone"`
	}
	d := json.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&m); err != nil {
		return Identity{}, volume.Errorf(volume.Failed, "meta_data.json is not OpenStack's: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Identity{}, volume.Errorf(volume.Failed, "meta_data.json goes on after its end")
	}
	if checkID(volume.ID(m.UUID)) != nil {
		return Identity{}, volume.Errorf(volume.Failed, "meta_data.json has the uuid %q, which is no server's", shorten(m.UUID))
	}
	return Identity{Server: volume.ServerID(m.UUID), Zone: m.Zone, Name: m.Name}, nil
}

// metadataPath is where both places keep the newest form of the metadata.
const metadataPath = "openstack/latest/meta_data.json"

// metadataLimit bounds what is read of it: user metadata is at most some tens of KiB.
const metadataLimit = 1 << 20

// readBounded reads all of r, which may not be longer than metadataLimit.
func readBounded(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, metadataLimit+1))
	if err == nil && len(content) > metadataLimit {
		err = volume.Errorf(volume.Failed, "meta_data.json is longer than %d bytes", metadataLimit)
	}
	return slices.Clip(content), err
}
