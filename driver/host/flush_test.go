package host

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestAFileSystemIsWrittenOutWhileItIsMounted(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{"a good disk": nil, "a dead disk": unix.EIO} {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.place("staging"), 0o750))
		var written []string
		b.syncfs = func(path string) error {
			if _, mounted := b.mounter.table.At(path); !mounted {
				t.Errorf("%s: %s is written out when it is not mounted any more", name, path)
			}
			written = append(written, path)
			return fail
		}
		for range 2 {
			if err := b.Unstage(t.Context(), vol, b.place("staging")); err != nil || len(b.mounter.table) != 0 {
				t.Fatalf("%s: want it unstaged, got %v, %v", name, err, b.mounter.table)
			}
		}
		if len(written) != 1 || written[0] != b.place("staging") {
			t.Errorf("%s: want it written out once, got %q", name, written)
		}
	}
}

func TestADiskThatDoesNotAnswerHoldsNobodyBeyondTheDeadlineAndKeepsItsMount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		must(t, os.MkdirAll(b.place("staging"), 0o750))
		answers := make(chan struct{})
		var asked atomic.Int32
		b.syncfs = func(string) error {
			asked.Add(1)
			<-answers
			return nil
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			err := b.Unstage(ctx, vol, b.place("staging"))
			wantKind(t, err, volume.DeadlineExceeded, b.place("staging"), "not unmounted yet")
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Error("want the answer before the deadline")
			}
			cancel()
		}
		if n := asked.Load(); n != 1 || len(b.mounter.table) != 1 {
			t.Errorf("want one call to wait for the disk, and the mount there, got %d, %v", n, b.mounter.table)
		}
		close(answers)
		synctest.Wait()
		if err := b.Unstage(t.Context(), vol, b.place("staging")); err != nil || len(b.mounter.table) != 0 {
			t.Errorf("want it unstaged when the disk answers, got %v, %v", err, b.mounter.table)
		}
	})
}
