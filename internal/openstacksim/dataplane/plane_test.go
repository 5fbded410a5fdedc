//go:build linux

package dataplane

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const (
	one   = "11111111-aaaa-4aaa-8aaa-000000000001" // volumes and what is made of them
	two   = "22222222-aaaa-4aaa-8aaa-000000000002"
	three = "33333333-aaaa-4aaa-8aaa-000000000003"
	nodeA = "aaaaaaaa-bbbb-4bbb-8bbb-00000000000a" // servers
	nodeB = "bbbbbbbb-bbbb-4bbb-8bbb-00000000000b"
)

// newPlane makes a plane with two servers; at the end of the test nothing of it may be left.
func newPlane(t *testing.T, options Options) *Plane {
	t.Helper()
	testenv.NeedRoot(t)
	p, err := New(t.TempDir(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		wantFiles(t, p.dir)
		noLoops(t, p)
	})
	for id, name := range map[string]string{nodeA: "a", nodeB: "b"} {
		do(t, p.AddServer(id, name, func() []byte { return []byte(`{"uuid":"` + id + `"}`) }))
	}
	return p
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read gives a file's content, or "" if there is none.
func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// wantFiles wants nothing in a directory but files whose names begin with a dot.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			got = append(got, e.Name())
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("in %s: want %v, got %v", dir, want, got)
	}
}

func TestADiskAppearsGrowsAndGoes(t *testing.T) {
	p := newPlane(t, Options{})
	server := filepath.Join(p.dir, "servers", "by-name", "a")
	if got := read(t, server, "config-drive/openstack/latest/meta_data.json"); got != `{"uuid":"`+nodeA+`"}` {
		t.Errorf("got the metadata %s", got)
	}
	do(t, p.Make(one, "", 1))
	do(t, p.Attach(nodeA, one, "/dev/vdb"))

	var node unix.Stat_t
	do(t, unix.Stat(filepath.Join(server, "dev", "vdb"), &node))
	if node.Mode&unix.S_IFMT != unix.S_IFBLK {
		t.Errorf("dev/vdb has mode %o", node.Mode)
	}
	for file, want := range map[string]string{
		"sys/block/vdb/serial": one[:20],
		"sys/block/vdb/dev":    fmt.Sprintf("%d:%d\n", unix.Major(node.Rdev), unix.Minor(node.Rdev)),
		"sys/block/vdb/size":   "2097152\n",
	} {
		if got := read(t, server, file); got != want {
			t.Errorf("%s: want %q, got %q", file, want, got)
		}
	}
	wantFiles(t, filepath.Join(server, "by-id"), "virtio-"+one[:20])

	do(t, p.Extend(one, 2))
	if got := read(t, server, "sys/block/vdb/size"); got != "4194304\n" {
		t.Errorf("after the extension: %q", got)
	}
	if end, err := unixSize(filepath.Join(server, "dev", "vdb")); end != 2<<30 || err != nil {
		t.Errorf("want the device to have 2 GiB, got %d, %v", end, err)
	}
	for range 2 {
		do(t, p.Detach(nodeA, one))
	}
	for _, dir := range []string{"sys/block", "dev", "by-id"} {
		wantFiles(t, filepath.Join(server, dir))
	}
	noLoops(t, p)
	for range 2 {
		do(t, p.Remove(one))
	}
	wantFiles(t, p.image(""))
}

// noLoops waits, since a program that looks at all disks of the machine, such as blkid, keeps each for a moment.
func noLoops(t *testing.T, p *Plane) {
	t.Helper()
	if err := awaitNoLoops(p.image(""), 10*releaseTimeout); err != nil {
		t.Error(err)
	}
}

func unixSize(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Seek(0, 2)
}

func TestAVolumeOnTwoServersIsOneDevice(t *testing.T) {
	p := newPlane(t, Options{})
	do(t, p.Make(one, "", 1))
	do(t, p.Attach(nodeA, one, "/dev/vdb"))
	do(t, p.Attach(nodeB, one, "/dev/vdc"))
	dev := func(server, name string) string { return read(t, p.dir, "servers", server, "sys/block", name, "dev") }
	if a, b := dev(nodeA, "vdb"), dev(nodeB, "vdc"); a == "" || a != b {
		t.Errorf("want the same device, got %q and %q", a, b)
	}
	do(t, p.Extend(one, 3))
	for server, name := range map[string]string{nodeA: "vdb", nodeB: "vdc"} {
		if got := read(t, p.dir, "servers", server, "sys/block", name, "size"); got != "6291456\n" {
			t.Errorf("server %s: got size %q", server, got)
		}
	}
	do(t, p.RemoveServer(nodeA))
	if left, err := loops(p.image("")); len(left) != 1 || err != nil {
		t.Errorf("the other server needs the device still: %v, %v", left, err)
	}
	do(t, p.Remove(one)) // by force, attached as it is
	if got := dev(nodeB, "vdc"); got != "" {
		t.Errorf("a disk of a volume that is gone: %q", got)
	}
}

func TestACopyHoldsWhatWasWrittenEvenUnflushed(t *testing.T) {
	p := newPlane(t, Options{})
	do(t, p.Make(one, "", 1))
	do(t, p.Attach(nodeA, one, "/dev/vdb"))
	want := []byte(rand.Text())
	const far = 700 << 20
	device, err := os.OpenFile(filepath.Join(p.dir, "servers/by-name/a/dev/vdb"), os.O_RDWR, 0)
	do(t, err)
	_, err = device.WriteAt(want, far)
	do(t, errors.Join(err, device.Close())) // the last user's close writes the cache back, on a real disk
	do(t, p.Make(two, one, 1))
	do(t, p.Detach(nodeA, one))
	do(t, p.Remove(one))
	do(t, p.Make(three, two, 2)) // from the snapshot of a volume that is gone

	for id, size := range map[string]int64{two: 1 << 30, three: 2 << 30} {
		got := make([]byte, len(want))
		f, err := os.Open(p.image(id))
		do(t, err)
		if _, err := f.ReadAt(got, far); err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s: want %q, got %q, %v", id, want, got, err)
		}
		var stat unix.Stat_t
		do(t, errors.Join(unix.Fstat(int(f.Fd()), &stat), f.Close()))
		if stat.Size != size || stat.Blocks*512 > 1<<20 {
			t.Errorf("%s: want %d bytes and holes, got %d bytes in %d blocks", id, size, stat.Size, stat.Blocks)
		}
	}
	if err := p.Make(two, "", 1); err == nil {
		t.Error("an id was used twice, and the bytes under it are gone")
	}
	if err := p.Make("44444444", "no such", 1); err == nil {
		t.Error("a copy of nothing was made")
	}
	wantFiles(t, p.image(""), two, three)
}

func TestWhatIsLateOrOddIsSo(t *testing.T) {
	testenv.NeedRoot(t)
	p := newPlane(t, Options{Serial: func(volume string) string { return map[string]string{one: "wrong"}[volume] }})
	for i, id := range []string{one, two} {
		do(t, p.Make(id, "", 1))
		do(t, p.Attach(nodeA, id, fmt.Sprintf("/dev/vd%c", 'b'+i)))
	}
	server := filepath.Join(p.dir, "servers/by-name/a")
	if got := read(t, server, "sys/block/vdb/serial"); got != "wrong" {
		t.Errorf("want the wrong serial, got %q", got)
	}
	if _, err := os.Stat(filepath.Join(server, "sys/block/vdc/serial")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("want no serial, got %v", err)
	}
	wantFiles(t, filepath.Join(server, "sys/block"), "vdb", "vdc")
	wantFiles(t, filepath.Join(server, "by-id"), "virtio-wrong")
}

func TestADiskInUseGoesWhenItIsReleased(t *testing.T) {
	p := newPlane(t, Options{})
	do(t, p.Make(one, "", 1))
	do(t, p.Attach(nodeA, one, "/dev/vdb"))
	user, err := os.Open(filepath.Join(p.dir, "servers/by-name/a/dev/vdb"))
	do(t, err)
	do(t, p.Detach(nodeA, one))
	wantFiles(t, filepath.Join(p.dir, "servers/by-name/a/sys/block"))
	if err := awaitNoLoops(p.image(""), 0); err == nil || !strings.Contains(err.Error(), one+" is still in use") {
		t.Errorf("want to be told of the disk in use, got %v", err)
	}
	do(t, user.Close())
}

func TestADirectoryOfOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "images", "precious")
	do(t, os.Mkdir(filepath.Dir(precious), 0o700))
	do(t, os.WriteFile(precious, []byte("x"), 0o600))
	if _, err := New(dir, Options{}); err == nil || read(t, precious) != "x" {
		t.Errorf("want a refusal and no harm, got %v, %q", err, read(t, precious))
	}
}

func TestTheDirectoryIsOneProcesss(t *testing.T) {
	p := newPlane(t, Options{})
	if _, err := New(p.dir, Options{}); err == nil || !strings.Contains(err.Error(), "used by another process") {
		t.Errorf("want a refusal, got %v", err)
	}
	wantFiles(t, p.dir, "images", "servers")
}

// killed names the directory of the process that TestAKilledProcessLeavesNothing kills.
const killed = "DATAPLANE_TEST_KILLED"

func TestAKilledProcessLeavesNothing(t *testing.T) {
	testenv.NeedRoot(t)
	if dir := os.Getenv(killed); dir != "" {
		attachAndDie(dir)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), killed+"="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.String() != "signal: killed" {
		t.Fatalf("the process should have been killed: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "images", one)); err != nil {
		t.Fatalf("the process made no volume: %v", err)
	}
	if err := awaitNoLoops(filepath.Join(dir, "images"), releaseTimeout); err != nil {
		t.Error(err)
	}
	p, err := New(dir, Options{})
	do(t, err)
	wantFiles(t, p.image(""))
	do(t, p.Close())
	wantFiles(t, dir)
}

// attachAndDie is the other process: it says on stdout what went wrong, else it is killed with a disk attached.
func attachAndDie(dir string) {
	p, err := New(dir, Options{})
	for _, step := range []func() error{
		func() error { return p.AddServer(nodeA, "a", func() []byte { return nil }) },
		func() error { return p.Make(one, "", 1) },
		func() error { return p.Attach(nodeA, one, "/dev/vdb") },
		func() error {
			if found, err := loops(p.image("")); len(found) != 1 {
				return errors.Join(fmt.Errorf("want one loop device over the images, found %v", found), err)
			}
			return unix.Kill(os.Getpid(), unix.SIGKILL)
		},
	} {
		if err == nil {
			err = step()
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

func TestALeftoverThatIsNotTakenAwayByTheKernelIsTakenAwayByUs(t *testing.T) {
	p := newPlane(t, Options{})
	do(t, p.Make(one, "", 1))
	testenv.NeedTools(t, "losetup", "mount")
	testenv.Run(t, "losetup", "--find", "--show", p.image(one))
	do(t, clearLoops(p.image("")))
	noLoops(t, p)
}

func TestASparseFileIsCopiedWithItsHoles(t *testing.T) {
	for name, extents := range map[string]map[int64]string{
		"empty": {}, "begin": {0: "a"}, "end": {1<<24 - 1: "z"}, "middle": {1 << 20: "m"}, "many": {0: "a", 5 << 20: "b", 1<<24 - 1: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 1 << 24
			from, err := os.Create(filepath.Join(t.TempDir(), "from"))
			do(t, err)
			defer from.Close()
			to, err := os.Create(filepath.Join(t.TempDir(), "to"))
			do(t, err)
			defer to.Close()
			do(t, from.Truncate(size))
			want := make([]byte, size)
			for at, text := range extents {
				copy(want[at:], text)
				_, err := from.WriteAt([]byte(text), at)
				do(t, err)
			}
			do(t, copySparse(to, from))
			if got := read(t, to.Name()); got != string(want) {
				t.Errorf("the copy of %d bytes is another, of %d", len(want), len(got))
			}
			var stat unix.Stat_t
			if do(t, unix.Stat(to.Name(), &stat)); stat.Blocks*512 > size/4 {
				t.Errorf("the copy takes %d bytes", stat.Blocks*512)
			}
		})
	}
}
