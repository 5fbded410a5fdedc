package mount

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/host/hosttest"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

var must = hosttest.Must

// readings returns one text after another as the mount table, then repeats the last.
func readings(release string, texts ...string) *Mounts {
	return New(Options{KernelRelease: func() string { return release }, ReadFile: func(string) ([]byte, error) {
		text := texts[0]
		if len(texts) > 1 {
			texts = texts[1:]
		}
		return []byte(text), nil
	}})
}

// An image with many layers makes a long line. The parser reads lines of up to 64 KiB.
func TestALongLineIsParsed(t *testing.T) {
	t.Parallel()
	layers := strings.TrimSuffix(strings.Repeat("/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/12345/fs:", 500), ":")
	table, err := parse([]byte(rootMount + "36 27 0:52 / /run/x rw - overlay overlay rw,lowerdir=" + layers + "\n" + volumeMount))
	if err != nil || len(table) != 3 {
		t.Errorf("want three mounts, got %d, %v", len(table), err)
	}
	if _, err := parse([]byte("36 27 0:52 / /run/x rw - overlay overlay rw,lowerdir=" + strings.Repeat("x", 64<<10) + "\n" + volumeMount)); err == nil {
		t.Error("want an error for a line that is too long, and no table that lacks mounts")
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

func TestParseMountInfo(t *testing.T) {
	t.Parallel()
	got, err := parse([]byte(`27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
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
		"27 1 254:0 /  rw - ext4 /dev/vda rw", "27 1 -1:16 / / rw - ext4 /dev/vda rw", "27 1 254:-1 / / rw - ext4 /dev/vda rw",
	} {
		if table, err := parse([]byte(line)); err == nil {
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
	if own, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		f.Add(string(own))
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := parse([]byte(text))
		for _, m := range table {
			if err != nil || m.Path == "" || len(m.Options) == 0 {
				t.Errorf("%q: half a mount %+v, error %v", text, m, err)
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
