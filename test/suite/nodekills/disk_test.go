package nodekills

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// stats asks how full the volume is, as kubelet does each minute (pkg/volume/csi/csi_metrics.go).
func (k *kubelet) stats(t *testing.T, pod string) (*csi.NodeGetVolumeStatsResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	return k.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: volumeID, VolumePath: k.target(pod), StagingTargetPath: k.staging()})
}

// conditions are the reasons that the driver gives for a volume that is not healthy.
func (k *kubelet) conditions(t *testing.T, pod string) (reasons []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	r, err := k.NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: volumeID, StagingTargetPath: k.staging(), VolumePublishPath: k.target(pod)})
	must(t, "ask for the volume's health", err)
	for _, s := range r.GetVolumeHealth().GetHealthStatuses() {
		reasons = append(reasons, s.GetStatus().String()+" "+s.GetReason())
	}
	slices.Sort(reasons)
	return reasons
}

// use stages and publishes the volume and writes to it.
func (l *lifecycle) use(t *testing.T, pod string) {
	t.Helper()
	untilOK(t, "stage", 0, l.stage)
	untilOK(t, "publish", 0, func(ctx context.Context) error { return l.publish(ctx, pod, false) })
	l.write(t, pod)
}

// release unpublishes and unstages the volume.
func (l *lifecycle) release(t *testing.T, pods ...string) {
	t.Helper()
	for _, pod := range pods {
		untilOK(t, "unpublish", 0, func(ctx context.Context) error { return l.unpublish(ctx, pod) })
	}
	untilOK(t, "unstage", 0, l.unstage)
	l.wantNothingLeft(t)
}

// fill writes until the file system takes nothing more.
func fill(t *testing.T, dir string) {
	t.Helper()
	for size := 1 << 20; size >= 1<<10; size >>= 5 { // what is left at last takes small pieces only
		f, err := os.OpenFile(filepath.Join(dir, "fill"), os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_SYNC, 0o600)
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("want the file system to run full, got %v", err)
		}
		_ = f.Close()
	}
}

func TestAFullVolumeIsServedGrownAndReleased(t *testing.T) {
	testenv.NeedRoot(t)
	for _, k := range kinds[:3] {
		if k.fsType != "xfs" && !testenv.Full() && !*ci {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			l := newLifecycle(t, k)
			l.use(t, "pod-1")
			fill(t, l.target("pod-1"))
			usage, err := l.stats(t, "pod-1")
			must(t, "ask how full the volume is", err)
			if bytes := usage.GetUsage()[0]; bytes.GetAvailable() > bytes.GetTotal()/50 || bytes.GetUsed() < bytes.GetTotal()*3/4 {
				t.Errorf("want it full, got %v", bytes)
			}
			if got := l.conditions(t, "pod-1"); len(got) != 0 {
				t.Errorf("a full volume is healthy, got %v", got)
			}
			untilOK(t, "stage again", 0, l.stage)
			untilOK(t, "publish to a second pod", 0, func(ctx context.Context) error { return l.publish(ctx, "pod-2", false) })
			l.read(t, "pod-2")
			l.release(t, "pod-1", "pod-2")

			untilOK(t, "stage a full volume", 0, l.stage)
			untilOK(t, "publish a full volume", 0, func(ctx context.Context) error { return l.publish(ctx, "pod-1", false) })
			l.read(t, "pod-1")
			if k.fsType != "ext4" || mayGrowExt4() {
				l.growDisk(t)
				untilOK(t, "expand a full volume", 0, func(ctx context.Context) error { return l.expand(ctx, "pod-1", largeBytes) })
				l.wantGrown(t)
				must(t, "write to the grown volume", os.WriteFile(filepath.Join(l.target("pod-1"), "more"), make([]byte, 1<<20), 0o600))
			}
			l.read(t, "pod-1")
			l.release(t, "pod-1")
		})
	}
}

func TestAFileSystemThatTurnedReadOnlyIsReportedReleasedAndRepaired(t *testing.T) {
	testenv.NeedRoot(t)
	l := newLifecycle(t, kindNamed("ext4"))
	untilOK(t, "stage", 0, l.stage)
	untilOK(t, "unstage", 0, l.unstage)
	testenv.Run(t, "tune2fs", "-e", "remount-ro", l.disk) // whatever the driver mounts with
	loop := filepath.Base(l.disk)
	sys := filepath.Join(l.Sys, "fs", "ext4")
	must(t, "show ext4's counters", errors.Join(os.MkdirAll(sys, 0o755), os.Symlink("/sys/fs/ext4/"+loop, filepath.Join(sys, "vdb"))))
	l.before = l.tree(t)
	l.use(t, "pod-1")
	must(t, "let ext4 find an error", os.WriteFile("/sys/fs/ext4/"+loop+"/trigger_fs_error", []byte("test"), 0))
	if err := os.WriteFile(filepath.Join(l.target("pod-1"), "more"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Fatalf("want the file system read-only, got %v", err)
	}

	if _, err := l.stats(t, "pod-1"); err != nil {
		t.Errorf("want statistics of a read-only file system, got %v", err)
	}
	want := []string{"DEGRADED FileSystemErrors", "DEGRADED FileSystemReadOnly"}
	if got := l.conditions(t, "pod-1"); !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
	l.growDisk(t)
	for what, call := range map[string]func(ctx context.Context) error{
		"stage again":             l.stage,
		"publish to a second pod": func(ctx context.Context) error { return l.publish(ctx, "pod-2", false) },
		"expand":                  func(ctx context.Context) error { return l.expand(ctx, "pod-1", largeBytes) },
	} {
		if err := once(t, call); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "Stop the pods") {
			t.Errorf("%s: want an error that is not final and names the remedy, got %v", what, err)
		}
	}
	untilOK(t, "publish to a reader", 0, func(ctx context.Context) error { return l.publish(ctx, "pod-2", true) })
	l.read(t, "pod-2")
	l.release(t, "pod-1", "pod-2")

	untilOK(t, "stage, with a check", 0, l.stage)
	untilOK(t, "publish", 0, func(ctx context.Context) error { return l.publish(ctx, "pod-1", false) })
	l.read(t, "pod-1")
	must(t, "write to the repaired file system", os.WriteFile(filepath.Join(l.target("pod-1"), "more"), nil, 0o600))
	if got := l.conditions(t, "pod-1"); len(got) != 0 {
		t.Errorf("want it healthy, got %v", got)
	}
	l.release(t, "pod-1")
}

// XFS has no read-only state after an error: it shuts down, and every call is an error.
func TestAFileSystemThatShutDownIsReportedReleasedAndRecovered(t *testing.T) {
	testenv.NeedRoot(t)
	l := newLifecycle(t, kindNamed("xfs"))
	l.use(t, "pod-1")
	l.loosePower(t)
	if _, err := l.stats(t, "pod-1"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("want an error that says that the volume must be mounted again, got %v", err)
	}
	if got := l.conditions(t, "pod-1"); !slices.Equal(got, []string{"INACCESSIBLE InputOutputError"}) {
		t.Errorf("want the volume reported as inaccessible, got %v", got)
	}
	l.release(t, "pod-1")
	untilOK(t, "stage", 0, l.stage)
	untilOK(t, "publish", 0, func(ctx context.Context) error { return l.publish(ctx, "pod-1", false) })
	l.read(t, "pod-1")
	l.release(t, "pod-1")
}
