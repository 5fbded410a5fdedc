package fs

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
)

// The offsets of the superblocks.
const (
	extSuper   = 1024    // Linux, fs/ext4/ext4.h, struct ext4_super_block
	btrfsSuper = 0x10000 // Linux, include/uapi/linux/btrfs_tree.h, struct btrfs_super_block
	superSize  = 1024
)

// isExt reports whether the bytes are the superblock of ext2, ext3 or ext4.
func isExt(super []byte) bool {
	const magic, wide, largest = 0xEF53, 0x80, 6 // a block has 1 KiB shifted left by up to 6
	little := binary.LittleEndian
	hasBlocks := little.Uint32(super[4:]) != 0 || little.Uint32(super[96:])&wide != 0 && little.Uint32(super[0x150:]) != 0
	return little.Uint16(super[56:]) == magic && little.Uint32(super[24:]) <= largest && hasBlocks
}

// extClean reports whether the superblock of the ext file system on the disk is intact and says that there is nothing to
// repair. It was unmounted, has no journal to replay, and the kernel recorded no error. It is intact by its checksum, or
// if it has none, by a backup that agrees.
func extClean(r io.ReaderAt) bool {
	const valid, errorFS, needsRecovery = 0x1, 0x2, 0x4 // of s_state, s_state, s_feature_incompat
	super := make([]byte, superSize)
	if _, err := r.ReadAt(super, extSuper); err != nil || !isExt(super) {
		return false
	}
	little := binary.LittleEndian
	agrees := func(backup backupSuperblock) bool {
		return sameExt(super, backup.super) && little.Uint32(super[0x60:])&^needsRecovery == little.Uint32(backup.super[0x60:])&^needsRecovery
	}
	if extHasChecksum(super) && !extChecksumValid(super) || !extHasChecksum(super) && !slices.ContainsFunc(extBackups(r, super), agrees) {
		return false
	}
	state, errorCount := little.Uint16(super[0x3A:]), little.Uint32(super[0x194:])
	return state&valid != 0 && state&errorFS == 0 && errorCount == 0 && little.Uint32(super[0x60:])&needsRecovery == 0
}

// isXFS reports whether the bytes are the superblock of XFS (Linux, fs/xfs/libxfs/xfs_format.h, struct xfs_dsb).
func isXFS(super []byte) bool { return string(super[:4]) == "XFSB" }

// isBtrfs reports whether the bytes are a superblock of btrfs with a size.
func isBtrfs(super []byte) bool {
	return string(super[0x40:0x48]) == "_BHRfS_M" && binary.LittleEndian.Uint64(super[0x70:]) != 0
}

// HasFileSystem reports whether a disk has the superblock of a supported file system, or a copy of one.
func HasFileSystem(d sized) (bool, error) {
	for _, s := range []struct {
		offset int64
		is     func(super []byte) bool
	}{{extSuper, isExt}, {0, isXFS}, {btrfsSuper, isBtrfs}} {
		super := make([]byte, superSize)
		if _, err := d.ReadAt(super, s.offset); err != nil {
			return false, err
		}
		if s.is(super) {
			return true, nil
		}
	}
	copies, err := FindCopies(context.Background(), d)
	return slices.ContainsFunc(copies, func(c Copy) bool { return c.format.mounted }), err
}

// xfsUnfinished reports whether mkfs.xfs was killed before it ended, so that the disk holds no file. All of this must
// be true:
//   - The checksum of the superblock is right, so no byte of it is damaged.
//   - sb_inprogress is set. mkfs.xfs sets it in the first superblock that it writes and clears it in its very last
//     write (xfsprogs, mkfs/xfs_mkfs.c). The kernel refuses to mount such a file system (Linux,
//     fs/xfs/libxfs/xfs_sb.c), so nobody has ever written a file.
//   - sb_lsn is zero and there is at most one chunk of inodes. xfs_copy and xfs_mdrestore also set sb_inprogress while
//     they work, but the kernel has recorded its log in what they copy.
//
// It returns false for superblocks without a checksum, which mkfs.xfs has not made by default since 2015.
func xfsUnfinished(r io.ReaderAt) (bool, error) {
	const sectorSize, version5, chunk = 512, 5, 64
	super := make([]byte, sectorSize)
	if _, err := r.ReadAt(super, 0); err != nil {
		return false, err
	}
	big := binary.BigEndian
	sector := int(big.Uint16(super[102:]))
	if !isXFS(super) || big.Uint16(super[100:])&0xF != version5 || sector < sectorSize || sector > 32<<10 {
		return false, nil
	}
	super = make([]byte, sector)
	if _, err := r.ReadAt(super, 0); err != nil {
		return false, err
	}
	sum := binary.LittleEndian.Uint32(super[224:])
	clear(super[224:228])
	inProgress, inodes, lsn := super[126], big.Uint64(super[128:]), big.Uint64(super[240:])
	return crc32.Checksum(super, crc32.MakeTable(crc32.Castagnoli)) == sum && inProgress == 1 && inodes <= chunk && lsn == 0, nil
}
