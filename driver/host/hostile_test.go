package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/fs"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// Disks that must not be formatted, staged by the driver's own code with the kernel's block devices and the real tools.

// hostile is a machine with one disk of vol, with real programs that are recorded.
type hostile struct {
	*Host
	*testenv.Machine
	tools *watchedTools
	disk  string // its device node
}

// watchedTools runs programs, and keeps which.
type watchedTools struct {
	command.Processes
	ran      []string
	after    func(name string) // runs when a program has ended
	wrap     []string          // the program by which mkfs is run
	restored bool              // whether e2fsck was run with a backup of the superblock
}

func (w *watchedTools) Run(ctx context.Context, name string, args ...string) (Result, error) {
	w.ran = append(w.ran, name)
	w.restored = w.restored || name == "fsck.ext4" && slices.Contains(args, "-b")
	if len(w.wrap) > 0 && strings.HasPrefix(name, "mkfs") {
		name, args = w.wrap[0], slices.Concat(w.wrap[1:], []string{name}, args)
	}
	result, err := w.Processes.Run(ctx, name, args...)
	if w.after != nil {
		w.after(name)
	}
	return result, err
}

// made says which programs that make file systems were run.
func (w *watchedTools) made() []string {
	return slices.DeleteFunc(slices.Clone(w.ran), func(name string) bool { return !strings.HasPrefix(name, "mkfs") })
}

func newHostile(t *testing.T, bytes int64) *hostile {
	t.Helper()
	_, m, disk := realHost(t, bytes)
	x := &hostile{Machine: m, disk: disk, tools: &watchedTools{}}
	x.Host = New(Options{SysRoot: m.Sys, DevRoot: m.Dev, Commands: x.tools, Log: slog.New(slog.DiscardHandler)})
	return x
}

func (x *hostile) stage(t *testing.T, s StageSpec) error {
	t.Helper()
	s.Volume, s.Path = vol, x.Path("staging")
	return x.Host.Stage(t.Context(), s)
}

// staysAsItIs stages the disk with each request and checks that each is refused with the words. The disk must keep
// every byte and must not be mounted, and no mkfs may run.
func (x *hostile) staysAsItIs(t *testing.T, words string, requests ...StageSpec) {
	t.Helper()
	before := sum(t, x.disk)
	for _, s := range requests {
		err := x.stage(t, s)
		if !volume.Is(err, volume.DataLoss) && !volume.Is(err, volume.Conflict) || !strings.Contains(err.Error(), words) {
			t.Errorf("asked for %+v: want a refusal that names %q, got %v", s, words, err)
		}
	}
	if made := x.tools.made(); len(made) > 0 {
		t.Errorf("want no file system made, got %q", made)
	}
	if sum(t, x.disk) != before {
		t.Error("want every byte as it was")
	}
	if n := countMounts(t, x.Host, x.Machine); n != 0 {
		t.Errorf("want no mount, got %d", n)
	}
}

// sum is the hash of what is on the disk, read from the file behind it. The pages of the block device can show what a
// crashed file system never wrote, as long as another mount namespace holds its mount. Holes are not read, and blocks of
// zeros do not count: the pages that the kernel has in memory decide what is a hole.
func sum(t *testing.T, disk string) [sha256.Size]byte {
	t.Helper()
	f, err := os.Open(disk)
	must(t, err)
	must(t, errors.Join(f.Sync(), f.Close()))
	hash := sha256.New()
	dataOf(t, backing(t, disk), func(at int64, bytes []byte) {
		for block := range slices.Chunk(bytes, zeroBlock) {
			if !isZero(block) {
				_ = binary.Write(hash, binary.LittleEndian, at)
				_, _ = hash.Write(block)
			}
			at += int64(len(block))
		}
	})
	return [sha256.Size]byte(hash.Sum(nil))
}

const zeroBlock = 512

func isZero(block []byte) bool { return len(bytes.Trim(block, "\x00")) == 0 }

// otherRequests are requests for a disk with that content. They name a file system that the disk does not hold. If the
// driver cannot mount the content, one names none.
func otherRequests(holds string) []StageSpec {
	switch holds {
	default:
		return []StageSpec{{}, {FSType: "xfs"}}
	case "ext2", "ext3", "ext4":
		return []StageSpec{{FSType: "btrfs"}, {FSType: "xfs"}}
	case "xfs", "btrfs":
		return []StageSpec{{FSType: "ext4"}, {FSType: "ext2"}}
	}
}

func TestNoFileSystemIsMadeOverAnySignatureThatBlkidKnows(t *testing.T) {
	testenv.NeedRoot(t)
	known := strings.Fields(testenv.Run(t, "blkid", "-k"))
	for _, s := range signatures {
		if !slices.Contains(known, s.name) {
			continue // of a later blkid; the list is held complete below
		}
		t.Run(s.name, func(t *testing.T) {
			x := newHostile(t, s.bytes())
			s.make(t, x.disk)
			if says := testenv.Run(t, "blkid", "-p", "-o", "export", x.disk); !strings.Contains(says, "\nTYPE="+s.name+"\n") {
				t.Fatalf("want blkid to take it for %s, got:\n%s", s.name, says)
			}
			x.staysAsItIs(t, s.name, otherRequests(s.name)...)
		})
	}
}

// testdata/signatures-not-made.txt names what cannot be made, and why. Every other name that blkid knows must be made
// above. A name that is new after an update of the tools fails this test and needs a line there or here.
func TestEverySignatureThatBlkidKnowsIsTestedOrListed(t *testing.T) {
	t.Parallel()
	testenv.NeedTools(t, "blkid", "util-linux")
	made := map[string]bool{}
	for _, s := range signatures {
		made[s.name] = true
	}
	text, err := os.ReadFile(filepath.Join("testdata", "signatures-not-made.txt"))
	must(t, err)
	not := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if name == "" || reason == "" || made[name] {
			t.Errorf("line %q: want a name that is not made, and a reason", line)
		}
		not[name] = true
	}
	for _, name := range strings.Fields(testenv.Run(t, "blkid", "-k")) {
		if !made[name] && !not[name] {
			t.Errorf("blkid knows %s, and no test makes it", name)
		}
	}
}

func TestNoFileSystemIsMadeOverAPartitionTableOrAnExtraSignature(t *testing.T) {
	sector := func(s string) string { return pad(s, 512) }
	for _, c := range []struct {
		name, table string
		make        func(t *testing.T, disk string)
	}{
		{"dos", "dos", partitioned("dos", "2048,4096,83")},
		{"dos without partitions", "dos", partitioned("dos", "")},
		{"gpt", "gpt", partitioned("gpt", "2048,4096")},
		{"gpt, the first header lost", "gpt", lose(partitioned("gpt", "2048,4096"), 512, 512)},
		{"gpt, the last header alone", "gpt", lose(partitioned("gpt", "2048,4096"), 0, 1<<20)}, // only wipefs knows it without the protective MBR
		{"gpt, the protective MBR lost", "gpt", lose(partitioned("gpt", "2048,4096"), 0, 512)},
		{"sun", "sun", partitioned("sun", "")},
		{"sgi", "sgi", partitioned("sgi", "")},
		{"bsd", "bsd", plant(patch{512, sector(pad("\x57\x45\x56\x82", 132) + "\x57\x45\x56\x82")})},
		{"bsd, at its other offsets", "bsd", plant(patch{64, "\x57\x45\x56\x82"}, patch{128, "\x57\x45\x56\x82"})},
		{"bcachefs", "bcachefs", plant(patch{4096 + 24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"})},
		{"bcachefs of its first years", "bcachefs", plant(patch{4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"})},
		{"mac", "mac", plant(patch{0, "\x45\x52" + be16(512) + be32(16384)}, patch{512, "PM" + be16(0) + be32(1) + be32(1) + be32(63) + "Apple"})},
		{"aix", "aix", plant(patch{0, "\xc9\xc2\xd4\xc1"})},
		{"ultrix", "ultrix", plant(patch{16384 - 72, le32(0x032957) + le32(1)})},
		{"atari", "atari", plant(patch{0, pad("", 0x1c2) + be32(16384) + "\x01GEM" + be32(2) + be32(8000)})},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newHostile(t, smallDisk)
			c.make(t, x.disk)
			x.staysAsItIs(t, c.table, StageSpec{}, StageSpec{FSType: "ext4"}, StageSpec{FSType: "xfs"})
		})
	}
}

func TestNoFileSystemIsMadeOverTwoFileSystems(t *testing.T) {
	x := newHostile(t, 128<<20)
	testenv.Run(t, "mkfs.btrfs", "-q", x.disk)
	super := headOf(t, x.disk)[btrfsSuper : btrfsSuper+4096]
	testenv.Run(t, "mkfs.ext4", "-q", "-F", x.disk)
	write(t, x.disk, btrfsSuper, []byte(super))
	x.staysAsItIs(t, "several signatures", StageSpec{}, StageSpec{FSType: "ext4"})
}

// partitioned makes a partition table with sfdisk; script is one partition, or empty for none.
func partitioned(kind, script string) func(*testing.T, string) {
	return func(t *testing.T, disk string) {
		t.Helper()
		testenv.NeedTools(t, "sfdisk", "fdisk")
		testenv.Run(t, "sh", "-c", `printf 'label: %s\n%s\n' "$1" "$2" | sfdisk --quiet --no-reread --no-tell-kernel "$3"`, "sh", kind, script, disk)
	}
}

// lose makes a disk and then overwrites a part of it with zeros.
func lose(do func(*testing.T, string), at int64, n int) func(*testing.T, string) {
	return func(t *testing.T, disk string) {
		t.Helper()
		do(t, disk)
		write(t, disk, at, make([]byte, n))
	}
}

func plant(patches ...patch) func(*testing.T, string) {
	return func(t *testing.T, disk string) {
		t.Helper()
		signature{plant: patches}.make(t, disk)
	}
}

func TestADiskThatCannotBeReadIsNotFormatted(t *testing.T) {
	for _, c := range []struct {
		name string
		left int64 // of the disk's backing
	}{{"nowhere", 0}, {"beyond its first MiB", 1 << 20}, {"in its last MiB", smallDisk - 4096}} {
		t.Run(c.name, func(t *testing.T) {
			x := newHostile(t, smallDisk)
			backing := backing(t, x.disk)
			must(t, os.Truncate(backing, c.left)) // the kernel answers reads beyond with an input/output error
			if probe, _ := x.tools.Processes.Run(t.Context(), "blkid", "-p", x.disk); probe.Code != 2 {
				t.Fatalf("want blkid to call it empty, which is the trap, got %+v", probe)
			}
			for _, fsType := range []string{"", "xfs"} {
				wantKind(t, x.stage(t, StageSpec{FSType: fsType}), volume.DataLoss, "cannot be read", "input/output error")
			}
			if info, err := os.Stat(backing); err != nil || info.Size() != c.left || len(x.tools.ran) > 1 {
				t.Errorf("want nothing run and nothing written, got %q, %v, %v", x.tools.ran, info, err)
			}
		})
	}
}

// backing is the file behind the disk.
func backing(t *testing.T, disk string) string {
	t.Helper()
	return strings.TrimSpace(testenv.Run(t, "losetup", "--noheadings", "--output", "BACK-FILE", disk))
}

func TestADiskWithoutSizeIsNotFormatted(t *testing.T) {
	x := newHostile(t, smallDisk)
	must(t, os.Truncate(backing(t, x.disk), 0))
	testenv.Run(t, "losetup", "--set-capacity", x.disk)
	wantKind(t, x.stage(t, StageSpec{}), volume.Unavailable, "size of 0")
	if len(x.tools.ran) > 0 {
		t.Errorf("want nothing run, got %q", x.tools.ran)
	}
}

// protect makes the disk read-only in the kernel, and in the fake sysfs if inSysfs is true.
func (x *hostile) protect(t *testing.T, inSysfs bool) {
	t.Helper()
	testenv.Run(t, "blockdev", "--setro", x.disk)
	t.Cleanup(func() { testenv.Run(t, "blockdev", "--setrw", x.disk) })
	if inSysfs {
		x.Sysfs(t, "vdb", map[string]string{"ro": "1\n"})
	}
}

func TestAWriteProtectedDiskIsNeitherFormattedNorStagedWritable(t *testing.T) {
	for name, inSysfs := range map[string]bool{"in sysfs": true, "not in sysfs": false} {
		t.Run("empty, "+name, func(t *testing.T) {
			x := newHostile(t, smallDisk)
			x.protect(t, inSysfs)
			before := sum(t, x.disk)
			if err := x.stage(t, StageSpec{}); err == nil || inSysfs && !volume.Is(err, volume.Conflict) {
				t.Errorf("want a refusal, got %v", err)
			}
			if sum(t, x.disk) != before || countMounts(t, x.Host, x.Machine) != 0 {
				t.Error("want the disk as it was and no mount")
			}
		})
		t.Run("with a file system, "+name, func(t *testing.T) {
			x := newHostile(t, smallDisk)
			testenv.Run(t, "mkfs.ext4", "-q", x.disk)
			x.protect(t, inSysfs)
			before := sum(t, x.disk)
			if err := x.stage(t, StageSpec{}); err == nil || !strings.Contains(err.Error(), "write-protected") {
				t.Errorf("want it refused as write-protected, got %v", err)
			}
			if n := countMounts(t, x.Host, x.Machine); n != 0 {
				t.Errorf("want no mount that cannot be written, got %d", n)
			}
			must(t, x.stage(t, StageSpec{ReadOnly: true}))
			must(t, x.Unpublish(t.Context(), x.Path("staging")))
			if sum(t, x.disk) != before {
				t.Error("want every byte as it was")
			}
		})
	}
}

// A disk is removed between the probe and mkfs, and another one may take its name.
func TestNoDiskIsFormattedIfTheDiskIsRemovedBeforeMkfs(t *testing.T) {
	for name, exchange := range map[string]func(t *testing.T, x *hostile, other string){
		"gone from the machine": func(t *testing.T, x *hostile, _ string) {
			must(t, os.RemoveAll(filepath.Join(x.Sys, "block", "vdb")))
			must(t, os.Remove(filepath.Join(x.Dev, "vdb")))
		},
		"its node alone is gone": func(t *testing.T, x *hostile, _ string) { must(t, os.Remove(filepath.Join(x.Dev, "vdb"))) },
		"another has its name": func(t *testing.T, x *hostile, other string) {
			must(t, os.Remove(filepath.Join(x.Dev, "vdb")))
			x.Plug(t, "vdb", "b7e2d8c4-19f3-4a6e-9", other)
		},
		"another has its name and its serial": func(t *testing.T, x *hostile, other string) {
			must(t, os.Remove(filepath.Join(x.Dev, "vdb")))
			x.Plug(t, "vdb", serial, other)
		},
		"its node alone is another's": func(t *testing.T, x *hostile, other string) {
			must(t, os.Remove(filepath.Join(x.Dev, "vdb")))
			must(t, os.Symlink(other, filepath.Join(x.Dev, "vdb")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newHostile(t, smallDisk)
			other := testenv.Loop(t, smallDisk)
			before, others := sum(t, x.disk), sum(t, other)
			x.tools.after = func(tool string) {
				if tool == "wipefs" {
					exchange(t, x, other)
				}
			}
			wantKind(t, x.stage(t, StageSpec{FSType: "ext4"}), volume.Conflict, "does not use it")
			if made := x.tools.made(); len(made) > 0 || sum(t, x.disk) != before || sum(t, other) != others {
				t.Errorf("want both disks as they were, got %q run", made)
			}
		})
	}
}

// The disk dies when mkfs has been allowed to begin: what is half made is never mounted, and never taken for a volume.
func TestADiskThatDiesUnderMkfsIsNotMounted(t *testing.T) {
	x := newHostile(t, smallDisk)
	backing := backing(t, x.disk)
	x.tools.after = func(tool string) {
		if tool == "wipefs" {
			must(t, os.Truncate(backing, 0))
			testenv.Run(t, "blockdev", "--setro", x.disk)
		}
	}
	t.Cleanup(func() { testenv.Run(t, "blockdev", "--setrw", x.disk) })
	wantKind(t, x.stage(t, StageSpec{}), volume.Failed, "as ext4")
	if n := countMounts(t, x.Host, x.Machine); n != 0 {
		t.Errorf("want no mount, got %d", n)
	}
}

// Bytes without a signature are no reason to refuse: what an array gives as a new volume need not be zeros. A volume
// made from a source, or recovered from a lost cluster, is never new.
func TestBytesWithoutASignatureAreOverwrittenOnlyWithoutASource(t *testing.T) {
	x := newHostile(t, smallDisk)
	noise := make([]byte, smallDisk)
	_, err := rand.NewChaCha8([32]byte{1}).Read(noise)
	must(t, err)
	write(t, x.disk, 0, noise)
	x.staysAsItIs(t, "made from a source", StageSpec{FromSource: true}, StageSpec{FromSource: true, FSType: "ext4"})
	x.staysAsItIs(t, "read-only", StageSpec{ReadOnly: true})
	must(t, x.stage(t, StageSpec{FSType: "ext4"}))
	must(t, x.Unpublish(t.Context(), x.Path("staging")))
}

// A server that lost its power leaves a journal that must be replayed: by fsck for ext, by the kernel for XFS, never by
// mkfs.
func TestAFileSystemThatWasNotUnmountedIsRecoveredAndNotFormatted(t *testing.T) {
	for fsType, size := range map[string]int64{"ext4": 64 << 20, "xfs": 320 << 20} {
		t.Run(fsType, func(t *testing.T) {
			x := newHostile(t, size)
			staging := x.Path("staging")
			must(t, x.stage(t, StageSpec{FSType: fsType}))
			f, err := os.Create(filepath.Join(staging, "data"))
			must(t, err)
			_, err = f.WriteString("kept")
			must(t, errors.Join(err, f.Sync(), f.Close()))
			crash(t, staging)
			must(t, x.Unpublish(t.Context(), staging))
			x.tools.ran = nil
			x.staysAsItIs(t, fsType, otherRequests(fsType)...)
			for _, readOnly := range []bool{false, true} {
				must(t, x.stage(t, StageSpec{FSType: fsType, ReadOnly: readOnly}))
				if got, _ := os.ReadFile(filepath.Join(staging, "data")); string(got) != "kept" {
					t.Errorf("want the file, got %q", got)
				}
				must(t, x.Unpublish(t.Context(), staging))
			}
			if made := x.tools.made(); len(made) > 0 {
				t.Errorf("want no file system made, got %q", made)
			}
		})
	}
}

// A file system whose log needs a replay cannot be mounted on a write-protected disk, and the kernel writes the reason
// only to its log.
func TestTheErrorForAWriteProtectedFileSystemNamesTheOptionThatReadsIt(t *testing.T) {
	for fsType, size := range map[string]int64{"ext4": 64 << 20, "xfs": 320 << 20} {
		t.Run(fsType, func(t *testing.T) {
			x := newHostile(t, size)
			staging := x.Path("staging")
			must(t, x.stage(t, StageSpec{FSType: fsType}))
			must(t, os.WriteFile(filepath.Join(staging, "data"), []byte("kept"), 0o600))
			must(t, x.Unpublish(t.Context(), staging))
			must(t, x.stage(t, StageSpec{}))
			must(t, os.WriteFile(filepath.Join(staging, "late"), nil, 0o600))
			crash(t, staging)
			must(t, x.Unpublish(t.Context(), staging))
			x.protect(t, true)
			before := sum(t, x.disk)
			unrecovered := fs.NoRecoveryOption(fsType)
			wantKind(t, x.stage(t, StageSpec{ReadOnly: true}), volume.Failed, "write-protected", unrecovered)
			must(t, x.stage(t, StageSpec{ReadOnly: true, MountFlags: []string{unrecovered}}))
			if got, _ := os.ReadFile(filepath.Join(staging, "data")); string(got) != "kept" {
				t.Errorf("want the file, got %q", got)
			}
			must(t, x.Unpublish(t.Context(), staging))
			if sum(t, x.disk) != before {
				t.Error("want every byte as it was")
			}
		})
	}
}

// crash shuts a file system down as a loss of power would, after its log was written.
func crash(t *testing.T, mounted string) {
	t.Helper()
	dir, err := os.Open(mounted)
	must(t, err)
	const shutdown, logFlush = 0x8004587D, 1 // EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are one number
	err = unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, logFlush)
	must(t, errors.Join(err, dir.Close()))
}

// A file system that its own kernel code refuses stays what it is.
func TestADamagedFileSystemIsNotFormatted(t *testing.T) {
	for name, c := range map[string]struct {
		size   int64
		fsType string
		lost   [2]int64 // from, bytes
	}{
		"ext4 without its descriptors and tables": {64 << 20, "ext4", [2]int64{4096, 4 << 20}},
		"xfs without its root":                    {320 << 20, "xfs", [2]int64{4096, 4 << 20}},
		"btrfs without its trees":                 {128 << 20, "btrfs", [2]int64{1 << 20, 120 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newHostile(t, c.size)
			testenv.Run(t, "mkfs."+c.fsType, "-q", x.disk)
			write(t, x.disk, c.lost[0], make([]byte, c.lost[1]))
			for _, s := range []StageSpec{{FSType: c.fsType}, {}} {
				if err := x.stage(t, s); err == nil {
					t.Error("want it refused")
				}
			}
			if made := x.tools.made(); len(made) > 0 || countMounts(t, x.Host, x.Machine) != 0 {
				t.Errorf("want nothing made nor mounted, got %q", made)
			}
			if says := testenv.Run(t, "blkid", "-p", "-o", "export", x.disk); !strings.Contains(says, "\nTYPE="+c.fsType+"\n") {
				t.Errorf("want its signature left, got:\n%s", says)
			}
		})
	}
}

// killedMkfs changes the superblock of a finished xfs into that of one whose mkfs.xfs was killed, and more by change.
func killedMkfs(t *testing.T, disk string, sector int, change func(super []byte)) {
	t.Helper()
	testenv.Run(t, "mkfs.xfs", "-q", "-s", "size="+strconv.Itoa(sector), disk)
	super := []byte(headOf(t, disk)[:sector])
	super[126] = 1 // sb_inprogress
	sum := func() {
		clear(super[224:228])
		binary.LittleEndian.PutUint32(super[224:], crc32.Checksum(super, crc32.MakeTable(crc32.Castagnoli)))
	}
	sum()
	if change != nil {
		change(super)
	}
	if super[len(super)-1] == 0 { // else the checksum is to be wrong
		sum()
	}
	write(t, disk, 0, super)
}

// A kill while mkfs.xfs runs leaves a disk that blkid calls xfs and that the kernel does not mount.
func TestAnXFSWhoseMkfsWasKilledIsFormattedAgain(t *testing.T) {
	for _, sector := range []int{512, 4096} {
		t.Run(strconv.Itoa(sector), func(t *testing.T) {
			x := newHostile(t, 320<<20)
			killedMkfs(t, x.disk, sector, nil)
			must(t, x.stage(t, StageSpec{FSType: "xfs"}))
			must(t, os.WriteFile(x.Path("staging", "data"), []byte("kept"), 0o600))
			must(t, x.Unpublish(t.Context(), x.Path("staging")))
			must(t, x.stage(t, StageSpec{FSType: "xfs"}))
			if got, _ := os.ReadFile(x.Path("staging", "data")); string(got) != "kept" {
				t.Errorf("want the file, got %q", got)
			}
			if made := x.tools.made(); len(made) != 1 {
				t.Errorf("want one file system made, got %q", made)
			}
		})
	}
}

func TestAnXFSThatMayHoldAFileIsNotFormatted(t *testing.T) {
	big := binary.BigEndian
	for name, c := range map[string]struct {
		change func(super []byte)
		asked  StageSpec
	}{
		"its checksum is wrong":           {func(super []byte) { super[len(super)-1] = 1 }, StageSpec{}},
		"the kernel has logged something": {func(super []byte) { big.PutUint64(super[240:], 1<<32) }, StageSpec{}},
		"it has inodes of files":          {func(super []byte) { big.PutUint64(super[128:], 128) }, StageSpec{}},
		"it has no checksum":              {func(super []byte) { big.PutUint16(super[100:], 0xB4A4) }, StageSpec{}},
		"it is finished":                  {func(super []byte) { super[126], super[40] = 0, super[40]^1 }, StageSpec{FSType: "ext4"}},
		"the volume is a copy":            {nil, StageSpec{FromSource: true}},
		"it is asked for read-only":       {nil, StageSpec{ReadOnly: true}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newHostile(t, 320<<20)
			killedMkfs(t, x.disk, 512, c.change)
			before := sum(t, x.disk)
			if err := x.stage(t, c.asked); err == nil {
				t.Error("want it refused")
			}
			if made := x.tools.made(); len(made) > 0 || sum(t, x.disk) != before {
				t.Errorf("want every byte as it was and no file system made, got %q", made)
			}
		})
	}
}

// tear writes one half of what e2fsck writes when it updates a superblock: a mount count without the checksum that
// follows.
func tear(t *testing.T, disk string) {
	t.Helper()
	write(t, disk, extSuper+0x34, []byte{0x77})
}

// A kill while e2fsck writes the superblock leaves a disk that neither the kernel nor `fsck.ext4 -a` accepts.
func TestATornSuperblockIsRestoredFromItsBackup(t *testing.T) {
	for name, c := range map[string]struct {
		size int64
		lost []int64 // copies
	}{
		"blocks of 1 KiB": {64 << 20, nil}, "blocks of 4 KiB": {1 << 30, nil},
		"the first copies lost": {64 << 20, []int64{8193 << 10, 24577 << 10, 40961 << 10}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newHostile(t, c.size)
			must(t, x.stage(t, StageSpec{FSType: "ext4"}))
			f, err := os.Create(x.Path("staging", "data"))
			must(t, err)
			_, err = f.WriteString("kept")
			must(t, errors.Join(err, f.Sync(), f.Close()))
			crash(t, x.Path("staging")) // so that the journal has something to replay
			must(t, x.Unpublish(t.Context(), x.Path("staging")))
			tear(t, x.disk)
			for _, at := range c.lost {
				write(t, x.disk, at, make([]byte, 1024))
			}
			must(t, x.stage(t, StageSpec{FSType: "ext4"}))
			if got, _ := os.ReadFile(x.Path("staging", "data")); string(got) != "kept" {
				t.Errorf("want the file, got %q", got)
			}
			must(t, x.Unpublish(t.Context(), x.Path("staging")))
			testenv.Run(t, "e2fsck", "-f", "-n", x.disk)
			if made := x.tools.made(); len(made) != 1 {
				t.Errorf("want one file system made, got %q", made)
			}
		})
	}
}

func TestASuperblockWithOtherDamageIsNotRestored(t *testing.T) {
	copies := func(at int64, bytes []byte) func(t *testing.T, disk string) {
		return func(t *testing.T, disk string) {
			t.Helper()
			for _, group := range []int64{1, 3, 5, 7} {
				write(t, disk, (group*8192+1)<<10+at, bytes) // with blocks of 1 KiB
			}
		}
	}
	for name, damage := range map[string]func(t *testing.T, disk string){
		"another UUID":                   func(t *testing.T, disk string) { write(t, disk, extSuper+0x68, []byte{0, 1, 2, 3}) },
		"another number of inodes":       func(t *testing.T, disk string) { write(t, disk, extSuper, []byte{0xFF}) },
		"another feature":                func(t *testing.T, disk string) { write(t, disk, extSuper+0x62, []byte{0xFF}) },
		"copies of another file system":  copies(0x68, []byte{0, 1, 2, 3}),
		"copies with a wrong checksum":   copies(0x3FC, []byte{0, 1, 2, 3}),
		"copies of another group":        copies(0x5A, []byte{2}),
		"no copy":                        copies(0, make([]byte, 1024)),
		"a first group that is far away": func(t *testing.T, disk string) { write(t, disk, extSuper+0x20, []byte{0xFF, 0xFF, 0xFF, 0xFF}) },
	} {
		t.Run(name, func(t *testing.T) {
			x := newHostile(t, 64<<20)
			testenv.Run(t, "mkfs.ext4", "-q", "-b", "1024", x.disk)
			tear(t, x.disk)
			damage(t, x.disk)
			before := sum(t, x.disk)
			if err := x.stage(t, StageSpec{FSType: "ext4"}); err == nil {
				t.Error("want it refused")
			}
			checks := slices.DeleteFunc(slices.Clone(x.tools.ran), func(name string) bool { return name != "fsck.ext4" })
			if len(checks) > 1 || len(x.tools.made()) > 0 || sum(t, x.disk) != before {
				t.Errorf("want every byte as it was and nothing restored, ran %q", x.tools.ran)
			}
		})
	}
}
