package host

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host/disk"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// hungBackend makes reads of every disk wait. The serial and the usage of the file system still answer, as under QEMU.
func hungBackend(b *fakeHost) (reads *atomic.Int32, answer func()) {
	answered := make(chan struct{})
	reads = &atomic.Int32{}
	b.kernel.stat = func(string) (Stats, error) { return Stats{Bytes: Usage{Total: 7}}, nil }
	b.kernel.read = func(string) error { reads.Add(1); <-answered; return nil }
	return reads, func() { close(answered) }
}

func TestAHungBackendIsReportedWithinTenSecondsByOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
		reads, answer := hungBackend(b)
		began := time.Now()
		for range 3 {
			issues, err := b.Health(t.Context(), vol)
			if err != nil || len(issues) != 1 || issues[0].Reason != "NotResponding" || issues[0].Severity != volume.Inaccessible {
				t.Errorf("want it reported, got %+v, %v", issues, err)
			}
			_, err = b.Stats(t.Context(), b.kubelet("staging"))
			wantKind(t, err, volume.Unavailable, "vdb has completed no request since "+began.Format(time.RFC3339))
		}
		if took := time.Since(began); took > statsTimeout {
			t.Errorf("want all answers within %s, got them after %s", statsTimeout, took)
		}
		if n := reads.Load(); n != 1 {
			t.Errorf("want one thread to wait for the disk, got %d", n)
		}
		answer()
		synctest.Wait()
		if issues, err := b.Health(t.Context(), vol); err != nil || len(issues) > 0 {
			t.Errorf("want nothing wrong when the backend is back, got %+v, %v", issues, err)
		}
		if s, err := b.Stats(t.Context(), b.kubelet("staging")); err != nil || s.Bytes.Total != 7 {
			t.Errorf("want the usage when the backend is back, got %+v, %v", s, err)
		}
	})
}

func TestADiskThatAnswersWithAnErrorIsReported(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	b.kernel.stat = func(string) (Stats, error) { return Stats{}, nil }
	b.kernel.read = func(string) error { return unix.EIO }
	issues, err := b.Health(t.Context(), vol)
	if err != nil || len(issues) != 1 || issues[0].Reason != "InputOutputError" {
		t.Errorf("want it reported, got %+v, %v", issues, err)
	}
}

// Health and statistics send a disk with a full queue nothing: the thread that did would keep the process from ending.
func TestADiskWhoseRequestsDoNotCompleteIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
		reads, answer := hungBackend(b)
		answer()
		b.Sysfs(t, "vdb", map[string]string{"stat": "10 0 80 5 20 0 160 9 128 12 14 3 0 24 1 4 2\n"})
		issues, err := b.Health(t.Context(), vol)
		if err != nil || len(issues) != 1 || issues[0].Reason != "NotResponding" {
			t.Errorf("want it reported, got %+v, %v", issues, err)
		}
		if n := reads.Load(); n != 0 {
			t.Errorf("want no read, got %d", n)
		}
		b.Sysfs(t, "vdb", map[string]string{"stat": "10 0 80 5 148 0 1184 9 0 12 14 3 0 24 1 4 2\n"})
		time.Sleep(time.Second)
		if issues, err := b.Health(t.Context(), vol); err != nil || len(issues) > 0 {
			t.Errorf("want nothing wrong once it has completed them, got %+v, %v", issues, err)
		}
	})
}

// A thread that waits for a write keeps the process of the driver from ending, and kubelet from starting its successor.
func TestUnstageStartsNoWriteToADiskThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.kubelet("staging"), 0o750))
		reads, answer := hungBackend(b)
		writes := 0
		b.kernel.sync = func(string) error { writes++; return nil }
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			wantKind(t, b.Unstage(ctx, vol, b.kubelet("staging")), volume.Unavailable, b.kubelet("staging"), "vdb has completed no request since", "has not unmounted it")
			cancel()
		}
		if len(b.mounter.table) != 1 || writes != 0 || reads.Load() != 1 {
			t.Errorf("want the mount there after one read and no write, got %v after %d reads and %d writes", b.mounter.table, reads.Load(), writes)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.kernel.read = func(string) error { return nil }
		answer()
		synctest.Wait()
		if err := b.Unstage(ctx, vol, b.kubelet("staging")); err != nil || len(b.mounter.table) != 0 || writes != 1 {
			t.Errorf("want it unstaged when the disk answers, got %v, %v", err, b.mounter.table)
		}
	})
}

// A call that reads a hung disk itself would not answer, and keep every other call for the volume out until the disk does.
func TestStageOfADiskThatDoesNotAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		reads, answer := hungBackend(b)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := b.Stage(ctx, StageSpec{Volume: vol, Path: b.kubelet("staging")})
			wantKind(t, err, volume.Unavailable, string(vol), "vdb has completed no request since", "Repair the backend")
			cancel()
		}
		if len(b.tools.ran) != 0 || reads.Load() != 1 {
			t.Errorf("want one read and no program, got %d and %v", reads.Load(), b.tools.ran)
		}
		answer()
		synctest.Wait()
		b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
		must(t, b.Stage(t.Context(), StageSpec{Volume: vol, Path: b.kubelet("staging")}))
	})
}

// kubelet stages a volume again after its restart. A restored volume is grown then, and a program on a hung disk does not end.
func TestARestoredVolumeOnAHungDiskIsNotGrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		b.tools.answers["blkid"] = Result{Stdout: "TYPE=ext4\nUSAGE=filesystem\n"}
		s := StageSpec{Volume: vol, Path: b.kubelet("staging"), FromSource: true}
		must(t, b.Stage(t.Context(), s))
		b.tools.ran = nil
		_, answer := hungBackend(b)
		wantKind(t, b.Stage(t.Context(), s), volume.Unavailable, "vdb has completed no request since")
		if len(b.tools.ran) != 0 {
			t.Errorf("want no program, got %v", b.tools.ran)
		}
		answer()
		synctest.Wait()
		must(t, b.Stage(t.Context(), s))
	})
}

func TestACallThatEndsBeforeTheDiskAnswersDoesNotBlameTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeHost(t)
		b.plug(t, "vdb", serial, num(254, 16))
		_, answer := hungBackend(b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := b.Stage(ctx, StageSpec{Volume: vol, Path: b.kubelet("staging")})
		wantKind(t, err, volume.DeadlineExceeded, string(vol))
		if strings.Contains(err.Error(), "Repair the backend") {
			t.Errorf("the disk had one second: %v", err)
		}
		answer()
	})
}

func TestARawBlockVolumeIsWrittenOutBeforeItIsUnpublished(t *testing.T) {
	h, m, device := realHost(t, 8<<20)
	backing := backingFile(t, device)
	target := m.Path("pods", "1", "dev")
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target}))
	reader, err := os.Open(device) // as LVM of the server does: so no close of the pod is the last one
	must(t, err)
	defer reader.Close()
	pod, err := os.OpenFile(target, os.O_RDWR, 0)
	must(t, err)
	_, err = pod.WriteAt([]byte("raw bytes"), 4096)
	must(t, err)
	must(t, pod.Close())
	must(t, h.Unpublish(t.Context(), target))
	got := make([]byte, 9)
	f, err := os.Open(backing)
	must(t, err)
	defer f.Close()
	if _, err := f.ReadAt(got, 4096); err != nil || string(got) != "raw bytes" {
		t.Errorf("want the bytes in the backend, got %q, %v", got, err)
	}
}

func TestARawBlockVolumeOnAHungDiskStaysPublishedUntilTheDiskAnswers(t *testing.T) {
	h, m, _ := realHost(t, 8<<20)
	target := m.Path("pods", "1", "dev")
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target}))
	t.Cleanup(func() { _ = h.Unpublish(context.Background(), target) })
	synctest.Test(t, func(t *testing.T) {
		var reads, writes atomic.Int32
		answered := make(chan struct{})
		h.kernel.read = func(string) error { reads.Add(1); <-answered; return nil }
		h.kernel.syncDisk = func(string) error { writes.Add(1); return nil }
		began := time.Now()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			wantKind(t, h.Unpublish(ctx, target), volume.Unavailable, target, "vdb has completed no request since", "has not unmounted it")
			cancel()
		}
		if took := time.Since(began); took != readTimeout || reads.Load() != 1 || writes.Load() != 0 {
			t.Errorf("want three answers after %s, one read and no write, got %s, %d and %d", readTimeout, took, reads.Load(), writes.Load())
		}
		if table, err := h.mounts.Table(); err != nil || h.boundNode(at(table, target)) == "" {
			t.Errorf("want the volume published, got %v", err)
		}
		close(answered)
		synctest.Wait()
		must(t, h.Unpublish(t.Context(), target))
		if _, err := os.Lstat(target); !os.IsNotExist(err) || writes.Load() != 1 {
			t.Errorf("want it written out and removed, got %d writes, %v", writes.Load(), err)
		}
	})
}

func at(table Table, path string) Entry {
	e, _ := table.At(path)
	return e
}

// A quarter of the disk is in memory, as after a pod has read it. With more of it, sixteen random pages are in memory too often.
func TestAReadReachesTheDisk(t *testing.T) {
	_, _, device := realHost(t, 32<<20)
	f, err := os.Open(device)
	must(t, err)
	defer f.Close()
	must(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM)) // no pages beyond those that are read
	_, err = io.CopyN(io.Discard, f, 8<<20)
	must(t, err)
	reads := func() string {
		content, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "stat"))
		must(t, err)
		return strings.Fields(string(content))[0]
	}
	for i := range 16 {
		before := reads()
		must(t, disk.ReadUncached(device))
		counted := false
		// The kernel counts a request after it has woken the reader. On a busy machine its worker runs again much later.
		for end := time.Now().Add(10 * time.Second); !counted && time.Now().Before(end); runtime.Gosched() {
			counted = reads() != before
		}
		if !counted {
			t.Errorf("read %d did not reach the disk", i)
		}
	}
	must(t, disk.Sync(device))
	if err := disk.ReadUncached(device + "-gone"); err == nil {
		t.Error("want an error for a node that is gone")
	}
}

func backingFile(t *testing.T, device string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "loop", "backing_file"))
	must(t, err)
	return strings.TrimSpace(string(content))
}
