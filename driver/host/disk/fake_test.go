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
	"github.com/cinder-csi/cinder-csi/internal/testenv"
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
}

func newFakeFinder(t *testing.T) *fakeFinder {
	t.Helper()
	b := &fakeFinder{t: t, Machine: testenv.NewMachine(t), devices: map[string]*fakeDevice{}}
	b.Finder = NewFinder(Options{SysRoot: b.Sys, DevRoot: b.Dev, Log: slog.New(slog.DiscardHandler), Open: func(path string) (Device, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if d, ok := b.devices[path]; ok {
			return d, nil
		}
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}})
	return b
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
	b.readFile = r.ReadFile
	return r
}
