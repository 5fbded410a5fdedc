package mount

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// Before Linux 5.12 a read-only bind needs two steps.
func TestABindMadeReadOnlyInTwoStepsKeepsItsFlags(t *testing.T) {
	testenv.NeedRoot(t)
	m := testenv.NewMachine(t)
	source, target := m.Path("source"), m.Path("target")
	must(t, os.Mkdir(source, 0o750))
	must(t, os.Mkdir(target, 0o750))
	testenv.Run(t, "mount", "-t", "tmpfs", "-o", "noexec,nosuid,noatime", "tmpfs", source)
	must(t, bindThenRemount(source, target))
	mounts := New(Options{Mounter: Kernel{}})
	table, err := mounts.Table()
	must(t, err)
	if e, _ := table.At(target); strings.Join(e.Options, ",") != "ro,nosuid,noexec,noatime" {
		t.Errorf("want it read-only with the flags of the source, got %q", e.Options)
	}
	must(t, mounts.Unmount(target, nil))
	if err := bindThenRemount(source, m.Path("missing")); err == nil {
		t.Error("want an error for a target that does not exist")
	}
	must(t, mounts.Unmount(source, nil))
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	must(t, os.Symlink("real", filepath.Join(dir, "link")))
	must(t, os.Symlink("gone", filepath.Join(dir, "nowhere")))
	for path, want := range map[string]string{
		filepath.Join(dir, "real") + "//":                filepath.Join(dir, "real"),
		filepath.Join(dir, "link", "volume"):             filepath.Join(dir, "real", "volume"),
		filepath.Join(dir, "missing", "parent"):          filepath.Join(dir, "missing", "parent"),
		filepath.Join(dir, "link", "missing", "volume"):  filepath.Join(dir, "real", "missing", "volume"), // a caller makes the parent afterwards
		filepath.Join(dir, "link", "a", "b", "volume"):   filepath.Join(dir, "real", "a", "b", "volume"),
		filepath.Join(dir, "nowhere", "volume"):          filepath.Join(dir, "nowhere", "volume"),
		filepath.Join(dir, "link"):                       "",
		filepath.Join(dir, "real", "..", "real", "\x00"): "",
		"relative": "",
		"/":        "",
		"/..":      "",
		filepath.Join(dir, strings.Repeat("x", 300), "pod"): "",
	} {
		got, err := Resolve(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: want %q, got %q, %v", path, want, got, err)
		}
	}
	if _, err := ResolveVolume("relative"); !volume.Is(err, volume.NotFound) {
		t.Errorf("want NotFound for a relative path, got %v", err)
	}
}
