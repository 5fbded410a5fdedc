package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// refusals are the ways in which a mount that is writable takes no writes.
var refusals = map[string]struct {
	make    func(b *fakeHost)
	fsTypes []string // all if nil
	says    string
	unread  bool   // a reader is not served either
	reason  string // of statistics and health; none if the kernel shows nothing unless it is asked for a write
}{
	"read-only after an error": {
		make: superOptions("ro"), says: "made the file system read-only after an error", reason: "FileSystemReadOnly",
	},
	"read-only after an error, from Linux 6.14 on": {
		make: superOptions("rw", "emergency_ro"), fsTypes: []string{"ext4", "ext3", "ext2"}, says: "made the file system read-only after an error", reason: "FileSystemReadOnly",
	},
	"read-only after an error, between": {
		make: func(b *fakeHost) {
			dir := filepath.Join(b.Sys, "fs", "ext4", "vdb")
			must(b.t, os.MkdirAll(dir, 0o755))
			must(b.t, os.WriteFile(filepath.Join(dir, "errors_count"), []byte("1\n"), 0o600))
			b.kernel.write = func(string) error { return unix.EROFS }
		}, fsTypes: []string{"ext4", "ext3", "ext2"}, says: "read-only file system", reason: "FileSystemErrors",
	},
	"shut down": {
		make: func(b *fakeHost) {
			b.kernel.write = func(string) error { return unix.EIO }
			b.kernel.stat = func(path string) (Stats, error) {
				return Stats{}, volume.Errorf(volume.Failed, "stat %s: %w", path, unix.EIO)
			}
		}, fsTypes: []string{"xfs"}, says: "input/output error", unread: true, reason: "InputOutputError",
	},
	"a write-protected disk": {
		make: func(b *fakeHost) { b.Sysfs(b.t, "vdb", map[string]string{"ro": "1\n"}) }, says: "write-protected", reason: "FileSystemReadOnly",
	},
	"a disk that does not answer": {
		make: func(b *fakeHost) {
			_, answer := hungBackend(b)
			b.t.Cleanup(answer)
		}, says: "has completed no request since", unread: true, reason: "NotResponding",
	},
	"frozen": {
		make: func(b *fakeHost) {
			thawed := make(chan struct{})
			b.kernel.write = func(string) error { <-thawed; return nil }
			b.t.Cleanup(func() { close(thawed) })
		}, says: "frozen (fsfreeze)",
	},
}

func superOptions(options ...string) func(*fakeHost) {
	return func(b *fakeHost) {
		b.mounter.table[0].SuperOptions = options
		b.mounter.write()
	}
}

// Each of them hands a mount to a writer, or starts a program that writes.
var writers = map[string]func(ctx context.Context, b *fakeHost) error{
	"repeated stage": func(ctx context.Context, b *fakeHost) error {
		return b.Stage(ctx, StageSpec{Volume: vol, Path: b.kubelet("staging")})
	},
	"repeated stage of a volume from a source": func(ctx context.Context, b *fakeHost) error {
		return b.Stage(ctx, StageSpec{Volume: vol, Path: b.kubelet("staging"), FromSource: true})
	},
	"publish": func(ctx context.Context, b *fakeHost) error {
		return b.Publish(ctx, PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("pod")})
	},
	"expand": func(ctx context.Context, b *fakeHost) error {
		_, err := b.Expand(ctx, ExpandSpec{Volume: vol, Path: b.kubelet("staging")})
		return err
	},
}

// onRefusal runs a test in each state of refusals, on each file system that knows it.
func onRefusal(t *testing.T, test func(t *testing.T, b *fakeHost, state string)) {
	for state, r := range refusals {
		for _, fsType := range []string{"ext4", "ext3", "ext2", "xfs", "btrfs"} {
			if r.fsTypes != nil && !slices.Contains(r.fsTypes, fsType) {
				continue
			}
			t.Run(state+"/"+fsType, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newFakeHost(t)
					b.plug(t, "vdb", serial, num(254, 16))
					must(t, os.MkdirAll(b.Dev, 0o755))
					e := Entry{Device: num(254, 16), Path: b.kubelet("staging"), FSType: fsType, Source: "/dev/vdb", Options: []string{"rw"}}
					if fsType == "btrfs" {
						e.Device, e.Source = num(0, 42), deviceNode(t, b)
					}
					b.mounter.add(e)
					b.kernel.stat = func(string) (Stats, error) { return Stats{}, nil }
					r.make(b)
					test(t, b, state)
				})
			})
		}
	}
}

// deviceNode makes the device node of vdb. A btrfs is found by the node in the mount table, and a block volume by the node at its target.
func deviceNode(t *testing.T, b *fakeHost) string {
	t.Helper()
	testenv.NeedRoot(t)
	node := filepath.Join(b.Dev, "vdb")
	must(t, unix.Mknod(node, unix.S_IFBLK|0o600, int(unix.Mkdev(254, 16))))
	return node
}

func TestAMountThatTakesNoWritesIsGivenToNoWriter(t *testing.T) {
	onRefusal(t, func(t *testing.T, b *fakeHost, state string) {
		for name, write := range writers {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := write(ctx, b)
			cancel()
			if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), refusals[state].says) {
				t.Errorf("%s: want %q and an error that is not final, got %v (%s)", name, refusals[state].says, err, volume.KindOf(err))
			}
		}
		if ran := b.tools.changed(); len(ran) > 0 {
			t.Errorf("want no program run, got %q", ran)
		}
		if len(b.mounter.table) != 1 {
			t.Errorf("want nothing bound, got %v", b.mounter.table)
		}
	})
}

func TestAReaderIsServedForAsLongAsTheFileSystemCanBeRead(t *testing.T) {
	onRefusal(t, func(t *testing.T, b *fakeHost, state string) {
		err := b.Publish(t.Context(), PublishSpec{Volume: vol, Staging: b.kubelet("staging"), Target: b.kubelet("reader"), ReadOnly: true})
		if unread := refusals[state].unread; (err != nil) != unread || unread && !volume.Is(err, volume.Unavailable) {
			t.Errorf("want a reader refused: %t, got %v", unread, err)
		}
	})
}

func TestStatisticsAndHealthReportAMountThatTakesNoWrites(t *testing.T) {
	onRefusal(t, func(t *testing.T, b *fakeHost, state string) {
		want := refusals[state].reason
		issues, err := b.Health(t.Context(), vol, b.kubelet("staging"))
		must(t, err)
		if got := slices.ContainsFunc(issues, func(i volume.HealthIssue) bool { return i.Reason == want }); got != (want != "") {
			t.Errorf("health: want %q, got %+v", want, issues)
		}
		stats, err := b.Stats(t.Context(), b.kubelet("staging"))
		if err != nil {
			return // reported as an error
		}
		if got := slices.ContainsFunc(stats.Issues, func(i volume.HealthIssue) bool { return i.Reason == want }); got != (want != "") {
			t.Errorf("statistics: want %q, got %+v", want, stats.Issues)
		}
	})
}

// A write may wait although the one before went through: a hook freezes the file system while it grows.
func TestAGrowthThatWaitsHoldsNothingThatUnstageNeeds(t *testing.T) {
	for _, by := range []string{"expand", "repeated stage of a volume from a source"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := staged(t, "rw")
				thawed := make(chan struct{})
				grown := 0
				b.tools.during = func(string) { <-thawed; time.Sleep(time.Second); grown++ }
				b.kernel.thaw = func(string) (bool, error) { close(thawed); return true, nil }
				began := time.Now()
				for range 2 { // the second joins the growth that waits
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					wantKind(t, writers[by](ctx, b), volume.DeadlineExceeded, "has waited since "+began.Format(time.RFC3339), "frozen")
					cancel()
				}
				if took := time.Since(began); took != 2*58*time.Second {
					t.Errorf("want both answers two seconds before their deadlines, got them after %s", took)
				}
				synctest.Wait() // the growth waits
				if n := len(b.tools.ran); n != 1 {
					t.Errorf("want one program for all callers, got %q", b.tools.ran)
				}
				must(t, b.Unstage(t.Context(), vol, b.kubelet("staging")))
				if grown != 1 || len(b.mounter.table) > 0 {
					t.Errorf("want the file system thawed, grown and unmounted, got %d growths, %v", grown, b.mounter.table)
				}
			})
		})
	}
}

func TestAVolumeIsGrownAgainToTheSizeThatItGotMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, "rw")
		thawed := make(chan struct{})
		b.tools.during = func(string) { <-thawed }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantKind(t, writers["expand"](ctx, b), volume.DeadlineExceeded)
		time.AfterFunc(time.Second, func() { close(thawed) })
		must(t, writers["expand"](t.Context(), b))
		if n := len(b.tools.ran); n != 2 {
			t.Errorf("want a growth that began after the call, got %q", b.tools.ran)
		}
	})
}

// With the kernel: fsfreeze before the growth, and the pod is deleted.
func TestGrowingAFrozenFileSystemEndsAndTheVolumeMoves(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		for by, grow := range map[string]func(ctx context.Context, h *Host, staging string) error{
			"expand": func(ctx context.Context, h *Host, staging string) error {
				_, err := h.Expand(ctx, ExpandSpec{Volume: vol, Path: staging, Size: 800 << 20})
				return err
			},
			"stage": func(ctx context.Context, h *Host, staging string) error {
				return h.Stage(ctx, StageSpec{Volume: vol, Path: staging, FSType: fsType, FromSource: true})
			},
		} {
			t.Run(fsType+"/"+by, func(t *testing.T) {
				h, m, disk := realHost(t, 400<<20)
				staging, pod := m.Path("staging"), m.Path("pods", "1", "mount")
				stage(t, h, StageSpec{Path: staging, FSType: fsType})
				must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: pod}))
				testenv.GrowLoop(t, disk, 800<<20)
				testenv.Run(t, "fsfreeze", "--freeze", staging)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				err := grow(ctx, h, staging)
				if err == nil || !strings.Contains(err.Error(), "frozen") {
					testenv.Run(t, "fsfreeze", "--unfreeze", staging)
					t.Fatalf("want an error before the deadline that says that the file system is frozen, got %v", err)
				}
				must(t, h.Unpublish(t.Context(), pod))
				must(t, h.Unstage(t.Context(), vol, staging))
				stage(t, h, StageSpec{Path: staging, FSType: fsType})
				must(t, h.Unstage(t.Context(), vol, staging))
			})
		}
	}
}

// With the kernel: the error of ext4 is that of mount -o remount,abort; XFS is shut down by its own ioctl.
func TestAFileSystemThatTheKernelGaveUpIsGivenToNoWriter(t *testing.T) {
	for fsType, fail := range map[string]func(path string) error{
		"ext4": func(path string) error { return exec.Command("mount", "-o", "remount,abort", path).Run() },
		"xfs":  shutDownXFS,
	} {
		t.Run(fsType, func(t *testing.T) {
			h, m, _ := realHost(t, 400<<20)
			staging := m.Path("staging")
			stage(t, h, StageSpec{Path: staging, FSType: fsType})
			must(t, fail(staging))
			wantKind(t, h.Stage(t.Context(), StageSpec{Volume: vol, Path: staging, FSType: fsType}), volume.Unavailable, stopPods)
			wantKind(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: m.Path("pod")}), volume.Unavailable, stopPods)
			_, err := h.Expand(t.Context(), ExpandSpec{Volume: vol, Path: staging})
			wantKind(t, err, volume.Unavailable, stopPods)
			err = h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: m.Path("reader"), ReadOnly: true})
			if read := fsType == "ext4"; (err == nil) != read {
				t.Errorf("want a reader served: %t, got %v", read, err)
			}
			must(t, h.Unpublish(t.Context(), m.Path("reader")))
			must(t, h.Unstage(t.Context(), vol, staging))
			stage(t, h, StageSpec{Path: staging, FSType: fsType}) // it is checked, or its log replayed
			must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: m.Path("pod")}))
			must(t, os.WriteFile(m.Path("pod", "data"), nil, 0o600))
			must(t, h.Unpublish(t.Context(), m.Path("pod")))
			must(t, h.Unstage(t.Context(), vol, staging))
		})
	}
}

// shutDownXFS is XFS_IOC_GOINGDOWN without a flush of the log (Linux, fs/xfs/libxfs/xfs_fs.h).
func shutDownXFS(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), 0x8004587D, 2)
}

func TestTheWriteThatIsTriedChangesNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, writeNothing(dir))
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("want no file left, got %v, %v", files, err)
	}
	if err := writeNothing(filepath.Join(dir, "nothing")); err == nil {
		t.Error("want the error of a path that does not exist")
	}
}

func TestAFileSystemThatIsFullOrHasAnImmutableRootIsNotBroken(t *testing.T) {
	testenv.NeedRoot(t)
	dir := t.TempDir()
	testenv.Run(t, "mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=2", "none", dir)
	t.Cleanup(func() { testenv.Run(t, "umount", dir) })
	must(t, os.WriteFile(filepath.Join(dir, "the last inode"), nil, 0o600))
	if err := os.WriteFile(filepath.Join(dir, "one more"), nil, 0o600); err == nil {
		t.Fatal("the trap is not set: the file system is not full")
	}
	must(t, writeNothing(dir))

	h, m, _ := realHost(t, 400<<20)
	stage(t, h, StageSpec{Path: m.Path("staging"), FSType: "ext4"})
	testenv.Run(t, "chattr", "+i", m.Path("staging"))
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: m.Path("staging"), Target: m.Path("pod")}))
	must(t, h.Unpublish(t.Context(), m.Path("pod")))
	must(t, h.Unstage(t.Context(), vol, m.Path("staging")))
}
