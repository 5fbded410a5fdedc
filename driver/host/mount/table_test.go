package mount

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

var must = hosttest.Must

// readings returns one text after another as the mount table, then repeats the last.
func readings(release string, texts ...string) *Mounts {
	return New(Options{KernelRelease: func() string { return release }, Read: func(string) (Table, error) {
		text := texts[0]
		if len(texts) > 1 {
			texts = texts[1:]
		}
		return parse(strings.NewReader(text))
	}})
}

// A pod can make the root of its own mount as long as it likes, and an image with many layers makes long options. Such a line costs
// neither memory nor the other mounts, and its mount stays in the table. It counts memory, so no other test runs beside it.
func TestALongLineIsCut(t *testing.T) {
	for name, line := range map[string]string{
		"root":          "36 27 0:52 LONG /run/x rw shared:1 - tmpfs tmpfs rw",
		"root, escaped": "36 27 0:52 /BLANKS /run/x rw shared:1 - tmpfs tmpfs rw",
		"mount point":   "36 27 0:52 / LONG rw - tmpfs tmpfs rw",
		"source":        "36 27 0:52 / /run/x rw - tmpfs BLANKS rw",
		"super options": "36 27 0:52 / /run/x rw - overlay overlay rw,lowerdir=LONG",
		"all":           "36 27 0:52 LONG /run/x rw shared:1 - overlay BLANKS rw,lowerdir=LONG",
	} {
		for _, bytes := range []int{1 << 10, 4 << 10, 64 << 10, 70_000, 10_000_000} {
			long := strings.NewReplacer("LONG", "/"+strings.Repeat("x", bytes), "BLANKS", strings.Repeat(`\040`, bytes/4)).Replace(line)
			text := strings.NewReader(rootMount + long + "\n" + volumeMount)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			table, err := parse(text)
			runtime.ReadMemStats(&after)
			if err != nil || len(table) != 3 || table[1].Device != (disk.Number{Major: 0, Minor: 52}) || table[2].Path != "/staging" {
				t.Errorf("%s of %d bytes: want three mounts, got %d, %v", name, bytes, len(table), err)
			}
			if _, ok := table.At("/run/x"); !ok && name != "mount point" {
				t.Errorf("%s of %d bytes: want its mount point as it is", name, bytes)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
				t.Errorf("%s of %d bytes: took %d bytes of memory", name, bytes, took)
			}
		}
	}
}

func TestAMountTableThatChangesAtEachReadingIsUnavailable(t *testing.T) {
	t.Parallel()
	var texts []string
	for range 50 {
		texts = append(texts, rootMount, rootMount+volumeMount)
	}
	if _, err := readings("5.4.0", texts...).Table(); !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), "5.8") {
		t.Errorf("want Unavailable, got %v", err)
	}
}

// The root of a mount is a path that a pod can rename without end.
func TestAMountWhoseRootChangesAtEachReadingIsTheSameMount(t *testing.T) {
	t.Parallel()
	var texts []string
	for n := range 50 {
		texts = append(texts, fmt.Sprintf("%s41 27 0:52 /sub.%d /run/x rw - tmpfs tmpfs rw\n%s", rootMount, n, volumeMount))
	}
	table, err := readings("5.4.0", texts...).Table()
	must(t, err)
	if len(table) != 3 {
		t.Errorf("want three mounts, got %+v", table)
	}
}

func TestATableThatCannotBeReadToItsEndIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", rootMount, rootMount + strings.TrimSpace(volumeMount), rootMount + "36 27"} {
		table, err := parse(io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("cannot allocate memory"))))
		if err == nil || table != nil {
			t.Errorf("%q: want an error and no table, got %+v", text, table)
		}
	}
	if _, err := New(Options{ProcRoot: t.TempDir()}).Table(); !volume.Is(err, volume.Failed) {
		t.Errorf("want Failed without a table, got %v", err)
	}
}

func TestParseMountInfo(t *testing.T) {
	t.Parallel()
	got, err := parse(strings.NewReader(`27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 27 98:0 /mnt1/a\040b /mnt\011two\134 ro,noatime master:1 shared:7 - ext3 /dev/my\040root ro,errors=continue
40 27 0:6 /vdb//deleted /var/lib/x rw shared:2 - devtmpfs  rw
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Table{
		{ID: 27, Device: disk.Number{Major: 254, Minor: 0}, Root: "/", Path: "/", Options: []string{"rw", "relatime"}, FSType: "ext4", Source: "/dev/vda", SuperOptions: []string{"rw", "discard"}},
		{ID: 36, Device: disk.Number{Major: 98, Minor: 0}, Root: "/mnt1/a b", Path: "/mnt\ttwo\\", Options: []string{"ro", "noatime"}, FSType: "ext3", Source: "/dev/my root", SuperOptions: []string{"ro", "errors=continue"}},
		{ID: 40, Device: disk.Number{Major: 0, Minor: 6}, Root: "/vdb//deleted", Path: "/var/lib/x", Options: []string{"rw"}, FSType: "devtmpfs", SuperOptions: []string{"rw"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfStackedMountsTheLastIsVisible(t *testing.T) {
	t.Parallel()
	table := Table{{ID: 1, Path: "/a"}, {ID: 2, Path: "/b"}, {ID: 3, Path: "/a"}}
	if m, ok := table.At("/a"); !ok || m.ID != 3 {
		t.Errorf("want mount 3, got %+v", m)
	}
	if _, ok := table.At("/a/"); ok {
		t.Error("want no mount at a path that is not resolved")
	}
}

func TestALineThatCannotBeParsedIsAnError(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"\n", "27 1 254:0 / / rw", "27 1 254:0 / / rw - ext4", "27 1 254 / / rw - ext4 /dev/vda rw",
		"27 1 254:0 /  rw - ext4 /dev/vda rw", "27 1 4294967296:0 / / rw - ext4 /dev/vda rw", "x 1 254:0 / / rw - ext4 /dev/vda rw", "27 1 -1:16 / / rw - ext4 /dev/vda rw", "27 1 254:-1 / / rw - ext4 /dev/vda rw",
	} {
		if table, err := parse(strings.NewReader(line)); err == nil {
			t.Errorf("%q: want an error, got %+v", line, table)
		}
	}
}

func TestReadTheTableOfThisMachine(t *testing.T) {
	t.Parallel()
	table, err := New(Options{}).Table()
	if err != nil {
		t.Fatal(err)
	}
	// Not the root: in a chroot it is no mount. The table itself was read from /proc.
	if _, ok := table.At("/proc"); !ok {
		t.Errorf("want the mount of /proc in %+v", table)
	}
}

const (
	rootMount   = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
	volumeMount = "36 27 254:16 / /staging rw - ext4 /dev/vdb rw\n"
)

func TestBeforeLinux58TheTableIsReadUntilTwoReadingsAgree(t *testing.T) {
	t.Parallel()
	for release, missed := range map[string]bool{
		"5.4.0-187-generic": false, "4.18.0-553.el8_10.x86_64": false, "5.7": false, "": false, "no release": false,
		"5.8.0-63-generic": true, "6.18.44": true, // these never miss one, so the first look counts and nothing is read twice
	} {
		table, err := readings(release, rootMount, rootMount+volumeMount).Table()
		must(t, err)
		if _, seen := table.At("/staging"); seen == missed {
			t.Errorf("%q: want the mount missed %t, got %+v", release, missed, table)
		}
	}
}

func FuzzOlderThan(f *testing.F) {
	f.Add("5.4.0-187-generic", uint8(5), uint8(8))
	f.Add("6.1", uint8(6), uint8(1))
	f.Fuzz(func(t *testing.T, release string, major, minor uint8) {
		if olderThan(release, int(major), int(minor)) && !olderThan(release, int(major), int(minor)+1) {
			t.Errorf("%q is older than %d.%d, and not than the next", release, major, minor)
		}
	})
}

func FuzzParseMountInfo(f *testing.F) {
	f.Add("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n")
	f.Add("36 27 98:0 /mnt1/a\\040b /mnt\\011two\\134 ro master:1 - ext3 /dev/r ro\n")
	f.Add("- - - - - - - - -")
	f.Add("36 27 0:52 /" + strings.Repeat(`\040`, 70_000) + " /run/x\\04 rw shared:1 - tmpfs - rw a b\n")
	if own, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		f.Add(string(own))
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parse(strings.NewReader(text))
		for _, m := range table {
			if err != nil || m.Path == "" || len(m.Options) == 0 || len(m.Root) > longestRoot || len(m.Path) > longestField {
				t.Errorf("%.300q: half a mount or a long one %+v, error %v", text, m, err)
			}
		}
	})
}

func TestInPodVolume(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pv/uid":        false,
		"/data/k8s/plugins/kubernetes.io/csi/volumeDevices/staging/pv/uid":               false,
		"/var/lib/kubelet/pods/uid/volumeDevices/kubernetes.io~csi/pv":                   false,
		"/var/lib/kubelet/pods/uid/volume-subpaths/m/c/0":                                true,
		"/var/lib/kubelet/pods/uid/volumes/kubernetes.io~empty-dir/m/volumeDevices/node": true,
		"/var/lib/kubelet/pods/uid/volumes/m/pods/uid/volumeDevices/node":                true,
		"/var/lib/kubelet/pods": false,
		"/mnt/target":           false,
		"":                      false,
	} {
		if got := inPodVolume(path); got != want {
			t.Errorf("%s: want %t, got %t", path, want, got)
		}
	}
}

func TestOfReadOnlyOptionsTheLastCounts(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]bool{"": false, "noatime": false, "ro": true, "rw": false, "rw,ro": true, "ro,noatime,rw": false} {
		if got := readOnly(strings.Split(options, ",")); got != want {
			t.Errorf("%q: want %t, got %t", options, want, got)
		}
	}
}
