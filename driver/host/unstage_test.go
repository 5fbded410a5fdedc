package host

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestUnstageWritesTheFileSystemOutBeforeTheUnmount(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{"a good disk": nil, "a dead disk": unix.EIO} {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
		var written []string
		b.kernel.sync = func(path string) error {
			if _, mounted := b.mounter.table.At(path); !mounted {
				t.Errorf("%s: %s is written out when it is not mounted any more", name, path)
			}
			written = append(written, path)
			return fail
		}
		for range 2 {
			if err := b.Unstage(t.Context(), vol, b.kubelet("staging")); err != nil || len(b.mounter.table) != 0 {
				t.Fatalf("%s: want it unstaged, got %v, %v", name, err, b.mounter.table)
			}
		}
		if len(written) != 1 || written[0] != b.kubelet("staging") {
			t.Errorf("%s: want it written out once, got %q", name, written)
		}
	}
}

func TestUnstageOfAnUnresponsiveDiskEndsBeforeTheDeadlineAndKeepsTheMount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
		answers := make(chan struct{})
		var asked atomic.Int32
		b.kernel.sync = func(string) error {
			asked.Add(1)
			<-answers
			return nil
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			err := b.Unstage(ctx, vol, b.kubelet("staging"))
			wantKind(t, err, volume.DeadlineExceeded, b.kubelet("staging"), "has not unmounted it yet")
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Error("want the answer before the deadline")
			}
			cancel()
		}
		if n := asked.Load(); n != 1 || len(b.mounter.table) != 1 {
			t.Errorf("want one call to wait for the disk, and the mount there, got %d, %v", n, b.mounter.table)
		}
		close(answers)
		synctest.Wait()
		if err := b.Unstage(t.Context(), vol, b.kubelet("staging")); err != nil || len(b.mounter.table) != 0 {
			t.Errorf("want it unstaged when the disk answers, got %v, %v", err, b.mounter.table)
		}
	})
}

// A pod of the node may have written after the first write-out began.
func TestAWriteOutThatBeganEarlierIsFollowedByOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
		answers := make(chan struct{})
		var asked atomic.Int32
		b.kernel.sync = func(string) error {
			asked.Add(1)
			<-answers
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantKind(t, b.Unstage(ctx, vol, b.kubelet("staging")), volume.DeadlineExceeded, "has not unmounted it yet")
		time.AfterFunc(time.Second, func() { close(answers) })
		if err := b.Unstage(t.Context(), vol, b.kubelet("staging")); err != nil || len(b.mounter.table) != 0 {
			t.Errorf("want it unstaged, got %v, %v", err, b.mounter.table)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("want a second write-out, got %d", n)
		}
	})
}

// head is the beginning of a disk with that content at that offset.
func head(at int, what string) []byte {
	content := make([]byte, 128<<10)
	copy(content[at:], what)
	return content
}

// beginnings are the parts of disks that the driver reads to recognise a file system.
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

func TestUnstageIsBusyWhileAnotherUserHasTheFileSystem(t *testing.T) {
	t.Parallel()
	const always = 1 << 20
	for _, c := range []struct {
		name  string
		inUse int // how often the disk is in use
		holds string
		do    func(*fakeHost, *fakeDevice)
		words []string // of the refusal; none for success
	}{
		{name: "no user", holds: "ext"},
		{name: "in use for a moment", inUse: 5, holds: "ext"},
		{name: "ext", inUse: always, holds: "ext", words: []string{string(vol), "another mount namespace", "254:16", "/dev/vdb"}},
		{name: "xfs", inUse: always, holds: "xfs", words: []string{"another mount namespace"}},
		{name: "btrfs", inUse: always, holds: "btrfs", words: []string{"another mount namespace"}},
		{name: "a device made of it", inUse: always, holds: "ext", words: []string{"dm-0 (secret)", "dm-1"}, do: func(b *fakeHost, _ *fakeDevice) {
			b.Sysfs(b.t, "vdb", map[string]string{"holders/dm-0": "", "holders/dm-1": ""})
			b.Sysfs(b.t, "dm-0", map[string]string{"dm/name": "secret\n"})
		}},
		{name: "LVM of the server, on a raw block volume", inUse: always, holds: "LVM"},
		{name: "no file system", inUse: always, holds: "nothing"},
		{name: "a disk that cannot be read", inUse: always, holds: "ext", do: func(_ *fakeHost, d *fakeDevice) { d.badFrom = 1 }},
		{name: "another disk's node", inUse: always, holds: "ext", do: func(b *fakeHost, d *fakeDevice) {
			b.kernel.inUse = func(string) bool { d.number = num(254, 32); return true }
		}},
		{name: "a disk that went", holds: "ext", do: func(b *fakeHost, _ *fakeDevice) {
			b.kernel.inUse = func(string) bool { return false }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := staged(t, "rw")
				device := b.device("vdb", num(254, 16))
				device.contents = beginnings()[c.holds]
				inUse := c.inUse
				b.kernel.inUse = func(path string) bool {
					if path != filepath.Join(b.Dev, "vdb") {
						t.Errorf("want the volume's disk opened, got %s", path)
					}
					inUse--
					return inUse >= 0
				}
				if c.do != nil {
					c.do(b, device)
				}
				for range 2 { // the second finds nothing mounted here, and asks again
					err := b.Unstage(t.Context(), vol, b.kubelet("staging"))
					if len(c.words) > 0 {
						wantKind(t, err, volume.Busy, c.words...)
					} else if err != nil {
						t.Errorf("want it unstaged, got %v", err)
					}
				}
				inUse = 0
				if err := b.Unstage(t.Context(), vol, b.kubelet("staging")); err != nil || len(b.mounter.table) != 0 {
					t.Errorf("want it unstaged when nothing uses it, got %v, %v", err, b.mounter.table)
				}
			})
		})
	}
}

func TestUnstageOfAnUnresponsiveDiskInUseEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		answers, looks := make(chan struct{}), &atomic.Int32{}
		b.kernel.inUse = func(string) bool { return true }
		open := b.open
		b.open = func(path string) (disk.Device, error) {
			d, err := open(path)
			return stuckDevice{d, answers, looks}, err
		}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			wantKind(t, b.Unstage(ctx, vol, b.kubelet("staging")), volume.DeadlineExceeded, "still mounted or in use elsewhere")
			cancel()
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("want one reader to wait for the disk, got %d", n)
		}
		close(answers)
	})
}

// stuckDevice answers no read until answers is closed.
type stuckDevice struct {
	disk.Device
	answers chan struct{}
	looks   *atomic.Int32
}

func (d stuckDevice) ReadAt(p []byte, at int64) (int, error) {
	d.looks.Add(1)
	<-d.answers
	return d.Device.ReadAt(p, at)
}

// elsewhere runs a script in a mount namespace of its own, whose mounts are private copies of those here, until end is
// called.
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

// A container may bind mounts that it sees, and outlive the pod of the volume.
func TestAVolumeMountedInAnotherNamespaceIsWrittenOutAndBusy(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			h, m, disk := realHost(t, 400<<20)
			staging, copied := m.Path("staging"), m.Path("container")
			stage(t, h, StageSpec{Path: staging, FSType: fsType})
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
			stage(t, h, StageSpec{Path: staging})
			if got, _ := os.ReadFile(filepath.Join(staging, "data")); string(got) != data {
				t.Errorf("want what was written read back, got %.30q", got)
			}
		})
	}
}

// An agent that started with the files of the server has a copy of each mount of that time, at the same paths.
func TestUnmountRemovesTheCopyAtTheSamePathInAnotherNamespace(t *testing.T) {
	h, m, disk := realHost(t, 64<<20)
	staging, pod := m.Path("staging"), m.Path("pods", "1", "mount")
	stage(t, h, StageSpec{Path: staging})
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: pod}))
	pid, _ := elsewhere(t, "true")
	must(t, h.Unpublish(t.Context(), pod))
	must(t, h.Unstage(t.Context(), vol, staging))
	seen, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
	must(t, err)
	if strings.Contains(string(seen), disk+" ") {
		t.Errorf("want no mount of %s left there, got\n%s", disk, seen)
	}
}

func TestARawBlockVolumeInUseIsUnstagedAndAFileSystemInUseIsNot(t *testing.T) {
	h, m, disk := realHost(t, 64<<20)
	staging, target := m.Path("volumeDevices", "staging", "pv"), m.Path("target")
	fd, err := unix.Open(disk, unix.O_RDONLY|unix.O_EXCL, 0)
	must(t, err)
	held := os.NewFile(uintptr(fd), disk)
	t.Cleanup(func() { _ = held.Close() })
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target}))
	write(t, disk, 0, beginnings()["LVM"])
	must(t, h.Unpublish(t.Context(), target))
	must(t, h.Unstage(t.Context(), vol, staging))
	write(t, disk, 0, beginnings()["ext"])
	wantKind(t, h.Unstage(t.Context(), vol, staging), volume.Busy)
	must(t, held.Close())
	must(t, h.Unstage(t.Context(), vol, staging))
}

func TestAMessageNamesTheFirstPathsAndCountsTheRest(t *testing.T) {
	t.Parallel()
	if got := firstPaths([]string{"/a", "/b"}); got != "/a, /b" {
		t.Errorf("want both, got %q", got)
	}
	if got := firstPaths(slices.Repeat([]string{"/a"}, 100)); strings.Count(got, "/a") != 8 || !strings.HasSuffix(got, " and 92 more paths") {
		t.Errorf("want eight and a count, got %q", got)
	}
}
