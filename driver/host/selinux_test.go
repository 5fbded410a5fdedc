package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const seLinuxContext = `context="system_u:object_r:container_file_t:s0:c1,c2"`

func TestAMountThatLostItsSELinuxContextIsAnError(t *testing.T) {
	t.Parallel()
	for _, option := range []string{seLinuxContext, `rootcontext="system_u:object_r:container_file_t:s0"`} {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		s := StageSpec{Volume: vol, Path: b.kubelet("staging"), MountFlags: []string{option}}
		b.mounter.noSELinux = true
		wantKind(t, b.Stage(t.Context(), s), volume.Conflict, "lost the SELinux option", "/etc/selinux", "seLinuxMount")
		if len(b.mounter.table) > 0 {
			t.Errorf("want it unmounted, got %v", b.mounter.table)
		}
		b.mounter.noSELinux = false
		must(t, b.Stage(t.Context(), s))
	}
}

// A call may end before its mount(8) does. Then the next call finds the mount.
func TestAMountThatLostItsSELinuxContextBeforeTheCallIsAnError(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	s := StageSpec{Volume: vol, Path: b.kubelet("staging")}
	must(t, b.Stage(t.Context(), s))
	s.MountFlags = []string{seLinuxContext}
	wantKind(t, b.Stage(t.Context(), s), volume.Conflict, "lost the SELinux option context", "unstage the path first")
	if len(b.mounter.table) != 1 {
		t.Errorf("want it mounted, since a pod may use it, got %v", b.mounter.table)
	}
}

func TestWithoutSELinuxInTheKernelAContextIsDroppedWithOneWarning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		filesystems string
		lost        bool
	}{
		"a kernel without SELinux": {"nodev\tsysfs\n\text4\n", false},
		"a kernel with SELinux":    {"nodev\tsysfs\nnodev\tselinuxfs\n\text4\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFakeHost(t)
			log := &testenv.Log{}
			b.log = slog.New(slog.NewTextHandler(log, nil))
			b.plug(t, "vdb", serial, num(254, 16))
			b.mounter.noSELinux = true
			must(t, os.WriteFile(filepath.Join(b.proc, "filesystems"), []byte(c.filesystems), 0o600))
			s := StageSpec{Volume: vol, Path: b.kubelet("staging"), MountFlags: []string{seLinuxContext}}
			if c.lost {
				wantKind(t, b.Stage(t.Context(), s), volume.Conflict, "lost the SELinux option")
				return
			}
			for range 2 {
				must(t, b.Stage(t.Context(), s))
				must(t, b.Unpublish(t.Context(), s.Path))
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 1 {
				t.Errorf("want one warning, got %d in %q", n, log)
			}
		})
	}
}

// The machine of the tests has no SELinux, as a container without the mounts of the host.
func TestMountDropsTheSELinuxContextWithoutSELinux(t *testing.T) {
	h, m, _ := realHost(t, 400<<20)
	h.proc = m.Path("of a kernel with SELinux")
	err := h.Stage(t.Context(), StageSpec{Volume: vol, Path: m.Path("staging"), FSType: "ext4", MountFlags: []string{seLinuxContext}})
	wantKind(t, err, volume.Conflict, "lost the SELinux option context")
	if n := countMounts(t, h, m); n != 0 {
		t.Errorf("want no mount left, got %d", n)
	}
}
