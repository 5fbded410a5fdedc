package limit

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const (
	vol         = hosttest.Volume
	serial      = hosttest.Serial
	otherVol    = hosttest.OtherVolume
	otherSerial = hosttest.OtherSerial
)

var must = hosttest.Must

type Entry = mount.Entry

func num(major, minor uint32) disk.Number { return disk.Number{Major: major, Minor: minor} }

// fakeServer is a server of fakes: its sysfs and its mount table are files.
type fakeServer struct {
	*Counter
	*testenv.Machine

	t       *testing.T
	mounts  []Entry
	serials *hosttest.SerialReads
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	b := &fakeServer{t: t, Machine: testenv.NewMachine(t), serials: hosttest.NewSerialReads()}
	must(t, os.MkdirAll(b.Path("proc", "self"), 0o755))
	b.setMounts()
	disks := disk.NewFinder(disk.Options{SysRoot: b.Sys, DevRoot: b.Dev, Log: slog.New(slog.DiscardHandler), ReadFile: b.serials.ReadFile})
	b.Counter = New(Options{SysRoot: b.Sys, Disks: disks, Mounts: mount.New(mount.Options{ProcRoot: b.Path("proc"), KernelRelease: func() string { return "6.1" }})})
	return b
}

func (b *fakeServer) setMounts(mounts ...Entry) {
	b.mounts = nil
	b.add(mounts...)
}

func (b *fakeServer) add(mounts ...Entry) {
	b.mounts = append(b.mounts, mounts...)
	var text strings.Builder
	for _, m := range b.mounts {
		if m.Root == "" {
			m.Root = "/"
		}
		fmt.Fprintf(&text, "20 1 %s %s %s rw shared:1 - %s %s rw\n", m.Device, m.Root, m.Path, m.FSType, m.Source)
	}
	must(b.t, os.WriteFile(b.Path("proc", "self", "mountinfo"), []byte(text.String()), 0o600))
}

// plug attaches a disk to the server.
func (b *fakeServer) plug(t *testing.T, name, serial string, number disk.Number) {
	t.Helper()
	b.Sysfs(t, name, map[string]string{"serial": serial, "dev": number.String() + "\n"})
}

// number gives a disk its diskseq, as the kernel does from Linux 5.15 on.
func (b *fakeServer) number(name, sequence string) {
	b.Sysfs(b.t, name, map[string]string{"diskseq": sequence + "\n"})
}
