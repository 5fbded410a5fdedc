package metadata

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const (
	vol    = hosttest.Volume
	serial = hosttest.Serial
)

var (
	must     = hosttest.Must
	wantKind = hosttest.WantKind
)

func num(major, minor uint32) disk.Number { return disk.Number{Major: major, Minor: minor} }

// fakeServer is a server of fakes: its sysfs is real files.
type fakeServer struct {
	*Reader
	*testenv.Machine

	devices    map[string]*fakeDevice
	open       func(path string) (disk.Device, error)
	readSerial func(path string) ([]byte, error)
	mounted    []string // devices that were mounted as FAT
}

func newFakeServer(t *testing.T, o Options) *fakeServer {
	t.Helper()
	b := &fakeServer{Machine: testenv.NewMachine(t), devices: map[string]*fakeDevice{}}
	b.open = func(path string) (disk.Device, error) {
		if d, ok := b.devices[path]; ok {
			return d, nil
		}
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	o.SysRoot = b.Sys
	b.readSerial = os.ReadFile
	o.Disks = disk.NewFinder(disk.Options{
		SysRoot: b.Sys, DevRoot: b.Dev, Log: slog.New(slog.DiscardHandler),
		Open:     func(path string) (disk.Device, error) { return b.open(path) },
		ReadFile: func(path string) ([]byte, error) { return b.readSerial(path) },
	})
	b.Reader = New(o)
	b.mountFAT = func(device string) ([]byte, error) {
		b.mounted = append(b.mounted, device)
		return []byte(metaData), nil
	}
	return b
}

// plug attaches a fake disk.
func (b *fakeServer) plug(t *testing.T, name, serial string, number disk.Number) *fakeDevice {
	t.Helper()
	b.Sysfs(t, name, map[string]string{"serial": serial, "dev": number.String() + "\n"})
	return b.device(name, number)
}

func (b *fakeServer) device(name string, number disk.Number) *fakeDevice {
	d := &fakeDevice{number: number}
	b.devices[filepath.Join(b.Dev, name)] = d
	return d
}

type fakeDevice struct {
	number   disk.Number
	contents []byte
	size     volume.Size // that of contents if 0
}

func (d *fakeDevice) Number() disk.Number { return d.number }
func (d *fakeDevice) Close() error        { return nil }

func (d *fakeDevice) Size() (volume.Size, error) {
	if d.size != 0 {
		return d.size, nil
	}
	return volume.Size(len(d.contents)), nil
}

func (d *fakeDevice) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(d.contents).ReadAt(p, at)
}
