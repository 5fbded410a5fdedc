package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func Test18GrowWaitsForTheDiskAndThenGrowsTheFileSystem(t *testing.T) {
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
		size, err := b.Grow(t.Context(), Growth{Volume: vol, Path: b.place("staging"), Size: volume.GiB(2)})
		if err != nil || size != volume.GiB(2) {
			t.Fatalf("want 2 GiB, got %s, %v", size, err)
		}
		if diff := cmp.Diff([]string{"resize2fs " + filepath.Join(b.Dev, "vdb")}, b.tools.ran); diff != "" {
			t.Errorf("programs (-want +got):\n%s", diff)
		}
	})
}

func Test18GrowSaysWhenTheDiskDidNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		b.Sysfs(t, "vdb", map[string]string{"device/rescan": ""})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := b.Grow(ctx, Growth{Volume: vol, Path: b.place("staging"), Size: volume.GiB(2)})
		wantKind(t, err, volume.DeadlineExceeded, "16777216 bytes", "2 GiB")
		if len(b.tools.ran) > 0 {
			t.Errorf("want nothing grown, got %q", b.tools.ran)
		}
		if text, _ := os.ReadFile(filepath.Join(b.Sys, "block/vdb/device/rescan")); string(text) != "1" {
			t.Errorf("want the disk asked for its size, got %q", text)
		}
	})
}

func TestGrowNeverTouchesAFileSystemThatIsNotTheVolumes(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	b.mounter.add(Mount{Device: Number{254, 32}, Path: b.place("other"), FSType: "ext4", Source: "/dev/vdc", Options: []string{"rw"}})
	if err := os.MkdirAll(b.place("other"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.mounter.add(Mount{Device: Number{254, 16}, Path: b.place("ro"), FSType: "ext4", Source: "/dev/vdb", Options: []string{"ro"}})
	for path, kind := range map[string]volume.Kind{"nothing": volume.NotFound, "staging/below": volume.NotFound, "other": volume.Conflict, "ro": volume.Conflict} {
		if _, err := b.Grow(t.Context(), Growth{Volume: vol, Path: b.place(path)}); !volume.Is(err, kind) {
			t.Errorf("%s: want %s, got %v", path, kind, err)
		}
	}
	if len(b.tools.ran) > 0 {
		t.Errorf("want nothing run, got %q", b.tools.ran)
	}
}

func FuzzSuperblocks(f *testing.F) {
	ext := make([]byte, superSize)
	copy(ext[4:], []byte{0, 0, 1, 0})
	copy(ext[24:], []byte{2, 0, 0, 0})
	copy(ext[56:], []byte{0x53, 0xEF})
	btrfs := make([]byte, superSize)
	copy(btrfs[0x40:], "_BHRfS_M")
	copy(btrfs[0x70:], []byte{0, 0, 0, 0x20})
	f.Add(ext)
	f.Add(btrfs)
	f.Add(append([]byte("XFSB"), make([]byte, superSize)...))
	f.Fuzz(func(t *testing.T, super []byte) {
		super = append(super, make([]byte, superSize)...)[:superSize]
		disk := bytes.NewReader(slices.Concat(make([]byte, extSuper), super, super)) // and whatever it says, nothing beyond the disk is an error
		if _, err := extReaches(disk); err != nil {
			t.Error(err)
		}
		if _, err := btrfsReaches(bytes.NewReader(slices.Concat(make([]byte, btrfsSuper), super))); err != nil {
			t.Error(err)
		}
		tornSuperblock(disk)
		if unfinished, err := xfsUnfinished(bytes.NewReader(super)); unfinished && err != nil {
			t.Error(err)
		}
	})
}

func TestABlockVolumeIsOnlyWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	d := b.plug(t, "vdb", serial, Number{254, 16})
	d.size = volume.GiB(2) - 16<<20 // the LUKS header of an encrypted volume
	size, err := b.Grow(t.Context(), Growth{Volume: vol, Path: b.place("anywhere"), Size: volume.GiB(2), Block: true})
	if err != nil || size != volume.GiB(2) || len(b.tools.ran) > 0 {
		t.Errorf("want 2 GiB and nothing run, got %s, %v, %q", size, err, b.tools.ran)
	}
}

func TestStatsAreOfTheVolumeOrOfNothing(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	if err := os.MkdirAll(b.place("staging"), 0o750); err != nil {
		t.Fatal(err)
	}
	s, err := b.Stats(t.Context(), b.place("staging"))
	if err != nil || s.Bytes.Total <= 0 || s.Inodes.Total < 0 || s.Bytes.Used <= 0 || s.Bytes.Available > s.Bytes.Total {
		t.Errorf("want the numbers of a file system, got %+v, %v", s, err)
	}
	_, err = b.Stats(t.Context(), b.place("staging/below"))
	wantKind(t, err, volume.NotFound, "nothing is mounted")
}

func TestNoVolumeIsAtARelativePath(t *testing.T) {
	t.Parallel()
	b := staged(t, "rw")
	_, err := b.Stats(t.Context(), "some/path")
	wantKind(t, err, volume.NotFound, "not absolute")
	for _, block := range []bool{false, true} {
		_, err = b.Grow(t.Context(), Growth{Volume: vol, Path: "some/path", Block: block})
		wantKind(t, err, volume.NotFound, "not absolute")
	}
}

func TestAFileSystemThatDoesNotAnswerHoldsOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		answer, asked := make(chan struct{}), 0
		b.stat = func(string) (Stats, error) { asked++; <-answer; return Stats{}, errors.New("late") }
		began := time.Now()
		for _, wait := range []time.Duration{statLimit, 0} {
			_, err := b.Stats(t.Context(), b.place("staging"))
			wantKind(t, err, volume.Unavailable, "not answered within 10s, asked at "+began.Format(time.RFC3339))
			if took := time.Since(began); took != statLimit {
				t.Errorf("want an answer after %s, got it %s after the question", wait, took)
			}
		}
		close(answer)
		synctest.Wait()
		if _, err := b.Stats(t.Context(), b.place("staging")); err == nil || err.Error() != "late" || asked != 2 {
			t.Errorf("want a new question after the late answer, got %v after %d questions", err, asked)
		}
	})
}

// kubelet asks for the numbers and for the health of a volume in the same moment.
func TestWhoAsksAtTheSameTimeGetsTheSameAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		asked := 0
		b.stat = func(string) (Stats, error) {
			asked++
			time.Sleep(time.Second) // virtual
			return Stats{Bytes: Usage{Total: 7}}, nil
		}
		go func() { _, _ = b.Stats(t.Context(), b.place("staging")) }()
		synctest.Wait()
		if ailments, err := b.Health(t.Context(), vol, b.place("staging")); err != nil || len(ailments) > 0 {
			t.Errorf("want nothing wrong, got %+v, %v", ailments, err)
		}
		if s, err := b.Stats(t.Context(), b.place("staging")+"/"); err != nil || s.Bytes.Total != 7 || asked != 2 {
			t.Errorf("want the numbers, and one question for the first two, got %+v, %v after %d questions", s, err, asked)
		}
	})
}
