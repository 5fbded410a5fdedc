package host

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestStatsAreThoseOfTheVolume(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	if err := os.MkdirAll(b.kubelet("staging"), 0o750); err != nil {
		t.Fatal(err)
	}
	s, err := b.Stats(t.Context(), b.kubelet("staging"))
	if err != nil || s.Bytes.Total <= 0 || s.Inodes.Total < 0 || s.Bytes.Used <= 0 || s.Bytes.Available > s.Bytes.Total {
		t.Errorf("want the numbers of a file system, got %+v, %v", s, err)
	}
	_, err = b.Stats(t.Context(), b.kubelet("staging/below"))
	wantKind(t, err, volume.NotFound, "nothing is mounted")
}

func TestARelativePathIsNotFound(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	_, err := b.Stats(t.Context(), "some/path")
	wantKind(t, err, volume.NotFound, "not absolute")
	for _, block := range []bool{false, true} {
		_, err = b.Expand(t.Context(), ExpandSpec{Volume: vol, Path: "some/path", Block: block})
		wantKind(t, err, volume.NotFound, "not absolute")
	}
}

func TestAnUnresponsiveFileSystemBlocksOneThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		answer, asked := make(chan struct{}), 0
		b.kernel.stat = func(string) (Stats, error) { asked++; <-answer; return Stats{}, errors.New("late") }
		began := time.Now()
		for _, wait := range []time.Duration{statsTimeout, 0} {
			_, err := b.Stats(t.Context(), b.kubelet("staging"))
			wantKind(t, err, volume.Unavailable, "not answered within 10s since "+began.Format(time.RFC3339))
			if took := time.Since(began); took != statsTimeout {
				t.Errorf("want an answer after %s, got it %s after the read began", wait, took)
			}
		}
		close(answer)
		synctest.Wait()
		if _, err := b.Stats(t.Context(), b.kubelet("staging")); err == nil || err.Error() != "late" || asked != 2 {
			t.Errorf("want a new read after the late answer, got %v after %d reads", err, asked)
		}
	})
}

// kubelet asks for the usage and for the health of a volume at the same moment.
func TestConcurrentCallersShareOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		asked := 0
		b.kernel.stat = func(string) (Stats, error) {
			asked++
			time.Sleep(time.Second) // virtual
			return Stats{Bytes: Usage{Total: 7}}, nil
		}
		go func() { _, _ = b.Stats(t.Context(), b.kubelet("staging")) }()
		synctest.Wait()
		if issues, err := b.Health(t.Context(), vol, b.kubelet("staging")); err != nil || len(issues) > 0 {
			t.Errorf("want nothing wrong, got %+v, %v", issues, err)
		}
		if s, err := b.Stats(t.Context(), b.kubelet("staging")+"/"); err != nil || s.Bytes.Total != 7 || asked != 2 {
			t.Errorf("want the usage, and one read for the first two callers, got %+v, %v after %d reads", s, err, asked)
		}
	})
}
