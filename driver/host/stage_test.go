package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestStageMakesAFileSystemOnlyOnAnEmptyDisk(t *testing.T) {
	t.Parallel()
	holds := func(fsType string) Result { return Result{Stdout: "TYPE=" + fsType + "\nUSAGE=filesystem\n"} }
	empty := Result{Code: 2}
	for _, c := range []struct {
		name    string
		blkid   Result
		s       Staging
		ran     []string // with DISK for the disk's path
		fsType  string
		options []string
	}{
		{name: "ext4", blkid: empty, s: Staging{FSType: "ext4"}, ran: []string{"mkfs.ext4 -F -m0 DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "xfs", blkid: empty, s: Staging{FSType: "xfs", Flags: []string{"noatime", "discard"}}, ran: []string{"mkfs.xfs -f DISK"}, fsType: "xfs", options: []string{"nouuid", "noatime", "discard"}},
		{name: "SELinux's context", blkid: empty, s: Staging{FSType: "ext4", Flags: []string{`context="system_u:object_r:container_file_t:s0:c1,c2"`}}, ran: []string{"mkfs.ext4 -F -m0 DISK"}, fsType: "ext4", options: []string{"errors=remount-ro", `context="system_u:object_r:container_file_t:s0:c1,c2"`}},
		{name: "nobody says which", blkid: empty, ran: []string{"mkfs.ext4 -F -m0 DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "the driver's default", blkid: empty, s: Staging{Default: "xfs"}, ran: []string{"mkfs.xfs -f DISK"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4, made so", blkid: empty, s: Staging{FSType: "ext4", Format: Format{BlockSize: 1024, InodeSize: 512, BytesPerInode: 4096}}, ran: []string{"mkfs.ext4 -F -m0 -b 1024 -I 512 -i 4096 DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "ext3 by default, with inodes", blkid: empty, s: Staging{Default: "ext3", Format: Format{Inodes: 77}}, ran: []string{"mkfs.ext3 -F -m0 -N 77 DISK"}, fsType: "ext3", options: []string{"errors=remount-ro"}},
		{name: "xfs, made so", blkid: empty, s: Staging{FSType: "xfs", Format: Format{BlockSize: 2048, InodeSize: 1024}}, ran: []string{"mkfs.xfs -f -b size=2048 -i size=1024 DISK"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4 is there, however it was made", blkid: holds("ext4"), s: Staging{FSType: "ext4", Format: Format{BlockSize: 1024}}, ran: []string{"fsck -a DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "xfs is there, with a format that it has not", blkid: holds("xfs"), s: Staging{Format: Format{Inodes: 77}}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4 is there", blkid: holds("ext4"), s: Staging{FSType: "ext4"}, ran: []string{"fsck -a DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "ext3 is there, ext4 asked for", blkid: holds("ext3"), s: Staging{FSType: "ext4"}, ran: []string{"fsck -a DISK"}, fsType: "ext3", options: []string{"errors=remount-ro"}},
		{name: "xfs is there, nobody says which", blkid: holds("xfs"), s: Staging{Default: "ext4"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "ext4 is there, read-only", blkid: holds("ext4"), s: Staging{FSType: "ext4", ReadOnly: true}, fsType: "ext4", options: []string{"errors=remount-ro", "ro"}},
		{name: "ext4, the class says what to do about errors", blkid: empty, s: Staging{FSType: "ext4", Flags: []string{"errors=panic"}}, ran: []string{"mkfs.ext4 -F -m0 DISK"}, fsType: "ext4", options: []string{"errors=remount-ro", "errors=panic"}}, // the last one counts
		{name: "made from a source", blkid: holds("ext4"), s: Staging{FSType: "ext4", FromSource: true}, ran: []string{"fsck -a DISK", "resize2fs DISK"}, fsType: "ext4", options: []string{"errors=remount-ro"}},
		{name: "made from a source, xfs", blkid: holds("xfs"), s: Staging{FromSource: true}, ran: []string{"xfs_growfs -d PATH"}, fsType: "xfs", options: []string{"nouuid"}},
		{name: "made from a source, read-only", blkid: holds("xfs"), s: Staging{FromSource: true, ReadOnly: true}, fsType: "xfs", options: []string{"nouuid", "ro"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Options{})
			b.tools.answers["blkid"] = c.blkid
			b.plug(t, "vdb", serial, Number{254, 16})
			disk := filepath.Join(b.Dev, "vdb")
			c.s.Volume, c.s.Path = vol, b.place("staging")
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
			wantMount := Mount{Device: Number{254, 16}, Root: "/", Path: c.s.Path, FSType: c.fsType, Source: disk, Options: append([]string{"relatime"}, c.options...)}
			if diff := cmp.Diff(Table{wantMount}, b.mounter.table); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFormatThatAFileSystemHasNotMakesNone(t *testing.T) {
	t.Parallel()
	for _, s := range []Staging{
		{FSType: "xfs", Format: Format{BytesPerInode: 4096}},
		{Default: "xfs", Format: Format{Inodes: 5}},
		{FSType: "btrfs", Format: Format{BlockSize: 4096}},
		{FSType: "btrfs", Format: Format{InodeSize: 4096}},
	} {
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		s.Volume, s.Path = vol, b.place("staging")
		wantKind(t, b.Stage(t.Context(), s), volume.InvalidArgument, "has no such option")
		if len(b.mounter.table) != 0 || len(b.tools.changed()) != 0 {
			t.Errorf("%+v: want nothing made or mounted, got %v, %q", s, b.mounter.table, b.tools.changed())
		}
	}
}

func TestAnEmptyDiskMadeFromASourceIsNotFormattedWhateverItsFormat(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	s := Staging{Volume: vol, Path: b.place("staging"), FSType: "ext4", FromSource: true, Format: Format{BlockSize: 1024}}
	wantKind(t, b.Stage(t.Context(), s), volume.DataLoss, "not formatted")
	if len(b.tools.changed()) != 0 {
		t.Errorf("want nothing made, got %q", b.tools.changed())
	}
}

func TestStageAgainOfTheRightDiskDoesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	s := Staging{Volume: vol, Path: b.place("staging"), FSType: "ext4"}
	for range 3 {
		if err := b.Stage(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.mounter.table) != 1 || len(b.tools.changed()) != 1 {
		t.Errorf("want one mount and one mkfs, got %v, %q", b.mounter.table, b.tools.changed())
	}
}

func TestAGrowthThatFailedIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=xfs\nUSAGE=filesystem\n"}
	b.tools.answers["xfs_growfs"] = Result{Code: 1, Stderr: "cannot"}
	s := Staging{Volume: vol, Path: b.place("staging"), FromSource: true}
	wantKind(t, b.Stage(t.Context(), s), volume.Failed, "grow the xfs", "cannot")
	wantKind(t, b.Stage(t.Context(), s), volume.Failed, "cannot")
	b.tools.answers["xfs_growfs"] = Result{}
	if err := b.Stage(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// After a final answer kubelet holds a volume for unstaged.
func TestAFailureIsFinalOnlyWhereNothingIsMounted(t *testing.T) {
	t.Parallel()
	const ext4, xfs = "TYPE=ext4\nUSAGE=filesystem\n", "TYPE=xfs\nUSAGE=filesystem\n"
	mounted := func(n Number, option string) func(*bench) {
		return func(b *bench) {
			b.mounter.add(Mount{Device: n, Path: b.place("staging"), FSType: "ext4", Source: "/dev/vdb", Options: []string{option}})
		}
	}
	for _, c := range []struct {
		name  string
		blkid string
		s     Staging
		do    func(*bench)
		kind  volume.Kind
		final bool
	}{
		{name: "the growth after the mount", blkid: ext4, s: Staging{FromSource: true}, do: func(b *bench) { b.tools.answers["resize2fs"] = Result{Code: 1} }, kind: volume.Failed},
		{name: "the growth of what was mounted", s: Staging{FromSource: true}, do: func(b *bench) {
			mounted(Number{254, 16}, "rw")(b)
			b.tools.answers["resize2fs"] = Result{Code: 1}
		}, kind: volume.Failed},
		{name: "a mount that is there although mount(8) failed", blkid: ext4, do: func(b *bench) { b.Host.mounter = failsAfter{b.mounter} }, kind: volume.Failed},
		{name: "a mount that is there and is not shown", blkid: ext4, do: func(b *bench) {
			b.Host.mounter = failsAfter{nil}
		}, kind: volume.Failed},
		{name: "a mount of the disk's name of before", do: mounted(Number{254, 32}, "rw"), kind: volume.Conflict},
		{name: "a flag that is refused", s: Staging{Flags: []string{"remount"}}, do: mounted(Number{254, 16}, "rw"), kind: volume.InvalidArgument},
		{name: "two disks", do: func(b *bench) {
			mounted(Number{254, 16}, "rw")(b)
			b.plug(b.t, "vdc", serial, Number{254, 32})
		}, kind: volume.Conflict},
		{name: "another kind of file system is mounted", s: Staging{FSType: "xfs"}, do: mounted(Number{254, 16}, "rw"), kind: volume.Incompatible, final: true},
		{name: "mounted read-only", do: mounted(Number{254, 16}, "ro"), kind: volume.Incompatible, final: true},
		{name: "another kind of file system is on the disk", blkid: xfs, s: Staging{FSType: "ext4"}, kind: volume.Conflict, final: true},
		{name: "the check", blkid: ext4, do: func(b *bench) { b.tools.answers["fsck"] = Result{Code: 4} }, kind: volume.DataLoss, final: true},
		{name: "the mount", blkid: ext4, do: func(b *bench) { b.mounter.fail = volume.Errorf(volume.Failed, "wrong fs type") }, kind: volume.Failed, final: true},
		{name: "another disk was mounted, and taken away", blkid: ext4, do: func(b *bench) { b.mounter.wrong = Number{254, 64} }, kind: volume.Conflict, final: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Options{})
			b.plug(t, "vdb", serial, Number{254, 16})
			b.tools.answers["blkid"] = Result{Stdout: c.blkid}
			if c.do != nil {
				c.do(b)
			}
			c.s.Volume, c.s.Path = vol, b.place("staging")
			err := b.Stage(t.Context(), c.s)
			wantKind(t, err, c.kind)
			if volume.MayHaveWritten(err) == c.final {
				t.Errorf("want it final %t, got %v", c.final, err)
			}
		})
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

func TestAVolumeThatCameBackUnderAnotherNameIsUnstagedAndStagedAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	s := Staging{Volume: vol, Path: b.place("staging")}
	must(t, b.Stage(t.Context(), s))
	must(t, os.RemoveAll(filepath.Join(b.Sys, "block", "vdb"))) // detached under its mount, which holds the name
	b.plug(t, "vdc", serial, Number{254, 32})
	err := b.Stage(t.Context(), s)
	wantKind(t, err, volume.Conflict, "unstage the path first")
	if !volume.MayHaveWritten(err) {
		t.Errorf("want kubelet to go on to unstage it, got %v", err)
	}
	must(t, b.Unstage(t.Context(), vol, s.Path))
	must(t, b.Stage(t.Context(), s))
	if there, _ := b.mounter.table.At(s.Path); there.Device != (Number{254, 32}) {
		t.Errorf("want the disk of now mounted, got %v", b.mounter.table)
	}
}

func TestStageRefusesWhatIsStagedOtherwise(t *testing.T) {
	t.Parallel()
	there := func(n Number, fsType, option string) Mount {
		return Mount{Device: n, FSType: fsType, Source: "/dev/vdx", Options: []string{option}}
	}
	for _, c := range []struct {
		name string
		m    Mount
		s    Staging
		kind volume.Kind
	}{
		{"another disk", there(Number{254, 32}, "ext4", "rw"), Staging{FSType: "ext4"}, volume.Conflict},
		{"another file system", there(Number{254, 16}, "xfs", "rw"), Staging{FSType: "ext4"}, volume.Incompatible},
		{"read-only", there(Number{254, 16}, "ext4", "ro"), Staging{FSType: "ext4"}, volume.Incompatible},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Options{})
			b.plug(t, "vdb", serial, Number{254, 16})
			c.m.Path = b.place("staging")
			b.mounter.add(c.m)
			c.s.Volume, c.s.Path = vol, c.m.Path
			wantKind(t, b.Stage(t.Context(), c.s), c.kind, c.m.Path)
			if len(b.mounter.table) != 1 {
				t.Errorf("want the mounts as they were, got %v", b.mounter.table)
			}
		})
	}
}

func TestAWritableStageServesAReadOnlyWish(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.mounter.add(Mount{Device: Number{254, 16}, Path: b.place("staging"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
	if err := b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("staging"), FSType: "ext4", ReadOnly: true}); err != nil {
		t.Error(err)
	}
}

func TestStageRefusesBadWishesBeforeItLooksForADisk(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{}) // no disk: whoever waits for one hangs this test
	if err := os.Symlink(t.TempDir(), b.Path("link")); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Staging{
		"file system":         {Path: b.place("s"), FSType: "ntfs"},
		"default file system": {Path: b.place("s"), Default: "zfs"},
		"mount flag":          {Path: b.place("s"), Flags: []string{"remount"}},
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
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		b.tools.answers["blkid"] = Result{Stdout: "TYPE=" + c.holds + "\nUSAGE=filesystem\n"}
		err := b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("s"), FSType: c.wants})
		if !volume.Is(err, volume.Conflict) || len(b.tools.changed()) > 0 || len(b.mounter.table) > 0 {
			t.Errorf("%s: want a conflict and nothing changed, got %v, %q", name, err, b.tools.changed())
		}
	}
}

func TestFsckDecidesWhetherADamagedFileSystemIsMounted(t *testing.T) {
	t.Parallel()
	for code, mounted := range map[int]bool{0: true, 1: true, 2: true, 4: false, 5: false, 8: true, 12: false} {
		b := newBench(t, Options{})
		b.plug(t, "vdb", serial, Number{254, 16})
		b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
		b.tools.answers["fsck"] = Result{Code: code, Stdout: "UNEXPECTED INCONSISTENCY"}
		err := b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("s")})
		if got := len(b.mounter.table) == 1; got != mounted || mounted != (err == nil) {
			t.Errorf("exit code %d: want mounted %t, got %t, error %v", code, mounted, got, err)
		}
		if !mounted {
			wantKind(t, err, volume.DataLoss, "UNEXPECTED INCONSISTENCY")
		}
	}
}

func TestAMountedDiskIsNotChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
	b.mounter.add(Mount{Device: Number{254, 16}, Path: b.place("pod"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
	if err := b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("s")}); err != nil {
		t.Fatal(err)
	}
	if ran := b.tools.changed(); len(ran) > 0 {
		t.Errorf("want no fsck beside a mount, got %q", ran)
	}
}

func TestStageBelievesTheMountTableAndNotTheMount(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.mounter.wrong = Number{254, 64}
	wantKind(t, b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("s")}), volume.Conflict, "254:64", "254:16")
	if len(b.mounter.table) > 0 {
		t.Errorf("want no mount of another disk left, got %v", b.mounter.table)
	}
}

func TestAFailedMkfsLeavesNothingMounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.plug(t, "vdb", serial, Number{254, 16})
	b.tools.answers["mkfs.ext4"] = Result{Code: 1, Stderr: "No space left\non device"}
	wantKind(t, b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("s")}), volume.Failed, "No space left on device")
	b.tools.answers["mkfs.ext4"] = Result{}
	b.mounter.fail = errors.New("wrong fs type")
	if err := b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("s")}); err == nil || len(b.mounter.table) > 0 {
		t.Errorf("want the mount's error and no mount, got %v, %v", err, b.mounter.table)
	}
}
