package host

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// shortSerial is what virtio-blk and NVMe keep of a serial: the first 20 bytes (virtio 1.2 section 5.2.6.1, NVMe base 5.17.2.1).
const shortSerial = 20

// serialFiles are the places of a disk's serial below /sys/block/NAME, with what makes text of them.
var serialFiles = []struct {
	path    string
	parse   func([]byte) string
	request bool // a read asks the disk itself
	whole   bool // nothing was cut from what is there
}{
	{path: "serial", parse: plainSerial, request: true},        // virtio-blk
	{path: "device/vpd_pg80", parse: unitSerial},               // SCSI
	{path: "device/serial", parse: plainSerial},                // NVMe
	{path: "device/subsysnqn", parse: qemuSerial, whole: true}, // NVMe of QEMU
	{path: "device/wwid", parse: worldWideSerial},              // VMware: naa. and the id without its dashes
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

// qemuPrefix begins the name of an NVMe subsystem of QEMU's; the serial follows (QEMU, hw/nvme/subsys.c).
const qemuPrefix = "nqn.2019-08.org.qemu:"

// qemuSerial reads the name of an NVMe subsystem, which holds the whole serial where the serial's own field holds 20 bytes of it.
// Names that others gave say nothing: the UUID in them is the subsystem's own.
func qemuSerial(content []byte) string {
	serial, ok := strings.CutPrefix(plainSerial(content), qemuPrefix)
	if !ok || !isUUID(serial) {
		return ""
	}
	return serial
}

// isSerialOf reports whether serial is what a disk of volume id shows: the id, or all of it that fits. What is no UUID is no id.
func isSerialOf(serial string, id volume.ID) bool {
	return isUUID(string(id)) && (serial == string(id) || serial == string(id[:shortSerial]))
}

// checkID refuses what is no UUID. Cinder's ids are, so anything else names no volume; and a short one would match anything.
func checkID(id volume.ID) error {
	if !isUUID(string(id)) {
		return noSuchVolume(id)
	}
	return nil
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash && c != '-' || !dash && !hex {
			return false
		}
	}
	return true
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
