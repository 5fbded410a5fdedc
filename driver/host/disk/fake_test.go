package disk

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const (
	vol         = hosttest.Volume
	serial      = hosttest.Serial
	otherVol    = hosttest.OtherVolume
	otherSerial = hosttest.OtherSerial
)

var (
	must     = hosttest.Must
	wantKind = hosttest.WantKind
)

// fakeFinder is a Finder on fake disks: its sysfs is real files.
type fakeFinder struct {
	*Finder
	*testenv.Machine

	t       *testing.T
	mu      sync.Mutex
	devices map[string]*fakeDevice
	luns    map[string]*hosttest.LUN // by name
	using   map[string]bool          // device nodes that are in use
	failing map[string]error         // by name: what an open of the device node gives
}

func newFakeFinder(t *testing.T) *fakeFinder {
	t.Helper()
	b := &fakeFinder{t: t, Machine: testenv.NewMachine(t), devices: map[string]*fakeDevice{}, luns: map[string]*hosttest.LUN{}, using: map[string]bool{}, failing: map[string]error{}}
	b.Finder = NewFinder(Options{SysRoot: b.Sys, DevRoot: b.Dev, Log: slog.New(slog.DiscardHandler), Open: func(path string) (Device, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if err := b.failing[filepath.Base(path)]; err != nil {
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		if l, ok := b.luns[filepath.Base(path)]; ok && b.devices[path] != nil {
			return fakeSCSI{b.devices[path], l}, nil
		}
		if d, ok := b.devices[path]; ok {
			return d, nil
		}
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}, Rescan: func(file string) error {
		dir := filepath.Dir(filepath.Dir(file))
		b.mu.Lock()
		l := b.luns[filepath.Base(dir)]
		b.mu.Unlock()
		if l == nil {
			return fs.ErrNotExist
		}
		l.Rescan(dir)
		return nil
	}, InUse: func(path string) bool { return b.using[path] }})
	return b
}

// plugSCSI attaches a fake SCSI disk.
func (b *fakeFinder) plugSCSI(t *testing.T, name, serial string, number Number) *hosttest.LUN {
	t.Helper()
	b.Sysfs(t, name, map[string]string{"dev": number.String() + "\n"})
	l := hosttest.NewLUN(filepath.Join(b.Sys, "block", name), serial)
	b.device(name, number)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.luns[name] = l
	return l
}

// failOpen makes opens of a device node fail; not any more if err is nil.
func (b *fakeFinder) failOpen(name string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing[name] = err
}

type fakeSCSI struct {
	*fakeDevice
	*hosttest.LUN
}

// plug attaches a fake disk.
func (b *fakeFinder) plug(t *testing.T, name, serial string, number Number) *fakeDevice {
	t.Helper()
	b.Sysfs(t, name, map[string]string{"serial": serial, "dev": number.String() + "\n"})
	return b.device(name, number)
}

func (b *fakeFinder) device(name string, number Number) *fakeDevice {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := &fakeDevice{number: number}
	b.devices[filepath.Join(b.Dev, name)] = d
	return d
}

// number gives a disk its diskseq, as the kernel does from Linux 5.15 on.
func (b *fakeFinder) number(name, sequence string) {
	b.Sysfs(b.t, name, map[string]string{"diskseq": sequence + "\n"})
}

type fakeDevice struct {
	number Number
	opened func()
}

func (d *fakeDevice) Number() Number {
	if d.opened != nil {
		d.opened()
	}
	return d.number
}

func (d *fakeDevice) Size() (volume.Size, error)        { return 16 << 20, nil }
func (d *fakeDevice) Close() error                      { return nil }
func (d *fakeDevice) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

// watchReads counts the reads of serials, and can block them.
func (b *fakeFinder) watchReads() *hosttest.SerialReads {
	r := hosttest.NewSerialReads()
	b.options.ReadFile = r.ReadFile
	return r
}
