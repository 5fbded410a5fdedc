package host

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/testenv"
)

// head is the beginning of a disk with that at that place.
func head(at int, what string) []byte {
	content := make([]byte, 128<<10)
	copy(content[at:], what)
	return content
}

// beginnings are those of disks, as far as the driver looks at them.
func beginnings() map[string][]byte {
	ext := head(extSuper+56, "\x53\xEF")
	ext[extSuper+4] = 1 // block
	btrfs := head(btrfsSuper+0x40, "_BHRfS_M")
	btrfs[btrfsSuper+0x70] = 1 // byte
	return map[string][]byte{
		"ext": ext, "xfs": head(0, "XFSB"), "btrfs": btrfs,
		"LVM": head(512, "LABELONE\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00\x00LVM2 001"), "nothing": head(0, ""),
	}
}

func TestADiskWhoseFileSystemSomebodyElseHoldsIsNotUnstagedForGood(t *testing.T) {
	t.Parallel()
	const always = 1 << 20
	for _, c := range []struct {
		name  string
		held  int // how often opening it alone is refused
		holds string
		do    func(*bench, *fakeDevice)
		words []string // of the refusal; none for success
	}{
		{name: "nobody", holds: "ext"},
		{name: "somebody for a moment", held: 5, holds: "ext"},
		{name: "ext", held: always, holds: "ext", words: []string{string(vol), "another mount namespace", "254:16", "/dev/vdb"}},
		{name: "xfs", held: always, holds: "xfs", words: []string{"another mount namespace"}},
		{name: "btrfs", held: always, holds: "btrfs", words: []string{"another mount namespace"}},
		{name: "a device made of it", held: always, holds: "ext", words: []string{"dm-0 (secret)", "dm-1"}, do: func(b *bench, _ *fakeDevice) {
			b.Sysfs(b.t, "vdb", map[string]string{"holders/dm-0": "", "holders/dm-1": ""})
			b.Sysfs(b.t, "dm-0", map[string]string{"dm/name": "secret\n"})
		}},
		{name: "LVM of the server, on a raw block volume", held: always, holds: "LVM"},
		{name: "no file system", held: always, holds: "nothing"},
		{name: "a disk that cannot be read", held: always, holds: "ext", do: func(_ *bench, d *fakeDevice) { d.badFrom = 1 }},
		{name: "another disk's node", held: always, holds: "ext", do: func(b *bench, d *fakeDevice) {
			b.openAlone = func(string) error { d.number = Number{254, 32}; return unix.EBUSY }
		}},
		{name: "a disk that went", holds: "ext", do: func(b *bench, _ *fakeDevice) {
			b.openAlone = func(string) error { return unix.ENXIO }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := staged(t, "rw")
				device := b.device("vdb", Number{254, 16})
				device.contents = beginnings()[c.holds]
				held := c.held
				b.openAlone = func(path string) error {
					if path != filepath.Join(b.Dev, "vdb") {
						t.Errorf("want the volume's disk opened, got %s", path)
					}
					if held--; held >= 0 {
						return unix.EBUSY
					}
					return nil
				}
				if c.do != nil {
					c.do(b, device)
				}
				for range 2 { // the second finds nothing mounted here, and asks again
					err := b.Unstage(t.Context(), vol, b.place("staging"))
					if len(c.words) > 0 {
						wantKind(t, err, volume.Busy, c.words...)
					} else if err != nil {
						t.Errorf("want it unstaged, got %v", err)
					}
				}
				held = 0
				if err := b.Unstage(t.Context(), vol, b.place("staging")); err != nil || len(b.mounter.table) != 0 {
					t.Errorf("want it unstaged when nobody holds it, got %v, %v", err, b.mounter.table)
				}
			})
		})
	}
}

func TestAHeldDiskThatDoesNotAnswerHoldsNobodyBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		answers, looks := make(chan struct{}), &atomic.Int32{}
		b.openAlone = func(string) error { return unix.EBUSY }
		open := b.openDevice
		b.openDevice = func(path string) (device, error) {
			d, err := open(path)
			return stuckDevice{d, answers, looks}, err
		}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			wantKind(t, b.Unstage(ctx, vol, b.place("staging")), volume.DeadlineExceeded, "still mounted or held elsewhere")
			cancel()
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("want one reader to wait for the disk, got %d", n)
		}
		close(answers)
	})
}

// stuckDevice answers no read until it is told to.
type stuckDevice struct {
	device
	answers chan struct{}
	looks   *atomic.Int32
}

func (d stuckDevice) ReadAt(p []byte, at int64) (int, error) {
	d.looks.Add(1)
	<-d.answers
	return d.device.ReadAt(p, at)
}

// elsewhere runs a script in a mount namespace of its own, whose mounts are private copies of those here, until end is called.
func elsewhere(t *testing.T, script string, args ...string) (pid int, end func()) {
	t.Helper()
	other := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-e", "-c", script + "; echo ready; exec cat", "sh"}, args...)...)
	other.Stderr = os.Stderr
	stdin, err := other.StdinPipe()
	must(t, err)
	stdout, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	ended := false
	end = func() {
		if !ended {
			ended = true
			must(t, errors.Join(stdin.Close(), other.Wait()))
		}
	}
	t.Cleanup(end)
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	must(t, err)
	return other.Process.Pid, end
}

// A container may have mounts of its own of what it sees, and outlive the pod that the volume was for.
func TestAVolumeMountedInAnotherNamespaceIsWrittenOutAndNotUnstagedForGood(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			h, m, disk := realHost(t, 400<<20)
			staging, copied := m.Path("staging"), m.Path("container")
			stage(t, h, Staging{Path: staging, FSType: fsType})
			must(t, os.MkdirAll(copied, 0o755))
			_, end := elsewhere(t, `mount --bind "$1" "$2"`, staging, copied)
			data := "what the pod wrote last " + strings.Repeat(".", 8192) // more than btrfs keeps beside the name
			must(t, os.WriteFile(filepath.Join(staging, "data"), []byte(data), 0o600))
			wantKind(t, h.Unstage(t.Context(), vol, staging), volume.Busy, string(vol), "another mount namespace")
			backing, err := os.ReadFile(strings.TrimSpace(testenv.Run(t, "losetup", "--noheadings", "--output", "BACK-FILE", disk)))
			must(t, err)
			if !strings.Contains(string(backing), data) {
				t.Error("want what was written on the disk")
			}
			end()
			must(t, h.Unstage(t.Context(), vol, staging))
			stage(t, h, Staging{Path: staging})
			if got, _ := os.ReadFile(filepath.Join(staging, "data")); string(got) != data {
				t.Errorf("want what was written read back, got %.30q", got)
			}
		})
	}
}

// An agent that was started with the server's files has a copy of each mount of then, at the same places.
func TestACopyOfTheMountAtItsOwnPlaceInAnotherNamespaceGoesWithIt(t *testing.T) {
	h, m, disk := realHost(t, 64<<20)
	staging, pod := m.Path("staging"), m.Path("pods", "1", "mount")
	stage(t, h, Staging{Path: staging})
	must(t, h.Publish(t.Context(), Publication{Volume: vol, Staging: staging, Target: pod}))
	pid, _ := elsewhere(t, "true")
	must(t, h.Unmount(pod))
	must(t, h.Unstage(t.Context(), vol, staging))
	seen, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
	must(t, err)
	if strings.Contains(string(seen), disk+" ") {
		t.Errorf("want no mount of %s left there, got\n%s", disk, seen)
	}
}

func TestAHeldRawBlockVolumeIsUnstagedAndAHeldFileSystemIsNot(t *testing.T) {
	h, m, disk := realHost(t, 64<<20)
	staging, target := m.Path("volumeDevices", "staging", "pv"), m.Path("target")
	fd, err := unix.Open(disk, unix.O_RDONLY|unix.O_EXCL, 0)
	must(t, err)
	held := os.NewFile(uintptr(fd), disk)
	t.Cleanup(func() { _ = held.Close() })
	must(t, h.PublishBlock(t.Context(), Publication{Volume: vol, Target: target}))
	write(t, disk, 0, beginnings()["LVM"])
	must(t, h.Unmount(target))
	must(t, h.Unstage(t.Context(), vol, staging))
	write(t, disk, 0, beginnings()["ext"])
	wantKind(t, h.Unstage(t.Context(), vol, staging), volume.Busy)
	must(t, held.Close())
	must(t, h.Unstage(t.Context(), vol, staging))
}
