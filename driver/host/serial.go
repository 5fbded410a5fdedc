package host

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// shortSerial is what virtio-blk and NVMe keep of a serial: the first 20 bytes (virtio 1.2 section 5.2.6.1, NVMe base 5.17.2.1).
const shortSerial = 20

// serialFiles are the places of a disk's serial below /sys/block/NAME, with what makes text of them.
var serialFiles = []struct {
	path  string
	parse func([]byte) string
}{
	{"serial", plainSerial},          // virtio-blk
	{"device/vpd_pg80", unitSerial},  // SCSI
	{"device/serial", plainSerial},   // NVMe
	{"device/wwid", worldWideSerial}, // VMware: naa. and the id without its dashes
}

// serials reads every serial the disk name reports about itself. A missing or unreadable file is no serial: QEMU's SCSI disks
// answer EINVAL to a read of wwid.
func (h *Host) serials(name string) []string {
	var found []string
	for _, f := range serialFiles {
		content, err := os.ReadFile(filepath.Join(h.sys, "block", name, f.path))
		if err != nil {
			continue
		}
		if s := f.parse(content); s != "" && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}

func plainSerial(content []byte) string { return strings.Trim(string(content), " \t\n\x00") }

// unitSerial reads a SCSI unit serial number page (SPC-4, 7.8.15): a header of four bytes, the length in the last two.
func unitSerial(page []byte) string {
	if len(page) < 4 || page[1] != 0x80 {
		return ""
	}
	body := page[4:]
	if n := int(binary.BigEndian.Uint16(page[2:4])); n < len(body) {
		body = body[:n]
	}
	return plainSerial(body)
}

// worldWideSerial reads a wwid of the form naa.<32 hexadecimal digits> as the UUID those digits are; others say nothing.
func worldWideSerial(content []byte) string {
	hex, ok := strings.CutPrefix(plainSerial(content), "naa.")
	if !ok || len(hex) != 32 {
		return ""
	}
	return strings.ToLower(strings.Join([]string{hex[:8], hex[8:12], hex[12:16], hex[16:20], hex[20:]}, "-"))
}

// isSerialOf reports whether serial is what a disk of volume id shows: the id, or all of it that fits. id has 36 characters.
func isSerialOf(serial string, id volume.ID) bool {
	return serial == string(id) || serial == string(id[:shortSerial])
}

// checkID refuses what is no UUID. Cinder's ids are, so anything else names no volume; and a short one would match anything.
func checkID(id volume.ID) error {
	if len(id) != 36 {
		return noSuchVolume(id)
	}
	for i, c := range []byte(id) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash && c != '-' || !dash && !hex {
			return noSuchVolume(id)
		}
	}
	return nil
}

func noSuchVolume(id volume.ID) error {
	return volume.Errorf(volume.NotFound, "volume %q does not exist: a Cinder volume id is a UUID", shorten(string(id)))
}

// shorten keeps a text that came from outside from filling a message.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
}
