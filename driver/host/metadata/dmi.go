package metadata

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// novaProducts are the product names that Nova's libvirt driver gives a server (Nova, nova/version.py). The packages of
// Red Hat use "OpenStack Compute". The hardware UUID of such a server is its ID. Other hypervisors and bare metal have
// UUIDs of their own.
var novaProducts = []string{"OpenStack Nova", "OpenStack Compute"}

// dmi reads the server ID from what the firmware reports about the hardware. It has no zone.
type dmi struct{ dir string }

func (d dmi) read(context.Context) (Server, error) {
	product, err := d.field("product_name")
	if err != nil {
		return Server{}, err
	}
	if !slices.Contains(novaProducts, product) {
		return Server{}, volume.Errorf(volume.Unavailable, "the product name of the hardware is %.200q and not one of %s, so its UUID need not be the server ID",
			product, strings.Join(novaProducts, ", "))
	}
	uuid, err := d.field("product_uuid")
	if err != nil {
		return Server{}, err
	}
	if uuid = strings.ToLower(uuid); !contract.IsUUID(uuid) {
		return Server{}, volume.Errorf(volume.Unavailable, "the hardware UUID %.200q is not a UUID", uuid)
	}
	return Server{ID: volume.ServerID(uuid)}, nil
}

func (d dmi) field(name string) (string, error) {
	line, err := disk.ReadLine(filepath.Join(d.dir, name))
	if err != nil {
		return "", volume.Errorf(volume.Unavailable, "read the hardware description: %w", err)
	}
	return line, nil
}

// checkServer returns Conflict for an ID that the hardware contradicts. The metadata service answers over plain HTTP,
// so an attacker may answer in its place with the ID of another server. The cluster would then attach the volumes of
// that server by it. Hardware that is not Nova's, or has no UUID, contradicts nothing.
func (d dmi) checkServer(source string, id volume.ServerID) error {
	hardware, err := d.read(context.Background()) // files of sysfs, which never block
	if err != nil {
		return nil
	}
	uuid := string(hardware.ID)
	serial, _ := d.field("product_serial")
	if got := strings.ToLower(string(id)); got == uuid || got == otherByteOrder(uuid) || got == strings.ToLower(serial) {
		return nil
	}
	return volume.Errorf(volume.Conflict, "%s reports that this server is %s, but the hardware of Nova reports %s (product_uuid); the driver does not register the node. "+
		"Find out what answers in place of %s. If the hardware is right, set search-order = dmi in [Metadata] of cloud.conf; the driver then has no zone",
		source, id, uuid, source).Cause(cause.NodeMismatch)
}

// otherByteOrder returns a UUID as firmware shows it that has its first three fields in the other byte order (SMBIOS
// 3.0, 7.2.1).
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
