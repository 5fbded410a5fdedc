package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Mount is one line of /proc/self/mountinfo (proc(5)).
type Mount struct {
	ID, Parent   int
	Device       Number
	Root         string // what of the file system is mounted: a directory or a file of it
	Path         string // where
	Options      []string
	FSType       string
	Source       string
	SuperOptions []string
}

// ReadOnly reports whether this mount refuses writes; the file system may be writable elsewhere.
func (m Mount) ReadOnly() bool { return slices.Contains(m.Options, "ro") }

// On reports whether the mount's file system lies on the disk. btrfs invents a device number of its own, so for it the source is
// asked.
func (m Mount) On(d *Disk) bool {
	if m.FSType != "btrfs" {
		return m.Device == d.Number
	}
	info, err := os.Stat(m.Source)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&os.ModeDevice != 0 && numberOf(stat.Rdev) == d.Number
}

func (m Mount) String() string {
	return fmt.Sprintf("%s (%s, device %s)", m.Source, m.FSType, m.Device)
}

// Table is a mount table, in the kernel's order.
type Table []Mount

// At is the mount that is seen at path: the last one that was made there.
func (t Table) At(path string) (Mount, bool) {
	for _, m := range slices.Backward(t) {
		if m.Path == path {
			return m, true
		}
	}
	return Mount{}, false
}

// Uses reports whether any mount's file system lies on the disk.
func (t Table) Uses(d *Disk) bool {
	return slices.ContainsFunc(t, func(m Mount) bool { return m.On(d) })
}

func (h *Host) mounts() (Table, error) {
	content, err := h.readMounts()
	if errors.Is(err, errTorn) {
		return nil, volume.Errorf(volume.Unavailable, "%w", err)
	}
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "read the mount table: %w", err)
	}
	table, err := parseMountInfo(string(content))
	if err != nil {
		return nil, volume.Errorf(volume.Failed, "read the mount table: %w", err)
	}
	return table, nil
}

// readMounts reads the mount table. Before Linux 5.8 it is given out page by page, and while others unmount, a mount may be in none of
// the pages (Linux, commit 9f6c61f96f2d): what counts there is what two readings agree on.
func (h *Host) readMounts() ([]byte, error) {
	const most = 10
	file := filepath.Join(h.proc, "self", "mountinfo")
	content, err := h.readFile(file)
	if err != nil || !olderThan(h.release(), 5, 8) {
		return content, err
	}
	for range most {
		again, err := h.readFile(file)
		if err != nil || bytes.Equal(again, content) {
			return again, err
		}
		content = again
	}
	return nil, errTorn
}

var errTorn = errors.New("the mount table was another at each look, and before Linux 5.8 one look may miss a mount; try again")

// olderThan compares a kernel's release, as 5.4.0-187-generic, with a version. One that cannot be read is older.
func olderThan(release string, major, minor int) bool {
	var has struct{ major, minor int }
	if _, err := fmt.Sscanf(release, "%d.%d", &has.major, &has.minor); err != nil {
		return true
	}
	return has.major < major || has.major == major && has.minor < minor
}

// kernelRelease is what uname(2) says.
func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// parseMountInfo reads lines of the form
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//
// A line it cannot read is an error: a mount that is overlooked would be mounted over.
func parseMountInfo(content string) (Table, error) {
	var table Table
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		m, ok := parseMount(line)
		if !ok {
			return nil, fmt.Errorf("mountinfo has the line %q, which proc(5) does not allow", shorten(line))
		}
		table = append(table, m)
	}
	return table, nil
}

func parseMount(line string) (Mount, bool) {
	var m Mount
	fields := strings.Split(line, " ")
	end := -1 // the optional fields end at a lone dash; a path cannot be one, it begins with a slash
	if len(fields) > 6 {
		end = slices.Index(fields[6:], "-")
	}
	if end < 0 || len(fields) < 6+end+4 {
		return m, false
	}
	var err1, err2 error
	var ok bool
	m.ID, err1 = strconv.Atoi(fields[0])
	m.Parent, err2 = strconv.Atoi(fields[1])
	m.Device, ok = parseNumber(fields[2])
	m.Root, m.Path, m.Options = unescape(fields[3]), unescape(fields[4]), strings.Split(fields[5], ",")
	tail := fields[6+end+1:]
	m.FSType, m.Source, m.SuperOptions = unescape(tail[0]), unescape(tail[1]), strings.Split(tail[2], ",")
	return m, err1 == nil && err2 == nil && ok && m.Path != ""
}

// unescape turns the octal escapes of mountinfo (\040 for a blank) back into bytes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
