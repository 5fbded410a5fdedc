package host

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestExpandWaitsForTheDiskAndThenGrowsTheFileSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		d := b.devices[filepath.Join(b.Dev, "vdb")]
		d.size = volume.GiB(1)
		grown := time.Now().Add(3 * time.Second)
		time.AfterFunc(3*time.Second, func() { d.resize(volume.GiB(2)) })
		b.tools.during = func(string) {
			if time.Now().Before(grown) {
				t.Error("want nothing grown before the disk is")
			}
		}
		size, err := b.Expand(t.Context(), ExpandSpec{Volume: vol, Path: b.kubelet("staging"), Size: volume.GiB(2)})
		if err != nil || size != volume.GiB(2) {
			t.Fatalf("want 2 GiB, got %s, %v", size, err)
		}
		if diff := cmp.Diff([]string{"resize2fs " + filepath.Join(b.Dev, "vdb")}, b.tools.ran); diff != "" {
			t.Errorf("programs (-want +got):\n%s", diff)
		}
	})
}

func TestExpandFailsIfTheDiskDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		b.Sysfs(t, "vdb", map[string]string{"device/rescan": ""})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := b.Expand(ctx, ExpandSpec{Volume: vol, Path: b.kubelet("staging"), Size: volume.GiB(2)})
		wantKind(t, err, volume.DeadlineExceeded, "16777216 bytes", "2 GiB")
		if len(b.tools.ran) > 0 {
			t.Errorf("want nothing grown, got %q", b.tools.ran)
		}
		if text, _ := os.ReadFile(filepath.Join(b.Sys, "block/vdb/device/rescan")); string(text) != "1" {
			t.Errorf("want the disk asked for its size, got %q", text)
		}
	})
}

func TestExpandNeverGrowsAnotherFileSystem(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	b.mounter.add(Entry{Device: num(254, 32), Path: b.kubelet("other"), FSType: "ext4", Source: "/dev/vdc", Options: []string{"rw"}})
	if err := os.MkdirAll(b.kubelet("other"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.mounter.add(Entry{Device: num(254, 16), Path: b.kubelet("ro"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"ro"}})
	for path, kind := range map[string]volume.Kind{"nothing": volume.NotFound, "staging/below": volume.NotFound, "other": volume.Conflict, "ro": volume.Conflict} {
		if _, err := b.Expand(t.Context(), ExpandSpec{Volume: vol, Path: b.kubelet(path)}); !volume.Is(err, kind) {
			t.Errorf("%s: want %s, got %v", path, kind, err)
		}
	}
	if len(b.tools.ran) > 0 {
		t.Errorf("want nothing run, got %q", b.tools.ran)
	}
}

// The file system is grown at its first writable mount, which is the staging path as a rule. A program that waits there keeps no pod's mount.
func TestExpandGrowsAtTheFirstWritableMount(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	for _, m := range [][2]string{{"by-hand", "ro"}, {"staging", "rw"}, {"pod", "rw"}} {
		b.mounter.add(Entry{Device: num(254, 16), Path: b.kubelet(m[0]), FSType: "xfs", Source: "/dev/vdb", Options: []string{m[1]}})
	}
	_, err := b.Expand(t.Context(), ExpandSpec{Volume: vol, Path: b.kubelet("pod")})
	must(t, err)
	if diff := cmp.Diff([]string{"xfs_growfs -d " + b.kubelet("staging")}, b.tools.ran); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
}

func TestExpandOfABlockVolumeOnlyWaits(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	d := b.plug(t, "vdb", serial, num(254, 16))
	d.size = volume.GiB(2) - 16<<20 // the LUKS header of an encrypted volume
	size, err := b.Expand(t.Context(), ExpandSpec{Volume: vol, Path: b.kubelet("anywhere"), Size: volume.GiB(2), Block: true})
	if err != nil || size != volume.GiB(2) || len(b.tools.ran) > 0 {
		t.Errorf("want 2 GiB and nothing run, got %s, %v, %q", size, err, b.tools.ran)
	}
}
