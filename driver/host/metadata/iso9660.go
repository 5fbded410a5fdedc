package metadata

import (
	"encoding/binary"
	"io"
	"io/fs"
	"strings"
	"unicode/utf16"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// isoImage reads files of an ISO 9660 file system (ECMA-119), by their Rock Ridge or Joliet names if it has such names.
// It needs no mount and no driver of the kernel, and checks every number that it reads.
type isoImage struct{ io.ReaderAt }

// The sizes of the format, and limits of ours.
const (
	isoSector          = 2048
	isoDescriptors     = 16      // the sector of the first volume descriptor
	isoDescriptorLimit = 64      // how many descriptors are read
	isoDirectoryLimit  = 1 << 20 // bytes of a directory
)

// isoTree is the tree of one volume descriptor.
type isoTree struct {
	root   []byte // directory record
	joliet bool
}

// readFile returns the content of the file at path, which may have up to limit bytes.
func (i isoImage) readFile(path string, limit int64) ([]byte, error) {
	trees, err := i.trees()
	if err != nil {
		return nil, err
	}
	err = volume.Errorf(volume.Unavailable, "the ISO image has no volume descriptor")
	for _, tree := range trees {
		var content []byte
		if content, err = i.follow(tree, path, limit); err == nil {
			return content, nil
		}
	}
	return nil, err
}

func (i isoImage) trees() (trees []isoTree, err error) {
	const primary, supplementary, end = 1, 2, 255
	for n := range int64(isoDescriptorLimit) {
		d := make([]byte, isoSector)
		if _, err := i.ReadAt(d, (isoDescriptors+n)*isoSector); err != nil {
			return nil, volume.Errorf(volume.Unavailable, "read the descriptors of the ISO image: %w", err)
		}
		if string(d[1:6]) != "CD001" || d[0] == end {
			break
		}
		if binary.LittleEndian.Uint16(d[128:]) != isoSector {
			continue // no other block size is in use
		}
		escape := string(d[88:91])
		switch {
		case d[0] == primary:
			trees = append(trees, isoTree{root: d[156:190]})
		case d[0] == supplementary && (escape == "%/@" || escape == "%/C" || escape == "%/E"):
			trees = append(trees, isoTree{root: d[156:190], joliet: true})
		}
	}
	return trees, nil
}

func (i isoImage) follow(tree isoTree, path string, limit int64) ([]byte, error) {
	record := tree.root
	names := strings.Split(path, "/")
	for n, name := range names {
		if !isoIsDirectory(record) {
			return nil, volume.Errorf(volume.Unavailable, "the ISO image has no directory %s", strings.Join(names[:n], "/"))
		}
		directory, err := i.extent(record, isoDirectoryLimit)
		if err != nil {
			return nil, err
		}
		if record = isoLookUp(directory, name, tree.joliet); record == nil {
			return nil, volume.Errorf(volume.Unavailable, "the ISO image has no %s: %w", strings.Join(names[:n+1], "/"), fs.ErrNotExist)
		}
	}
	if isoIsDirectory(record) {
		return nil, volume.Errorf(volume.Unavailable, "%s on the ISO image is a directory", path)
	}
	return i.extent(record, limit)
}

func isoIsDirectory(record []byte) bool { return record[25]&2 != 0 }

// extent reads the file or directory of a directory record.
func (i isoImage) extent(record []byte, limit int64) ([]byte, error) {
	const more = 0x80
	start, size := int64(binary.LittleEndian.Uint32(record[2:]))+int64(record[1]), int64(binary.LittleEndian.Uint32(record[10:]))
	if size > limit || record[25]&more != 0 {
		return nil, volume.Errorf(volume.Unavailable, "a file of the ISO image has %d bytes or several extents; the driver reads one extent of at most %d bytes", size, limit)
	}
	content := make([]byte, size)
	if n, err := i.ReadAt(content, start*isoSector); n < len(content) {
		return nil, volume.Errorf(volume.Unavailable, "read the ISO image: %w", err)
	}
	return content, nil
}

// isoLookUp finds the record of a name in a directory (ECMA-119, 9.1). No record crosses the end of a sector.
func isoLookUp(directory []byte, name string, joliet bool) []byte {
	const shortest = 34
	for at := 0; at+shortest <= len(directory); {
		size := int(directory[at])
		if size == 0 {
			at = (at/isoSector + 1) * isoSector
			continue
		}
		if size < shortest || at+size > len(directory) {
			return nil
		}
		record := directory[at : at+size]
		if strings.EqualFold(isoName(record, joliet), name) {
			return record
		}
		at += size
	}
	return nil
}

func isoName(record []byte, joliet bool) string {
	end := 33 + int(record[32])
	if end > len(record) {
		return ""
	}
	name := string(record[33:end])
	if joliet {
		units := make([]uint16, 0, len(name)/2)
		for n := 0; n+1 < len(name); n += 2 {
			units = append(units, uint16(name[n])<<8|uint16(name[n+1]))
		}
		name = string(utf16.Decode(units))
	} else if rock := rockRidgeName(record[min(end+(end+1)%2, len(record)):]); rock != "" {
		return rock
	}
	name, _, _ = strings.Cut(name, ";")
	return strings.TrimSuffix(name, ".")
}

// rockRidgeName reads the NM entries of a record's system use area (IEEE P1282, 4.1.4).
func rockRidgeName(area []byte) (name string) {
	for len(area) >= 5 {
		size := int(area[2])
		if size < 4 || size > len(area) {
			break
		}
		if string(area[:2]) == "NM" && size > 5 {
			name += string(area[5:size])
		}
		area = area[size:]
	}
	return name
}
