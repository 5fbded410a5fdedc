package host

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestMountInfoIsReadAsTheKernelWritesIt(t *testing.T) {
	t.Parallel()
	got, err := parseMountInfo(`27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 27 98:0 /mnt1/a\040b /mnt\011two\134 ro,noatime master:1 shared:7 - ext3 /dev/my\040root ro,errors=continue
40 27 0:6 /vdb//deleted /var/lib/x rw shared:2 - devtmpfs  rw
`)
	if err != nil {
		t.Fatal(err)
	}
	want := Table{
		{ID: 27, Parent: 1, Device: Number{254, 0}, Root: "/", Path: "/", Options: []string{"rw", "relatime"}, FSType: "ext4", Source: "/dev/vda", SuperOptions: []string{"rw", "discard"}},
		{ID: 36, Parent: 27, Device: Number{98, 0}, Root: "/mnt1/a b", Path: "/mnt\ttwo\\", Options: []string{"ro", "noatime"}, FSType: "ext3", Source: "/dev/my root", SuperOptions: []string{"ro", "errors=continue"}},
		{ID: 40, Parent: 27, Device: Number{0, 6}, Root: "/vdb//deleted", Path: "/var/lib/x", Options: []string{"rw"}, FSType: "devtmpfs", SuperOptions: []string{"rw"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfStackedMountsTheLastIsSeen(t *testing.T) {
	t.Parallel()
	table := Table{{ID: 1, Path: "/a"}, {ID: 2, Path: "/b"}, {ID: 3, Path: "/a"}}
	if m, ok := table.At("/a"); !ok || m.ID != 3 {
		t.Errorf("want mount 3, got %+v", m)
	}
	if _, ok := table.At("/a/"); ok {
		t.Error("want no mount at a path nobody resolved")
	}
}

func TestALineThatIsNotMountInfoIsAnErrorAndNotOverlooked(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"\n", "27 1 254:0 / / rw", "27 1 254:0 / / rw - ext4", "x 1 254:0 / / rw - ext4 /dev/vda rw", "27 1 254 / / rw - ext4 /dev/vda rw",
		"27 1 254:0x / / rw - ext4 /dev/vda rw", "27 1 254:0 /  rw - ext4 /dev/vda rw",
	} {
		if table, err := parseMountInfo(line); err == nil {
			t.Errorf("%q: want an error, got %+v", line, table)
		}
	}
}

func TestThisMachinesMountTableIsRead(t *testing.T) {
	t.Parallel()
	table, err := New(Options{}).mounts()
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

// looks gives out one text after the other for the mount table, the last for ever.
func looks(b *bench, texts ...string) {
	b.readFile = func(path string) ([]byte, error) {
		if path != b.mounter.file {
			return os.ReadFile(path)
		}
		text := texts[0]
		if len(texts) > 1 {
			texts = texts[1:]
		}
		return []byte(text), nil
	}
}

func TestAMountThatAnOldKernelMissesInOneLookIsSeen(t *testing.T) {
	t.Parallel()
	for release, missed := range map[string]bool{
		"5.4.0-187-generic": false, "4.18.0-553.el8_10.x86_64": false, "5.7": false, "": false, "no release": false,
		"5.8.0-63-generic": true, "6.18.44": true, // these never miss one, so the first look counts and nothing is read twice
	} {
		b := newBench(t, Options{})
		b.release = func() string { return release }
		looks(b, rootMount, rootMount+volumeMount)
		table, err := b.mounts()
		must(t, err)
		if _, seen := table.At("/staging"); seen == missed {
			t.Errorf("%q: want the mount missed %t, got %+v", release, missed, table)
		}
	}
}

func TestAMountTableThatNeverStandsStillIsNotBelieved(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.release = func() string { return "5.4.0" }
	var restless []string
	for range 50 {
		restless = append(restless, rootMount, rootMount+volumeMount)
	}
	looks(b, restless...)
	b.plug(t, "vdb", serial, Number{254, 16})
	err := b.Stage(t.Context(), Staging{Volume: vol, Path: b.place("staging")})
	wantKind(t, err, volume.Unavailable, "5.8", "try again")
	if len(b.tools.ran) > 0 || len(b.mounter.table) > 0 {
		t.Errorf("want nothing done, got %q, %v", b.tools.ran, b.mounter.table)
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
		table, err := parseMountInfo(text)
		for _, m := range table {
			if err != nil || m.Path == "" || len(m.Options) == 0 {
				t.Errorf("%q: half a mount %+v, error %v", text, m, err)
			}
		}
	})
}
