package fs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// extUnfinished reports whether the copies on a disk come from a mkfs that was killed. The first superblock is missing
// then, and the disk holds no file. mkfs writes the first superblock last. Before the first copy it has written
// everything else (e2fsprogs, lib/ext2fs/closefs.c, ext2fs_flush2; unix_io.c flushes its cache before a write of less than
// a block). A file system that lost its first superblock later has the same copies, since a mount does not write them. So
// all of this must be true:
//   - All copies are of one file system. None says that it was ever mounted.
//   - By the group descriptors only the inodes are in use that mkfs makes: the reserved ones and lost+found.
//   - The journal never held a transaction, so the descriptors are not older than it. The first mount begins with
//     sequence 2 (Linux, fs/jbd2/recovery.c, jbd2_journal_recover).
//   - The root directory is there and has no entry but lost+found.
//
// It returns false for everything that it does not know, such as descriptors that are spread (meta_bg).
func extUnfinished(r io.ReaderAt, copies []Copy) (bool, error) {
	const metaGroups, externalJournal = 0x10, 0x8 // of s_feature_incompat
	little := binary.LittleEndian
	first := copies[0].bytes
	for _, c := range copies {
		if !isExt(c.bytes) || !sameExt(first, c.bytes) || little.Uint32(c.bytes[0x2C:]) != 0 || little.Uint16(c.bytes[0x34:]) != 0 { // s_mtime, s_mnt_count
			return false, nil
		}
	}
	if little.Uint32(first[0x60:])&(metaGroups|externalJournal) != 0 {
		return false, nil
	}
	e := extReader{r: r, super: first, block: 1024 << little.Uint32(first[0x18:]), descriptor: 32}
	if wide := little.Uint32(first[0x60:])&0x80 != 0; wide {
		e.descriptor = int64(little.Uint16(first[0xFE:]))
	}
	for _, check := range []func() (bool, error){e.onlyMkfsInodes, e.journalUnused, e.rootUnused} {
		if ok, err := check(); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// sameExt reports whether two superblocks are of one file system.
func sameExt(a, b []byte) bool {
	return !slices.ContainsFunc(extLayout, func(field [2]int) bool { return !bytes.Equal(a[field[0]:field[1]], b[field[0]:field[1]]) })
}

// extReader reads an ext file system by a superblock of it (Linux, fs/ext4/ext4.h, struct ext4_group_desc, ext4_inode).
type extReader struct {
	r                 io.ReaderAt
	super             []byte
	block, descriptor int64
	inodeTable        int64 // the first block of it, once the descriptors were read
}

func (e *extReader) u32(at int) int64 { return int64(binary.LittleEndian.Uint32(e.super[at:])) }

func (e *extReader) read(block, length int64) ([]byte, error) {
	b := make([]byte, length)
	if n, err := e.r.ReadAt(b, block*e.block); int64(n) < length && err != io.EOF { //nolint:errorlint // io.ReaderAt returns it as it is
		return nil, err
	}
	return b, nil
}

// mostDescriptors are the bytes of descriptors that are read, for 128 TiB.
const mostDescriptors = 64 << 20

func (e *extReader) onlyMkfsInodes() (bool, error) {
	const reserved = 11 // inodes 1 to 10 and lost+found
	perGroup, blocksPerGroup := e.u32(0x28), e.u32(0x20)
	if perGroup == 0 || blocksPerGroup == 0 || e.descriptor < 32 || e.descriptor > 1024 || e.u32(0x00)%perGroup != 0 {
		return false, nil
	}
	groups := e.u32(0x00) / perGroup
	if groups*e.descriptor > mostDescriptors {
		return false, nil
	}
	// One descriptor after the other: the copy chooses how many there are.
	descriptors := bufio.NewReader(io.NewSectionReader(e.r, (e.u32(0x14)+1)*e.block, groups*e.descriptor))
	used, little, d := int64(0), binary.LittleEndian, make([]byte, e.descriptor)
	for group := int64(0); group < groups && used <= reserved; group++ {
		if _, err := io.ReadFull(descriptors, d); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		free, table := int64(little.Uint16(d[0x0E:])), int64(little.Uint32(d[0x08:]))
		if e.descriptor >= 64 {
			free, table = free|int64(little.Uint16(d[0x2E:]))<<16, table|int64(little.Uint32(d[0x28:]))<<32
		}
		if free > perGroup {
			return false, nil
		}
		if used += perGroup - free; group == 0 {
			e.inodeTable = table
		}
	}
	return used == reserved, nil
}

// journalUnused is true without a journal too. The superblock repeats the blocks of its inode (s_jnl_blocks).
func (e *extReader) journalUnused() (bool, error) {
	const hasJournal = 0x4 // of s_feature_compat
	if e.u32(0x5C)&hasJournal == 0 {
		return true, nil
	}
	block, ok := firstBlock(e.super[0x10C:])
	if !ok {
		return false, nil
	}
	b, err := e.read(block, 1024) // Linux, include/linux/jbd2.h, struct journal_superblock_s
	big := binary.BigEndian
	return err == nil && big.Uint32(b) == 0xC03B3998 && big.Uint32(b[4:]) == 4 && big.Uint32(b[0x18:]) == 1 && big.Uint32(b[0x1C:]) == 0, err
}

func (e *extReader) rootUnused() (bool, error) {
	const root, directory = 2, 0o40000
	size, little := int64(128), binary.LittleEndian
	if e.u32(0x4C) > 0 { // s_rev_level
		size = int64(little.Uint16(e.super[0x58:]))
	}
	if size < 128 || size > e.block {
		return false, nil
	}
	table, err := e.read(e.inodeTable, root*size)
	if err != nil {
		return false, err
	}
	inode := table[(root-1)*size:]
	block, ok := firstBlock(inode[0x28:])
	if !ok || little.Uint16(inode)&0o170000 != directory || int64(little.Uint32(inode[0x04:])) != e.block {
		return false, nil
	}
	b, err := e.read(block, e.block)
	if err != nil {
		return false, err
	}
	// Linux, struct ext4_dir_entry_2: inode, length of the entry, of the name, type. The last one reaches to the end, or to the checksum.
	const tail = 12
	last := b[24:]
	return entryIs(b, root, ".") && entryIs(b[12:], root, "..") && entryIs(last, 11, "lost+found") &&
		int64(little.Uint16(last[4:])) >= e.block-24-tail, nil
}

func entryIs(b []byte, inode uint32, name string) bool {
	return binary.LittleEndian.Uint32(b) == inode && int(b[6]) == len(name) && string(b[8:8+len(name)]) == name
}

// firstBlock returns the first block of a file by the field i_block of its inode. That is the root of a tree of extents,
// or a list of blocks.
func firstBlock(b []byte) (int64, bool) {
	little := binary.LittleEndian
	if little.Uint16(b) != 0xF30A {
		block := int64(little.Uint32(b))
		return block, block != 0
	}
	depth, starts := little.Uint16(b[6:]), little.Uint32(b[12:])
	return int64(little.Uint32(b[20:])) | int64(little.Uint16(b[18:]))<<32, depth == 0 && starts == 0
}
