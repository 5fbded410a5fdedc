package host

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Where the superblocks are, and the fields of them that tell a size.
const (
	extSuper   = 1024    // Linux, fs/ext4/ext4.h, struct ext4_super_block
	btrfsSuper = 0x10000 // Linux, include/uapi/linux/btrfs_tree.h, struct btrfs_super_block
	superSize  = 1024
)

// superblocks are the places where each kind of our file systems is known by its superblock.
var superblocks = []struct {
	at int64
	is func(super []byte) bool
}{
	{extSuper, func(super []byte) bool { _, ok := extSize(super); return ok }},
	{0, func(super []byte) bool { _, ok := xfsLog(super); return ok }},
	{btrfsSuper, func(super []byte) bool { _, ok := btrfsSize(super); return ok }},
}

// measure gives the size of the file system of that kind that lies on the disk and is mounted at path. It is what the file system
// itself says: a tool that ends well may have found nothing to do.
func measure(fsType string, disk io.ReaderAt, path string) (volume.Size, error) {
	at := map[string]int64{"ext": extSuper, "btrfs": btrfsSuper}[fileSystems[fsType].family]
	super := make([]byte, superSize)
	if _, err := disk.ReadAt(super, at); err != nil {
		return 0, volume.Errorf(volume.Failed, "read the superblock: %w", err)
	}
	var size volume.Size
	var ok bool
	switch fileSystems[fsType].family {
	case "ext":
		size, ok = extSize(super)
	case "btrfs":
		size, ok = btrfsSize(super)
	case "xfs":
		// xfs keeps its superblock out of the device's cache, so the kernel is asked; what it tells lacks the log.
		var s unix.Statfs_t
		if err := unix.Statfs(path, &s); err != nil {
			return 0, volume.Errorf(volume.Failed, "ask the file system at %s for its size: %w", path, err)
		}
		var log int64
		if log, ok = xfsLog(super); ok {
			size = volume.Size((int64(s.Blocks) + log) * s.Bsize)
		}
	}
	if !ok {
		return 0, volume.Errorf(volume.Failed, "there is no superblock of %s where it should be", fsType)
	}
	return size, nil
}

func extSize(super []byte) (volume.Size, bool) {
	const magic, wide, largest = 0xEF53, 0x80, 6 // blocks have 1 KiB shifted left by up to 6
	little := binary.LittleEndian
	shift := little.Uint32(super[24:])
	if little.Uint16(super[56:]) != magic || shift > largest {
		return 0, false
	}
	blocks := uint64(little.Uint32(super[4:]))
	if little.Uint32(super[96:])&wide != 0 {
		blocks |= uint64(little.Uint32(super[0x150:])) << 32
	}
	return sizeOf(blocks, 1024<<shift)
}

func btrfsSize(super []byte) (volume.Size, bool) {
	if string(super[0x40:0x48]) != "_BHRfS_M" {
		return 0, false
	}
	return sizeOf(binary.LittleEndian.Uint64(super[0x70:]), 1)
}

// xfsLog is how many blocks the log takes (Linux, fs/xfs/libxfs/xfs_format.h, struct xfs_dsb): none, if it is elsewhere.
func xfsLog(super []byte) (int64, bool) {
	if string(super[:4]) != "XFSB" {
		return 0, false
	}
	if binary.BigEndian.Uint64(super[48:]) == 0 {
		return 0, true
	}
	return int64(binary.BigEndian.Uint32(super[96:])), true
}

// xfsUnfinished reports whether mkfs.xfs was killed before it had finished, so that the disk holds no file. Everything must speak for it:
//   - The checksum of the superblock is right, so no byte here is damaged.
//   - sb_inprogress is set. mkfs.xfs sets it in the first superblock that it writes and clears it in its very last write (xfsprogs,
//     mkfs/xfs_mkfs.c). The kernel refuses to mount such a file system (Linux, fs/xfs/libxfs/xfs_sb.c), so nobody has ever written a file.
//   - sb_lsn is zero and there is at most one chunk of inodes. xfs_copy and xfs_mdrestore set sb_inprogress too while they work, and what
//     they copy was in use: the kernel has noted its log in it.
//
// Superblocks without a checksum, which mkfs.xfs has not made by default since 2015, are left alone.
func xfsUnfinished(disk io.ReaderAt) (bool, error) {
	const sectorSize, version5, chunk = 512, 5, 64
	super := make([]byte, sectorSize)
	if _, err := disk.ReadAt(super, 0); err != nil {
		return false, err
	}
	big := binary.BigEndian
	sector := int(big.Uint16(super[102:]))
	if string(super[:4]) != "XFSB" || big.Uint16(super[100:])&0xF != version5 || sector < sectorSize || sector > 32<<10 {
		return false, nil
	}
	super = make([]byte, sector)
	if _, err := disk.ReadAt(super, 0); err != nil {
		return false, err
	}
	sum := binary.LittleEndian.Uint32(super[224:])
	clear(super[224:228])
	inProgress, inodes, logged := super[126], big.Uint64(super[128:]), big.Uint64(super[240:])
	return crc32.Checksum(super, crc32.MakeTable(crc32.Castagnoli)) == sum && inProgress == 1 && inodes <= chunk && logged == 0, nil
}

// sizeOf refuses what no disk has, so that a damaged superblock gives no negative size.
func sizeOf(blocks, unit uint64) (volume.Size, bool) {
	const most = 1 << 62
	if blocks == 0 || blocks > most/unit {
		return 0, false
	}
	return volume.Size(blocks * unit), true
}
