package fs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// sparse is a disk of zeros but for what is at some offsets.
type sparse struct {
	size  int64
	parts map[int64][]byte
	bad   int64 // a read of this byte fails; 0 for none
	reads *atomic.Int64
}

func (s sparse) Size() (volume.Size, error) { return volume.Size(s.size), nil }

func (s sparse) ReadAt(b []byte, at int64) (int, error) {
	if s.reads != nil {
		s.reads.Add(1)
	}
	if s.bad > 0 && at <= s.bad && s.bad < at+int64(len(b)) {
		return 0, errors.New("input/output error")
	}
	n := int(min(int64(len(b)), max(s.size-at, 0)))
	clear(b[:n])
	for from, part := range s.parts {
		if from < at+int64(n) && at < from+int64(len(part)) {
			copy(b[max(from-at, 0):n], part[max(at-from, 0):])
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func extCopy(log uint32, perGroup, group uint32) []byte {
	b := make([]byte, superSize)
	little := binary.LittleEndian
	little.PutUint32(b[0x04:], 1<<20)
	little.PutUint32(b[0x18:], log)
	little.PutUint32(b[0x20:], perGroup)
	little.PutUint16(b[0x38:], 0xEF53)
	little.PutUint32(b[0x4C:], 1)
	little.PutUint16(b[0x5A:], uint16(group))
	if log == 0 {
		little.PutUint32(b[0x14:], 1)
	}
	return b
}

func xfsCopy(blocks uint32) []byte { return xfsCopyOf(4096, blocks) }

func xfsCopyOf(block, blocks uint32) []byte {
	b := append([]byte("XFSB"), make([]byte, 512-4)...)
	binary.BigEndian.PutUint32(b[4:], block)
	binary.BigEndian.PutUint32(b[84:], blocks)
	return b
}

func btrfsCopy(at uint64) []byte {
	b := make([]byte, superSize)
	copy(b[0x40:], "_BHRfS_M")
	binary.LittleEndian.PutUint64(b[0x30:], at)
	binary.LittleEndian.PutUint64(b[0x70:], 1<<30)
	return b
}

// Every place at which a format keeps a copy is read, and the error names it and what repairs from it.
func TestEachCopyOfAFileSystemIsFound(t *testing.T) {
	t.Parallel()
	const mib, gib, tib = int64(1 << 20), int64(1 << 30), int64(1 << 40)
	at := func(offset int, text string) []byte { return append(make([]byte, offset), text...) }
	for _, c := range []struct {
		name, format string
		size, at     int64
		bytes        []byte
		repair       string
	}{
		{"ext with blocks of 1 KiB", "ext2, ext3 or ext4", gib, 8*mib + 1024, extCopy(0, 8192, 1), "e2fsck -f -y -b 8193 -B 1024 /dev/vdb"},
		{"ext with blocks of 2 KiB", "ext2, ext3 or ext4", gib, 32 * mib, extCopy(1, 16384, 1), "e2fsck -f -y -b 16384 -B 2048 /dev/vdb"},
		{"ext with blocks of 4 KiB", "ext2, ext3 or ext4", gib, 128 * mib, extCopy(2, 32768, 1), "e2fsck -f -y -b 32768 -B 4096 /dev/vdb"},
		{"ext, group 3", "ext2, ext3 or ext4", gib, 384 * mib, extCopy(2, 32768, 3), "e2fsck -f -y -b 98304 -B 4096 /dev/vdb"},
		{"ext, group 25", "ext2, ext3 or ext4", 20 * gib, 25 * 128 * mib, extCopy(2, 32768, 25), "-b 819200 "},
		{"ext, group 49", "ext2, ext3 or ext4", 20 * gib, 49 * 128 * mib, extCopy(2, 32768, 49), "-b 1605632 "},
		{"ext, group 59049", "ext2, ext3 or ext4", 20 * tib, 59049 * 128 * mib, extCopy(2, 32768, 59049), "-b 1934917632 "},
		{"ext, the last group, by sparse_super2", "ext2, ext3 or ext4", 20 * gib, 159 * 128 * mib, extCopy(2, 32768, 159), "-b 5210112 "},
		{"ext with blocks of 64 KiB", "ext2, ext3 or ext4", 40 * gib, 32 * gib, extCopy(6, 524288, 1), "-b 524288 -B 65536 "},
		{"ext with bigalloc", "ext2, ext3 or ext4", 40 * gib, 2 * gib, extCopy(2, 524288, 1), "-b 524288 -B 4096 "},
		{"xfs, group 1", "xfs", gib, 256 * mib, xfsCopy(65536), "xfs_repair /dev/vdb"},
		{"xfs, group 3", "xfs", gib, 768 * mib, xfsCopy(65536), "xfs_repair /dev/vdb"},
		{"xfs, grown", "xfs", 100 * gib, 256 * mib, xfsCopy(65536), "xfs_repair"},
		{"xfs, on a disk that became smaller", "xfs", 300 * mib, 256 * mib, xfsCopy(65536), "xfs_repair"},
		{"xfs, on a disk that became a little smaller", "xfs", gib - 17*mib, 512 * mib, xfsCopy(65536), "xfs_repair"},
		{"xfs with blocks of 512 bytes", "xfs", gib, 256 * mib, xfsCopyOf(512, 1<<19), "xfs_repair"},
		{"xfs with blocks of 64 KiB", "xfs", gib, 256 * mib, xfsCopyOf(64<<10, 1<<12), "xfs_repair"},
		{"xfs with blocks of 1 KiB", "xfs", gib + 3072, 262145 << 10, xfsCopyOf(1024, 262145), "xfs_repair"},
		{"xfs of 20 TiB with blocks of 1 KiB", "xfs", 20 * tib, tib - 1024, xfsCopyOf(1024, 1<<30-1), "xfs_repair"},
		{"xfs of 20 TiB with blocks of 64 KiB", "xfs", 20 * tib, tib - 64<<10, xfsCopyOf(64<<10, 1<<24-1), "xfs_repair"},
		{"xfs of 20 TiB", "xfs", 20 * tib, 17 * (tib - 4096), xfsCopy(1<<28 - 1), "xfs_repair"},
		{"xfs on an encrypted volume", "xfs", 10*gib - 16*mib, 2560*mib - 4*mib, xfsCopy(654336), "xfs_repair"},
		{"xfs by six processors", "xfs", 100 * gib, 26214400 / 6 * 4096, xfsCopy(26214400 / 6), "xfs_repair"},
		{"xfs by nine processors", "xfs", 100 * gib, (26214400/9 + 1) * 4096, xfsCopy(26214400/9 + 1), "xfs_repair"},
		{"xfs, sectors of 32 KiB", "xfs", gib, 32 << 10, []byte("XAGF\x00\x00\x00\x01"), "xfs_repair"},
		{"xfs, the group of free space", "xfs", gib, 512, []byte("XAGF\x00\x00\x00\x01"), "xfs_repair"},
		{"xfs, the inodes, sectors of 4 KiB", "xfs", gib, 8192, []byte("XAGI\x00\x00\x00\x01"), "xfs_repair"},
		{"xfs, the free list", "xfs", gib, 1536, []byte("XAFL\x00\x00\x00\x00"), "xfs_repair"},
		{"btrfs, the second", "btrfs", gib, 64 * mib, btrfsCopy(64 << 20), "btrfs-select-super -s 1 /dev/vdb"},
		{"btrfs, the third", "btrfs", tib, 256 * gib, btrfsCopy(256 << 30), "btrfs-select-super -s 2 /dev/vdb"},
		{"LUKS2", "LUKS2", gib, 16 << 10, []byte("SKUL\xba\xbe\x00\x02"), "cryptsetup repair /dev/vdb"},
		{"LUKS2, the largest header", "LUKS2", gib, 4 << 20, []byte("SKUL\xba\xbe\x00\x02"), "cryptsetup repair /dev/vdb"},
		{"LVM2", "LVM2", gib, 4096, at(4, " LVM2 x[5A%r0N*>"), "the repair tool"},
		{"NTFS", "NTFS", gib, gib - 512, at(3, "NTFS    "), "the repair tool"},
		{"FAT32", "FAT32", gib, 3072, at(82, "FAT32   "), "fsck.fat -a /dev/vdb"},
		{"exFAT", "exFAT", gib, 6144, at(3, "EXFAT   "), "the repair tool"},
		{"HFS+", "HFS+", gib, gib - 1024, []byte("H+\x00\x04"), "the repair tool"},
		{"HFSX", "HFS+", gib, gib - 1024, []byte("HX\x00\x05"), "the repair tool"},
		{"JFS", "JFS", gib, 0xF000, []byte("JFS1"), "the repair tool"},
		{"F2FS", "F2FS", gib, 5120, []byte("\x10\x20\xf5\xf2"), "fsck.f2fs -f /dev/vdb"},
		{"bcachefs", "bcachefs", gib, 4096 + 1<<20, at(24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"), "the repair tool"},
		{"bcachefs, the layout", "bcachefs", gib, 3584, []byte("\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"), "the repair tool"},
	} {
		copies, err := FindCopies(t.Context(), sparse{size: c.size, parts: map[int64][]byte{c.at: c.bytes}})
		if err != nil || len(copies) != 1 || copies[0].Format != c.format || copies[0].At != c.at {
			t.Errorf("%s: want a copy of %s at %d, got %+v, %v", c.name, c.format, c.at, copies, err)
			continue
		}
		if found, repair := describeCopies(copies, "/dev/vdb"); !bytes.Contains([]byte(found), []byte(c.format)) || !bytes.Contains([]byte(repair), []byte(c.repair)) {
			t.Errorf("%s: want it described with %q, got %q, %q", c.name, c.repair, found, repair)
		}
	}
}

// What an array gives as a new volume need not be zeros. A copy counts only where it says that it belongs.
func TestACopyAtAnotherPlaceDoesNotCount(t *testing.T) {
	t.Parallel()
	const mib, gib = int64(1 << 20), int64(1 << 30)
	for name, parts := range map[string]map[int64][]byte{
		"ext of another group":     {128 * mib: extCopy(2, 32768, 3)},
		"ext, the first of a disk": {128 * mib: extCopy(2, 32768, 0)},
		"ext between two groups":   {128 * mib: extCopy(2, 40000, 1)},
		"ext without groups":       {128 * mib: extCopy(2, 0, 1)},
		"ext without its magic":    {128 * mib: make([]byte, 1024)},
		"xfs of other groups":      {256 * mib: xfsCopy(65537)},
		"xfs without groups":       {256 * mib: xfsCopy(0)},
		"xfs of smaller blocks":    {256 * mib: xfsCopyOf(256, 1<<20)},
		"xfs of larger blocks":     {256 * mib: xfsCopyOf(128<<10, 1<<11)},
		"btrfs, the first":         {64 * mib: btrfsCopy(64 << 10)},
		"LUKS2, the first header":  {16 << 10: []byte("LUKS\xba\xbe")},
	} {
		if copies, err := FindCopies(t.Context(), sparse{size: gib, parts: parts}); err != nil || len(copies) != 0 {
			t.Errorf("%s: want no copy, got %+v, %v", name, copies, err)
		}
	}
}

// A disk that cannot be read where a copy may lie is not empty. The number of reads has a bound.
func TestEveryPlaceOfACopyIsReadAndTheReadsAreBounded(t *testing.T) {
	t.Parallel()
	for size, want := range map[int64]struct{ places, pages int64 }{
		1 << 20:         {34, 16},
		128 << 20:       {65, 32},
		128<<20 + 1:     {64, 32},
		1<<30 - 33<<20:  {120, 61},
		1<<30 - 32<<20:  {122, 63},
		1 << 30:         {121, 60},
		1<<30 + 3072:    {122, 58},
		4<<30 + 1:       {173, 83},
		100 << 30:       {802, 586},
		1 << 40:         {5181, 4849},
		20 << 40:        {9556, 9137},
		20<<40 - 16<<20: {21863, 21446},
		64 << 40:        {9942, 9495},
	} {
		var reads atomic.Int64
		d := sparse{size: size, reads: &reads}
		if copies, err := FindCopies(t.Context(), d); err != nil || len(copies) > 0 {
			t.Errorf("%d: want an empty disk, got %+v, %v", size, copies, err)
		}
		if n := int64(len(copyPlaces(size))); n != want.places || reads.Load() != want.pages { // as NODE.md says
			t.Errorf("%d: want %d places on %d pages, got %d: {%d, %d},", size, want.places, want.pages, size, n, reads.Load())
		}
		places := copyPlaces(size)
		for _, p := range []copyPlace{places[0], places[len(places)/2], places[len(places)-1]} {
			if _, err := FindCopies(t.Context(), sparse{size: size, bad: p.at}); err == nil {
				t.Errorf("%d: want an error, since byte %d cannot be read", size, p.at)
			}
		}
	}
	for _, size := range []int64{0, 1, 511, 512, 4095, 4097, 8<<20 + 512, 1<<30 + 1} {
		if _, err := FindCopies(t.Context(), sparse{size: size}); err != nil {
			t.Errorf("a disk of %d bytes: %v", size, err)
		}
	}
	if _, err := FindCopies(t.Context(), part{size: 1 << 30, readable: 512 << 20}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("want an error for a disk that ends early, got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := FindCopies(ended, sparse{size: 1 << 30}); !errors.Is(err, context.Canceled) {
		t.Errorf("want the reads ended with their caller, got %v", err)
	}
}

// unfinishedExt is an ext4 of 256 MiB as a killed mkfs leaves it: everything but the first superblock.
func unfinishedExt() sparse {
	const block, journal, table, root = 4096, 100, 50, 70
	little, big := binary.LittleEndian, binary.BigEndian
	super := extCopy(2, 32768, 1)
	little.PutUint32(super[0x00:], 2*8192) // s_inodes_count
	little.PutUint32(super[0x28:], 8192)   // s_inodes_per_group
	little.PutUint16(super[0x58:], 256)    // s_inode_size
	little.PutUint32(super[0x5C:], 4)      // a journal
	extent := func(b []byte, at uint32) {
		little.PutUint16(b, 0xF30A)
		little.PutUint32(b[20:], at)
	}
	extent(super[0x10C:], journal)
	descriptors := make([]byte, 2*32)
	little.PutUint32(descriptors[0x08:], table)
	little.PutUint16(descriptors[0x0E:], 8192-11)
	little.PutUint16(descriptors[32+0x0E:], 8192)
	j := make([]byte, 1024)
	big.PutUint32(j, 0xC03B3998)
	big.PutUint32(j[4:], 4)
	big.PutUint32(j[0x18:], 1)
	inode := make([]byte, 256)
	little.PutUint16(inode, 0o40755)
	little.PutUint32(inode[4:], block)
	extent(inode[0x28:], root)
	dir := make([]byte, block)
	entry := func(at int, inode uint32, length uint16, name string) {
		little.PutUint32(dir[at:], inode)
		little.PutUint16(dir[at+4:], length)
		dir[at+6] = byte(len(name))
		copy(dir[at+8:], name)
	}
	entry(0, 2, 12, ".")
	entry(12, 2, 12, "..")
	entry(24, 11, block-24, "lost+found")
	return sparse{size: 256 << 20, parts: map[int64][]byte{
		128 << 20: super, 1 * block: descriptors, journal * block: j, table*block + 256: inode, root * block: dir,
	}}
}

type defective struct{ sparse }

func (defective) ReadAt([]byte, int64) (int, error) { panic("index out of range") }

// The recovery of the RPC does not protect the goroutines that read the copies.
func TestAPanicWhileTheCopiesAreReadIsOneOfTheCaller(t *testing.T) {
	t.Parallel()
	err := panics.Try(func() error {
		_, err := FindCopies(t.Context(), defective{sparse{size: 1 << 30}})
		return err
	})
	if !errors.As(err, new(*panics.Error)) || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("want the panic of a reader, got %v", err)
	}
}

// widest records how many bytes a reader was asked for at once.
type widest struct {
	io.ReaderAt
	bytes int
	sum   int64
}

func (w *widest) ReadAt(b []byte, at int64) (int, error) {
	w.bytes = max(w.bytes, len(b))
	w.sum += int64(len(b))
	return w.ReaderAt.ReadAt(b, at)
}

func TestAnExtWhoseMkfsWasKilledIsToldFromOneThatWasMounted(t *testing.T) {
	t.Parallel()
	little, big := binary.LittleEndian, binary.BigEndian
	const super, descriptors, journal, inode, dir = 128 << 20, 4096, 100 * 4096, 50*4096 + 256, 70 * 4096
	for name, c := range map[string]struct {
		change func(parts map[int64][]byte)
		want   bool
	}{
		"as mkfs leaves it":               {func(map[int64][]byte) {}, true},
		"a checksum in the directory":     {func(p map[int64][]byte) { little.PutUint16(p[dir][24+4:], 4096-24-12) }, true},
		"ext2, without a journal":         {func(p map[int64][]byte) { p[super][0x5C] = 0; delete(p, journal) }, true},
		"ext3, with lists of blocks":      {func(p map[int64][]byte) { clear(p[super][0x10C:0x148]); little.PutUint32(p[super][0x10C:], 100) }, true},
		"a file in group 0":               {func(p map[int64][]byte) { little.PutUint16(p[descriptors][0x0E:], 8192-12) }, false},
		"a directory in group 1":          {func(p map[int64][]byte) { little.PutUint16(p[descriptors][32+0x0E:], 8191) }, false},
		"fewer inodes than mkfs makes":    {func(p map[int64][]byte) { little.PutUint16(p[descriptors][0x0E:], 8192-10) }, false},
		"no descriptors":                  {func(p map[int64][]byte) { delete(p, descriptors) }, false},
		"a transaction in the journal":    {func(p map[int64][]byte) { big.PutUint32(p[journal][0x18:], 2) }, false},
		"a journal to replay":             {func(p map[int64][]byte) { big.PutUint32(p[journal][0x1C:], 1) }, false},
		"no journal where one should be":  {func(p map[int64][]byte) { delete(p, journal) }, false},
		"a journal without a place":       {func(p map[int64][]byte) { clear(p[super][0x10C:0x148]) }, false},
		"another entry in the directory":  {func(p map[int64][]byte) { little.PutUint16(p[dir][24+4:], 20) }, false},
		"another name in the directory":   {func(p map[int64][]byte) { p[dir][24+8] = 'm' }, false},
		"no directory":                    {func(p map[int64][]byte) { delete(p, dir) }, false},
		"no inode of the root":            {func(p map[int64][]byte) { delete(p, inode) }, false},
		"a root that is a file":           {func(p map[int64][]byte) { little.PutUint16(p[inode], 0o100644) }, false},
		"a root of two blocks":            {func(p map[int64][]byte) { little.PutUint32(p[inode][4:], 8192) }, false},
		"a copy that says a mount":        {func(p map[int64][]byte) { p[super][0x34] = 1 }, false},
		"a copy that says when":           {func(p map[int64][]byte) { p[super][0x2C] = 1 }, false},
		"descriptors elsewhere":           {func(p map[int64][]byte) { p[super][0x60] = 0x10 }, false},
		"a copy of something else too":    {func(p map[int64][]byte) { p[64<<20] = btrfsCopy(64 << 20) }, false},
		"a copy of another ext too":       {func(p map[int64][]byte) { p[32<<20] = extCopy(1, 16384, 1) }, false},
		"a later copy of another ext":     {func(p map[int64][]byte) { p[27*8<<20+1024] = extCopy(0, 8192, 27) }, false},
		"a journal of more levels":        {func(p map[int64][]byte) { p[super][0x10C+6] = 1 }, false},
		"a journal with a hole":           {func(p map[int64][]byte) { p[super][0x10C+12] = 1 }, false},
		"a journal of another form":       {func(p map[int64][]byte) { p[journal][7] = 3 }, false},
		"the free space of an xfs too":    {func(p map[int64][]byte) { p[512] = []byte("XAGF\x00\x00\x00\x01") }, false},
		"descriptors of no size":          {func(p map[int64][]byte) { p[super][0x60] = 0x80 }, false},
		"inodes of no size":               {func(p map[int64][]byte) { little.PutUint16(p[super][0x58:], 0) }, false},
		"inodes that fill no whole group": {func(p map[int64][]byte) { little.PutUint32(p[super], 3*8192-1) }, false},
		"more descriptors than any disk": {func(p map[int64][]byte) {
			little.PutUint32(p[super], 0xFFFF0000)
			little.PutUint32(p[super][0x28:], 1)
			p[descriptors] = bytes.Repeat(append(make([]byte, 0x0E), append([]byte{1}, make([]byte, 32-0x0F)...)...), 66<<20/32) // in each, all are free
			delete(p, journal)
			delete(p, inode)
			delete(p, dir)
		}, false},
		"more inodes free than there are": {func(p map[int64][]byte) {
			little.PutUint16(p[descriptors][0x0E:], 8192+1)
			little.PutUint16(p[descriptors][32+0x0E:], 8192-12)
		}, false},
		"descriptors beyond the disk": {func(p map[int64][]byte) { little.PutUint32(p[super], 0xFFFFE000) }, false},
	} {
		d := unfinishedExt()
		c.change(d.parts)
		copies, err := FindCopies(t.Context(), d)
		if err != nil || len(copies) == 0 {
			t.Fatalf("%s: want copies, got %v", name, err)
		}
		r := &widest{ReaderAt: d}
		if got, err := extUnfinished(r, copies); got != c.want || err != nil {
			t.Errorf("%s: want %t, got %t, %v", name, c.want, got, err)
		}
		if most := int64(64 << 20); r.sum > most {
			t.Errorf("%s: want at most %d bytes read, whatever the copy says, got %d", name, most, r.sum)
		}
		if most := 64 << 10; r.bytes > most {
			t.Errorf("%s: want at most %d bytes read at once, whatever the copy says, got %d", name, most, r.bytes)
		}
	}
	for _, bad := range []int64{descriptors, journal, inode, dir} {
		d := unfinishedExt()
		copies, err := FindCopies(t.Context(), d)
		hosttest.Must(t, err)
		d.bad = bad
		if unfinished, err := extUnfinished(d, copies); unfinished || err == nil {
			t.Errorf("want an error, since byte %d cannot be read, got %t", bad, unfinished)
		}
	}
}

func TestHasFileSystemKnowsTheCopies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts map[int64][]byte
		want  bool
	}{
		"nothing":              {nil, false},
		"the first of ext":     {map[int64][]byte{1024: extCopy(2, 32768, 0)}, true},
		"the first of xfs":     {map[int64][]byte{0: xfsCopy(65536)}, true},
		"the first of btrfs":   {map[int64][]byte{btrfsSuper: btrfsCopy(btrfsSuper)}, true},
		"a copy of ext":        {map[int64][]byte{128 << 20: extCopy(2, 32768, 1)}, true},
		"a copy of xfs":        {map[int64][]byte{256 << 20: xfsCopy(65536)}, true},
		"a copy of btrfs":      {map[int64][]byte{64 << 20: btrfsCopy(64 << 20)}, true},
		"LVM, of the server":   {map[int64][]byte{4096: append(make([]byte, 4), " LVM2 x[5A%r0N*>"...)}, false},
		"LUKS2, of the server": {map[int64][]byte{16 << 10: []byte("SKUL\xba\xbe")}, false},
	} {
		if got, err := HasFileSystem(sparse{size: 1 << 30, parts: c.parts}); got != c.want || err != nil {
			t.Errorf("%s: want %t, got %t, %v", name, c.want, got, err)
		}
	}
	if _, err := HasFileSystem(sparse{size: 1 << 30, bad: 128 << 20}); err == nil {
		t.Error("want an error for a disk that cannot be read where a copy may lie")
	}
}

// The numbers are those of the documents that the table names. A copy at another place is one that nobody finds.
func TestEachFormatKeepsItsCopiesWhereItsDocumentSays(t *testing.T) {
	t.Parallel()
	const size = 1 << 40
	want := map[string][]int64{
		"btrfs":    {67108864, 274877906944},
		"LUKS2":    {16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304},
		"LVM2":     {4096},
		"NTFS":     {size - 512},
		"FAT32":    {3072, 24576},
		"exFAT":    {6144, 49152},
		"HFS+":     {size - 1024},
		"JFS":      {61440},
		"F2FS":     {5120},
		"bcachefs": {3584, 1052672},
	}
	got := map[string][]int64{}
	for _, f := range copyFormats {
		if _, ok := want[f.name]; ok {
			got[f.name] = f.offsets(size)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnExtHasBlocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		low, high byte
		wide      bool
		want      bool
	}{
		"64 blocks":          {low: 64, want: true},
		"none":               {},
		"2^32 in 64 bits":    {high: 1, wide: true, want: true},
		"2^32 without 64bit": {high: 1},
	} {
		super := make([]byte, superSize)
		super[56], super[57], super[4], super[0x150] = 0x53, 0xEF, c.low, c.high
		if c.wide {
			super[96] = 0x80
		}
		if got := isExt(super); got != c.want {
			t.Errorf("%s: want %t, got %t", name, c.want, got)
		}
	}
}

// fsck may replace a damaged superblock by a backup, so the larger of both counts.
func TestTheSizeOfADamagedExtIsThatOfItsBackupsToo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(first, backup []byte)
		want   volume.Size
	}{
		"a right checksum":             {func(first, _ []byte) { withChecksum(first) }, 1 << 32},
		"a wrong checksum":             {func([]byte, []byte) {}, 2 << 32},
		"a backup of another":          {func(_, backup []byte) { backup[0x68] = 1; withChecksum(backup) }, 1 << 32},
		"a backup with another damage": {func(_, backup []byte) { backup[0x3FC]++ }, 1 << 32},
	} {
		first, backup := extCopy(2, 32768, 0), extCopy(2, 32768, 1)
		first[0x65], backup[0x65] = 4, 4 // metadata_csum
		binary.LittleEndian.PutUint32(backup[4:], 2<<20)
		withChecksum(backup)
		c.change(first, backup)
		got, err := fileSystemSize(sparse{size: 8 << 30, parts: map[int64][]byte{1024: first, 128 << 20: backup}}, "ext4")
		if got != c.want || err != nil {
			t.Errorf("%s: want %s, got %s, %v", name, c.want, got, err)
		}
	}
	first, wide := extCopy(2, 32768, 0), slices.Clone(extCopy(2, 32768, 0))
	wide[0x60], wide[0x150] = 0x80, 1
	for want, super := range map[volume.Size][]byte{1 << 32: first, 1<<32 + 1<<44: wide} {
		if got, err := fileSystemSize(sparse{size: 8 << 30, parts: map[int64][]byte{1024: super}}, "ext4"); got != want || err != nil {
			t.Errorf("want %s, got %s, %v", want, got, err)
		}
	}
}

func withChecksum(super []byte) { binary.LittleEndian.PutUint32(super[0x3FC:], extChecksum(super)) }

// A superblock may hold any number.
func TestASuperblockWithoutInodesIsNoUnfinishedFileSystem(t *testing.T) {
	super := make([]byte, 1024)
	binary.LittleEndian.PutUint16(super[56:], 0xEF53)
	for at, value := range map[int]uint32{0x04: 16384, 0x20: 8192, 0x28: 8} {
		binary.LittleEndian.PutUint32(super[at:], value)
	}
	if unfinished, _ := extUnfinished(bytes.NewReader(append(make([]byte, 1024), super...)), []Copy{{bytes: super}}); unfinished {
		t.Error("want it taken for no work of mkfs")
	}
}
