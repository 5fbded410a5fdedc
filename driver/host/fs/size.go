package fs

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// CheckFits refuses a file system that is larger than its disk, before fsck or the kernel calls it damaged. The kernel
// mounts no such file system (Linux, ext4_geometry_check_load, xfs_mountfs, btrfs open_ctree). Nothing is wrong with it
// if the kernel has an old size of the disk, and then a forced repair would cut it.
//
// Errors: Conflict for such a file system, DataLoss if its superblock cannot be read.
func CheckFits(d *disk.Disk, id volume.ID, fsType string) error {
	has, err := d.Size()
	if err != nil {
		return volume.Errorf(volume.Failed, "read the size of disk %s of volume %s: %w", d.Path, id, err).Cause(cause.DiskUnreadable)
	}
	needs, err := fileSystemSize(d, fsType)
	switch {
	case err != nil:
		return volume.Errorf(volume.DataLoss, "read the superblock on disk %s of volume %s: %w; the driver does not use the disk", d.Path, id, err).Cause(cause.DiskUnreadable)
	case needs > has:
		return volume.Errorf(volume.Conflict, "the %s file system on disk %s of volume %s has %s and the disk has %s, so the driver neither checks nor mounts it. "+
			"The driver made the kernel read the size again. Compare with the size of the volume in Cinder: if that is larger, detach the volume and attach it again. "+
			"If it is not, the volume was made smaller than its source. Do not run fsck: it would cut the file system", fsType, d.Path, id, needs, has).Cause(cause.FsLargerThanDisk)
	}
	return nil
}

func extSize(super []byte) (blocks, blockSize uint64) {
	const wide = 0x80 // of s_feature_incompat
	little := binary.LittleEndian
	blocks, blockSize = uint64(little.Uint32(super[4:])), 1024<<little.Uint32(super[24:])
	if little.Uint32(super[96:])&wide != 0 {
		blocks |= uint64(little.Uint32(super[0x150:])) << 32
	}
	return blocks, blockSize
}

// fileSystemSize reads how large the file system is by its superblock; 0 if that is unknown.
func fileSystemSize(r io.ReaderAt, fsType string) (volume.Size, error) {
	const most = 1 << 62
	blocks, blockSize := uint64(0), uint64(1)
	switch fileSystems[fsType].family {
	case "ext": // Linux, fs/ext4/ext4.h, struct ext4_super_block
		super, err := readSuper(r, extSuper)
		if err != nil || !isExt(super) {
			return 0, err
		}
		blocks, blockSize = extSize(super)
		if extHasChecksum(super) && !extChecksumValid(super) { // fsck may replace it by a backup
			for _, backup := range extBackups(r, super) {
				if others, size := extSize(backup.super); size == blockSize && bytes.Equal(super[0x68:0x78], backup.super[0x68:0x78]) { // s_uuid
					blocks = max(blocks, others)
				}
			}
		}
	case "xfs": // Linux, fs/xfs/libxfs/xfs_format.h, struct xfs_dsb
		super, err := readSuper(r, 0)
		if err != nil || !isXFS(super) {
			return 0, err
		}
		blocks, blockSize = binary.BigEndian.Uint64(super[8:]), uint64(binary.BigEndian.Uint32(super[4:]))
	case "btrfs": // Linux, include/uapi/linux/btrfs_tree.h, struct btrfs_super_block, dev_item.total_bytes
		super, err := readSuper(r, btrfsSuper)
		if err != nil || !isBtrfs(super) {
			return 0, err
		}
		blocks = binary.LittleEndian.Uint64(super[0xC9+8:])
	}
	if blockSize == 0 || blocks > most/blockSize {
		return most, nil
	}
	return volume.Size(blocks * blockSize), nil
}
