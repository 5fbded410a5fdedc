package host

import (
	"bytes"
	"errors"
	"io"
)

// overlooked is what blkid and wipefs of util-linux 2.38, which the driver's image has, call empty (measured): BSD's label on a whole
// disk, which they read only inside a DOS partition, and bcachefs, which they do not know. Its magic is at byte 24 of the superblock at
// sector 8, where bcache has its own, and the first versions had bcache's.
var overlooked = []struct {
	name, magic string
	places      []int64
}{
	{"a bsd partition table", "\x57\x45\x56\x82", []int64{64, 128, 512}},
	{"bcachefs", "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", []int64{4096 + 24}},
	{"bcachefs", "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", []int64{4096 + 24}},
}

// findOverlooked looks for those on a disk that the tools call empty, and gives the name of what it found.
func findOverlooked(disk io.ReaderAt) (string, error) {
	head := make([]byte, 8<<10)
	n, err := disk.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	head = head[:n]
	for _, o := range overlooked {
		for _, at := range o.places {
			if at < int64(len(head)) && bytes.HasPrefix(head[at:], []byte(o.magic)) {
				return o.name, nil
			}
		}
	}
	return "", nil
}
