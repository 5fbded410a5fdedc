package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// checkOneDisk refuses a file system that reaches further than its own disk. What is on a volume is its tenant's to write, and the kernel and
// e2fsck open for writing whatever block device a superblock names: another tenant's, or the machine's.
func checkOneDisk(d *Disk, id volume.ID, fsType string) error {
	var why string
	var err error
	switch fileSystems[fsType].family {
	case "ext":
		why, err = extReaches(d)
	case "btrfs":
		why, err = btrfsReaches(d)
	}
	// An XFS superblock names no other device: the kernel wants logdev and rtdev for such a file system, which are refused as mount flags.
	switch {
	case err != nil:
		return volume.Errorf(volume.DataLoss, "disk %s of volume %s: its superblock cannot be read, so it is not used: %w", d.Path, id, err)
	case why != "":
		return volume.Errorf(volume.Conflict, "the %s file system on disk %s of volume %s is neither checked nor mounted: %s", fsType, d.Path, id, why)
	}
	return nil
}

// extReaches looks at the superblock, and at the copies of it that e2fsck turns to where the first is bad (e2fsprogs, e2fsck/util.c,
// get_backup_sb): the first of each block size, and the one that the superblock leads to.
func extReaches(disk io.ReaderAt) (why string, err error) {
	places := []int64{extSuper}
	for block := int64(1 << 10); block <= 64<<10; block *= 2 {
		place := 8 * block * block
		if block == 1<<10 {
			place += block
		}
		places = append(places, place)
	}
	for n := 0; n < len(places); n++ {
		super, err := readSuper(disk, places[n])
		if err != nil {
			return "", err
		}
		if !isExt(super) {
			continue
		}
		if why := extSuperReaches(super); why != "" {
			return why, nil
		}
		if little := binary.LittleEndian; n == 0 {
			blocks := int64(little.Uint32(super[0x20:])) + int64(little.Uint32(super[0x14:])) // of a group, and before the first
			places = append(places, blocks*(1024<<little.Uint32(super[0x18:])))
		}
	}
	return "", nil
}

// extSuperReaches reads the fields of Linux, fs/ext4/ext4.h, struct ext4_super_block.
func extSuperReaches(super []byte) string {
	const hasJournal, needsRecovery = 0x4, 0x4 // of the compatible and of the incompatible features
	little := binary.LittleEndian
	compatible, incompatible := little.Uint32(super[0x5C:]), little.Uint32(super[0x60:])
	uuid, inode, device := super[0xD0:0xE0], little.Uint32(super[0xE0:]), little.Uint32(super[0xE4:])
	wantsJournal := compatible&hasJournal != 0 || incompatible&needsRecovery != 0
	if device != 0 || !bytes.Equal(uuid, make([]byte, len(uuid))) || inode == 0 && wantsJournal {
		return "its journal is on another device, which could be anybody's; give it a journal of its own (tune2fs -O ^has_journal, then -O has_journal)"
	}
	options, _, _ := bytes.Cut(super[0x200:0x240], []byte{0})
	for option := range strings.SplitSeq(string(options), ",") {
		if why := contract.RefusedMountFlag(option); why != "" {
			return "its superblock has the mount option \"" + printable(option) + "\", which is refused: " + why + "; clear it (tune2fs -E mount_opts=)"
		}
	}
	return ""
}

// btrfsReaches reads the fields of Linux, include/uapi/linux/btrfs_tree.h, struct btrfs_super_block. Of a file system of several disks, the
// kernel opens all whose superblock has its UUID, which any tenant can write.
func btrfsReaches(disk io.ReaderAt) (why string, err error) {
	const seeding = 1 << 32
	super, err := readSuper(disk, btrfsSuper)
	if err != nil {
		return "", err
	}
	if !isBtrfs(super) {
		return "", nil
	}
	if n := binary.LittleEndian.Uint64(super[0x88:]); n != 1 || binary.LittleEndian.Uint64(super[0x38:])&seeding != 0 {
		return "it is a part of a file system of several disks, which could be anybody's; the driver mounts those of one disk", nil
	}
	return "", nil
}

// readSuper reads what a disk has at a place; zeros beyond its end.
func readSuper(disk io.ReaderAt, at int64) ([]byte, error) {
	super := make([]byte, superSize)
	if _, err := disk.ReadAt(super, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return super, nil
}
