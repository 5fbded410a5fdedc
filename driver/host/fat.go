package host

import (
	"encoding/binary"
	"io"
	"io/fs"
	"strings"
	"unicode/utf16"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// fatImage reads files of a FAT12, FAT16 or FAT32 file system (Microsoft, "FAT32 File System Specification", 1.03), by their long
// names where they have such. Like isoImage it mounts nothing and believes nothing.
type fatImage struct {
	io.ReaderAt

	cluster    int64 // bytes of a cluster
	fat, data  int64 // bytes before the table and before cluster 2
	root, room int64 // bytes before the root directory and in it; FAT32 has it in clusters instead
	rootChain  uint32
	bits       int // of a table's entry
	clusters   uint32
}

// openFAT reads the boot sector.
func openFAT(r io.ReaderAt) (*fatImage, error) {
	b := make([]byte, 512)
	if _, err := r.ReadAt(b, 0); err != nil {
		return nil, volume.Errorf(volume.Unavailable, "read the boot sector: %w", err)
	}
	little := binary.LittleEndian
	sector, perCluster, tables := int64(little.Uint16(b[11:])), int64(b[13]), int64(b[16])
	total, table := int64(little.Uint16(b[19:])), int64(little.Uint16(b[22:]))
	if total == 0 {
		total = int64(little.Uint32(b[32:]))
	}
	if table == 0 {
		table = int64(little.Uint32(b[36:]))
	}
	if sector < 512 || sector > 4096 || sector&(sector-1) != 0 || perCluster == 0 || perCluster&(perCluster-1) != 0 || tables == 0 || table == 0 {
		return nil, volume.Errorf(volume.Unavailable, "the boot sector is not that of a FAT file system")
	}
	f := &fatImage{ReaderAt: r, cluster: sector * perCluster, fat: int64(little.Uint16(b[14:])) * sector, rootChain: little.Uint32(b[44:])}
	f.root = f.fat + tables*table*sector
	f.room = int64(little.Uint16(b[17:])) * 32
	f.data = f.root + (f.room+sector-1)/sector*sector
	clusters := (total*sector - f.data) / f.cluster
	if clusters <= 0 || clusters >= 1<<28 {
		return nil, volume.Errorf(volume.Unavailable, "the FAT file system has no clusters, or more than it can have")
	}
	f.clusters, f.bits = uint32(clusters), fatBits(clusters)
	return f, nil
}

// fatBits is how the kind of FAT is told: by the number of clusters alone.
func fatBits(clusters int64) int {
	switch {
	case clusters < 4085:
		return 12
	case clusters < 65525:
		return 16
	}
	return 32
}

// readFile gives the content of the file at path, up to limit bytes of it.
func (f *fatImage) readFile(path string, limit int64) ([]byte, error) {
	var directory []byte
	var err error
	if f.bits == 32 {
		directory, err = f.chain(f.rootChain, directoryLimit<<10, false)
	} else {
		directory = make([]byte, f.room)
		_, err = f.ReadAt(directory, f.root)
	}
	names := strings.Split(path, "/")
	for n, name := range names {
		if err != nil {
			return nil, volume.Errorf(volume.Unavailable, "read a directory of the FAT file system: %w", err)
		}
		entry := fatLookUp(directory, name)
		last := n == len(names)-1
		if entry == nil || fatIsDirectory(entry) == last {
			return nil, volume.Errorf(volume.Unavailable, "the FAT file system has no %s: %w", strings.Join(names[:n+1], "/"), fs.ErrNotExist)
		}
		first := uint32(binary.LittleEndian.Uint16(entry[20:]))<<16 | uint32(binary.LittleEndian.Uint16(entry[26:]))
		if last {
			return f.content(first, int64(binary.LittleEndian.Uint32(entry[28:])), limit)
		}
		directory, err = f.chain(first, directoryLimit<<10, false)
	}
	return nil, fs.ErrNotExist
}

func (f *fatImage) content(first uint32, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, volume.Errorf(volume.Unavailable, "a file of the FAT file system has %d bytes; at most %d are read", size, limit)
	}
	if size == 0 {
		return nil, nil
	}
	content, err := f.chain(first, size, true)
	if err != nil {
		return nil, err
	}
	return content[:size], nil
}

// chain reads the clusters that follow one another from first on, until there are bytes of them. whole says that fewer are an error;
// a directory just ends.
func (f *fatImage) chain(first uint32, bytes int64, whole bool) ([]byte, error) {
	var content []byte
	for at := first; ; {
		if at < 2 || at >= f.clusters+2 {
			return nil, volume.Errorf(volume.Unavailable, "the FAT file system names cluster %d, and it has %d", at, f.clusters)
		}
		part := make([]byte, f.cluster)
		if _, err := f.ReadAt(part, f.data+int64(at-2)*f.cluster); err != nil {
			return nil, volume.Errorf(volume.Unavailable, "read the FAT file system: %w", err)
		}
		if content = append(content, part...); int64(len(content)) >= bytes {
			return content, nil // also where a chain runs in a circle
		}
		next, last, err := f.next(at)
		if err != nil {
			return nil, err
		}
		if last {
			if whole {
				return nil, volume.Errorf(volume.Unavailable, "a file of the FAT file system ends before its size")
			}
			return content, nil
		}
		at = next
	}
}

// next reads the table's entry of a cluster.
func (f *fatImage) next(at uint32) (next uint32, last bool, err error) {
	b := make([]byte, 4)
	offset := f.fat + int64(at)*int64(f.bits)/8
	if _, err := f.ReadAt(b[:max(2, f.bits/8)], offset); err != nil {
		return 0, false, volume.Errorf(volume.Unavailable, "read the table of the FAT file system: %w", err)
	}
	next = binary.LittleEndian.Uint32(b)
	switch {
	case f.bits == 12 && at%2 == 1:
		next >>= 4
	case f.bits == 12:
		next &= 0xFFF
	case f.bits == 32:
		next &= 0x0FFFFFFF
	}
	end := uint32(1)<<min(f.bits, 28) - 8
	return next, next >= end, nil
}

func fatIsDirectory(entry []byte) bool { return entry[11]&0x10 != 0 }

// fatLookUp finds the entry of a name, long or short, in a directory.
func fatLookUp(directory []byte, name string) []byte {
	const deleted, longName, label = 0xE5, 0x0F, 0x08
	var long string
	for ; len(directory) >= 32 && directory[0] != 0; directory = directory[32:] {
		entry := directory[:32]
		switch {
		case entry[0] == deleted:
			long = ""
		case entry[11]&0x3F == longName:
			long = fatLongPart(entry) + long // the last part comes first
		case entry[11]&label != 0:
			long = ""
		case strings.EqualFold(long, name), strings.EqualFold(fatShortName(entry), name):
			return entry
		default:
			long = ""
		}
	}
	return nil
}

func fatLongPart(entry []byte) string {
	var units []uint16
	for _, at := range []int{1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30} {
		unit := binary.LittleEndian.Uint16(entry[at:])
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	return string(utf16.Decode(units))
}

func fatShortName(entry []byte) string {
	name, extension := strings.TrimRight(string(entry[:8]), " "), strings.TrimRight(string(entry[8:11]), " ")
	if extension == "" {
		return name
	}
	return name + "." + extension
}
