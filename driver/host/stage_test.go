package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/fs"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestStageMakesAFileSystemOnlyOnAnEmptyDisk(t *testing.T) {
	t.Parallel()
	holds := func(fsType string) Result { return Result{Stdout: "TYPE=" + fsType + "\nUSAGE=filesystem\n"} }
	empty := Result{Code: 2}
	for _, c := range []struct {
		name    string
		blkid   Result
		s       StageSpec
		ran     []string // with DISK for the disk's path
		fsType  string
		options []string
	}{
		{name: "ext4", blkid: empty, s: StageSpec{FSType: "ext4"}, ran: []string{"mkfs.ext4 -F -m0 -O ^metadata_csum_seed,^orphan_file DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "xfs", blkid: empty, s: StageSpec{FSType: "xfs", MountFlags: []string{"noatime", "discard"}}, ran: []string{"mkfs.xfs -f -m rmapbt=0 -i nrext64=0 DISK"}, fsType: "xfs", options: []string{"nouuid", "noatime", "discard"}},
		{name: "SELinux's context", blkid: empty, s: StageSpec{FSType: "ext4", MountFlags: []string{`context="system_u:object_r:container_file_t:s0:c1,c2"`}}, ran: []string{"mkfs.ext4 -F -m0 -O ^metadata_csum_seed,^orphan_file DISK"}, fsType: "ext4", options: []string{"errors=remount-ro", `context="system_u:object_r:container_file_t:s0:c1,c2"`}},
		{name: "no type in the request", blkid: empty, ran: []string{"mkfs.ext4 -F -m0 -O ^metadata_csum_seed,^orphan_file DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "the driver's default", blkid: empty, s: StageSpec{DefaultFSType: "xfs"}, ran: []string{"mkfs.xfs -f -m rmapbt=0 -i nrext64=0 DISK"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4, made so", blkid: empty, s: StageSpec{FSType: "ext4", Format: FormatOptions{BlockSize: 1024, InodeSize: 512, BytesPerInode: 4096}}, ran: []string{"mkfs.ext4 -F -m0 -O ^metadata_csum_seed,^orphan_file -b 1024 -I 512 -i 4096 DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "ext3 by default, with inodes", blkid: empty, s: StageSpec{DefaultFSType: "ext3", Format: FormatOptions{Inodes: 77}}, ran: []string{"mkfs.ext3 -F -m0 -O ^metadata_csum_seed,^orphan_file -N 77 DISK"}, fsType: "ext3", options: []string{"errors=remount-ro"}},
		{name: "xfs, made so", blkid: empty, s: StageSpec{FSType: "xfs", Format: FormatOptions{BlockSize: 2048, InodeSize: 1024}}, ran: []string{"mkfs.xfs -f -m rmapbt=0 -i nrext64=0 -b size=2048 -i size=1024 DISK"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4 is there, however it was made", blkid: holds("ext4"), s: StageSpec{FSType: "ext4", Format: FormatOptions{BlockSize: 1024}}, ran: []string{"fsck.ext4 -j /dev/null -a DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "xfs is there, with a format that it has not", blkid: holds("xfs"), s: StageSpec{Format: FormatOptions{Inodes: 77}}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4 is there", blkid: holds("ext4"), s: StageSpec{FSType: "ext4"}, ran: []string{"fsck.ext4 -j /dev/null -a DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "ext3 is there, ext4 asked for", blkid: holds("ext3"), s: StageSpec{FSType: "ext4"}, ran: []string{"fsck.ext4 -j /dev/null -a DISK"}, fsType: "ext3", options: []string{"errors=remount-ro"}},
		{name: "xfs is there, no type in the request", blkid: holds("xfs"), s: StageSpec{DefaultFSType: "ext4"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4 is there, read-only", blkid: holds("ext4"), s: StageSpec{FSType: "ext4", ReadOnly: true}, fsType: "ext4", options: []string{"errors=remount-ro", "ro"}},
		{name: "ext4, the class says what to do about errors", blkid: empty, s: StageSpec{FSType: "ext4", MountFlags: []string{"errors=panic"}}, ran: []string{"mkfs.ext4 -F -m0 -O ^metadata_csum_seed,^orphan_file DISK"}, fsType: "ext4", options: []string{"errors=remount-ro", "errors=panic"}}, // the last one counts
		{name: "made from a source", blkid: holds("ext4"), s: StageSpec{FSType: "ext4", FromSource: true}, ran: []string{"fsck.ext4 -j /dev/null -a DISK", "resize2fs DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "made from a source, xfs", blkid: holds("xfs"), s: StageSpec{FromSource: true}, ran: []string{"xfs_growfs -d PATH"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "made from a source, read-only", blkid: holds("xfs"), s: StageSpec{FromSource: true, ReadOnly: true}, fsType: "xfs", options: []string{"nouuid", "ro"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFakeHost(t)
			b.tools.answers["blkid"] = c.blkid
			b.plug(t, "vdb", serial, num(254, 16))
			disk := filepath.Join(b.Dev, "vdb")
			c.s.Volume, c.s.Path = vol, b.kubelet("staging")
			if err := b.Stage(t.Context(), c.s); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, line := range c.ran {
				want = append(want, expand(line, disk, c.s.Path))
			}
			if diff := cmp.Diff(want, b.tools.changed(), equateEmpty); diff != "" {
				t.Errorf("programs (-want +got):\n%s", diff)
			}
			wantMount := Entry{Device: num(254, 16), Root: "/", Path: c.s.Path, FSType: c.fsType, Source: disk, Options: append([]string{"relatime"}, c.options...)}
			if c.name == "SELinux's context" {
				wantMount.SuperOptions = c.options[1:]
			}
			if diff := cmp.Diff(Table{wantMount}, b.mounter.table); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUnsupportedFormatOptionMakesNoFileSystem(t *testing.T) {
	t.Parallel()
	for _, s := range []StageSpec{
		{FSType: "xfs", Format: FormatOptions{BytesPerInode: 4096}},
		{DefaultFSType: "xfs", Format: FormatOptions{Inodes: 5}},
		{FSType: "btrfs", Format: FormatOptions{BlockSize: 4096}},
		{FSType: "btrfs", Format: FormatOptions{InodeSize: 4096}},
	} {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		s.Volume, s.Path = vol, b.kubelet("staging")
		wantKind(t, b.Stage(t.Context(), s), volume.InvalidArgument, "has no such option")
		if len(b.mounter.table) != 0 || len(b.tools.changed()) != 0 {
			t.Errorf("%+v: want nothing made or mounted, got %v, %q", s, b.mounter.table, b.tools.changed())
		}
	}
}

func TestStageAgainOfTheRightDiskDoesNothing(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	s := StageSpec{Volume: vol, Path: b.kubelet("staging"), FSType: "ext4"}
	for range 3 {
		if err := b.Stage(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.mounter.table) != 1 || len(b.tools.changed()) != 1 {
		t.Errorf("want one mount and one mkfs, got %v, %q", b.mounter.table, b.tools.changed())
	}
}

func TestStageRetriesAFailedGrowth(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=xfs\nUSAGE=filesystem\n"}
	b.tools.answers["xfs_growfs"] = Result{Code: 1, Stderr: "cannot"}
	s := StageSpec{Volume: vol, Path: b.kubelet("staging"), FromSource: true}
	wantKind(t, b.Stage(t.Context(), s), volume.Failed, "grow the xfs", "cannot")
	wantKind(t, b.Stage(t.Context(), s), volume.Failed, "cannot")
	b.tools.answers["xfs_growfs"] = Result{}
	if err := b.Stage(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// After a final answer kubelet considers a volume unstaged.
func TestAFailureIsFinalOnlyWhereNothingIsMounted(t *testing.T) {
	t.Parallel()
	const ext4, xfs = "TYPE=ext4\nUSAGE=filesystem\n", "TYPE=xfs\nUSAGE=filesystem\n"
	mounted := func(n disk.Number, option string) func(*fakeHost) {
		return func(b *fakeHost) {
			b.mounter.add(Entry{Device: n, Path: b.kubelet("staging"), FSType: "ext4", Source: "/dev/vdb", Options: []string{option}})
		}
	}
	for _, c := range []struct {
		name  string
		blkid string
		s     StageSpec
		do    func(*fakeHost)
		kind  volume.Kind
		final bool
	}{
		{name: "the growth after the mount", blkid: ext4, s: StageSpec{FromSource: true}, do: func(b *fakeHost) { b.tools.answers["resize2fs"] = Result{Code: 1} }, kind: volume.Failed},
		{name: "the growth of what was mounted", s: StageSpec{FromSource: true}, do: func(b *fakeHost) {
			mounted(num(254, 16), "rw")(b)
			b.tools.answers["resize2fs"] = Result{Code: 1}
		}, kind: volume.Failed},
		{name: "a mount that is there although mount(8) failed", blkid: ext4, do: func(b *fakeHost) { b.mounts.Mounter = failsAfter{b.mounter} }, kind: volume.Failed},
		{name: "a mount that is there and is not shown", blkid: ext4, do: func(b *fakeHost) {
			b.mounts.Mounter = failsAfter{nil}
		}, kind: volume.Failed},
		{name: "a mount of the disk's name of before", do: mounted(num(254, 32), "rw"), kind: volume.Conflict},
		{name: "a flag that is refused", s: StageSpec{MountFlags: []string{"remount"}}, do: mounted(num(254, 16), "rw"), kind: volume.InvalidArgument},
		{name: "two disks", do: func(b *fakeHost) {
			mounted(num(254, 16), "rw")(b)
			b.plug(b.t, "vdc", serial, num(254, 32))
		}, kind: volume.Conflict},
		{name: "another kind of file system is mounted", s: StageSpec{FSType: "xfs"}, do: mounted(num(254, 16), "rw"), kind: volume.Incompatible, final: true},
		{name: "mounted read-only", do: mounted(num(254, 16), "ro"), kind: volume.Incompatible, final: true},
		{name: "another kind of file system is on the disk", blkid: xfs, s: StageSpec{FSType: "ext4"}, kind: volume.Conflict, final: true},
		{name: "the check", blkid: ext4, do: func(b *fakeHost) { b.tools.answers["fsck.ext4"] = Result{Code: 4} }, kind: volume.DataLoss, final: true},
		{name: "the mount", blkid: ext4, do: func(b *fakeHost) { b.mounter.fail = volume.Errorf(volume.Failed, "wrong fs type") }, kind: volume.Failed, final: true},
		{name: "another disk was mounted, and unmounted again", blkid: ext4, do: func(b *fakeHost) { b.mounter.wrong = num(254, 64) }, kind: volume.Conflict, final: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFakeHost(t)
			b.plug(t, "vdb", serial, num(254, 16))
			b.tools.answers["blkid"] = Result{Stdout: c.blkid}
			if c.do != nil {
				c.do(b)
			}
			c.s.Volume, c.s.Path = vol, b.kubelet("staging")
			err := b.Stage(t.Context(), c.s)
			wantKind(t, err, c.kind)
			if volume.MayHaveWritten(err) == c.final {
				t.Errorf("want it final %t, got %v", c.final, err)
			}
		})
	}
}

func TestAStagedVolumeWhosePathCannotBeResolvedIsStillUnstaged(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	parent := b.kubelet("parent")
	must(t, os.MkdirAll(parent, 0o750))
	s := StageSpec{Volume: vol, Path: filepath.Join(parent, "staging")}
	must(t, b.Stage(t.Context(), s))
	must(t, os.Rename(parent, parent+"-moved"))
	must(t, os.Symlink(parent, parent)) // a loop
	err := b.Stage(t.Context(), s)
	wantKind(t, err, volume.Failed)
	if !volume.MayHaveWritten(err) {
		t.Errorf("want kubelet to go on to unstage it, got %v", err)
	}
}

// failsAfter is a mounter whose mount(8) mounts and then fails, or mounts nothing and does not fail.
type failsAfter struct{ *fakeMounter }

func (f failsAfter) Mount(ctx context.Context, source, target, fsType string, options []string) error {
	if f.fakeMounter == nil {
		return nil
	}
	return errors.Join(f.fakeMounter.Mount(ctx, source, target, fsType, options), volume.Errorf(volume.Failed, "killed"))
}

func TestAVolumeAttachedAgainUnderAnotherNameIsUnstagedAndStaged(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	s := StageSpec{Volume: vol, Path: b.kubelet("staging")}
	must(t, b.Stage(t.Context(), s))
	must(t, os.RemoveAll(filepath.Join(b.Sys, "block", "vdb"))) // detached under its mount, which holds the name
	b.plug(t, "vdc", serial, num(254, 32))
	err := b.Stage(t.Context(), s)
	wantKind(t, err, volume.Conflict, "unstage the path first")
	if !volume.MayHaveWritten(err) {
		t.Errorf("want kubelet to go on to unstage it, got %v", err)
	}
	must(t, b.Unstage(t.Context(), vol, s.Path))
	must(t, b.Stage(t.Context(), s))
	if there, _ := b.mounter.table.At(s.Path); there.Device != num(254, 32) {
		t.Errorf("want the disk of now mounted, got %v", b.mounter.table)
	}
}

func TestStageRefusesAnotherMountAtThePath(t *testing.T) {
	t.Parallel()
	there := func(n disk.Number, fsType, option string) Entry {
		return Entry{Device: n, FSType: fsType, Source: "/dev/vdx", Options: []string{option}}
	}
	for _, c := range []struct {
		name string
		m    Entry
		s    StageSpec
		kind volume.Kind
	}{
		{"another disk", there(num(254, 32), "ext4", "rw"), StageSpec{FSType: "ext4"}, volume.Conflict},
		{"another file system", there(num(254, 16), "xfs", "rw"), StageSpec{FSType: "ext4"}, volume.Incompatible},
		{"read-only", there(num(254, 16), "ext4", "ro"), StageSpec{FSType: "ext4"}, volume.Incompatible},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFakeHost(t)
			b.plug(t, "vdb", serial, num(254, 16))
			c.m.Path = b.kubelet("staging")
			b.mounter.add(c.m)
			c.s.Volume, c.s.Path = vol, c.m.Path
			wantKind(t, b.Stage(t.Context(), c.s), c.kind, c.m.Path)
			if len(b.mounter.table) != 1 {
				t.Errorf("want the mounts as they were, got %v", b.mounter.table)
			}
		})
	}
}

func TestAWritableStageServesAReadOnlyRequest(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	b.mounter.add(Entry{Device: num(254, 16), Path: b.kubelet("staging"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
	if err := b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging"), FSType: "ext4", ReadOnly: true}); err != nil {
		t.Error(err)
	}
}

func TestStageRejectsInvalidRequestsBeforeItFindsTheDisk(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t) // no disk: a wait for one would hang this test
	if err := os.Symlink(t.TempDir(), b.Path("link")); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]StageSpec{
		"file system":         {Path: b.kubelet("s"), FSType: "ntfs"},
		"default file system": {Path: b.kubelet("s"), DefaultFSType: "zfs"},
		"mount flag":          {Path: b.kubelet("s"), MountFlags: []string{"remount"}},
		"root directory":      {Path: "/"},
		"root, spelled out":   {Path: "/x/.."},
		"relative":            {Path: "x"},
		"a link":              {Path: b.Path("link")},
	} {
		s.Volume = vol
		if err := b.Stage(t.Context(), s); !volume.Is(err, volume.InvalidArgument) {
			t.Errorf("%s: want an invalid argument, got %v", name, err)
		}
	}
}

func TestADiskWithAnotherFileSystemIsNotMounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ holds, wants string }{
		"not the one asked for": {"xfs", "ext4"}, "one unknown here": {"ntfs", ""}, "nor for ext4": {"btrfs", "ext4"},
	} {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		b.tools.answers["blkid"] = Result{Stdout: "TYPE=" + c.holds + "\nUSAGE=filesystem\n"}
		err := b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s"), FSType: c.wants})
		if !volume.Is(err, volume.Conflict) || len(b.tools.changed()) > 0 || len(b.mounter.table) > 0 {
			t.Errorf("%s: want a conflict and nothing changed, got %v, %q", name, err, b.tools.changed())
		}
	}
}

func TestFsckDecidesWhetherADamagedFileSystemIsMounted(t *testing.T) {
	t.Parallel()
	const state, recorded, incompatible = 0x3A, 0x194, 0x60
	with := func(at int, value byte) func([]byte) {
		return func(s []byte) {
			s[state], s[0x65] = 1, 4 // with a checksum, which is that of Linux without the last inversion
			s[at] = value
			binary.LittleEndian.PutUint32(s[0x3FC:], ^crc32.Checksum(s[:0x3FC], crc32.MakeTable(crc32.Castagnoli)))
		}
	}
	clean := with(state, 1)
	unchecked := volume.Unavailable
	for _, c := range []struct {
		code  int
		super func([]byte)
		inUse bool
		kind  volume.Kind // Unknown if it is mounted
	}{
		{code: 0},
		{code: 1},
		{code: 2},
		{code: 3},
		{code: 4, kind: volume.DataLoss},
		{code: 5, kind: volume.DataLoss},
		{code: 6, kind: volume.DataLoss},
		{code: 12, kind: volume.DataLoss},
		{code: 8, kind: unchecked},
		{code: 9, kind: unchecked},
		{code: 8, inUse: true},
		{code: 9, inUse: true},
		{code: 8, super: clean},
		{code: 9, super: clean},
		{code: 8, super: with(state, 3), kind: unchecked},    // the kernel found an error
		{code: 8, super: with(state, 0), kind: unchecked},    // not unmounted
		{code: 8, super: with(recorded, 1), kind: unchecked}, // an error that was recorded
		{code: 8, super: func(s []byte) { s[0xE0] = 8; with(incompatible, 4)(s) }, kind: unchecked}, // a journal to replay, which may hold an error
		{code: 8, super: func(s []byte) { clean(s); s[0x3FC]++ }, kind: unchecked},                  // a wrong checksum
		{code: 8, super: func(s []byte) { clean(s); s[0x65] = 0 }, kind: unchecked},                 // none, and no backup that agrees
		{code: 8, super: with(56, 0), kind: unchecked},                                              // no superblock
		{code: 16, super: clean, kind: unchecked},
		{code: 32, super: clean, kind: unchecked},
		{code: 127, super: clean, kind: unchecked},
		{code: 128, super: clean, kind: unchecked},
		{code: 16, inUse: true, kind: unchecked},
		{code: 36, kind: unchecked},
	} {
		b := newFakeHost(t)
		device := b.plug(t, "vdb", serial, num(254, 16))
		if c.super != nil {
			device.contents = superOf(c.super, extSuper)
		}
		b.kernel.inUse = func(string) bool { return c.inUse }
		b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
		b.tools.answers["fsck.ext4"] = Result{Code: c.code, Stdout: "UNEXPECTED INCONSISTENCY"}
		err := b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s")})
		if got, want := len(b.mounter.table) == 1, c.kind == volume.Unknown; got != want || want != (err == nil) {
			t.Errorf("exit code %d of %+v: want mounted %t, got %t, error %v", c.code, c, want, got, err)
		}
		if c.kind != volume.Unknown {
			wantKind(t, err, c.kind, "UNEXPECTED INCONSISTENCY")
		}
	}
}

func TestAMountedDiskIsNotChecked(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
	b.mounter.add(Entry{Device: num(254, 16), Path: b.kubelet("pod"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
	if err := b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s")}); err != nil {
		t.Fatal(err)
	}
	if ran := b.tools.changed(); len(ran) > 0 {
		t.Errorf("want no fsck beside a mount, got %q", ran)
	}
}

func TestStageBelievesTheMountTableAndNotTheMount(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	b.mounter.wrong = num(254, 64)
	wantKind(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s")}), volume.Conflict, "254:64", "254:16")
	if len(b.mounter.table) > 0 {
		t.Errorf("want no mount of another disk left, got %v", b.mounter.table)
	}
}

func TestAFailedMkfsLeavesNothingMounted(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	b.tools.answers["mkfs.ext4"] = Result{Code: 1, Stderr: "No space left\non device"}
	wantKind(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s")}), volume.Failed, "No space left on device")
	b.tools.answers["mkfs.ext4"] = Result{}
	b.mounter.fail = errors.New("wrong fs type")
	if err := b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("s")}); err == nil || len(b.mounter.table) > 0 {
		t.Errorf("want the mount's error and no mount, got %v, %v", err, b.mounter.table)
	}
}

func TestNoFileSystemIsMadeOnADiskThatMayHoldData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*fakeHost, *fakeDevice, *StageSpec)
		kind   volume.Kind
		words  string
	}{
		{"its beginning cannot be read", func(_ *fakeHost, d *fakeDevice, _ *StageSpec) { d.badFrom = 1 }, volume.DataLoss, "cannot be read"},
		{"its end cannot be read", func(_ *fakeHost, d *fakeDevice, _ *StageSpec) { d.badFrom = 16<<20 - 1 }, volume.DataLoss, "cannot be read"},
		{"it ends before its size", func(_ *fakeHost, d *fakeDevice, _ *StageSpec) { d.contents = make([]byte, 8<<20) }, volume.DataLoss, "cannot be read"},
		{"it has no size", func(_ *fakeHost, d *fakeDevice, _ *StageSpec) { d.size = 0 }, volume.Unavailable, "size of 0"},
		{"wipefs sees a signature", func(b *fakeHost, _ *fakeDevice, _ *StageSpec) {
			b.tools.answers["wipefs"] = Result{Stdout: "0x0 drbd\n"}
		}, volume.DataLoss, "drbd"},
		{"wipefs fails", func(b *fakeHost, _ *fakeDevice, _ *StageSpec) {
			b.tools.answers["wipefs"] = Result{Code: 1, Stderr: "probing failed"}
		}, volume.DataLoss, "probing failed"},
		{"blkid sees two", func(b *fakeHost, _ *fakeDevice, _ *StageSpec) { b.tools.answers["blkid"] = Result{Code: 8} }, volume.DataLoss, "several"},
		{"blkid fails", func(b *fakeHost, _ *fakeDevice, _ *StageSpec) { b.tools.answers["blkid"] = Result{Code: 4} }, volume.DataLoss, "exit code 4"},
		{"it was made from a source", func(_ *fakeHost, _ *fakeDevice, s *StageSpec) { s.FromSource = true }, volume.DataLoss, "delete the claim and make one without a source"},
		{"it was made from a source, with a format", func(_ *fakeHost, _ *fakeDevice, s *StageSpec) { s.FromSource, s.Format.BlockSize = true, 1024 }, volume.DataLoss, "does not format it"},
		{"read-only by its mode", func(_ *fakeHost, _ *fakeDevice, s *StageSpec) { s.ReadOnly = true }, volume.Conflict, "read-only"},
		{"the class says ro", func(_ *fakeHost, _ *fakeDevice, s *StageSpec) { s.MountFlags = []string{"noatime,ro"} }, volume.Conflict, "read-only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFakeHost(t)
			d := b.plug(t, "vdb", serial, num(254, 16))
			s := StageSpec{Volume: vol, Path: b.kubelet("staging"), FSType: "ext4"}
			c.change(b, d, &s)
			wantKind(t, b.Stage(t.Context(), s), c.kind, c.words)
			if ran := b.tools.changed(); len(ran) > 0 || len(b.mounter.table) > 0 {
				t.Errorf("want nothing changed, got %q, mounts %v", ran, b.mounter.table)
			}
		})
	}
}

func TestAStaleLinkToAnotherDiskIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		b.plug(t, "vdb", "b7e2d8c4-19f3-4a6e-9", num(254, 16))
		byID := filepath.Join(b.Dev, "disk", "by-id")
		must(t, os.MkdirAll(byID, 0o755))
		must(t, os.Symlink("../../vdb", filepath.Join(byID, "virtio-"+serial)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := b.Stage(ctx, StageSpec{Volume: vol, Path: b.kubelet("staging")})
		wantKind(t, err, volume.DeadlineExceeded, "virtio-"+serial, "leads to vdb", "b7e2d8c4-19f3-4a6e-9")
		if len(b.tools.ran) > 0 || len(b.mounter.table) > 0 {
			t.Errorf("want the disk left alone, got %q, %v", b.tools.ran, b.mounter.table)
		}
	})
}

func TestADiskExchangedBeforeEachUseIsRefused(t *testing.T) {
	t.Parallel()
	exchange := map[string]map[string]string{
		"another serial":                      {"serial": "b7e2d8c4-19f3-4a6e-9"},
		"the same serial again, another disk": {"diskseq": "8\n"},
		"another number":                      {"dev": "254:48\n"},
	}
	for name, files := range exchange {
		for _, moment := range []string{"blkid", "mkfs.ext4"} { // before mkfs, before the mount
			t.Run(name+" at "+moment, func(t *testing.T) {
				t.Parallel()
				b := newFakeHost(t)
				b.plug(t, "vdb", serial, num(254, 16))
				b.Sysfs(t, "vdb", map[string]string{"diskseq": "7\n"})
				b.tools.during = func(tool string) {
					if tool == moment {
						b.Sysfs(t, "vdb", files)
					}
				}
				err := b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging")})
				wantKind(t, err, volume.Conflict, "exchanged or removed", serial)
				if len(b.mounter.table) > 0 || moment == "blkid" && len(b.tools.changed()) > 0 {
					t.Errorf("want nothing done to the other disk, got %q, %v", b.tools.changed(), b.mounter.table)
				}
			})
		}
	}
}

// superOf is a disk with an ext superblock at those offsets, changed by do.
func superOf(do func(super []byte), offsets ...int) []byte {
	content := make([]byte, 40<<20)
	for _, at := range offsets {
		super := content[at:]
		binary.LittleEndian.PutUint16(super[56:], 0xEF53)
		super[4] = 1 // block
		if do != nil {
			do(super)
		}
	}
	return content
}

func TestAFileSystemThatUsesAnotherDeviceIsNeitherCheckedNorMounted(t *testing.T) {
	t.Parallel()
	const journal, recovery, inode, device = 0x5C, 0x60, 0xE0, 0xE4
	options := func(text string) func([]byte) { return func(s []byte) { copy(s[0x200:0x240], text) } }
	btrfs := func(at int, value uint64) []byte {
		content := append(beginnings()["btrfs"], make([]byte, 16<<20)...)
		binary.LittleEndian.PutUint64(content[btrfsSuper+0x88:], 1)
		binary.LittleEndian.PutUint64(content[btrfsSuper+at:], value)
		return content
	}
	for _, c := range []struct {
		name, fsType string
		content      []byte
		words        string // of the refusal; empty for none
	}{
		{"no journal", "ext2", superOf(nil, extSuper), ""},
		{"a journal in the file system", "ext4", superOf(func(s []byte) { s[journal], s[inode] = 4, 8 }, extSuper), ""},
		{"a journal without an inode", "ext4", superOf(func(s []byte) { s[journal] = 4 }, extSuper), "journal is on another device"},
		{"no journal, and one to recover", "ext4", superOf(func(s []byte) { s[recovery] = 4 }, extSuper), "journal is on another device"},
		{"a journal's device", "ext4", superOf(func(s []byte) { s[journal], s[inode], s[device] = 4, 8, 1 }, extSuper), "journal is on another device"},
		{"a journal's UUID", "ext3", superOf(func(s []byte) { s[inode], s[0xD0] = 8, 1 }, extSuper), "journal is on another device"},
		{"in the copy for blocks of 1 KiB", "ext4", superOf(func(s []byte) { s[device] = 1 }, 8193<<10), "journal is on another device"},
		{"in the copy for blocks of 2 KiB", "ext4", superOf(func(s []byte) { s[device] = 1 }, 32<<20), "journal is on another device"},
		{"in the copy that the superblock leads to", "ext4", append(superOf(func(s []byte) { s[0x18], s[0x20] = 2, 9 }, extSuper)[:9*4096],
			superOf(func(s []byte) { s[device] = 1 }, 0)...), "journal is on another device"},
		{"harmless mount options", "ext4", superOf(options("noatime,data=writeback,errors=panic"), extSuper), ""},
		{"a mount option that is refused", "ext4", superOf(options("noatime,journal_path=/dev/vda"), extSuper), `"journal_path=/dev/vda", which is refused: it uses another device`},
		{"mount options to the field's end", "ext4", superOf(options("data=writeback,data=writeback,data=writeback,Journal_Dev=0x801,ro,"), extSuper), `"Journal_Dev=0x801"`},
		{"a mount option that is no text", "ext4", superOf(options("journal_dev=\x1b[2J"), extSuper), `"journal_dev=?[2J"`},
		{"btrfs of one disk", "btrfs", btrfs(0x88, 1), ""},
		{"btrfs of two disks", "btrfs", btrfs(0x88, 2), "several devices"},
		{"btrfs of no disk", "btrfs", btrfs(0x88, 0), "several devices"},
		{"a btrfs that grows into others", "btrfs", btrfs(0x38, 1<<32), "several devices"},
		{"xfs", "xfs", append(beginnings()["xfs"], make([]byte, 16<<20)...), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, readOnly := range []bool{false, true} {
				b := newFakeHost(t)
				device := b.plug(t, "vdb", serial, num(254, 16))
				device.contents = c.content
				b.tools.answers["blkid"] = Result{Stdout: "TYPE=" + c.fsType + "\nUSAGE=filesystem\n"}
				if c.words == "" {
					must(t, fs.CheckSingleDevice(&disk.Disk{Device: device}, vol, c.fsType))
					continue
				}
				err := b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging"), ReadOnly: readOnly})
				wantKind(t, err, volume.Conflict, string(vol), "vdb", c.fsType, c.words)
				if len(b.mounter.table) != 0 || len(b.tools.changed()) != 0 {
					t.Errorf("want nothing run or mounted, got %q, %v", b.tools.changed(), b.mounter.table)
				}
			}
		})
	}
}

// e2fsck may replace the superblock by a backup that the driver has not checked.
func TestTheSuperblockIsCheckedAgainAfterFsck(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	disk := b.plug(t, "vdb", serial, num(254, 16))
	disk.contents = superOf(nil, extSuper)
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
	b.tools.during = func(name string) {
		if name == "fsck.ext4" {
			disk.contents = superOf(func(s []byte) { s[0xE4] = 1 }, extSuper)
		}
	}
	wantKind(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging")}), volume.Conflict, "journal is on another device")
	if len(b.mounter.table) != 0 {
		t.Errorf("want nothing mounted, got %v", b.mounter.table)
	}
}

// The kernel may know another disk of the same UUID by the time of the mount.
func TestABtrfsThatWasMountedWithAnotherDiskIsUnmountedAgain(t *testing.T) {
	for _, c := range []struct {
		disks uint64
		err   error
		kind  volume.Kind
		words string
	}{
		{2, nil, volume.Conflict, "a btrfs of 2 devices"},
		{0, errors.New("inappropriate ioctl"), volume.Failed, "inappropriate ioctl"},
	} {
		h, m, _ := realHost(t, 256<<20)
		h.kernel.btrfsDevices = func(path string) (uint64, error) {
			if n, err := fs.BtrfsDevices(path); n != 1 || err != nil {
				t.Errorf("want the kernel to tell of one disk, got %d, %v", n, err)
			}
			return c.disks, c.err
		}
		wantKind(t, h.Stage(t.Context(), StageSpec{Volume: vol, Path: m.Path("staging"), FSType: "btrfs"}), c.kind, c.words, string(vol))
		if n := countMounts(t, h, m); n != 0 {
			t.Errorf("want it unmounted, got %d mounts", n)
		}
	}
}

// Two disks with one UUID may be mounted as one btrfs. Each call that answers OK because of a mount checks that.
func TestABtrfsOfSeveralDevicesIsRefused(t *testing.T) {
	for name, call := range map[string]func(b *fakeHost, staging, target string) error{
		"stage again": func(b *fakeHost, staging, _ string) error {
			return b.Stage(t.Context(), StageSpec{Volume: vol, Path: staging})
		},
		"stage again, read-only": func(b *fakeHost, staging, _ string) error {
			return b.Stage(t.Context(), StageSpec{Volume: vol, Path: staging, ReadOnly: true})
		},
		"stage again, from a source": func(b *fakeHost, staging, _ string) error {
			return b.Stage(t.Context(), StageSpec{Volume: vol, Path: staging, FromSource: true})
		},
		"publish": func(b *fakeHost, staging, target string) error {
			return b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: target + "2"})
		},
		"publish again": func(b *fakeHost, staging, target string) error {
			return b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: target})
		},
		"expand": func(b *fakeHost, staging, _ string) error {
			_, err := b.Expand(t.Context(), ExpandSpec{Volume: vol, Path: staging})
			return err
		},
		"expand where it is published": func(b *fakeHost, _, target string) error {
			_, err := b.Expand(t.Context(), ExpandSpec{Volume: vol, Path: target})
			return err
		},
	} {
		for devices, kind := range map[uint64]volume.Kind{0: volume.Conflict, 1: volume.Unknown, 2: volume.Conflict, 3: volume.Conflict} {
			b := btrfsHost(t)
			staging, target := b.kubelet("staging"), b.kubelet("pod")
			for _, path := range []string{staging, target} {
				b.mounter.add(Entry{Device: num(0, 50), Path: path, FSType: "btrfs", Source: filepath.Join(b.Dev, "vdb"), Options: []string{"rw"}})
			}
			b.kernel.btrfsDevices = func(string) (uint64, error) { return devices, nil }
			switch err := call(b, staging, target); {
			case kind == volume.Unknown && err != nil:
				t.Errorf("%s: want success with one device, got %v", name, err)
			case kind != volume.Unknown:
				wantKind(t, err, kind, fmt.Sprintf("a btrfs of %d devices", devices))
				if len(b.mounter.table) != 2 {
					t.Errorf("%s: want the mounts as they were, got %v", name, b.mounter.table)
				}
			}
		}
	}
}

// btrfsHost is a host with a btrfs on the disk of the volume, which is not mounted.
func btrfsHost(t *testing.T) *fakeHost {
	t.Helper()
	b := newFakeHost(t)
	d := b.plug(t, "vdb", serial, num(254, 16))
	d.contents, d.holes = superblockOf400MiB("btrfs"), true
	d.resize(400 << 20)
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=btrfs\nUSAGE=filesystem\n"}
	must(t, os.MkdirAll(b.Dev, 0o755))
	deviceNode(t, b)
	return b
}

// What mount(8) did after the answer, or what the driver could not look at, is not taken for staged.
func TestAMountThatNobodyHasCheckedIsNotStaged(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(b *fakeHost)
		mounts  int // after the first call
		again   volume.Kind
	}{
		"mount(8) ends after the answer": {func(b *fakeHost) {
			b.mounter.late = volume.Errorf(volume.DeadlineExceeded, "mount: no answer in time")
			b.kernel.btrfsDevices = func(string) (uint64, error) { return 2, nil }
		}, 1, volume.Conflict},
		"the table cannot be read after the mount": {func(b *fakeHost) {
			read := b.readTable
			b.readTable = func(file string) (Table, error) {
				if len(b.mounter.table) > 0 {
					b.readTable = read
					return nil, errors.New("input/output error")
				}
				return read(file)
			}
		}, 0, volume.Unknown},
	} {
		b := btrfsHost(t)
		s := StageSpec{Volume: vol, Path: b.kubelet("staging")}
		c.happens(b)
		if err := b.Stage(t.Context(), s); err == nil || len(b.mounter.table) != c.mounts {
			t.Errorf("%s: want an error and %d mounts, got %v, %v", name, c.mounts, err, b.mounter.table)
		}
		if err := b.Stage(t.Context(), s); err != nil && c.again == volume.Unknown || err == nil && c.again != volume.Unknown || err != nil && !volume.Is(err, c.again) {
			t.Errorf("%s: want %v, got %v", name, c.again, err)
		}
	}
}

func TestTheErrorForABtrfsWithAMountedUUIDSaysSo(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	d := b.plug(t, "vdb", serial, num(254, 16))
	d.contents, d.holes = superblockOf400MiB("btrfs"), true
	d.resize(400 << 20)
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=btrfs\nUSAGE=filesystem\n"}
	b.mounter.fail = volume.Errorf(volume.Failed, "mount %s: mount(2) system call failed: File exists.", filepath.Join(b.Dev, "vdb"))
	wantKind(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging")}), volume.Failed, "File exists", "the same UUID", "btrfstune -u")
}

// A program that makes or repairs a file system must run to its end: a kill leaves part of its work.
func TestAProgramThatWritesContinuesWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b.Host.fs = fs.NewTools(fs.Options{Commands: cancelingTools{b.tools, cancel, t}, Log: b.log})
	_ = b.Stage(ctx, StageSpec{Volume: vol, Path: b.kubelet("staging"), FSType: "ext4"})
	if ctx.Err() == nil {
		t.Error("want the context canceled when mkfs ran")
	}
}

// cancelingTools cancels the context when a program that writes begins, and checks that the program has a context
// without an end.
type cancelingTools struct {
	command.Runner
	cancel context.CancelFunc
	t      *testing.T
}

func (c cancelingTools) Run(ctx context.Context, name string, args ...string) (Result, error) {
	if strings.HasPrefix(name, "mkfs") || name == "fsck.ext4" || name == "resize2fs" {
		c.cancel()
		if ctx.Err() != nil || ctx.Done() != nil {
			c.t.Errorf("want %s run to its end", name)
		}
	}
	return c.Runner.Run(ctx, name, args...)
}

// Before Linux 5.8 one reading of the mount table may miss a mount.
func TestStageDoesNothingWhileTheMountTableIsUnstable(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.release = "5.4.0"
	readings := 0
	b.readTable = func(string) (Table, error) {
		readings++
		return Table{{ID: readings, Path: "/"}}, nil
	}
	b.plug(t, "vdb", serial, num(254, 16))
	wantKind(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging")}), volume.Unavailable, "5.8")
	if len(b.tools.ran) > 0 || len(b.mounter.table) > 0 {
		t.Errorf("want nothing done, got %q, %v", b.tools.ran, b.mounter.table)
	}
}
