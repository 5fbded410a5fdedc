package host

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
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
