package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/mount"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var equateEmpty = cmpopts.EquateEmpty()

func expand(line, disk, path string) string {
	return strings.NewReplacer("DISK", disk, "PATH", path).Replace(line)
}

// staged is a host on which the disk of the volume is mounted at the path staging.
func staged(t *testing.T, option string) *fakeHost {
	t.Helper()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	b.mounter.add(Entry{Device: num(254, 16), Path: b.kubelet("staging"), FSType: "ext4", Source: "/dev/vdb", Options: []string{option}})
	return b
}

func TestPublishBindsTheStagedFileSystemOnce(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []bool{false, true} {
		b := staged(t, "rw")
		for range 3 {
			if err := b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod"), ReadOnly: readOnly}); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.mounter.table) != 2 {
			t.Fatalf("want one mount more, got %v", b.mounter.table)
		}
		if m, _ := b.mounter.table.At(b.kubelet("pod")); m.ReadOnly() != readOnly {
			t.Errorf("want read-only %t, got %v", readOnly, m.Options)
		}
		wantKind(t, b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod"), ReadOnly: !readOnly}), volume.Incompatible, b.kubelet("pod"))
	}
}

// Before Linux 5.12 a driver that is killed between the two steps of a read-only publication leaves a writable mount.
// kubelet retries the call, and the pod would never start if the driver kept refusing.
func TestAKilledReadOnlyPublicationIsFinished(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	b.mounter.steps = true
	p := PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod")}
	if err := b.mounter.Bind(p.Staging, p.Target, false); err != nil { // the first of them
		t.Fatal(err)
	}
	p.ReadOnly = true
	if err := b.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if m, _ := b.mounter.table.At(p.Target); !m.ReadOnly() {
		t.Errorf("want the target read-only, got %v", m.Options)
	}
	p.ReadOnly = false // and a read-only mount is never made writable
	wantKind(t, b.Publish(t.Context(), p), volume.Incompatible, p.Target)
}

func TestAReadOnlyStageIsPublishedReadOnly(t *testing.T) {
	t.Parallel()
	b := staged(t, "ro")
	b.kernel.write = func(string) error { return unix.EROFS }
	for range 2 {
		if err := b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod")}); err != nil {
			t.Fatal(err)
		}
	}
	if m, _ := b.mounter.table.At(b.kubelet("pod")); !m.ReadOnly() {
		t.Errorf("want a read-only mount, got %v", m.Options)
	}
}

// Upstream's plugin publishes ReadOnlyMany writable, unless the pod says readOnly.
func TestAWritablePublicationServesAReadOnlyAccessModeButNotAReadOnlyPod(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	log := &testenv.Log{}
	b.log = slog.New(slog.NewTextHandler(log, nil))
	old, next := b.kubelet("old"), b.kubelet("next")
	must(t, os.MkdirAll(old, 0o750))
	p := PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: old}
	must(t, b.Publish(t.Context(), p))
	p.ReadOnly = true
	wantKind(t, b.Publish(t.Context(), p), volume.Incompatible, old)
	p.ReadOnlyByMode = true
	for range 3 {
		must(t, b.Publish(t.Context(), p))
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), old) {
		t.Errorf("want one warning that names the path, got %q", log)
	}
	b.mounter.add(Entry{Device: num(254, 32), Path: b.kubelet("other"), FSType: "ext4", Source: "/dev/vdc", Options: []string{"rw"}})
	p.Target = b.kubelet("other")
	wantKind(t, b.Publish(t.Context(), p), volume.Conflict, "unpublish the path first")
	must(t, b.Unpublish(t.Context(), old))
	for _, p.Target = range []string{old, next} {
		must(t, b.Publish(t.Context(), p))
		if m, _ := b.mounter.table.At(p.Target); !m.ReadOnly() {
			t.Errorf("want what is published again read-only, got %v", m.Options)
		}
	}
	p.ReadOnly, p.ReadOnlyByMode = false, false
	wantKind(t, b.Publish(t.Context(), p), volume.Incompatible, next)
}

func TestPublishRefusesOtherVolumes(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	wantKind(t, b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("elsewhere"), Target: b.kubelet("pod")}), volume.Conflict, "not staged")
	b.mounter.add(Entry{Device: num(254, 32), Path: b.kubelet("other"), FSType: "ext4", Source: "/dev/vdc", Options: []string{"rw"}})
	wantKind(t, b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("other"), Target: b.kubelet("pod")}), volume.Conflict, "254:32", "254:16")
	wantKind(t, b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("other")}), volume.Conflict, "unpublish the path first")
	wantKind(t, b.Publish(t.Context(), PublishSpec{Volume: "1a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b", Staging: b.kubelet("staging"), Target: b.kubelet("pod")}), volume.NotFound)
	if len(b.mounter.table) != 2 {
		t.Errorf("want nothing mounted, got %v", b.mounter.table)
	}
}

func TestABlockTargetThatIsNotEmptyIsRefused(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	if err := os.WriteFile(filepath.Join(b.Dev, "vdb"), nil, 0o600); err != nil { // the fake's node, to be resolved
		t.Fatal(err)
	}
	target := b.Path("target")
	testfile.Write(t, target, "data", 0o600)
	wantKind(t, b.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target}), volume.Conflict, "not an empty file")
	wantKind(t, b.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: b.Path("dev")}), volume.Conflict, "not an empty file")
	if text, _ := os.ReadFile(target); string(text) != "data" {
		t.Errorf("want the file as it was, got %q", text)
	}
}

func TestUnmountRemovesEveryMountAndTheEmptyDirectory(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	target := b.kubelet("pod")
	for range 3 { // as upstream stacked them
		b.mounter.add(Entry{Device: num(254, 16), Path: target, FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Unpublish(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(target); !os.IsNotExist(err) {
		t.Errorf("want the directory removed, got %v", err)
	}
	want := Table{{Device: num(254, 16), Root: "/", Path: b.kubelet("staging"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}}}
	if diff := cmp.Diff(want, b.mounter.table); diff != "" {
		t.Errorf("other mounts (-want +got):\n%s", diff)
	}
}

func TestUnmountKeepsData(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	dir := b.kubelet("full")
	file := filepath.Join(dir, "data")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, file, "data", 0o600)
	if err := os.Symlink(dir, b.kubelet("link")); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.Unpublish(t.Context(), dir), volume.Conflict, "leaves it as it is")
	wantKind(t, b.Unpublish(t.Context(), file), volume.Conflict, "leaves it as it is")
	wantKind(t, b.Unpublish(t.Context(), b.kubelet("link")), volume.InvalidArgument, "symbolic link")
	wantKind(t, b.Unpublish(t.Context(), "/"), volume.InvalidArgument)
	if text, _ := os.ReadFile(file); string(text) != "data" {
		t.Errorf("want the data there, got %q", text)
	}
	if err := b.Unpublish(t.Context(), b.kubelet("never/was/there")); err != nil {
		t.Errorf("want success where nothing is, got %v", err)
	}
}

// The kernel says that a bind succeeded. A pod with another mount, or none, would write elsewhere.
func TestABindThatTheTableDoesNotShowIsNoPublication(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bound func(e *Entry) bool
		says  string
	}{
		"nothing":                   {func(*Entry) bool { return false }, "the mount table does not show it"},
		"another file system":       {func(e *Entry) bool { e.Device = num(254, 32); return true }, "unpublish the path first"},
		"another root":              {func(e *Entry) bool { e.Root = "/dir"; return true }, "unpublish the path first"},
		"writable for a reader":     {func(e *Entry) bool { e.Options = []string{"rw"}; return true }, "the mount table shows read-only false"},
		"read-only for a writer":    {func(e *Entry) bool { e.Options = []string{"ro"}; return true }, "the mount table shows read-only true"},
		"what the driver asked for": {func(*Entry) bool { return true }, ""},
	} {
		b := staged(t, "rw")
		b.mounter.bound = c.bound
		err := b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod"), ReadOnly: strings.Contains(name, "reader")})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: want %q, got %v", name, c.says, err)
		}
	}
}

func TestABlockBindThatTheTableDoesNotShowIsNoPublication(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	must(t, os.MkdirAll(b.Dev, 0o755))
	must(t, os.WriteFile(filepath.Join(b.Dev, "vdb"), nil, 0o600)) // the fake's node, to be resolved
	b.mounter.bound = func(*Entry) bool { return false }
	wantKind(t, b.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: b.Path("a")}), volume.Failed, "the mount table does not show it")
	b.mounter.bound = nil
	wantKind(t, b.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: b.Path("b")}), volume.Conflict, "unpublish the path first") // it is a file
}

func TestABlockBindThatTheTableShowsWritableIsNoReadOnlyPublication(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	must(t, os.MkdirAll(b.Dev, 0o755))
	target := b.Path("c")
	b.mounter.bound = func(e *Entry) bool { // the bind shows the node at the target
		must(t, os.Remove(target))
		must(t, os.Symlink(filepath.Join(b.Dev, "vdb"), target))
		e.Options = []string{"rw"}
		return true
	}
	deviceNode(t, b)
	wantKind(t, b.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target, ReadOnly: true}), volume.Failed, "the mount table shows read-only false")
}

// The disk is pulled out and another one plugged in after it was found.
func TestADiskThatIsExchangedBeforeTheBindIsNotPublished(t *testing.T) {
	t.Parallel()
	for name, publish := range map[string]func(b *fakeHost) error{
		"file system": func(b *fakeHost) error {
			return b.Publish(b.t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod")})
		},
		"block": func(b *fakeHost) error {
			return b.PublishBlock(b.t.Context(), PublishSpec{Volume: vol, Target: b.kubelet("pod")})
		},
	} {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.Dev, 0o755))
		must(t, os.WriteFile(filepath.Join(b.Dev, "vdb"), nil, 0o600))
		b.readTable = func(file string) (Table, error) {
			b.Sysfs(t, "vdb", map[string]string{"serial": otherSerial})
			return mount.Read(file)
		}
		wantKind(t, publish(b), volume.Conflict, "exchanged")
		if len(b.mounter.table) != 1 {
			t.Errorf("%s: want nothing bound, got %v", name, b.mounter.table)
		}
	}
}

func TestAnotherDirectoryOfTheFileSystemAtTheTargetIsNoPublication(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	b.mounter.add(Entry{Device: num(254, 16), Root: "/dir", Path: b.kubelet("pod"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
	wantKind(t, b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod")}), volume.Conflict, "unpublish the path first")
}

// A reader wrote nothing, and a write to a disk that does not answer would keep its mount.
func TestABlockVolumeIsWrittenOutBeforeItsWriterLeaves(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]int{"rw": 1, "ro": 0} {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		must(t, os.MkdirAll(b.Dev, 0o755))
		must(t, os.MkdirAll(b.kubelet(""), 0o755))
		target := b.kubelet("pod")
		must(t, os.Rename(deviceNode(t, b), target))
		b.mounter.add(Entry{Device: num(0, 5), Root: "/vdb", Path: target, FSType: "devtmpfs", Source: "devtmpfs", Options: []string{option}})
		synced := 0
		b.kernel.syncDisk = func(string) error { synced++; return nil }
		wantKind(t, b.Unpublish(t.Context(), target), volume.Conflict) // what is under the mount is the node itself here, and stays
		if synced != want || len(b.mounter.table) > 0 {
			t.Errorf("%s: want it written out %d times and unmounted, got %d, %v", option, want, synced, b.mounter.table)
		}
	}
}
