package tenant

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// Offsets of the fields of an ext superblock (Linux, fs/ext4/ext4.h, struct ext4_super_block).
const (
	extSuper   = 1024
	extState   = 0x3A
	extErrors  = 0x3C
	extCompat  = 0x5C
	extLabel   = 0x78
	extJournal = 0xD0 // the UUID of the journal's device, then the journal's inode and the device's number
	extOptions = 0x200
)

// damage fills the inode tables of an ext file system with inodes that e2fsck repairs, and marks the file system as one to check. e2fsck
// prints a line for each inode. damage returns the number of inodes.
func damage(t *testing.T, disk string) (inodes int) {
	t.Helper()
	const inodeSize, reserved = 128, 11
	says := testenv.Run(t, "dumpe2fs", disk)
	perGroup, err := strconv.Atoi(regexp.MustCompile(`Inodes per group: +(\d+)`).FindStringSubmatch(says)[1])
	must(t, err)
	deleted := make([]byte, inodeSize)
	binary.LittleEndian.PutUint16(deleted, 0o100644)
	for n, at := range regexp.MustCompile(`Inode table at (\d+)-`).FindAllStringSubmatch(says, -1) {
		block, err := strconv.ParseInt(at[1], 10, 64)
		must(t, err)
		first := 0
		if n == 0 {
			first = reserved
		}
		patch(t, disk, block*4096+int64(first)*inodeSize, bytes.Repeat(deleted, perGroup-first))
		inodes += perGroup - first
	}
	patch(t, disk, extSuper+extState, []byte{2, 0})
	return inodes
}

// e2fsck prints a line for each repair, and a tenant chooses the number of repairs.
func TestH2AnImageWithManyErrorsTakesNoMemoryOfTheDriver(t *testing.T) {
	n := newTenants(t, 256<<20)
	disk := n.disks[attacker]
	testenv.Run(t, "mkfs.ext4", "-q", "-b", "4096", "-I", "128", "-N", "131072", "-O", "^metadata_csum,^uninit_bg,^flex_bg,^has_journal", "-E", "lazy_itable_init=0", disk)
	inodes := damage(t, disk)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n.lives(t, claim{volume: attacker, pod: "evil", fsType: "ext4"})
	runtime.ReadMemStats(&after)
	used := after.TotalAlloc - before.TotalAlloc
	t.Logf("e2fsck repaired %d inodes; the driver allocated %d KiB", inodes, used>>10)
	if used > 4<<20 {
		t.Errorf("want at most 4 MiB allocated, got %d KiB", used>>10)
	}
	n.lives(t, claim{volume: victim, pod: "good"})
}

// options are the mount options that the kernel reports for the ext file system of a disk.
func options(t *testing.T, disk string) string {
	t.Helper()
	says, err := os.ReadFile(filepath.Join("/proc", "fs", "ext4", filepath.Base(disk), "options"))
	must(t, err)
	return string(says)
}

// A superblock may ask the kernel to panic when the file system fails, in two places.
func TestM1AnImageCannotMakeTheNodePanic(t *testing.T) {
	for name, image := range map[string]struct {
		errors  byte
		options string
	}{
		"by its error behaviour": {errors: 3},
		"by its mount options":   {options: "errors=panic"},
		"by both":                {3, "debug,errors=panic"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				fsType string
				flags  []string
				want   string
			}{
				{"ext4", nil, "errors=remount-ro"},
				{"ext3", nil, "errors=remount-ro"},
				{"ext2", nil, "errors=remount-ro"},
				{"ext4", []string{"noatime,errors=continue"}, "errors=continue"}, // the administrator of the class chose this
			} {
				n := newTenants(t, 64<<20)
				disk := n.disks[attacker]
				testenv.Run(t, "mkfs."+c.fsType, "-q", "-O", "^metadata_csum", disk)
				patch(t, disk, extSuper+extErrors, []byte{image.errors, 0})
				patch(t, disk, extSuper+extOptions, []byte(image.options))
				evil := claim{volume: attacker, pod: "evil", fsType: c.fsType, flags: c.flags}
				must(t, n.stage(t, evil))
				if got := options(t, disk); !strings.Contains(got, c.want+"\n") || strings.Contains(got, "panic") {
					t.Errorf("%s with %q: want %s, got:\n%s", c.fsType, c.flags, c.want, got)
				}
				must(t, n.unstage(t, evil))
			}
		})
	}
}

// An image can name another disk of the node as its journal. The kernel opens the device whose number is in the superblock, or in the mount
// options of the superblock. e2fsck opens the device by its UUID. Both write to it.
func TestM1AnImageCannotReachAnotherTenantsDiskAsItsJournal(t *testing.T) {
	number := func(disk string) string {
		minor, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(disk), "loop"))
		return fmt.Sprintf("%#x", 7<<8|minor)
	}
	outside := func(t *testing.T, n *tenants) {
		testenv.Run(t, "mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "1024", n.disks[victim])
		testenv.Run(t, "mkfs.ext4", "-q", "-b", "1024", "-O", "^metadata_csum", "-J", "device="+n.disks[victim], n.disks[attacker])
	}
	for name, image := range map[string]func(t *testing.T, n *tenants){
		"by number and UUID": outside,
		"by UUID": func(t *testing.T, n *tenants) {
			outside(t, n)
			patch(t, n.disks[attacker], extSuper+extJournal+20, make([]byte, 4))
		},
		"by number": func(t *testing.T, n *tenants) {
			outside(t, n)
			patch(t, n.disks[attacker], extSuper+extJournal, make([]byte, 16))
		},
		"in mount options, by number": func(t *testing.T, n *tenants) {
			testenv.Run(t, "mkfs.ext4", "-q", "-O", "^metadata_csum", n.disks[attacker])
			patch(t, n.disks[attacker], extSuper+extOptions, []byte("noatime,journal_dev="+number(n.disks[victim])))
		},
		"in mount options, by path": func(t *testing.T, n *tenants) {
			testenv.Run(t, "mkfs.ext4", "-q", "-O", "^metadata_csum", n.disks[attacker])
			patch(t, n.disks[attacker], extSuper+extOptions, []byte("journal_path="+n.disks[victim]))
		},
		"in a backup superblock, to which e2fsck turns": func(t *testing.T, n *tenants) {
			outside(t, n)
			patch(t, n.disks[attacker], extSuper+extCompat, []byte{0x38 &^ 4})  // without the feature has_journal
			patch(t, n.disks[attacker], extSuper+extJournal, make([]byte, 24))  // and without a journal
			patch(t, n.disks[attacker], 2048, bytes.Repeat([]byte{0xff}, 1024)) // bad group descriptors
			patch(t, n.disks[attacker], extSuper+extState, []byte{2, 0})        // and the mark of an error
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTenants(t, 64<<20)
			image(t, n)
			n.refused(t, claim{volume: attacker, pod: "evil", fsType: "ext4"}, "journal")
		})
	}
}

// The journal of an image can hold a superblock that names another disk as the journal. e2fsck replays the journal and reads the superblock again.
// The other disk is held open here, so an attempt to open it would be an error that says so.
func TestM1AJournalThatReplacesTheSuperblockReachesNoOtherDisk(t *testing.T) {
	n := newTenants(t, 64<<20)
	testenv.Run(t, "mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "4096", n.disks[victim])
	testenv.Run(t, "mkfs.ext4", "-q", "-b", "4096", "-O", "^metadata_csum", n.disks[attacker])
	block, uuid := make([]byte, 4096), make([]byte, 16)
	for disk, read := range map[string]struct {
		b  []byte
		at int64
	}{n.disks[attacker]: {block, 0}, n.disks[victim]: {uuid, 4096 + 0x30}} {
		f, err := os.Open(disk)
		must(t, err)
		_, err = f.ReadAt(read.b, read.at)
		must(t, errors.Join(err, f.Close()))
	}
	copy(block[extSuper+extJournal:], append(uuid, 0, 0, 0, 0))
	file, commands := n.Path("block"), n.Path("commands")
	must(t, os.WriteFile(file, block, 0o600))
	must(t, os.WriteFile(commands, []byte("jo\njw -b 0 "+file+"\njc\n"), 0o600))
	testenv.Run(t, "debugfs", "-w", "-f", commands, n.disks[attacker])
	before := sum(t, n.disks[victim])
	held, err := os.OpenFile(n.disks[victim], os.O_RDWR|os.O_EXCL, 0)
	must(t, err)
	err = n.stage(t, claim{volume: attacker, pod: "evil", fsType: "ext4"})
	must(t, held.Close())
	if err == nil || !strings.Contains(err.Error(), "recovering journal") || strings.Contains(err.Error(), "busy") {
		t.Errorf("want fsck to fail after the replay without an attempt to open the other disk, got %v", err)
	}
	n.refused(t, claim{volume: attacker, pod: "evil", fsType: "ext4"}, "journal is on another device")
	if sum(t, n.disks[victim]) != before {
		t.Error("want every byte of the other disk as it was")
	}
}

// XFS names no device in its superblock: the kernel uses another log only if a mount option names it. The driver refuses that option.
func TestM1AnXFSImageCannotReachAnotherTenantsDiskAsItsLog(t *testing.T) {
	n := newTenants(t, 320<<20)
	testenv.Run(t, "mkfs.xfs", "-q", "-f", "-l", "logdev="+n.disks[victim], n.disks[attacker])
	n.refused(t, claim{volume: attacker, pod: "evil", fsType: "xfs"}, "mount")
	n.refused(t, claim{volume: attacker, pod: "evil", fsType: "xfs", flags: []string{"logdev=" + n.disks[victim]}}, "another device")
}

// Names in an image reach logs and events as plain text.
func TestAnImagesLabelIsTextInMessages(t *testing.T) {
	n := newTenants(t, 64<<20)
	disk := n.disks[attacker]
	testenv.Run(t, "mkfs.ext4", "-q", "-O", "^metadata_csum", disk)
	patch(t, disk, extSuper+extLabel, []byte("\x1b[2J\nTYPE=xfs\x07\xff\x00"))
	must(t, n.stage(t, claim{volume: attacker, pod: "evil", fsType: "ext4"}))
	must(t, n.unstage(t, claim{volume: attacker, pod: "evil", fsType: "ext4"}))
	patch(t, disk, extSuper+extState, []byte{2, 0})
	patch(t, disk, 4096, make([]byte, 2<<20)) // more damage than e2fsck repairs without a decision
	err := n.stage(t, claim{volume: attacker, pod: "evil", fsType: "ext4"})
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\n") || !utf8.ValidString(err.Error()) {
		t.Errorf("want an error without control characters, got %q", err)
	}
}
