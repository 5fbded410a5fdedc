package disk

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// shortSerial is how many bytes of a serial virtio-blk and NVMe keep (virtio 1.2 section 5.2.6.1, NVMe base 5.17.2.1).
const shortSerial = 20

// serialFiles are the files below /sys/block/NAME that hold the serial of a disk, with their formats.
var serialFiles = []struct {
	path    string
	parse   func([]byte) string
	request bool // a read sends a request to the disk itself
	whole   bool // the file holds the whole serial
}{
	{path: "serial", parse: trimLine, request: true},           // virtio-blk
	{path: "device/vpd_pg80", parse: unitSerial},               // SCSI; see confirmLUN
	{path: "device/serial", parse: trimLine},                   // NVMe
	{path: "device/subsysnqn", parse: qemuSerial, whole: true}, // NVMe of QEMU
	{path: "device/wwid", parse: worldWideSerial},              // VMware: naa. and the ID without dashes; see confirmLUN
}

// unitSerial parses a SCSI unit serial number page (SPC-4, 7.8.15): a header of four bytes, with the length in the last
// two.
func unitSerial(page []byte) string {
	if len(page) < 4 || page[1] != 0x80 {
		return ""
	}
	body := page[4:]
	if n := int(binary.BigEndian.Uint16(page[2:4])); n < len(body) {
		body = body[:n]
	}
	return trimLine(body)
}

// worldWideSerial parses a wwid of the form naa.<32 hexadecimal digits> as a UUID. It returns nothing for other forms.
func worldWideSerial(content []byte) string {
	hex, ok := strings.CutPrefix(trimLine(content), "naa.")
	if !ok || len(hex) != 32 {
		return ""
	}
	return strings.ToLower(strings.Join([]string{hex[:8], hex[8:12], hex[12:16], hex[16:20], hex[20:]}, "-"))
}

// qemuPrefix begins the name of an NVMe subsystem of QEMU; the serial follows (QEMU, hw/nvme/subsys.c).
const qemuPrefix = "nqn.2019-08.org.qemu:"

// qemuSerial parses the name of an NVMe subsystem, which holds the whole serial where the serial field holds only 20
// bytes. It returns nothing for subsystems of other vendors: a UUID in their names is that of the subsystem.
func qemuSerial(content []byte) string {
	serial, ok := strings.CutPrefix(trimLine(content), qemuPrefix)
	if !ok || !contract.IsUUID(serial) {
		return ""
	}
	return serial
}

// Serial is what a disk reports about itself.
type Serial struct {
	Values []string
	// Whole is the one of Values that is known to be complete. If it is set, only it counts.
	Whole string
	// Known is true once the disk has answered, even with no serial.
	Known bool
	// Refused is set if the serial does not count: the kernel has it from an earlier scan, and the disk itself does not
	// confirm it.
	Refused Refusal
	// Unresponsive is since when the disk has not answered; zero if it answers. Values are then those of its last
	// answer.
	Unresponsive time.Time
}

// Refusal is why the serial of a SCSI disk does not count. The zero value says that it counts. If neither NoAnswer nor
// Replaced is set, the disk itself says that it is not the one of which the kernel has the serial.
type Refusal struct {
	Reason string
	// NoAnswer is true if the disk gave no usable answer, so that the serial may be right.
	NoAnswer bool
	// Replaced is true if the LUN is another volume by now, and the disk is still in use as the one of the serial.
	Replaced bool
}

// Match reports whether the disk is that of the volume, and by which serial.
func (s Serial) Match(id volume.ID) (serial string, ok bool) {
	if s.Refused.Reason != "" {
		return "", false
	}
	return s.matchCopy(id)
}

// matchCopy is Match without regard to Refused.
func (s Serial) matchCopy(id volume.ID) (serial string, ok bool) {
	if s.Whole != "" {
		return s.Whole, s.Whole == string(id)
	}
	i := slices.IndexFunc(s.Values, func(value string) bool { return isSerialOf(value, id) })
	if i < 0 {
		return "", false
	}
	return s.Values[i], true
}

// IsVolume reports whether the serial is that of a Cinder volume.
func (s Serial) IsVolume() bool { return slices.ContainsFunc(s.Values, isVolumeSerial) }

// Answers reports whether the disk answers.
func (s Serial) Answers() bool { return s.Unresponsive.IsZero() }

func (s Serial) has(serial string) bool {
	return s.Refused.Reason == "" && slices.Contains(s.Values, serial)
}

// String is for messages.
func (s Serial) String() string {
	text := fmt.Sprintf("serial %q", strings.Join(s.Values, " "))
	switch {
	case s.Answers() && s.Refused.Reason != "":
		return text + ", which does not count: " + s.Refused.Reason
	case s.Answers():
		return text
	case s.Known:
		return text + " earlier, no answer since " + s.Unresponsive.Format(time.RFC3339)
	}
	return "no answer since " + s.Unresponsive.Format(time.RFC3339)
}

// public is the serial for a message. Tenants read that in events, so it has no serial of a disk that is no volume.
func (s Serial) public() Serial {
	s.Values = slices.Clone(s.Values)
	for i, v := range s.Values {
		if v != "" && !isVolumeSerial(v) {
			s.Values[i] = "not of a volume"
		}
	}
	return s
}

// isSerialOf reports whether a disk of the volume shows this serial: the ID, or its first 20 characters.
func isSerialOf(serial string, id volume.ID) bool {
	return contract.IsUUID(string(id)) && (serial == string(id) || serial == string(id[:shortSerial]))
}

// isVolumeSerial reports whether a serial is the ID of a volume, or its first 20 characters.
func isVolumeSerial(serial string) bool {
	const filler = "00000000-0000-0000-0000-000000000000"
	return contract.IsUUID(serial) || len(serial) == shortSerial && contract.IsUUID(serial+filler[shortSerial:])
}

// CheckID returns NotFound for an ID that is not a UUID. Cinder IDs are UUIDs, so such a volume does not exist; and a
// short ID would match any serial.
func CheckID(id volume.ID) error {
	if !contract.IsUUID(string(id)) {
		return volume.Errorf(volume.NotFound, "volume %.200q does not exist: a Cinder volume ID is a UUID", string(id))
	}
	return nil
}
