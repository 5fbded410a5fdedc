package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// These tests use the kernel's own block devices, file systems and mount table, and the tools that the driver's image
// has.

// realHost is a Host on a machine with one disk, a loop device, that has the serial of vol.
func realHost(t *testing.T, bytes int64) (h *Host, m *testenv.Machine, disk string) {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedTools(t, "mkfs.ext4", "e2fsprogs", "mkfs.xfs", "xfsprogs", "mkfs.btrfs", "btrfs-progs", "blkid", "util-linux", "wipefs", "util-linux", "fsck.ext4", "e2fsprogs")
	m = testenv.NewMachine(t)
	disk = testenv.Loop(t, bytes)
	m.Plug(t, "vdb", serial, disk)
	return New(Options{SysRoot: m.Sys, DevRoot: m.Dev, Log: slog.New(slog.DiscardHandler)}), m, disk
}

func stage(t *testing.T, h *Host, s StageSpec) {
	t.Helper()
	s.Volume = vol
	if err := h.Stage(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func TestDataPersistsOverRemountsOnRealFileSystems(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs", "ext3", "ext2"} {
		t.Run(fsType, func(t *testing.T) {
			h, m, _ := realHost(t, 400<<20)
			staging, pod := m.Path("staging"), m.Path("pods", "1", "mount")
			s := StageSpec{Path: staging, FSType: fsType, MountFlags: []string{"noatime"}}
			for round, want := range []string{"", "first", "second"} {
				for range 2 { // each call is made twice: the second finds everything done
					stage(t, h, s)
				}
				for range 2 {
					must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: pod}))
				}
				if got, _ := os.ReadFile(filepath.Join(pod, "data")); string(got) != want {
					t.Fatalf("round %d: want %q read back, got %q", round, want, got)
				}
				must(t, os.WriteFile(filepath.Join(pod, "data"), []byte([]string{"first", "second", "third"}[round]), 0o600))
				if n := countMounts(t, h, m); n != 2 {
					t.Fatalf("round %d: want two mounts, got %d", round, n)
				}
				stats, err := h.Stats(t.Context(), pod)
				if err != nil || stats.Block || stats.Bytes.Total < 250<<20 || stats.Bytes.Available > stats.Bytes.Total {
					t.Errorf("want the numbers of a file system of 400 MiB, got %+v, %v", stats, err)
				}
				for range 2 {
					must(t, h.Unpublish(t.Context(), pod))
				}
				for range 2 {
					must(t, h.Unpublish(t.Context(), staging))
				}
				if n := countMounts(t, h, m); n != 0 {
					t.Fatalf("round %d: want no mount left, got %d", round, n)
				}
			}
		})
	}
}

// superblock is what the disk's superblock says (ext4's documentation, "Super Block"; XFS Algorithms & Data Structures,
// "Superblocks"). xfs has no number of inodes to compare: it makes them as they are needed.
func superblock(t *testing.T, disk, fsType string) FormatOptions {
	t.Helper()
	d, err := os.Open(disk)
	must(t, err)
	defer d.Close()
	b := make([]byte, 2048)
	_, err = d.ReadAt(b, 0)
	must(t, err)
	if fsType == "xfs" {
		return FormatOptions{BlockSize: int64(binary.BigEndian.Uint32(b[4:])), InodeSize: int64(binary.BigEndian.Uint16(b[104:]))}
	}
	b = b[1024:]
	little := binary.LittleEndian
	return FormatOptions{BlockSize: 1024 << little.Uint32(b[24:]), InodeSize: int64(little.Uint16(b[88:])), Inodes: int64(little.Uint32(b))}
}

func TestARealFileSystemHasTheRequestedFormatAndIsNotFormattedAgain(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		fsType string
		asked  FormatOptions
		want   FormatOptions
	}{
		"ext4":                {"ext4", FormatOptions{}, FormatOptions{BlockSize: 4096, InodeSize: 256, Inodes: 65536}},
		"ext4 blocks":         {"ext4", FormatOptions{BlockSize: 1024}, FormatOptions{BlockSize: 1024, InodeSize: 256, Inodes: 65536}},
		"ext4 inodes' size":   {"ext4", FormatOptions{InodeSize: 1024}, FormatOptions{BlockSize: 4096, InodeSize: 1024, Inodes: 65536}},
		"ext4 inodes":         {"ext4", FormatOptions{BytesPerInode: 65536}, FormatOptions{BlockSize: 4096, InodeSize: 256, Inodes: 16384}},
		"ext4 number":         {"ext4", FormatOptions{Inodes: 300000}, FormatOptions{BlockSize: 4096, InodeSize: 256, Inodes: 300000}},
		"ext4 most inodes":    {"ext4", FormatOptions{Inodes: 1 << 20}, FormatOptions{BlockSize: 4096, InodeSize: 256, Inodes: 1 << 20}},
		"ext4 largest inodes": {"ext4", FormatOptions{InodeSize: 4096, BytesPerInode: 8192}, FormatOptions{BlockSize: 4096, InodeSize: 4096, Inodes: 131072}},
		"ext4 smallest":       {"ext4", FormatOptions{BlockSize: 1024, InodeSize: 128, BytesPerInode: 1024}, FormatOptions{BlockSize: 1024, InodeSize: 128, Inodes: 1 << 20}},
		"ext2 inodes' size":   {"ext2", FormatOptions{InodeSize: 512, Inodes: 1 << 19}, FormatOptions{BlockSize: 4096, InodeSize: 512, Inodes: 1 << 19}},
		"ext3 blocks":         {"ext3", FormatOptions{BlockSize: 2048, InodeSize: 2048, BytesPerInode: 4096}, FormatOptions{BlockSize: 2048, InodeSize: 2048, Inodes: 262144}},
		"xfs":                 {"xfs", FormatOptions{}, FormatOptions{BlockSize: 4096, InodeSize: 512}},
		"xfs blocks":          {"xfs", FormatOptions{BlockSize: 1024}, FormatOptions{BlockSize: 1024, InodeSize: 512}},
		"xfs inodes' size":    {"xfs", FormatOptions{InodeSize: 2048}, FormatOptions{BlockSize: 4096, InodeSize: 2048}},
		"xfs both":            {"xfs", FormatOptions{BlockSize: 2048, InodeSize: 1024}, FormatOptions{BlockSize: 2048, InodeSize: 1024}},
	} {
		t.Run(name, func(t *testing.T) {
			h, m, disk := realHost(t, 1024*mib) // the least that Cinder makes
			staging := m.Path("staging")
			for _, asked := range []FormatOptions{c.asked, {BlockSize: 1024, InodeSize: 512}} { // the second finds a file system
				stage(t, h, StageSpec{Path: staging, FSType: c.fsType, Format: asked})
				if size, err := h.Expand(t.Context(), ExpandSpec{Volume: vol, Path: staging}); err != nil || size != 1024*mib {
					t.Errorf("want it as large as its disk, got %s, %v", size, err)
				}
				must(t, h.Unpublish(t.Context(), staging))
				if got := superblock(t, disk, c.fsType); got != c.want {
					t.Errorf("want %+v, got %+v", c.want, got)
				}
			}
		})
	}
}

func countMounts(t *testing.T, h *Host, m *testenv.Machine) int {
	t.Helper()
	table, err := h.mounts.Table()
	must(t, err)
	n := 0
	for _, mount := range table {
		if strings.HasPrefix(mount.Path, m.Path()+"/") {
			n++
		}
	}
	return n
}

func TestAReadOnlyPublicationRefusesWritesAndKeepsTheFlagsOfTheStage(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	staging := m.Path("staging")
	stage(t, h, StageSpec{Path: staging, FSType: "ext4", MountFlags: []string{"noexec,nosuid", "noatime"}})
	must(t, os.WriteFile(filepath.Join(staging, "data"), []byte("data"), 0o600))
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: m.Path("ro"), ReadOnly: true}))
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: m.Path("rw")}))
	if err := os.WriteFile(filepath.Join(m.Path("ro"), "data"), nil, 0o600); err == nil {
		t.Error("want a write through the read-only mount refused")
	}
	must(t, os.WriteFile(filepath.Join(m.Path("rw"), "data"), []byte("more"), 0o600))
	table, err := h.mounts.Table()
	must(t, err)
	for _, name := range []string{"ro", "rw"} {
		there, _ := table.At(m.Path(name))
		if got := strings.Join(there.Options, ","); got != name+",nosuid,noexec,noatime" {
			t.Errorf("%s: want the stage's flags kept, got %s", name, got)
		}
	}
}

// kubelet and the pods' containers see copies of the driver's mounts, in mount namespaces of their own.
func TestAReadOnlyPublicationIsReadOnlyInEveryMountNamespace(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	shared := m.Path("kubelet")
	must(t, os.MkdirAll(shared, 0o750))
	testenv.Run(t, "mount", "-t", "tmpfs", "tmpfs", shared)
	testenv.Run(t, "mount", "--make-shared", shared)
	other := exec.Command("unshare", "--mount", "--propagation", "unchanged", "sh", "-c", "echo ready; cat")
	stdin, err := other.StdinPipe()
	must(t, err)
	stdout, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	defer func() { must(t, errors.Join(stdin.Close(), other.Wait())) }()
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	must(t, err)

	staging := filepath.Join(shared, "staging")
	stage(t, h, StageSpec{Path: staging})
	for _, name := range []string{"ro", "rw"} {
		p := PublishSpec{Volume: vol, Staging: staging, Target: filepath.Join(shared, name), ReadOnly: name == "ro"}
		must(t, h.Publish(t.Context(), p))
		p.Target += "-device"
		must(t, h.PublishBlock(t.Context(), p))
	}
	table, err := mount.Read(filepath.Join("/proc", strconv.Itoa(other.Process.Pid), "mountinfo"))
	must(t, err)
	for name, want := range map[string]bool{"ro": true, "rw": false, "ro-device": true, "rw-device": false} {
		if there, ok := table.At(filepath.Join(shared, name)); !ok || there.ReadOnly() != want {
			t.Errorf("%s: want read-only %t in the other namespace, got %t, %v", name, want, ok, there.Options)
		}
		must(t, h.Unpublish(t.Context(), filepath.Join(shared, name)))
	}
	must(t, h.Unpublish(t.Context(), staging))
}

// Where the kernel makes a read-only bind at once, a writable mount was asked for.
func TestAWritableMountStaysWritableIfBindsNeedOneStep(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	staging, target := m.Path("staging"), m.Path("target")
	stage(t, h, StageSpec{Path: staging})
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: target}))
	if finished, err := h.mounts.FinishReadOnly(target); finished || err != nil {
		t.Fatalf("this test needs Linux 5.12, got %t, %v", finished, err)
	}
	wantKind(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: target, ReadOnly: true}), volume.Incompatible)
	must(t, os.WriteFile(filepath.Join(target, "data"), nil, 0o600))
}

func TestAReadOnlyStageRefusesWrites(t *testing.T) {
	h, m, _ := realHost(t, 400<<20)
	stage(t, h, StageSpec{Path: m.Path("staging"), FSType: "xfs"})
	must(t, h.Unpublish(t.Context(), m.Path("staging")))
	stage(t, h, StageSpec{Path: m.Path("staging"), FSType: "xfs", ReadOnly: true})
	if err := os.WriteFile(m.Path("staging", "data"), nil, 0o600); err == nil {
		t.Error("want a write refused")
	}
}

func TestARawBlockVolumeIsPublishedOnceAndKeepsItsBytes(t *testing.T) {
	h, m, disk := realHost(t, 8<<20)
	target := m.Path("pods", "1", "dev")
	for range 3 {
		must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target}))
	}
	if n := countMounts(t, h, m); n != 1 {
		t.Fatalf("want one mount, got %d", n)
	}
	f, err := os.OpenFile(target, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("raw bytes"), 4096)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	stats, err := h.Stats(t.Context(), target)
	if err != nil || !stats.Block || stats.Bytes.Total != 8<<20 {
		t.Errorf("want a block volume of 8 MiB, got %+v, %v", stats, err)
	}
	wantKind(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target, ReadOnly: true}), volume.Incompatible)
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target, ReadOnly: true, ReadOnlyByMode: true})) // as upstream publishes
	for range 2 {
		must(t, h.Unpublish(t.Context(), target))
	}
	if _, err := os.Lstat(target); !os.IsNotExist(err) {
		t.Errorf("want the target removed, got %v", err)
	}
	got := make([]byte, 9)
	d, err := os.Open(disk)
	must(t, err)
	defer d.Close()
	if _, err := d.ReadAt(got, 4096); err != nil || string(got) != "raw bytes" {
		t.Errorf("want the bytes on the disk, got %q, %v", got, err)
	}
}

func TestABlockTargetOfAnotherDiskIsRefused(t *testing.T) {
	h, m, _ := realHost(t, 8<<20)
	other := volume.ID("b7e2d8c4-19f3-4a6e-9c0d-1e2f3a4b5c6d")
	m.Plug(t, "vdc", string(other[:20]), testenv.Loop(t, 8<<20))
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: other, Target: m.Path("target")}))
	wantKind(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: m.Path("target")}), volume.Conflict, "unpublish the path first")
	_, err := h.Expand(t.Context(), ExpandSpec{Volume: vol, Path: m.Path("target")})
	wantKind(t, err, volume.Conflict)
}

func TestAStagingPathOfAnotherDiskIsRefused(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	other := volume.ID("b7e2d8c4-19f3-4a6e-9c0d-1e2f3a4b5c6d")
	m.Plug(t, "vdc", string(other[:20]), testenv.Loop(t, 64<<20))
	must(t, h.Stage(t.Context(), StageSpec{Volume: other, Path: m.Path("staging")}))
	wantKind(t, h.Stage(t.Context(), StageSpec{Volume: vol, Path: m.Path("staging")}), volume.Conflict, "unstage the path first")
	wantKind(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: m.Path("staging"), Target: m.Path("pod")}), volume.Conflict)
}

func TestADeviceNodeThatIsNoLongerTheDiskIsRefused(t *testing.T) {
	h, m, _ := realHost(t, 8<<20)
	node := filepath.Join(m.Dev, "vdb")
	must(t, os.Remove(node))
	must(t, os.Symlink(testenv.Loop(t, 8<<20), node)) // a stale link
	wantKind(t, h.Stage(t.Context(), StageSpec{Volume: vol, Path: m.Path("staging")}), volume.Conflict, "stale")
	must(t, os.Remove(node))
	must(t, os.WriteFile(node, make([]byte, 8<<20), 0o600))
	wantKind(t, h.Stage(t.Context(), StageSpec{Volume: vol, Path: m.Path("staging")}), volume.Failed, "not a block device")
}

func write(t *testing.T, disk string, at int64, bytes []byte) {
	t.Helper()
	f, err := os.OpenFile(disk, os.O_WRONLY|unix.O_SYNC, 0)
	must(t, err)
	defer f.Close()
	_, err = f.WriteAt(bytes, at)
	must(t, err)
}

func headOf(t *testing.T, disk string) string {
	t.Helper()
	f, err := os.Open(disk)
	must(t, err)
	defer f.Close()
	head := make([]byte, 1<<20)
	_, err = f.ReadAt(head, 0)
	must(t, err)
	return string(head)
}

func TestUnmountOfABusyVolumeReturnsBusyAtOnce(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	stage(t, h, StageSpec{Path: m.Path("staging")})
	f, err := os.Create(m.Path("staging", "open"))
	must(t, err)
	wantKind(t, h.Unpublish(t.Context(), m.Path("staging")), volume.Busy, m.Path("staging"))
	must(t, f.Close())
	must(t, h.Unpublish(t.Context(), m.Path("staging")))
}

func TestAMountedFileSystemGrowsWithItsDisk(t *testing.T) {
	for _, fsType := range []string{"xfs", "btrfs"} { // growing a mounted ext4 needs CAP_SYS_RESOURCE, which sandboxes withhold
		t.Run(fsType, func(t *testing.T) {
			h, m, disk := realHost(t, 400<<20)
			stage(t, h, StageSpec{Path: m.Path("staging"), FSType: fsType})
			before, err := h.Stats(t.Context(), m.Path("staging"))
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var size volume.Size
			expanded := make(chan error, 1)
			go func() {
				var err error
				size, err = h.Expand(ctx, ExpandSpec{Volume: vol, Path: m.Path("staging"), Size: 800 << 20})
				expanded <- err
			}()
			<-time.After(300 * time.Millisecond) // the wait for the disk is part of what is tested
			testenv.GrowLoop(t, disk, 800<<20)
			if err := <-expanded; err != nil || size != 800<<20 {
				t.Fatalf("want 800 MiB, got %s, %v", size, err)
			}
			after, err := h.Stats(t.Context(), m.Path("staging"))
			must(t, err)
			if grown := after.Bytes.Total - before.Bytes.Total; grown < 350<<20 {
				t.Errorf("want about 400 MiB more, got %d bytes", grown)
			}
		})
	}
}

func TestAVolumeMadeFromASmallerSourceIsGrownWhenItIsStaged(t *testing.T) {
	h, m, disk := realHost(t, 400<<20)
	stage(t, h, StageSpec{Path: m.Path("staging"), FSType: "xfs"})
	must(t, h.Unpublish(t.Context(), m.Path("staging")))
	testenv.GrowLoop(t, disk, 800<<20)
	stage(t, h, StageSpec{Path: m.Path("staging"), FromSource: true})
	stats, err := h.Stats(t.Context(), m.Path("staging"))
	if err != nil || stats.Bytes.Total < 700<<20 {
		t.Errorf("want a file system of 800 MiB, got %s, %v", strconv.FormatInt(stats.Bytes.Total, 10), err)
	}
}

// hang mounts a file system at dir that never answers, like that of a dead disk: one of FUSE without a server.
func hang(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o750))
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	must(t, err)
	err = unix.Mount("dead", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd()))
	t.Cleanup(func() { _ = server.Close() }) // ends the blocked reads too
	must(t, err)
}

func TestADeadFileSystemBlocksNoCallerAndIsUnmounted(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	target := m.Path("target")
	hang(t, target)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := h.Stats(ctx, target)
	wantKind(t, err, volume.DeadlineExceeded, "has not answered")
	issues, err := h.Health(ctx, vol, target)
	if err != nil || len(issues) != 1 || issues[0].Reason != "NotResponding" {
		t.Errorf("want it reported, got %+v, %v", issues, err)
	}
	wantKind(t, h.Unpublish(t.Context(), target), volume.Busy) // the read is still in it

	second := m.Path("second")
	hang(t, second)
	must(t, h.Unpublish(t.Context(), second))
}
