package disk

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sgHeader is struct sg_io_hdr (Linux, include/scsi/sg.h).
type sgHeader struct {
	interfaceID    int32
	direction      int32
	commandLength  uint8
	senseLength    uint8
	vectors        uint16
	dataLength     uint32
	data           unsafe.Pointer
	command        unsafe.Pointer
	sense          unsafe.Pointer
	timeout        uint32 // milliseconds
	flags          uint32
	packID         int32
	user           unsafe.Pointer
	status         uint8
	maskedStatus   uint8
	messageStatus  uint8
	senseWritten   uint8
	hostStatus     uint16
	driverStatus   uint16
	residual       int32
	duration, info uint32
}

// reply is what the kernel reports of a command that it sent.
type reply struct {
	status       byte // of SCSI
	host, driver uint16
	sense        []byte
	length       int // of the answer
}

// Inquire implements LUN. It cuts the answer by the length in its header, as the kernel cuts its copy.
func (d blockDevice) Inquire(page byte, size int) ([]byte, error) { return inquire(page, size, d.send) }

// The kernel repeats its own commands, but none that it sends for a program (Linux, scsi_noretry_cmd). One INQUIRY may
// fail because the queue is full or the bus was reset.
const (
	inquiryAttempts = 3
	inquiryPause    = 100 * time.Millisecond
)

func inquire(page byte, size int, send func(command, answer []byte) (reply, error)) ([]byte, error) {
	const (
		inquiry      = 0x12
		vitalProduct = 1
		shortest     = 255
	)
	answer := make([]byte, max(size, shortest))
	command := []byte{inquiry, vitalProduct, page, byte(len(answer) >> 8), byte(len(answer)), 0}
	for attempt := 1; ; attempt++ {
		r, err := send(command, answer)
		if err != nil {
			return nil, fmt.Errorf("INQUIRY of page 0x%x: %w", page, err)
		}
		if r.failed() && r.repeatable() && attempt < inquiryAttempts {
			time.Sleep(inquiryPause)
			continue
		}
		if r.noSuchLUN() {
			return nil, goneError{fmt.Sprintf("INQUIRY of page 0x%x: the disk answers that it has no such LUN or page (sense % x)", page, r.sense)}
		}
		if r.failed() {
			return nil, fmt.Errorf("INQUIRY of page 0x%x: status %#x, host status %#x, driver status %#x, sense % x",
				page, r.status, r.host, r.driver, r.sense)
		}
		return cutPage(answer[:r.length], page)
	}
}

// Status codes and sense keys of SCSI (SAM-5, 5.3.1; SPC-4, 4.5).
const (
	checkCondition = 0x02
	busy           = 0x08
	taskSetFull    = 0x28

	illegalRequest = 0x5
	unitAttention  = 0x6
)

func (r reply) failed() bool { return r.status != 0 || r.transportFailed() }

// transportFailed reports whether the command may not have reached the disk. The driver status 8 says only that there is
// sense data.
func (r reply) transportFailed() bool { return r.host != 0 || r.driver&0x7 != 0 }

func (r reply) repeatable() bool {
	key, _ := r.senseCode()
	return r.transportFailed() || r.status == busy || r.status == taskSetFull || r.status == checkCondition && key == unitAttention
}

// noSuchLUN reports whether the disk says that it has no such LUN: LOGICAL UNIT NOT SUPPORTED. QEMU says INVALID FIELD IN
// CDB (hw/scsi/scsi-bus.c, scsi_target_emulate_inquiry). So does a LUN that never had the page, and that is another than
// the one of which the kernel has the page.
func (r reply) noSuchLUN() bool {
	const notSupported, invalidField = 0x25, 0x24
	key, code := r.senseCode()
	return !r.transportFailed() && r.status == checkCondition && key == illegalRequest && (code == notSupported || code == invalidField)
}

// senseCode returns the sense key and the additional sense code, of the fixed or the descriptor format (SPC-4, 4.5).
func (r reply) senseCode() (key, code byte) {
	if len(r.sense) == 0 {
		return 0, 0
	}
	switch format := r.sense[0] & 0x7f; {
	case (format == 0x70 || format == 0x71) && len(r.sense) > 12:
		return r.sense[2] & 0xf, r.sense[12]
	case (format == 0x72 || format == 0x73) && len(r.sense) > 2:
		return r.sense[1] & 0xf, r.sense[2]
	}
	return 0, 0
}

// goneError is fs.ErrNotExist with a text of its own.
type goneError struct{ text string }

func (e goneError) Error() string { return e.text }

func (goneError) Is(target error) bool { return target == fs.ErrNotExist }

// send sends a command that reads from the disk.
//
// The timeout is that of the kernel for its own commands. After a shorter one the kernel would reset a disk that is only
// slow.
func (d blockDevice) send(command, answer []byte) (reply, error) {
	const (
		requestSGIO   = 0x2285
		fromDevice    = -3
		kernelTimeout = 30_000
	)
	sense := make([]byte, 32)
	var pins runtime.Pinner // the kernel follows the pointers
	defer pins.Unpin()
	pins.Pin(&answer[0])
	pins.Pin(&command[0])
	pins.Pin(&sense[0])
	header := sgHeader{
		interfaceID: 'S', direction: fromDevice, commandLength: uint8(len(command)), senseLength: uint8(len(sense)),
		dataLength: uint32(len(answer)), data: unsafe.Pointer(&answer[0]), command: unsafe.Pointer(&command[0]),
		sense: unsafe.Pointer(&sense[0]), timeout: kernelTimeout,
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.Fd(), requestSGIO, uintptr(unsafe.Pointer(&header))); errno != 0 {
		return reply{}, errno
	}
	return reply{
		status: header.status, host: header.hostStatus, driver: header.driverStatus,
		sense:  sense[:min(int(header.senseWritten), len(sense))],
		length: min(max(len(answer)-int(header.residual), 0), len(answer)),
	}, nil
}

// cutPage cuts a page by the length in its header. The answer of no LUN, or another page than the one that was asked for,
// is fs.ErrNotExist; one that was cut short says nothing.
func cutPage(answer []byte, page byte) ([]byte, error) {
	const present = 0 // the peripheral qualifier of a LUN that is there (SPC-4, 6.6.2)
	if len(answer) < 4 {
		return nil, fmt.Errorf("INQUIRY of page 0x%x: the answer has only %d bytes", page, len(answer))
	}
	if answer[0]>>5 != present || answer[1] != page {
		return nil, goneError{fmt.Sprintf("INQUIRY of page 0x%x: the answer is of no LUN or another page (% x)", page, answer[:4])}
	}
	return answer[:min(len(answer), 4+int(binary.BigEndian.Uint16(answer[2:])))], nil
}
