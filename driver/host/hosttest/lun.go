package hosttest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// LUN is what a SCSI disk answers now, beside a sysfs with the copies that the kernel made earlier. As in the kernel,
// only a rescan renews the copies (Linux, drivers/scsi/scsi_scan.c, scsi_rescan_device), and a LUN that is gone leaves
// them as they are.
type LUN struct {
	mu       sync.Mutex
	serial   string // empty: the LUN is gone
	rescans  int
	forgets  int
	onRescan func()
	silent   error // what INQUIRY gives instead of an answer, if not nil
}

// UnitSerial is a SCSI unit serial number page.
func UnitSerial(serial string) string {
	return string([]byte{0, 0x80, byte(len(serial) >> 8), byte(len(serial))}) + serial
}

// NewLUN makes the sysfs files of a SCSI disk whose LUN has that serial. dir is the directory of the disk in sysfs.
func NewLUN(dir, serial string) *LUN {
	if err := os.MkdirAll(filepath.Join(dir, "device"), 0o755); err != nil {
		panic(err)
	}
	l := &LUN{serial: serial}
	l.copy(dir)
	if err := os.WriteFile(filepath.Join(dir, "device", "rescan"), nil, 0o600); err != nil {
		panic(err)
	}
	return l
}

func (l *LUN) copy(dir string) {
	if l.serial == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "device", "vpd_pg80"), []byte(UnitSerial(l.serial)), 0o600); err != nil {
		panic(err)
	}
}

// Become gives the LUN to another volume, without an event; to none if serial is empty.
func (l *LUN) Become(serial string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial = serial
}

// Silence makes INQUIRY give an error that says nothing about the LUN; an answer again if err is nil.
func (l *LUN) Silence(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = err
}

// OnRescan sets what else changes when the kernel reads the LUN again, such as its size.
func (l *LUN) OnRescan(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onRescan = do
}

// Rescan is what the kernel does when 1 is written to the file device/rescan of the disk in dir.
func (l *LUN) Rescan(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rescans++
	l.copy(dir)
	if l.onRescan != nil {
		l.onRescan()
	}
}

// Rescans is how often the kernel read the LUN again.
func (l *LUN) Rescans() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rescans
}

// Inquire answers INQUIRY for page 0x80.
func (l *LUN) Inquire(page byte, _ int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent != nil {
		return nil, l.silent
	}
	if l.serial == "" || page != 0x80 {
		return nil, fmt.Errorf("LOGICAL UNIT NOT SUPPORTED: %w", fs.ErrNotExist)
	}
	return []byte(UnitSerial(l.serial)), nil
}

// ForgetCache counts: a fake has no cache.
func (l *LUN) ForgetCache() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgets++
}

// Forgets is how often the kernel had to drop what it had cached of the disk.
func (l *LUN) Forgets() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgets
}
