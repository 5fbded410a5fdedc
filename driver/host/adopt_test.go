package host

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// asUpstream stages and publishes the disk as upstream's plugin does: mounted by a link in by-id, with upstream's
// options, bound to the pod's directory.
func asUpstream(t *testing.T, m *testenv.Machine, disk, fsType string) (staging, pod string) {
	t.Helper()
	link := filepath.Join(m.Dev, "disk", "by-id", "virtio-"+serial)
	staging, pod = m.Path("plugins", "kubernetes.io", "csi", "cinder.csi.openstack.org", "0123", "globalmount"), m.Path("pods", "1", "volumes", "kubernetes.io~csi", "pv", "mount")
	for _, dir := range []string{filepath.Dir(link), staging, pod} {
		must(t, os.MkdirAll(dir, 0o750))
	}
	must(t, os.Symlink(disk, link))
	options := "defaults"
	if fsType == "xfs" {
		options = "defaults,nouuid"
	}
	testenv.Run(t, "mkfs."+fsType, "-q", disk)
	testenv.Run(t, "mount", "-t", fsType, "-o", options, link, staging)
	testenv.Run(t, "mount", "-o", "bind,rw", staging, pod)
	return staging, pod
}

func TestAVolumeStagedByUpstreamIsAdoptedWhileAFileIsOpen(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			h, m, disk := realHost(t, 400<<20)
			staging, pod := asUpstream(t, m, disk, fsType)
			held, err := os.Create(filepath.Join(pod, "held"))
			must(t, err)
			_, err = held.WriteString("before, ")
			must(t, err)
			before, err := h.mounts.Table()
			must(t, err)

			for range 2 {
				stage(t, h, StageSpec{Path: staging, FSType: fsType})
				must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: pod}))
			}
			second := m.Path("pods", "2", "mount")
			must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: second}))
			if fsType != "ext4" { // whose growth needs a right that sandboxes withhold
				testenv.GrowLoop(t, disk, 800<<20)
				_, err = h.Expand(t.Context(), ExpandSpec{Volume: vol, Path: staging, Size: 800 << 20})
				must(t, err)
			}
			if issues, err := h.Health(t.Context(), vol, staging, pod); err != nil || len(issues) > 0 {
				t.Errorf("want nothing wrong, got %v, %v", issues, err)
			}
			after, err := h.mounts.Table()
			must(t, err)
			for _, path := range []string{staging, pod} {
				was, _ := before.At(path)
				if is, _ := after.At(path); is.ID != was.ID {
					t.Errorf("%s: want the mount of before, %d, got %d", path, was.ID, is.ID)
				}
			}
			_, err = held.WriteString("after")
			must(t, err)
			must(t, held.Close())
			if got, _ := os.ReadFile(filepath.Join(second, "held")); string(got) != "before, after" {
				t.Errorf("want what was written before and after, got %q", got)
			}
			must(t, h.Unpublish(t.Context(), pod))
			must(t, h.Unpublish(t.Context(), second))
			must(t, h.Unstage(t.Context(), vol, staging))
			if n := countMounts(t, h, m); n != 0 {
				t.Errorf("want no mount left, got %d", n)
			}
		})
	}
}

// The way back. Upstream's plugin reads whether the path is a mount point and which device is there (findmnt). It
// unmounts it with mount-utils.
func TestUpstreamCanAdoptWhatThisDriverMounted(t *testing.T) {
	h, m, disk := realHost(t, 64<<20)
	staging, pod, device := m.Path("globalmount"), m.Path("pods", "1", "mount"), m.Path(blockTargets, "1")
	stage(t, h, StageSpec{Path: staging})
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: pod}))
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: device}))
	held, err := os.Create(filepath.Join(pod, "held"))
	must(t, err)
	upstream := mountutils.New("")
	for _, path := range []string{staging, pod} {
		if not, err := upstream.IsLikelyNotMountPoint(path); not || err != nil {
			t.Errorf("%s: want a mount point, so that upstream mounts nothing over it, got %t, %v", path, !not, err)
		}
		source := strings.TrimSpace(testenv.Run(t, "findmnt", "-o", "source", "--first-only", "--noheadings", "--target", path))
		if source, err = filepath.EvalSymlinks(source); source != disk || err != nil {
			t.Errorf("%s: want device %s, got %s, %v", path, disk, source, err)
		}
	}
	must(t, held.Close())
	for _, path := range []string{device, pod, staging} {
		must(t, mountutils.CleanupMountPoint(path, upstream, true))
	}
	if n := countMounts(t, h, m); n != 0 {
		t.Errorf("want no mount left, got %d", n)
	}
}

func TestStackedBlockTargetsOfUpstreamAreUnmountedTogether(t *testing.T) {
	h, m, disk := realHost(t, 8<<20)
	target := m.Path("dev", "pod")
	must(t, os.MkdirAll(filepath.Dir(target), 0o750))
	must(t, os.WriteFile(target, nil, 0o600))
	for range 3 { // upstream's plugin stacks a mount at each call
		testenv.Run(t, "mount", "-o", "bind", disk, target)
	}
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: target}))
	if n := countMounts(t, h, m); n != 3 {
		t.Errorf("want no further mount, got %d", n)
	}
	must(t, h.Unpublish(t.Context(), target))
	if n := countMounts(t, h, m); n != 0 {
		t.Errorf("want every mount gone, got %d", n)
	}
}

// blockTargets is where kubelet has block volumes published.
const blockTargets = "plugins/kubernetes.io/csi/volumeDevices/publish/pv"

func TestAnAccessModeForASingleTargetAllowsOne(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	staging := m.Path("plugins", "0123", "globalmount")
	stage(t, h, StageSpec{Path: staging})
	first := PublishSpec{Volume: vol, Staging: staging, Target: m.Path("pods", "1", "mount"), SingleTarget: true}
	second := first
	second.Target = m.Path("pods", "2", "mount")
	for range 2 {
		must(t, h.Publish(t.Context(), first))
	}
	wantKind(t, h.Publish(t.Context(), second), volume.Conflict, first.Target)
	if _, err := os.Lstat(second.Target); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("want nothing made, got %v", err)
	}
	second.SingleTarget = false
	must(t, h.Publish(t.Context(), second)) // a mode for several
	must(t, h.Unpublish(t.Context(), second.Target))
	must(t, h.Unpublish(t.Context(), first.Target))
	second.SingleTarget = true
	must(t, h.Publish(t.Context(), second))
	must(t, h.Unpublish(t.Context(), second.Target))
	must(t, h.Unstage(t.Context(), vol, staging))

	first.Target, second.Target = m.Path(blockTargets, "1"), m.Path(blockTargets, "2")
	for range 2 {
		must(t, h.PublishBlock(t.Context(), first))
	}
	wantKind(t, h.PublishBlock(t.Context(), second), volume.Conflict, first.Target)
	must(t, h.Unpublish(t.Context(), first.Target))
	must(t, h.PublishBlock(t.Context(), second))
}

func TestAVolumeInUseIsNotUnstaged(t *testing.T) {
	h, m, _ := realHost(t, 64<<20)
	staging, pod, device := m.Path("staging"), m.Path("pods", "1", "mount"), m.Path(blockTargets, "1")
	stage(t, h, StageSpec{Path: staging})
	must(t, h.Publish(t.Context(), PublishSpec{Volume: vol, Staging: staging, Target: pod}))
	wantKind(t, h.Unstage(t.Context(), vol, staging), volume.Busy, pod)
	must(t, h.Unpublish(t.Context(), pod))
	must(t, h.Unstage(t.Context(), vol, staging))
	must(t, h.PublishBlock(t.Context(), PublishSpec{Volume: vol, Target: device}))
	wantKind(t, h.Unstage(t.Context(), vol, staging), volume.Busy, device)
	must(t, h.Unpublish(t.Context(), device))
	must(t, h.Unstage(t.Context(), vol, staging))
	must(t, h.Unstage(t.Context(), "no volume", staging))
}

func TestAFileSystemThatWasShutDownIsReportedAndUnstaged(t *testing.T) {
	h, m, _ := realHost(t, 400<<20)
	staging := m.Path("staging")
	stage(t, h, StageSpec{Path: staging, FSType: "xfs"})
	dir, err := os.Open(staging)
	must(t, err)
	const goingDown, noLog = 0x8004587D, 2 // XFS_IOC_GOINGDOWN, XFS_FSOP_GOING_FLAGS_NOLOGFLUSH
	err = unix.IoctlSetPointerInt(int(dir.Fd()), goingDown, noLog)
	must(t, errors.Join(err, dir.Close()))
	issues, err := h.Health(t.Context(), vol, staging)
	if err != nil || len(issues) != 1 || issues[0].Severity != volume.Inaccessible || issues[0].Reason != "InputOutputError" {
		t.Errorf("want the input and output errors reported, got %+v, %v", issues, err)
	}
	must(t, h.Unstage(t.Context(), vol, staging)) // it can be written out no more, and must not stay
}
