package image

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// WriteCPIO writes a tree in the format that the kernel unpacks into its initial file system (Linux, driver-api/early-userspace/
// buffer-format.rst, "newc"). One file may have several archives; files of later archives win.
func WriteCPIO(w io.Writer, t image.Tree) error {
	out := bufio.NewWriter(w)
	for i, name := range sortedNames(t) {
		f := t[name]
		data := f.Data
		if f.Mode.Type() == fs.ModeSymlink {
			data = []byte(f.Link)
		}
		entry(out, i+1, name, unixMode(f.Mode), data)
	}
	entry(out, 0, "TRAILER!!!", 0, nil)
	return out.Flush() // bufio keeps the first error
}

func entry(w *bufio.Writer, inode int, name string, mode uint32, data []byte) {
	const owner, group, links, time, major, minor, deviceMajor, deviceMinor, check = 0, 0, 1, 0, 0, 0, 0, 0, 0
	fmt.Fprint(w, "070701")
	for _, field := range []int{
		inode, int(mode), owner, group, links, time, len(data), major, minor, deviceMajor, deviceMinor, len(name) + 1, check,
	} {
		fmt.Fprintf(w, "%08x", field)
	}
	const header = 6 + 13*8
	_, _ = w.WriteString(name + "\x00" + padding(header+len(name)+1))
	_, _ = w.Write(data)
	_, _ = w.WriteString(padding(len(data)))
}

// padding pads to a multiple of four bytes.
func padding(n int) string { return strings.Repeat("\x00", (4-n%4)%4) }

func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	switch {
	case m.IsDir():
		mode |= 0o040000
	case m.Type() == fs.ModeSymlink:
		mode |= 0o120000
	default:
		mode |= 0o100000
	}
	if m&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}
