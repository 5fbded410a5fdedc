package host

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestUnstageThawsBeforeTheLastUnmountOnly(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"the last mount": false, "a pod has it mounted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := staged(t, "rw")
			must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
			var did []string
			b.kernel.thaw = func(path string) (bool, error) { did = append(did, "thaw "+path); return true, nil }
			b.kernel.sync = func(path string) error { did = append(did, "sync "+path); return nil }
			want := []string{"thaw " + b.kubelet("staging"), "sync " + b.kubelet("staging")}
			if other {
				b.mounter.add(Entry{Device: num(254, 16), Path: b.kubelet("pod"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
				want = want[1:]
			}
			err := b.Unstage(t.Context(), vol, b.kubelet("staging"))
			if (err != nil) != other || strings.Join(did, ",") != strings.Join(want, ",") {
				t.Errorf("want %q, got %q, %v", want, did, err)
			}
		})
	}
}

func TestWhatKeepsADiskInUseIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *fakeHost)
		words  []string
	}{
		"a loop device": {func(_ *testing.T, b *fakeHost) {
			b.kernel.loops = func(disk.Number) []string { return []string{`loop7 on "/image"`} }
		}, []string{`loop7 on "/image"`, "losetup --detach"}},
		"a process": {func(t *testing.T, b *fakeHost) {
			must(t, os.MkdirAll(filepath.Join(b.proc, "4711"), 0o755))
			must(t, os.WriteFile(filepath.Join(b.proc, "4711", "mountinfo"), []byte("31 1 254:16 / /data rw - ext4 /dev/vdb rw\n"), 0o600))
		}, []string{"another mount namespace", "held by PID 4711"}},
		"nothing that the driver sees": {func(*testing.T, *fakeHost) {}, []string{"frozen", "fsfreeze --unfreeze", "mount /dev/vdb /mnt", "Free a volume that is stuck"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := staged(t, "rw")
				must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
				b.devices[filepath.Join(b.Dev, "vdb")].contents = superblockOf400MiB("ext4")
				b.kernel.inUse = func(string) bool { return true }
				c.change(t, b)
				wantKind(t, b.Unstage(t.Context(), vol, b.kubelet("staging")), volume.Busy, c.words...)
			})
		})
	}
}

func TestALoopDeviceThatDoesNotAnswerDoesNotDelayUnstage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
		b.devices[filepath.Join(b.Dev, "vdb")].contents = superblockOf400MiB("ext4")
		b.kernel.inUse = func(string) bool { return true }
		answers := make(chan struct{})
		b.kernel.loops = func(disk.Number) []string { <-answers; return nil }
		time.AfterFunc(time.Hour, func() { close(answers) })
		began := time.Now()
		wantKind(t, b.Unstage(t.Context(), vol, b.kubelet("staging")), volume.Busy, "another mount namespace", "Free a volume that is stuck")
		if took := time.Since(began); took > releaseTimeout+releasePoll+time.Second {
			t.Errorf("want the answer a second after the wait for the release, took %s", took)
		}
		<-answers
	})
}

func TestAFrozenFileSystemIsUnstaged(t *testing.T) {
	h, m, _ := realHost(t, 400<<20)
	log := &testenv.Log{}
	h.log = slog.New(slog.NewTextHandler(log, nil))
	staging, pod := m.Path("staging"), m.Path("pods", "1", "mount")
	stage(t, h, StageSpec{Path: staging, FSType: "ext4"})
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: pod}))
	must(t, os.WriteFile(filepath.Join(pod, "data"), []byte("written before the freeze"), 0o600))
	testenv.Run(t, "fsfreeze", "--freeze", pod)
	must(t, h.Unpublish(t.Context(), pod)) // the pod ends before its hook thaws the file system
	must(t, h.Unstage(t.Context(), vol, staging))
	if !strings.Contains(log.String(), "thawed") {
		t.Errorf("want it logged, got %q", log)
	}
	stage(t, h, StageSpec{Path: staging, FSType: "ext4"})
	if got, err := os.ReadFile(filepath.Join(staging, "data")); string(got) != "written before the freeze" {
		t.Errorf("want the data back, got %q, %v", got, err)
	}
	must(t, os.WriteFile(filepath.Join(staging, "data"), []byte("after"), 0o600))
	must(t, h.Unpublish(t.Context(), staging))
}

func TestALoopDeviceOnAFileOfTheVolumeIsNamed(t *testing.T) {
	h, m, device := realHost(t, 400<<20)
	staging := m.Path("staging")
	stage(t, h, StageSpec{Path: staging, FSType: "ext4"})
	must(t, os.WriteFile(filepath.Join(staging, "image"), make([]byte, 1<<20), 0o600))
	loop := strings.TrimSpace(testenv.Run(t, "losetup", "--find", "--show", filepath.Join(staging, "image")))
	t.Cleanup(func() { testenv.Run(t, "losetup", "--detach", loop) })
	var s unix.Stat_t
	must(t, unix.Stat(staging, &s))
	got := loopsOn("/sys", "/dev", disk.NumberOf(s.Dev))
	if len(got) != 1 || !strings.HasPrefix(got[0], filepath.Base(loop)+" on ") || !strings.Contains(got[0], "/image") {
		t.Errorf("want %s on its file of %s, got %q", loop, device, got)
	}
}
