package mount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/command"
	"github.com/cinder-csi/cinder-csi/driver/host/disk"
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
	must(t, kernelCalls.bindThenRemount(source, target))
	mounts := New(Options{Mounter: Kernel{}})
	table, err := mounts.Table()
	must(t, err)
	if e, _ := table.At(target); strings.Join(e.Options, ",") != "ro,nosuid,noexec,noatime" {
		t.Errorf("want it read-only with the flags of the source, got %q", e.Options)
	}
	must(t, mounts.Unmount(target, nil))
	if err := kernelCalls.bindThenRemount(source, m.Path("missing")); err == nil {
		t.Error("want an error for a target that does not exist")
	}
	must(t, mounts.Unmount(source, nil))
}

// recorded is a kernel that writes down its calls. Each call may fail.
type recorded struct {
	did  []string
	fail map[string]error // by the first word of what is written down
}

func (r *recorded) do(name, format string, args ...any) error {
	r.did = append(r.did, fmt.Sprintf(name+" "+format, args...))
	return r.fail[name]
}

func (r *recorded) kernel(fail map[string]error) Kernel {
	r.fail = fail
	return Kernel{Commands: r, calls: &calls{
		mount: func(source, target, _ string, flags uintptr, _ string) error {
			if flags&unix.MS_REMOUNT != 0 {
				return r.do("remount", "%s %#x", target, flags)
			}
			return r.do("bind", "%s %s %#x", source, target, flags)
		},
		unmount:      func(target string, flags int) error { return r.do("unmount", "%s %#x", target, flags) },
		bindReadOnly: func(source, target string) error { return r.do("bindReadOnly", "%s %s", source, target) },
		oneStep:      func(string) bool { return r.fail["bindReadOnly"] == nil },
		statfs: func(_ string, s *unix.Statfs_t) error {
			s.Flags = unix.ST_NOSUID | unix.ST_NODEV | unix.ST_RELATIME
			return r.fail["statfs"]
		},
	}}
}

// Run implements command.Runner.
func (r *recorded) Run(_ context.Context, name string, args ...string) (command.Result, error) {
	if err := r.do(name, "%s", strings.Join(args, " ")); err != nil {
		return command.Result{Code: 32, Stderr: err.Error()}, nil
	}
	return command.Result{}, nil
}

// Each step of a change may fail. The pod must not get a mount that it should not have. Without any it would write to the disk of the node.
func TestEachStepOfAMountMayFail(t *testing.T) {
	t.Parallel()
	const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_RELATIME
	bind := func(readOnly bool) func(k Kernel) error {
		return func(k Kernel) error { return k.Bind("/s", "/t", readOnly) }
	}
	mount := func(options ...string) func(k Kernel) error {
		return func(k Kernel) error { return k.Mount(context.Background(), "/s", "/t", "ext4", options) }
	}
	finish := func(k Kernel) error { _, err := k.FinishReadOnly("/t"); return err }
	bound, remounted, unmounted := fmt.Sprintf("bind /s /t %#x", unix.MS_BIND), fmt.Sprintf("remount /t %#x", flags), fmt.Sprintf("unmount /t %#x", unix.UMOUNT_NOFOLLOW)
	old := unix.ENOSYS // before Linux 5.12
	for name, c := range map[string]struct {
		do   func(k Kernel) error
		fail map[string]error
		did  []string
		kind volume.Kind // Unknown: no error
	}{
		"a bind":                                      {bind(false), nil, []string{bound}, volume.Unknown},
		"a bind that fails":                           {bind(false), map[string]error{"bind": unix.EINVAL}, []string{bound}, volume.Failed},
		"a reader":                                    {bind(true), nil, []string{"bindReadOnly /s /t"}, volume.Unknown},
		"a reader that fails":                         {bind(true), map[string]error{"bindReadOnly": unix.EPERM}, []string{"bindReadOnly /s /t"}, volume.Failed},
		"a reader in two steps":                       {bind(true), map[string]error{"bindReadOnly": old}, []string{"bindReadOnly /s /t", bound, remounted}, volume.Unknown},
		"a reader in two steps, the first fails":      {bind(true), map[string]error{"bindReadOnly": old, "bind": unix.EINVAL}, []string{"bindReadOnly /s /t", bound}, volume.Failed},
		"a reader in two steps, the second fails":     {bind(true), map[string]error{"bindReadOnly": old, "remount": unix.EINVAL}, []string{"bindReadOnly /s /t", bound, remounted, unmounted}, volume.Failed},
		"a reader in two steps, the flags are secret": {bind(true), map[string]error{"bindReadOnly": old, "statfs": unix.EIO}, []string{"bindReadOnly /s /t", bound, unmounted}, volume.Failed},
		"the second step of an earlier process":       {finish, map[string]error{"bindReadOnly": old}, []string{remounted}, volume.Unknown},
		"the second step of an earlier process fails": {finish, map[string]error{"bindReadOnly": old, "remount": unix.EINVAL}, []string{remounted}, volume.Failed},
		"nothing is left to an earlier process":       {finish, nil, nil, volume.Unknown},
		"an unmount":                                  {func(k Kernel) error { return k.UnmountTop("/t") }, nil, []string{unmounted}, volume.Unknown},
		"an unmount of what is in use":                {func(k Kernel) error { return k.UnmountTop("/t") }, map[string]error{"unmount": unix.EBUSY}, []string{unmounted}, volume.Busy},
		"an unmount that fails":                       {func(k Kernel) error { return k.UnmountTop("/t") }, map[string]error{"unmount": unix.EINVAL}, []string{unmounted}, volume.Failed},
		"a mount":                                     {mount("noatime"), nil, []string{"mount --rw -t ext4 -o noatime /s /t"}, volume.Unknown},
		"a mount, ro before rw":                       {mount("ro", "rw"), nil, []string{"mount --rw -t ext4 -o ro,rw /s /t"}, volume.Unknown},
		"a mount, rw before ro":                       {mount("rw", "ro"), nil, []string{"mount -t ext4 -o rw,ro /s /t"}, volume.Unknown},
		"a mount that fails":                          {mount("ro"), map[string]error{"mount": unix.EINVAL}, []string{"mount -t ext4 -o ro /s /t"}, volume.Failed},
	} {
		var r recorded
		err := c.do(r.kernel(c.fail))
		if diff := cmp.Diff(c.did, r.did); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, diff)
		}
		if (err == nil) != (c.kind == volume.Unknown) || err != nil && !volume.Is(err, c.kind) {
			t.Errorf("%s: want an error of kind %s, got %v", name, c.kind, err)
		}
	}
}

func TestABindOfNothingIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, readOnly := range []bool{false, true} {
		if err := (Kernel{}).Bind(filepath.Join(dir, "nothing"), dir, readOnly); err == nil {
			t.Errorf("read-only %t: want an error", readOnly)
		}
	}
}

// A tenant chooses what kubelet binds below the directory of the pod. A device node there is no use of the disk.
func TestADeviceNodeInAPodsVolumeIsNoUseOfItsDisk(t *testing.T) {
	t.Parallel()
	node := anyBlockDevice(t)
	number := func() disk.Number {
		var s unix.Stat_t
		must(t, unix.Stat(node, &s))
		return disk.NumberOf(s.Rdev)
	}()
	var s unix.Stat_t
	must(t, unix.Stat(node, &s))
	dir := t.TempDir()
	for path, counts := range map[string]bool{
		"pods/uid/volumeDevices/kubernetes.io~csi/pv":            true,
		"plugins/kubernetes.io/csi/volumeDevices/publish/pv/uid": true,
		"pods/uid/volume-subpaths/pv/c/0":                        false,
		"pods/uid/volumes/kubernetes.io~csi/pv/mount/node":       false,
	} {
		path = filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.Symlink(node, path)) // in the place of a bind, which needs root
		table := Table{{Device: disk.NumberOf(s.Dev), Root: "/x", Path: path, FSType: "devtmpfs"}}
		if got := len(table.PathsInUse(number, node)) == 1; got != counts {
			t.Errorf("%s: want it counted: %t", path, counts)
		}
	}
}

// anyBlockDevice is some device node of this machine.
func anyBlockDevice(t *testing.T) string {
	t.Helper()
	files, err := os.ReadDir("/dev")
	must(t, err)
	for _, f := range files {
		if f.Type()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice {
			return filepath.Join("/dev", f.Name())
		}
	}
	t.Skip("this machine shows no block device")
	return ""
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
