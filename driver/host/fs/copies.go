package fs

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cinder-csi/cinder-csi/driver/host/singleflight"
)

// Copy is a copy of the identity of a file system, at another place than the first. `wipefs --all`, or zeros over the
// beginning of a disk, leave it, and the file system can be repaired from it.
type Copy struct {
	Format string // as a person calls it
	At     int64  // its first byte
	bytes  []byte // of copySize, with zeros beyond the end of the disk
	format *copyFormat
}

// copyFormat is a format with such copies. blkid and wipefs look at the first place only, except for GPT, ZFS, NILFS2,
// LUKS2 and stratis. XFS and ext put their copies where the size of the file system and the options of mkfs say.
type copyFormat struct {
	name    string
	offsets func(size int64) []int64
	is      func(b []byte, at int64) bool     // a copy that says that it belongs there, where the format says so
	repair  func(b []byte, at int64) []string // the command that repairs from it, without the device; nil for none
	mounted bool                              // one of fileSystems
}

// copyFormats has every format that the driver makes or blkid knows, and that keeps a copy at a place which can be
// computed. It has no swap, LUKS1, MD and iso9660, which have no copy, and no UFS, whose copies are where only the first
// superblock says.
var copyFormats = []copyFormat{
	{ // Linux, Documentation/filesystems/ext4, "Layout", "Super Block"; ext4(5), sparse_super, sparse_super2
		name: "ext2, ext3 or ext4", offsets: extCopyOffsets, is: isExtCopy, mounted: true,
		repair: func(b []byte, at int64) []string {
			block := int64(1024) << binary.LittleEndian.Uint32(b[0x18:])
			return []string{"e2fsck", "-f", "-y", "-b", fmt.Sprint(at / block), "-B", fmt.Sprint(block)}
		},
	},
	{ // XFS Algorithms & Data Structures, "Superblocks": one at the beginning of each allocation group (AG)
		name: "xfs", offsets: xfsCopyOffsets, is: isXFSCopy, mounted: true, repair: runs("xfs_repair"),
	},
	{ // the same, "AG Free Space Management", "AG Inode Management": in the second to fourth sector of each group
		name: "xfs", offsets: xfsHeaderOffsets, mounted: true, repair: runs("xfs_repair"),
		is: func(b []byte, _ int64) bool {
			return hasAny(b, "XAGF\x00\x00\x00\x01", "XAGI\x00\x00\x00\x01", "XAFL\x00\x00\x00\x00")
		},
	},
	{ // btrfs on-disk format, "Superblock": at 64 KiB, 64 MiB and 256 GiB. super-recover of btrfs(8) calls a superblock valid that lacks only its magic
		name: "btrfs", offsets: fixed(64<<20, 256<<30), mounted: true,
		repair: func(_ []byte, at int64) []string {
			if at == 256<<30 {
				return []string{"btrfs-select-super", "-s", "2"}
			}
			return []string{"btrfs-select-super", "-s", "1"}
		},
		is: func(b []byte, at int64) bool { return isBtrfs(b) && int64(binary.LittleEndian.Uint64(b[0x30:])) == at },
	},
	{ // LUKS2 On-Disk Format Specification, 2.1: the second header follows the first, whose size is one of these
		name: "LUKS2", offsets: fixed(16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20, 2<<20, 4<<20),
		is: magicAt(0, "SKUL\xba\xbe"), repair: runs("cryptsetup repair"),
	},
	{ // LVM2, lib/format_text/layout.h: the header of the metadata area, beside the label in the second sector
		name: "LVM2", offsets: fixed(4096), is: magicAt(4, " LVM2 x[5A%r0N*>"),
	},
	{ // [MS-FSCC] and ntfs-3g, layout.h: the boot sector again in the last sector
		name: "NTFS", offsets: fromEnd(512), is: magicAt(3, "NTFS    "),
	},
	{ // Microsoft FAT Specification, BPB_BkBootSec, which is 6
		name: "FAT32", offsets: fixed(6*512, 6*4096), is: magicAt(82, "FAT32   "), repair: runs("fsck.fat -a"),
	},
	{ // exFAT File System Specification, 3.2: the backup boot region is the 13th sector
		name: "exFAT", offsets: fixed(12*512, 12*4096), is: magicAt(3, "EXFAT   "),
	},
	{ // Apple TN1150, "Volume Header": again in the last sector but one
		name: "HFS+", offsets: fromEnd(1024), is: func(b []byte, _ int64) bool { return hasAny(b, "H+\x00\x04", "HX\x00\x05") },
	},
	{ // Linux, fs/jfs/jfs_filsys.h, SUPER2_OFF
		name: "JFS", offsets: fixed(0xF000), is: magicAt(0, "JFS1"),
	},
	{ // Linux, Documentation/filesystems/f2fs.rst: the superblock is twice at the beginning
		name: "F2FS", offsets: fixed(4096 + 1024), is: magicAt(0, "\x10\x20\xf5\xf2"), repair: runs("fsck.f2fs -f"),
	},
	{ // Linux, fs/bcachefs/bcachefs_format.h: the layout in sector 7, and the second superblock 1 MiB after the first
		name: "bcachefs", offsets: fixed(7*512, 8*512+1<<20),
		is: func(b []byte, _ int64) bool {
			const magic = "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"
			return hasAny(b, magic) || hasAny(b[24:], magic)
		},
	},
}

func fixed(offsets ...int64) func(int64) []int64 { return func(int64) []int64 { return offsets } }

func fromEnd(n int64) func(int64) []int64 {
	return func(size int64) []int64 { return []int64{size - n} }
}

func hasAny(b []byte, magics ...string) bool {
	return slices.ContainsFunc(magics, func(magic string) bool { return strings.HasPrefix(string(b[:min(len(b), 32)]), magic) })
}

func magicAt(offset int, magic string) func([]byte, int64) bool {
	return func(b []byte, _ int64) bool { return hasAny(b[offset:], magic) }
}

func runs(line string) func([]byte, int64) []string {
	return func([]byte, int64) []string { return strings.Fields(line) }
}

// copySize is how much of a copy is read. No copy begins in the last 512 bytes of a page, except at the end of the disk.
const (
	copySize = superSize
	copyPage = 4096
)

// extBackupGroups are the groups that hold a copy of the superblock with sparse_super: 1 and the powers of 3, 5 and 7.
// sparse_super2 has group 1 and the last one. Without either all groups have one, these too.
func extBackupGroups(groups int64) []int64 {
	list := []int64{1}
	for _, base := range []int64{3, 5, 7} {
		for g := base; g < groups; g *= base {
			list = append(list, g)
		}
	}
	if groups > 1 {
		list = append(list, groups-1)
	}
	return list
}

// extCopyOffsets are the copies of groups of 8 MiB, for blocks of 1 KiB, to 32 GiB, for blocks of 64 KiB. A group has as
// many blocks as a block has bits; bigalloc makes it larger. With blocks of 1 KiB the first block is no part of a group.
func extCopyOffsets(size int64) (offsets []int64) {
	for group := int64(8 << 20); group <= 32<<30; group *= 2 {
		for _, g := range extBackupGroups((size-1)/group + 1) {
			offsets = append(offsets, g*group, g*group+1024)
		}
	}
	return offsets
}

// isExtCopy reports whether the bytes are a superblock that says that it is a copy at this place.
func isExtCopy(b []byte, at int64) bool {
	if !isExt(b) {
		return false
	}
	little := binary.LittleEndian
	block := int64(1024) << little.Uint32(b[0x18:])
	first, perGroup := int64(little.Uint32(b[0x14:])), int64(little.Uint32(b[0x20:]))
	if perGroup == 0 || at%block != 0 || (at/block-first)%perGroup != 0 {
		return false
	}
	group, revision := (at/block-first)/perGroup, little.Uint32(b[0x4C:])
	return group > 0 && (revision == 0 || little.Uint16(b[0x5A:]) == uint16(group)) //nolint:gosec // the field has the low 16 bits
}

// xfsCopyOffsets are the beginnings of allocation groups as mkfs.xfs makes them without options. By default they are four,
// of at most 1 TiB (xfsprogs, libxfs/topology.c, calc_default_ag_geometry). On a disk that does not rotate there is one
// for each processor, of at least 4 GiB (calc_concurrency_ag_geometry). A file system that was grown, or whose disk
// became smaller, has the groups of its first size. So the first three groups are also those of each size in GiB, and of
// each such size less the header of an encrypted volume.
func xfsCopyOffsets(size int64) (offsets []int64) {
	const gib, tib, largestBlock = int64(1 << 30), int64(1 << 40), int64(64 << 10)
	groups := func(group, most int64) {
		for n := int64(1); n <= most && group > 0 && n*group < size; n++ {
			offsets = append(offsets, n*group)
		}
	}
	parts := func(n, block int64) {
		blocks := size / block
		groups(blocks/n*block, 3)
		groups((blocks+n-1)/n*block, 3)
	}
	for block := int64(1 << 10); block <= largestBlock; block *= 2 {
		groups(tib-block, size/tib+1)
		parts(4, block)
	}
	for n := int64(5); n <= 128 && size/n >= 4*gib-4096; n++ {
		parts(n, 4096)
	}
	headers := []int64{0}
	if header := (gib - size%gib) % gib; header > 0 && header <= 32<<20 {
		headers = append(headers, header)
	}
	for _, header := range headers {
		for first := gib; first <= 4*tib && (first-header)/4 < size; first += gib {
			groups((first-header)/4, 3)
		}
	}
	return offsets
}

func xfsHeaderOffsets(int64) (offsets []int64) {
	for sector := int64(512); sector <= 32<<10; sector *= 2 {
		offsets = append(offsets, sector, 2*sector, 3*sector)
	}
	return offsets
}

// isXFSCopy reports whether the bytes are a superblock that can be at the beginning of an allocation group there.
func isXFSCopy(b []byte, at int64) bool {
	big := binary.BigEndian
	block, blocks := int64(big.Uint32(b[4:])), int64(big.Uint32(b[84:])) // sb_blocksize, sb_agblocks
	return isXFS(b) && block >= 512 && block <= 64<<10 && blocks > 0 && at%(block*blocks) == 0
}

// copyPlace is a place at which a format may have a copy.
type copyPlace struct {
	at     int64
	format *copyFormat
}

// copyPlaces lists each place of the table that is on a disk of that size, in order.
func copyPlaces(size int64) []copyPlace {
	var places []copyPlace
	for i := range copyFormats {
		f := &copyFormats[i]
		for _, at := range f.offsets(size) {
			if at > 0 && at < size {
				places = append(places, copyPlace{at, f})
			}
		}
	}
	slices.SortStableFunc(places, func(a, b copyPlace) int { return cmp.Compare(a.at, b.at) })
	return slices.Compact(places)
}

// copyReaders is how many pages are read at once. A thread waits in the kernel for each.
const copyReaders = 16

// FindCopies reads every place at which a known format may have a copy of its identity, and returns the copies that are
// there. It reads 60 pages for 1 GiB, 586 for 100 GiB, 4,849 for 1 TiB, 9,137 for 20 TiB.
func FindCopies(ctx context.Context, d sized) ([]Copy, error) {
	size, err := d.Size()
	if err != nil {
		return nil, err
	}
	var pages [][]copyPlace
	for _, p := range copyPlaces(int64(size)) {
		if last := len(pages) - 1; last < 0 || pages[last][0].at/copyPage != p.at/copyPage {
			pages = append(pages, nil)
		}
		pages[len(pages)-1] = append(pages[len(pages)-1], p)
	}
	var readers singleflight.Group[int, error] // a panic of one is the caller's
	var next atomic.Int64
	found, failed := make([][]Copy, len(pages)), make([]error, copyReaders)
	calls := make([]*singleflight.Call[error], copyReaders)
	for i := range calls {
		calls[i], _ = readers.Start(i, func() (err error) {
			buffer := make([]byte, copyPage+copySize)
			for {
				n := int(next.Add(1)) - 1
				if n >= len(pages) || err != nil {
					return err
				}
				if err = ctx.Err(); err == nil {
					found[n], err = readCopies(d, int64(size), pages[n], buffer)
				}
			}
		})
	}
	for i := range failed {
		calls[i].Wait(context.WithoutCancel(ctx))
		failed[i] = calls[i].Value
	}
	return slices.Concat(found...), errors.Join(failed...)
}

// readCopies reads the page in which the places begin. A place near the end of a page sees zeros beyond it.
func readCopies(r io.ReaderAt, size int64, places []copyPlace, buffer []byte) (found []Copy, err error) {
	page := places[0].at / copyPage * copyPage
	want := min(copyPage, size-page)
	clear(buffer)
	if n, err := r.ReadAt(buffer[:want], page); int64(n) < want {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	for _, p := range places {
		if b := buffer[p.at-page:][:copySize]; p.format.is(b, p.at) {
			found = append(found, Copy{Format: p.format.name, At: p.at, bytes: slices.Clone(b), format: p.format})
		}
	}
	return found, nil
}

// describeCopies says which copies were found and how to repair from the first one, for an error.
func describeCopies(copies []Copy, device string) (found, repair string) {
	places := make([]string, 0, 3)
	for _, c := range copies[:min(len(copies), cap(places))] {
		places = append(places, fmt.Sprintf("%s at byte %d", c.Format, c.At))
	}
	found = strings.Join(places, ", ")
	if more := len(copies) - len(places); more > 0 {
		found += fmt.Sprintf(" and %d more", more)
	}
	for _, c := range copies {
		if c.format.repair != nil {
			return found, strings.Join(append(c.format.repair(c.bytes, c.At), device), " ")
		}
	}
	return found, "the repair tool of that format"
}
