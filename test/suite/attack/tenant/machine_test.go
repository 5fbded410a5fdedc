package tenant

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/node"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The volumes of two tenants on one node.
const (
	victim   = "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b"
	attacker = "b7e2d8c4-19f3-4a6e-9d21-5f0c6d1e8b7a"
)

// tenants is a node with a disk of each tenant and the node service of the driver.
type tenants struct {
	*testenv.Machine
	*node.Server

	disks map[string]string // the device node of each volume's disk
}

func newTenants(t *testing.T, bytes int64) *tenants {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedTools(t, "mkfs.ext4", "e2fsprogs", "tune2fs", "e2fsprogs", "mkfs.xfs", "xfsprogs", "mkfs.btrfs", "btrfs-progs", "blkid", "util-linux", "fsck.ext4", "e2fsprogs")
	m := testenv.NewMachine(t)
	n := &tenants{Machine: m, disks: map[string]string{victim: testenv.Loop(t, bytes), attacker: testenv.Loop(t, bytes)}}
	m.Plug(t, "vdb", victim[:20], n.disks[victim])
	m.Plug(t, "vdc", attacker[:20], n.disks[attacker])
	testenv.Must(t, os.Symlink("/dev/btrfs-control", filepath.Join(m.Dev, "btrfs-control")))
	log := slog.New(slog.DiscardHandler)
	n.Server = node.New(host.New(host.Options{SysRoot: m.Sys, DevRoot: m.Dev, Log: log}), node.Options{Log: log})
	return n
}

// kubelet returns a path below the kubelet directory.
func (n *tenants) kubelet(elements ...string) string {
	return n.Path(append([]string{"kubelet"}, elements...)...)
}

// claim is the use of a volume by a pod, with the paths of kubelet.
type claim struct {
	volume, pod string
	block       bool
	fsType      string
	flags       []string
}

func (c claim) capability() *csi.VolumeCapability {
	// The access mode that kubelet sends for ReadWriteOncePod.
	mode := &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER}
	if c.block {
		return &csi.VolumeCapability{AccessMode: mode, AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	}
	mount := &csi.VolumeCapability_MountVolume{FsType: c.fsType, MountFlags: c.flags}
	return &csi.VolumeCapability{AccessMode: mode, AccessType: &csi.VolumeCapability_Mount{Mount: mount}}
}

// staging and target are kubelet's paths (Kubernetes, pkg/volume/csi, csi_mounter.go and csi_block.go).
func (n *tenants) staging(c claim) string {
	if c.block {
		return n.kubelet("plugins", "kubernetes.io", "csi", "volumeDevices", "staging", "pv-"+c.volume)
	}
	return n.kubelet("plugins", "kubernetes.io", "csi", "cinder.csi.openstack.org", fmt.Sprintf("%x", sha256.Sum256([]byte(c.volume))), "globalmount")
}

func (n *tenants) target(c claim) string {
	if c.block {
		return n.kubelet("plugins", "kubernetes.io", "csi", "volumeDevices", "publish", "pv-"+c.volume, c.pod)
	}
	return n.kubelet("pods", c.pod, "volumes", "kubernetes.io~csi", "pv-"+c.volume, "mount")
}

func (n *tenants) stage(t *testing.T, c claim) error {
	t.Helper()
	_, err := n.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: c.volume, StagingTargetPath: n.staging(c), VolumeCapability: c.capability()})
	return err
}

func (n *tenants) publish(t *testing.T, c claim) error {
	t.Helper()
	testenv.Must(t, os.MkdirAll(filepath.Dir(n.target(c)), 0o750))
	_, err := n.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: c.volume, StagingTargetPath: n.staging(c), TargetPath: n.target(c), VolumeCapability: c.capability(),
	})
	return err
}

func (n *tenants) unpublish(t *testing.T, c claim) error {
	t.Helper()
	_, err := n.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: c.volume, TargetPath: n.target(c)})
	return err
}

func (n *tenants) unstage(t *testing.T, c claim) error {
	t.Helper()
	_, err := n.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: c.volume, StagingTargetPath: n.staging(c)})
	return err
}

// lives stages, publishes, unpublishes and unstages a volume for one pod. Each step must succeed whatever the other tenant does.
func (n *tenants) lives(t *testing.T, c claim) {
	t.Helper()
	for _, step := range []struct {
		name string
		call func(*testing.T, claim) error
	}{{"stage", n.stage}, {"publish", n.publish}, {"unpublish", n.unpublish}, {"unstage", n.unstage}} {
		if err := step.call(t, c); err != nil {
			t.Errorf("%s: want success, got %v", step.name, err)
		}
	}
}

// refused stages the volume. It wants an error with the words, no mount, and no change of any disk.
func (n *tenants) refused(t *testing.T, c claim, words string) {
	t.Helper()
	before := map[string][sha256.Size]byte{}
	for id, disk := range n.disks {
		before[id] = sum(t, disk)
	}
	err := n.stage(t, c)
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("want a refusal that says %q, got %v", words, err)
	}
	mounts, readErr := os.ReadFile(filepath.Join("/proc", "self", "mountinfo"))
	must(t, readErr)
	if strings.Contains(string(mounts), n.staging(c)) {
		t.Error("want nothing mounted")
	}
	for id, disk := range n.disks {
		if sum(t, disk) != before[id] {
			t.Errorf("want every byte of volume %s as it was", id)
		}
		if err := alone(disk); err != nil {
			t.Errorf("want the disk of volume %s free, got %v", id, err)
		}
	}
}

// alone opens a disk as mount does: the kernel refuses that while the disk is in use.
func alone(disk string) error {
	fd, err := unix.Open(disk, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func sum(t *testing.T, disk string) [sha256.Size]byte {
	t.Helper()
	f, err := os.Open(disk)
	must(t, err)
	hash := sha256.New()
	_, err = io.Copy(hash, f)
	must(t, errors.Join(err, f.Close()))
	return [sha256.Size]byte(hash.Sum(nil))
}

// patch writes bytes at an offset of a disk.
func patch(t *testing.T, disk string, at int64, content []byte) {
	t.Helper()
	f, err := os.OpenFile(disk, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(content, at)
	must(t, errors.Join(err, f.Sync(), f.Close()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
