// Package testenv checks what a test needs of its machine. It builds small machines for tests: trees that look like sysfs and
// /dev, with loop devices as disks. If something is missing, the test fails. A skip that is not for want of root or
// of a tool must be committed in test/skips.txt.
package testenv

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var full = flag.Bool("full", false, "play the suite in full: minutes")

// Full is whether the suite plays all that it has (-full, make test-full). A suite names its tests' numbers in both sizes.
func Full() bool { return *full }

// NeedsRoot begins the reason of every skip for want of root, and NeedsTools that for want of a program. test/kit/gate accepts such a skip without
// a line in test/skips.txt, from anybody but root, and the first from -short too.
const (
	NeedsRoot  = "needs root: "
	NeedsTools = "needs tools: "
)

// NeedsFull begins the reason of a skip without -full, and TakesLong that of one with -short. test/kit/gate accepts both.
const (
	NeedsFull = "needs -full: "
	TakesLong = "takes a second or more: "
)

// NeedFull skips a test without -full: make test-full runs it.
func NeedFull(t testing.TB, why string) {
	t.Helper()
	if !Full() {
		t.Skip(NeedsFull + why)
	}
}

// NeedRoot skips a test of real devices or file systems for other users than root, and for everybody with -short.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 || testing.Short() {
		t.Skip(NeedsRoot + "real devices and file systems")
	}
}

// NeedTools names the Debian packages of missing programs. Pairs are program and package. Root can install them, so for root the test fails.
// For others, and with -short, it skips.
func NeedTools(t testing.TB, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if _, err := exec.LookPath(pairs[i]); err == nil {
			continue
		}
		if os.Geteuid() != 0 || testing.Short() {
			t.Skipf("%sapt-get install %s for %s", NeedsTools, pairs[i+1], pairs[i])
		}
		t.Fatalf("this test needs %s: apt-get install %s", pairs[i], pairs[i+1])
	}
}

// NotShort skips a test of a second or more with -short. Those of its package that remain should fail too if what it tests is broken.
func NotShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip(TakesLong + "-short leaves it out")
	}
}

// Loop makes a disk of that many bytes for the duration of the test: a loop device over a sparse file.
func Loop(t testing.TB, bytes int64) string {
	t.Helper()
	NeedRoot(t)
	NeedTools(t, "losetup", "mount")
	file := filepath.Join(t.TempDir(), "disk")
	testfile.Write(t, file, "", 0o600)
	if err := os.Truncate(file, bytes); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(Run(t, "losetup", "--find", "--show", file))
	t.Cleanup(func() { Run(t, "losetup", "--detach", path) })
	return path
}

// GrowLoop enlarges a disk of Loop, as an extended volume grows under a running server.
func GrowLoop(t testing.TB, path string, bytes int64) {
	t.Helper()
	file := strings.TrimSpace(Run(t, "losetup", "--noheadings", "--output", "BACK-FILE", path))
	if err := os.Truncate(file, bytes); err != nil {
		t.Fatal(err)
	}
	Run(t, "losetup", "--set-capacity", path)
}

// Run runs a program and returns its output. If the program fails, the test fails.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Machine is a directory with the parts of /sys and /dev that the driver's node role reads.
type Machine struct {
	Sys, Dev string

	dir string
}

// NewMachine makes a machine without disks. At the end of the test, it unmounts everything below Dir.
func NewMachine(t testing.TB) *Machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{Sys: filepath.Join(dir, "sys"), Dev: filepath.Join(dir, "dev"), dir: dir}
	for _, d := range []string{filepath.Join(m.Sys, "block"), m.Dev} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { UnmountBelow(m.dir) })
	return m
}

// Path returns a path in the directory of the machine, for mounts.
func (m *Machine) Path(elements ...string) string {
	return filepath.Join(append([]string{m.dir}, elements...)...)
}

// Plug adds the block device at path as a disk with that name and serial.
func (m *Machine) Plug(t testing.TB, name, serial, path string) {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	m.Sysfs(t, name, map[string]string{
		"serial": serial, "dev": fmt.Sprintf("%d:%d\n", unix.Major(s.Rdev), unix.Minor(s.Rdev)),
	})
	if err := os.Symlink(path, filepath.Join(m.Dev, name)); err != nil {
		t.Fatal(err)
	}
}

// Sysfs writes sysfs files of a disk, and their directories. A new disk is on PCI, or where the kernel has those that it makes itself.
func (m *Machine) Sysfs(t testing.TB, name string, files map[string]string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(m.Sys, "block", name)); err != nil {
		place := "virtual"
		if slices.ContainsFunc([]string{"vd", "sd", "nvme", "sr"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			place = "pci0000:00/0000:00:1f.0"
		}
		if err := os.RemoveAll(filepath.Join(m.Sys, "devices", place, "block", name)); err != nil { // of a disk that was removed
			t.Fatal(err)
		}
		m.Place(t, name, place)
	}
	for file, content := range files {
		path := filepath.Join(m.Sys, "block", name, file)
		testfile.Write(t, path, content, 0o600)
	}
}

// Place moves the sysfs directory of a disk to where the kernel has it, or makes one there, with a link to it. dir is below devices.
func (m *Machine) Place(t testing.TB, name, dir string) {
	t.Helper()
	link, to := filepath.Join(m.Sys, "block", name), filepath.Join(m.Sys, "devices", dir, "block", name)
	from, gone := filepath.EvalSymlinks(link)
	if from == to {
		return
	}
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if gone != nil {
		err = errors.Join(err, os.Mkdir(to, 0o755))
	} else {
		err = errors.Join(err, os.Rename(from, to), os.Remove(link))
	}
	if err = errors.Join(err, os.Symlink(filepath.Join("..", "devices", dir, "block", name), link)); err != nil {
		t.Fatal(err)
	}
}

// UnmountBelow unmounts everything below a directory, so that its removal cannot reach a mounted file system.
func UnmountBelow(dir string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	lines := strings.Split(string(text), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if f := strings.Fields(lines[i]); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			_ = unix.Unmount(f[4], unix.MNT_DETACH)
		}
	}
}
