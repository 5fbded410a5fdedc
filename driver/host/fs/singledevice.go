package fs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// CheckSingleDevice refuses a file system that uses any device but its own disk. The tenant of a volume writes what is
// on it. The kernel and e2fsck open whatever block device a superblock names for writing. It may belong to another
// tenant or to the machine.
//
// Errors: Conflict for such a file system, DataLoss if its superblock cannot be read.
func CheckSingleDevice(d *disk.Disk, id volume.ID, fsType string) error {
	var reason string
	var err error
	switch fileSystems[fsType].family {
	case "ext":
		reason, err = extOtherDevice(d)
	case "btrfs":
		reason, err = btrfsOtherDevice(d)
	}
	// An XFS superblock names no other device: the kernel needs the mount options logdev and rtdev for that, which the
	// driver refuses.
	switch {
	case err != nil:
		return volume.Errorf(volume.DataLoss, "read the superblock on disk %s of volume %s: %w; the driver does not use the disk", d.Path, id, err).Cause(cause.DiskUnreadable)
	case reason != "":
		return volume.Errorf(volume.Conflict, "the driver neither checks nor mounts the %s file system on disk %s of volume %s: %s", fsType, d.Path, id, reason).Cause(cause.FsDevices)
	}
	return nil
}

// extOtherDevice checks the superblock, and the backups that e2fsck reads if the first is bad (e2fsprogs,
// e2fsck/util.c, get_backup_sb). These are the first backup for each block size, and the one that the superblock leads
// to.
func extOtherDevice(r io.ReaderAt) (reason string, err error) {
	offsets := []int64{extSuper}
	for block := int64(1 << 10); block <= 64<<10; block *= 2 {
		offset := 8 * block * block
		if block == 1<<10 {
			offset += block
		}
		offsets = append(offsets, offset)
	}
	for n := 0; n < len(offsets); n++ {
		super, err := readSuper(r, offsets[n])
		if err != nil {
			return "", err
		}
		if n > 0 && !isExt(super) { // the first one is what blkid took for ext, and the kernel may mount it
			continue
		}
		if reason := extSuperOtherDevice(super); reason != "" {
			return reason, nil
		}
		if little := binary.LittleEndian; n == 0 && isExt(super) {
			blocks := int64(little.Uint32(super[0x20:])) + int64(little.Uint32(super[0x14:])) // of a group, and before the first
			offsets = append(offsets, blocks*(1024<<little.Uint32(super[0x18:])))
		}
	}
	return "", nil
}

// extSuperOtherDevice reads the fields of Linux, fs/ext4/ext4.h, struct ext4_super_block.
func extSuperOtherDevice(super []byte) string {
	const hasJournal, needsRecovery = 0x4, 0x4 // of the compatible and of the incompatible features
	little := binary.LittleEndian
	compatible, incompatible := little.Uint32(super[0x5C:]), little.Uint32(super[0x60:])
	uuid, inode, device := super[0xD0:0xE0], little.Uint32(super[0xE0:]), little.Uint32(super[0xE4:])
	usesJournal := compatible&hasJournal != 0 || incompatible&needsRecovery != 0
	if device != 0 || !bytes.Equal(uuid, make([]byte, len(uuid))) || inode == 0 && usesJournal {
		return "its journal is on another device, which may belong to anybody; give it an internal journal (tune2fs -O ^has_journal, then -O has_journal)"
	}
	options, _, _ := bytes.Cut(super[0x200:0x240], []byte{0})
	for option := range strings.SplitSeq(string(options), ",") {
		if reason := contract.RefusedMountFlag(option); reason != "" {
			return "its superblock has the mount option \"" + command.Printable(option) + "\", which is refused: " + reason + "; clear it (tune2fs -E mount_opts=)"
		}
	}
	return ""
}

// btrfsOtherDevice reads the fields of Linux, include/uapi/linux/btrfs_tree.h, struct btrfs_super_block. For a file
// system of several devices the kernel opens all whose superblock has its UUID, and any tenant can write that UUID.
func btrfsOtherDevice(r io.ReaderAt) (reason string, err error) {
	const seeding = 1 << 32
	super, err := readSuper(r, btrfsSuper)
	if err != nil {
		return "", err
	}
	if n := binary.LittleEndian.Uint64(super[0x88:]); n != 1 || binary.LittleEndian.Uint64(super[0x38:])&seeding != 0 {
		return "it is part of a file system of several devices, which may belong to anybody; the driver mounts only file systems of one device", nil
	}
	return "", nil
}

// readSuper reads a superblock at an offset; zeros beyond the end of the disk.
func readSuper(r io.ReaderAt, offset int64) ([]byte, error) {
	super := make([]byte, superSize)
	if _, err := r.ReadAt(super, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return super, nil
}
