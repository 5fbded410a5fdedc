package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// novaProducts are the product names that Nova's libvirt driver gives a server, whose hardware UUID is the server's id then (Nova,
// nova/version.py; "OpenStack Compute" is the packages of Red Hat). Other hypervisors and bare metal have UUIDs of their own.
var novaProducts = []string{"OpenStack Nova", "OpenStack Compute"}

// dmi reads the server's id from what its firmware says of the hardware. It knows no zone.
type dmi struct{ host *Host }

func (d dmi) read(context.Context) (Identity, error) {
	product, err := d.field("product_name")
	if err != nil {
		return Identity{}, err
	}
	if !slices.Contains(novaProducts, product) {
		return Identity{}, volume.Errorf(volume.Unavailable, "the hardware is %q and none of %s, so its UUID need not be the server's",
			shorten(product), strings.Join(novaProducts, ", "))
	}
	uuid, err := d.field("product_uuid")
	if err != nil {
		return Identity{}, err
	}
	if uuid = strings.ToLower(uuid); !isUUID(uuid) {
		return Identity{}, volume.Errorf(volume.Unavailable, "the hardware's UUID %q is none", shorten(uuid))
	}
	return Identity{Server: volume.ServerID(uuid)}, nil
}

func (d dmi) field(name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(d.host.sys, "class", "dmi", "id", name))
	if err != nil {
		return "", volume.Errorf(volume.Unavailable, "read what the hardware is: %w", err)
	}
	return plainSerial(content), nil
}

// checkServer refuses an id that the hardware contradicts. The metadata service answers over plain HTTP, so whoever can answer in its place
// could give this node another server's id, and the cluster would attach that server's volumes by it. Hardware that is not Nova's, or does
// not tell its UUID, contradicts nothing.
func (d dmi) checkServer(place string, id volume.ServerID) error {
	hardware, err := d.read(context.Background()) // files of sysfs, which hold nobody
	if err != nil {
		return nil
	}
	uuid := string(hardware.Server)
	serial, _ := d.field("product_serial")
	if said := strings.ToLower(string(id)); said == uuid || said == otherByteOrder(uuid) || said == strings.ToLower(serial) {
		return nil
	}
	return volume.Errorf(volume.Conflict, "%s says that this server is %s, and the hardware, which Nova made, says that it is %s (product_uuid): the node is not registered. "+
		"Find out what answers in place of %s; if the hardware is right, `search-order = dmi` in [Metadata] of cloud.conf goes without it, and without a zone",
		place, id, uuid, place)
}

// otherByteOrder gives a UUID as firmware shows it that keeps its first three fields in the other byte order (SMBIOS 3.0, 7.2.1).
func otherByteOrder(uuid string) string {
	swapped := []byte(uuid)
	for _, field := range [][2]int{{0, 8}, {9, 13}, {14, 18}} {
		part := uuid[field[0]:field[1]]
		for at := 0; at < len(part); at += 2 {
			copy(swapped[field[0]+at:], part[len(part)-at-2:len(part)-at])
		}
	}
	return string(swapped)
}
