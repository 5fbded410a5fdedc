package fs

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// backupSuperblock is the place of a backup of the superblock of an ext file system.
type backupSuperblock struct {
	block, blockSize int64
	super            []byte
}

// tornSuperblock reports whether e2fsck was killed while it wrote the superblock of the ext file system on the disk. It
// returns the backup from which e2fsck can restore it (e2fsck(8), -b).
//
// e2fsck writes the superblock last, in several small writes, and the checksum is the last of them (e2fsprogs,
// lib/ext2fs/closefs.c, write_primary_superblock). After a kill between two of them the kernel refuses to mount and
// `fsck.ext4 -a` refuses to repair, so the volume could never be staged again. This function recognises only that case. The
// superblock has a wrong checksum. Every field of it that says where something is equals that of a backup whose checksum
// is right. Any other damage is for a person to decide on.
func tornSuperblock(r io.ReaderAt) (backupSuperblock, bool) {
	primary := make([]byte, superSize)
	if _, err := r.ReadAt(primary, extSuper); err != nil || !isExt(primary) || !extHasChecksum(primary) || extChecksumValid(primary) {
		return backupSuperblock{}, false
	}
	for _, backup := range extBackups(r, primary) {
		const needsRecovery = 0x4 // of s_feature_incompat: set while the file system is mounted, in the first superblock only
		incompat := func(super []byte) uint32 { return binary.LittleEndian.Uint32(super[0x60:]) &^ needsRecovery }
		if extHasChecksum(backup.super) && sameExt(primary, backup.super) && incompat(primary) == incompat(backup.super) {
			return backup, true
		}
	}
	return backupSuperblock{}, false
}

// extBackups reads the backups of a superblock that are where it says and whose checksum, if there is one, is right. A backup that
// cannot be read counts as none.
func extBackups(r io.ReaderAt, primary []byte) (backups []backupSuperblock) {
	little := binary.LittleEndian
	blockSize, first, perGroup := int64(1024)<<little.Uint32(primary[0x18:]), int64(little.Uint32(primary[0x14:])), int64(little.Uint32(primary[0x20:]))
	if perGroup == 0 {
		return nil
	}
	blocks, _ := extSize(primary)
	for _, group := range extBackupGroups((int64(min(blocks, 1<<50))-first-1)/perGroup + 1) {
		at := first + group*perGroup
		super := make([]byte, superSize)
		if _, err := r.ReadAt(super, at*blockSize); err == nil && isExtCopy(super, at*blockSize) && (!extHasChecksum(super) || extChecksumValid(super)) {
			backups = append(backups, backupSuperblock{at, blockSize, super})
		}
	}
	return backups
}

// extLayout are the fields of a superblock that say where something is, from and to (Linux, fs/ext4/ext4.h, struct
// ext4_super_block).
var extLayout = [][2]int{
	{0x00, 0x08},   // s_inodes_count, s_blocks_count_lo
	{0x14, 0x2C},   // s_first_data_block to s_inodes_per_group
	{0x38, 0x3A},   // s_magic
	{0x4C, 0x50},   // s_rev_level
	{0x54, 0x5A},   // s_first_ino, s_inode_size
	{0x5C, 0x60},   // s_feature_compat
	{0x64, 0x78},   // s_feature_ro_compat, s_uuid
	{0xCE, 0xD0},   // s_reserved_gdt_blocks
	{0xD0, 0xE8},   // s_journal_uuid, s_journal_inum, s_journal_dev
	{0xFE, 0x100},  // s_desc_size
	{0x104, 0x108}, // s_first_meta_bg
	{0x150, 0x154}, // s_blocks_count_hi
	{0x174, 0x176}, // s_log_groups_per_flex, s_checksum_type
	{0x270, 0x274}, // s_checksum_seed
}

func extHasChecksum(super []byte) bool {
	const metadataChecksums = 0x400 // of s_feature_ro_compat
	return binary.LittleEndian.Uint32(super[0x64:])&metadataChecksums != 0
}

func extChecksumValid(super []byte) bool {
	return extChecksum(super) == binary.LittleEndian.Uint32(super[0x3FC:])
}

// extChecksum is computed as ext4_superblock_csum of Linux does: CRC-32C without the last inversion.
func extChecksum(super []byte) uint32 {
	return ^crc32.Checksum(super[:0x3FC], crc32.MakeTable(crc32.Castagnoli))
}
