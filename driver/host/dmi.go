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
