package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
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

// The offsets of superblocks, as package fs has them.
const (
	extSuper   = 1024
	btrfsSuper = 0x10000
)

// The types that most tests use.
type (
	Entry         = mount.Entry
	Table         = mount.Table
	Result        = command.Result
	FormatOptions = contract.Format
)

func num(major, minor uint32) disk.Number { return disk.Number{Major: major, Minor: minor} }

// fakeHost is a Host on a machine of fakes: its sysfs is real files, its mount table is a file that the fake mounter
// writes.
type fakeHost struct {
	*Host
	*testenv.Machine

	t       *testing.T
	mounter *fakeMounter
	tools   *fakeTools
	mu      sync.Mutex
	devices map[string]*fakeDevice
	luns    map[string]*hosttest.LUN // by name

	open       func(path string) (disk.Device, error) // device nodes
	readSerial func(path string) ([]byte, error)      // serials
	readTable  func(file string) (Table, error)       // the mount table
	release    string                                 // of the kernel
}

func newFakeHost(t *testing.T) *fakeHost {
	t.Helper()
	m := testenv.NewMachine(t)
	b := &fakeHost{t: t, Machine: m, tools: &fakeTools{answers: map[string]Result{"blkid": {Code: 2}}}, devices: map[string]*fakeDevice{}, luns: map[string]*hosttest.LUN{}}
	b.mounter = &fakeMounter{host: b, file: m.Path("proc", "self", "mountinfo")}
	if err := os.MkdirAll(filepath.Dir(b.mounter.file), 0o755); err != nil {
		t.Fatal(err)
	}
	b.mounter.write()
	o := Options{SysRoot: m.Sys, DevRoot: m.Dev, ProcRoot: m.Path("proc"), Commands: b.tools, Mounter: b.mounter, Log: slog.New(slog.DiscardHandler), DriverName: "cinder.csi.openstack.org"}
	b.readSerial, b.readTable, b.release = os.ReadFile, mount.Read, "6.1.0"
	b.Host = newHost(o, disk.Options{
		Open:     func(path string) (disk.Device, error) { return b.open(path) },
		ReadFile: func(path string) ([]byte, error) { return b.readSerial(path) },
		Rescan:   b.rescan,
		InUse:    func(path string) bool { return b.kernel.inUse(path) },
	}, mount.Options{
		Read:          func(file string) (Table, error) { return b.readTable(file) },
		KernelRelease: func() string { return b.release },
	})
	b.kernel.btrfsDevices = func(string) (uint64, error) { return 1, nil }
	b.kernel.sync, b.kernel.inUse = func(string) error { return nil }, func(string) bool { return false }
	b.kernel.read, b.kernel.syncDisk = func(string) error { return nil }, func(string) error { return nil }
	b.kernel.write, b.kernel.lock = func(string) error { return nil }, func(string) (func(), error) { return func() {}, nil }
	b.kernel.thaw = func(string) (bool, error) { return false, nil }
	b.open = func(path string) (disk.Device, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if l, ok := b.luns[filepath.Base(path)]; ok && b.devices[path] != nil {
			return fakeSCSI{b.devices[path], l}, nil
		}
		if d, ok := b.devices[path]; ok {
			return d, nil
		}
		return nil, fmt.Errorf("open %s: %w", path, iofs.ErrNotExist)
	}
	return b
}

type fakeSCSI struct {
	*fakeDevice
	*hosttest.LUN
}

// plugSCSI attaches a fake SCSI disk of 16 MiB.
func (b *fakeHost) plugSCSI(t *testing.T, name, serial string, number disk.Number) (*fakeDevice, *hosttest.LUN) {
	t.Helper()
	b.Sysfs(t, name, map[string]string{"dev": number.String() + "\n"})
	l := hosttest.NewLUN(filepath.Join(b.Sys, "block", name), serial)
	d := b.device(name, number)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.luns[name] = l
	return d, l
}

// rescan is what the kernel does for a SCSI disk. The file stays as the driver wrote it.
func (b *fakeHost) rescan(file string) error {
	if _, err := os.Stat(file); err != nil {
		return err
	}
	dir := filepath.Dir(filepath.Dir(file))
	b.mu.Lock()
	l := b.luns[filepath.Base(dir)]
	b.mu.Unlock()
	if l != nil {
		l.Rescan(dir)
	}
	return os.WriteFile(file, []byte("1"), 0o600)
}

// plug attaches a fake disk of 16 MiB.
func (b *fakeHost) plug(t *testing.T, name, serial string, number disk.Number) *fakeDevice {
	t.Helper()
	b.Sysfs(t, name, map[string]string{"serial": serial, "dev": number.String() + "\n"})
	return b.device(name, number)
}

func (b *fakeHost) device(name string, number disk.Number) *fakeDevice {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := &fakeDevice{number: number, size: 16 << 20}
	b.devices[filepath.Join(b.Dev, name)] = d
	return d
}

// kubelet is a path below the directory of kubelet, which does not exist yet.
func (b *fakeHost) kubelet(name string) string { return b.Path("kubelet", name) }

type fakeDevice struct {
	number   disk.Number
	mu       sync.Mutex // of size
	size     volume.Size
	badFrom  int64 // reads that reach this far fail; 0 for none
	contents []byte
	holes    bool // reads beyond contents give zeros
	opened   func()
}

func (d *fakeDevice) Number() disk.Number {
	if d.opened != nil {
		d.opened()
	}
	return d.number
}

func (d *fakeDevice) Size() (volume.Size, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.size, nil
}

func (d *fakeDevice) resize(size volume.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.size = size
}

func (d *fakeDevice) Close() error { return nil }

func (d *fakeDevice) ReadAt(p []byte, at int64) (int, error) {
	if d.badFrom > 0 && at+int64(len(p)) > d.badFrom {
		return 0, errors.New("input/output error")
	}
	if d.holes {
		clear(p)
		copy(p, d.contents[min(at, int64(len(d.contents))):])
		return len(p), nil
	}
	if d.contents != nil {
		return bytes.NewReader(d.contents).ReadAt(p, at)
	}
	clear(p)
	return len(p), nil
}

// fakeTools answers for programs and keeps what was run.
type fakeTools struct {
	answers map[string]Result
	ran     []string
	during  func(name string)
}

func (f *fakeTools) Run(_ context.Context, name string, args ...string) (Result, error) {
	f.ran = append(f.ran, strings.Join(append([]string{name}, args...), " "))
	if f.during != nil {
		f.during(name)
	}
	return f.answers[name], nil
}

// changed gives what was run besides the tools that only look.
func (f *fakeTools) changed() []string {
	return slices.DeleteFunc(slices.Clone(f.ran), func(s string) bool { return strings.HasPrefix(s, "blkid ") || strings.HasPrefix(s, "wipefs --no-act ") })
}

// fakeMounter keeps a mount table in a file.
type fakeMounter struct {
	host  *fakeHost
	file  string
	table Table
	fail  error
	late  error       // what Mount answers although it mounts
	wrong disk.Number // when set, mounts end up on this device
	steps bool        // a read-only bind is made in two steps
	// noSELinux is true if mount(8) sees no selinuxfs and drops the options of SELinux.
	noSELinux bool
	bound     func(e *Entry) bool // changes what a bind gives, or drops it; nil if it gives what the driver asked for
}

func (f *fakeMounter) write() {
	var b strings.Builder
	for i, m := range f.table {
		super := append(slices.Clone(m.SuperOptions), "seclabel")
		fmt.Fprintf(&b, "%d 1 %s %s %s %s shared:1 - %s %s %s\n", i+20, m.Device, m.Root, m.Path, strings.Join(m.Options, ","), m.FSType, m.Source, strings.Join(super, ","))
	}
	if err := os.WriteFile(f.file, []byte(b.String()), 0o600); err != nil {
		panic(err)
	}
}

func (f *fakeMounter) add(m Entry) {
	if m.Root == "" {
		m.Root = "/"
	}
	if strings.HasPrefix(m.Path, f.host.Path()) {
		_ = os.MkdirAll(m.Path, 0o750) // a mount point exists
	}
	f.table = append(f.table, m)
	f.write()
}

func (f *fakeMounter) Mount(_ context.Context, source, target, fsType string, options []string) error {
	if f.fail != nil {
		return f.fail
	}
	m := Entry{Device: f.host.devices[source].number, Path: target, FSType: fsType, Source: source, Options: append([]string{"relatime"}, options...)}
	for _, o := range options {
		if strings.Contains(o, "context=") && !f.noSELinux {
			m.SuperOptions = append(m.SuperOptions, o)
		}
	}
	if f.wrong != (disk.Number{}) {
		m.Device = f.wrong
	}
	f.add(m)
	return f.late
}

func (f *fakeMounter) Bind(source, target string, readOnly bool) error {
	if f.fail != nil {
		return f.fail
	}
	m, ok := f.table.At(source)
	if _, err := os.Stat(source); !ok && err != nil {
		return errors.New("bind of what is no mount")
	} else if !ok { // a device node
		m = Entry{Device: num(0, 5), Root: "/" + filepath.Base(source), FSType: "devtmpfs", Source: "devtmpfs"}
	}
	m.Path, m.Options = target, []string{"rw"}
	if readOnly {
		m.Options = []string{"ro"}
	}
	if f.bound == nil || f.bound(&m) {
		f.add(m)
	}
	return nil
}

func (f *fakeMounter) FinishReadOnly(target string) (bool, error) {
	if !f.steps || f.fail != nil {
		return false, f.fail
	}
	for i, m := range f.table {
		if m.Path == target {
			f.table[i].Options = []string{"ro"}
		}
	}
	f.write()
	return true, nil
}

func (f *fakeMounter) UnmountTop(target string) error {
	if f.fail != nil {
		return f.fail
	}
	for i, m := range slices.Backward(f.table) {
		if m.Path == target {
			f.table = slices.Delete(f.table, i, i+1)
			f.write()
			return nil
		}
	}
	return errors.New("not mounted")
}
