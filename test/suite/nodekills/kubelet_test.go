package nodekills

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// kubelet calls the driver for one volume as kubelet does. Each rule names the file of Kubernetes that has it.
type kubelet struct {
	*node
	kind
}

// capability is what kubelet makes of a ReadWriteOnce volume (pkg/volume/csi/csi_client.go, NodeStageVolume and
// NodePublishVolume).
func (k *kubelet) capability() *csi.VolumeCapability {
	c := csitest.Single(k.fsType)
	c.AccessMode.Mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	return c
}

// staging is the path of pkg/volume/csi/csi_attacher.go, makeDeviceMountPath, or of csi_block.go, GetStagingPath.
func (k *kubelet) staging() string {
	if k.fsType == "" {
		return k.Path("kubelet", "plugins", "volumeDevices", "staging", "pvc-1")
	}
	return k.Path("kubelet", "plugins", "cinder", "pvc-1", "globalmount")
}

// target is the path of pkg/volume/csi/csi_mounter.go, GetPath, or of csi_block.go, GetPublishPath.
func (k *kubelet) target(pod string) string {
	if k.fsType == "" {
		return k.Path("kubelet", "plugins", "volumeDevices", "publish", "pvc-1", pod)
	}
	return k.Path("kubelet", "pods", pod, "volumes", "pvc-1", "mount")
}

// stage makes the staging directory before each call (pkg/volume/csi/csi_attacher.go, MountDevice; csi_block.go,
// stageVolumeForBlock).
func (k *kubelet) stage(ctx context.Context) error {
	if err := os.MkdirAll(k.staging(), 0o750); err != nil {
		return err
	}
	_, err := k.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: volumeID, StagingTargetPath: k.staging(), VolumeCapability: k.capability()})
	return err
}

// publish makes the directory above the target before each call, and not the target (pkg/volume/csi/csi_mounter.go,
// SetUpAt; csi_block.go, publishVolumeForBlock).
func (k *kubelet) publish(ctx context.Context, pod string, readOnly bool) error {
	if err := os.MkdirAll(filepath.Dir(k.target(pod)), 0o750); err != nil {
		return err
	}
	_, err := k.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: volumeID, StagingTargetPath: k.staging(), TargetPath: k.target(pod), VolumeCapability: k.capability(), Readonly: readOnly,
	})
	return err
}

// expand names the target and the staging path (pkg/volume/csi/expander.go, nodeExpandWithClient).
func (k *kubelet) expand(ctx context.Context, pod string, bytes int64) error {
	r, err := k.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
		VolumeId: volumeID, VolumePath: k.target(pod), StagingTargetPath: k.staging(), VolumeCapability: k.capability(),
		CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
	})
	if err == nil && r.GetCapacityBytes() < bytes {
		return fmt.Errorf("expanded to %d bytes, and %d were asked for", r.GetCapacityBytes(), bytes)
	}
	return err
}

// unpublish lets the driver remove the target, and removes a directory that is left (pkg/volume/csi/csi_mounter.go,
// TearDownAt and removeMountDir). For a raw block volume csi_block.go, UnmapPodDevice, calls and removes nothing.
func (k *kubelet) unpublish(ctx context.Context, pod string) error {
	if _, err := k.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: volumeID, TargetPath: k.target(pod)}); err != nil {
		return err
	}
	return absent(k.target(pod))
}

// unstage removes the staging directory when the driver has unmounted it (pkg/volume/csi/csi_attacher.go,
// UnmountDevice; csi_block.go, cleanupOrphanDeviceFiles).
func (k *kubelet) unstage(ctx context.Context) error {
	if _, err := k.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volumeID, StagingTargetPath: k.staging()}); err != nil {
		return err
	}
	return absent(k.staging())
}

// absent is an error while anything is at path. The CSI specification requires the driver to remove both paths
// ("NodeUnpublishVolume", "NodeUnstageVolume"). kubelet removes them too, so with kubelet nobody would notice a driver
// that leaves them.
func absent(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is still there after success: %v", path, err)
	}
	return nil
}

const (
	// mostRetries is how many retries may fail after a kill until one succeeds. Two: one for what the killed call left,
	// one for a tool that still works on the disk.
	mostRetries = 2
	// callTimeout is how long kubelet waits for an answer (pkg/volume/csi/csi_plugin.go, csiTimeout, is two minutes;
	// nothing here may take half of one).
	callTimeout = 30 * time.Second
)

// untilOK retries until the driver answers with success, as kubelet does after any error. It waits half a second and
// then twice as long each time (pkg/util/goroutinemap/exponentialbackoff/exponential_backoff.go). It gives how many
// calls failed.
func untilOK(t *testing.T, what string, most int, call func(ctx context.Context) error) (failed int) {
	t.Helper()
	return untilOKBeside(t, what, most, call, func() bool { return false })
}

// untilOKBeside does not count the calls that begin while a tool of the killed driver works on the disk.
func untilOKBeside(t *testing.T, what string, most int, call func(ctx context.Context) error, working func() bool) (failed int) {
	t.Helper()
	beside := 0
	for wait := 500 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		excused := working()
		err := once(t, call)
		if err == nil {
			return failed
		}
		t.Logf("%s: %v", what, err)
		if failed-beside == most && !excused {
			t.Fatalf("%s: no success after %d retries: %v", what, most, err)
		}
		failed++
		if excused {
			beside++
		}
		<-time.After(wait)
	}
}

func once(t *testing.T, call func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	return call(ctx)
}
