package driver_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim/dataplane"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// withDisks runs a driver on server node-az1 of a cloud whose volumes have bytes. At the end of the test no loop device and no
// mount may be left.
func withDisks(t *testing.T, options dataplane.Options) (*instance, *openstacksim.Sim, string) {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedTools(t, "mkfs.ext4", "e2fsprogs", "mkfs.xfs", "xfsprogs", "mkfs.btrfs", "btrfs-progs")
	dir := testenv.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	plane := testenv.Value(dataplane.New(filepath.Join(dir, "disks"), options))(t)
	t.Cleanup(func() {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil || strings.Contains(string(mounts), dir) {
			t.Errorf("want no mount left below %s, got %v\n%s", dir, err, mounts)
			testenv.UnmountBelow(dir)
		}
		if err := plane.Close(); err != nil { // it tells of devices that are still in use
			t.Error(err)
		}
	})
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(5 * time.Millisecond)
	testenv.Must(t, sim.UseDataPlane(plane))
	server := filepath.Join(dir, "disks", "servers", "by-name", "node-az1")
	d := startWith(t, sim, "--config-drive-dir="+filepath.Join(server, "config-drive"), "--sys-root="+filepath.Join(server, "sys"), "--dev-root="+filepath.Join(server, "dev"))
	return d, sim, dir
}

// used is a volume on its way through the node.
type used struct {
	*instance
	id, server, dir string
	capability      *csi.VolumeCapability
	context         map[string]string
}

func capabilityOf(fsType string) *csi.VolumeCapability {
	if fsType == "block" {
		return csitest.Single("")
	}
	return csitest.Mounted(fsType)
}

func newUsed(t *testing.T, d *instance, dir, name, fsType string, gib int64, change ...func(*csi.CreateVolumeRequest)) *used {
	t.Helper()
	server, _ := servers()
	v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim(name, append(change, func(r *csi.CreateVolumeRequest) {
		r.CapacityRange.RequiredBytes, r.VolumeCapabilities = gib<<30, []*csi.VolumeCapability{capabilityOf(fsType)}
	})...))).GetVolume()
	return &used{instance: d, id: v.GetVolumeId(), server: server, dir: filepath.Join(dir, name), capability: capabilityOf(fsType), context: v.GetVolumeContext()}
}

func (u *used) staging() string { return filepath.Join(u.dir, "staging") }

func (u *used) target() string { return filepath.Join(u.dir, "target") }

func (u *used) stage(ctx context.Context) error {
	if err := os.MkdirAll(u.staging(), 0o750); err != nil {
		return err
	}
	return outcome(u.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: u.id, StagingTargetPath: u.staging(), VolumeCapability: u.capability, PublishContext: map[string]string{"DevicePath": "/dev/vdb"}, VolumeContext: u.context,
	}))
}

func (u *used) attach(t *testing.T) {
	t.Helper()
	must[*csi.ControllerPublishVolumeResponse](t)(u.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: u.id, NodeId: u.server, VolumeCapability: u.capability}))
}

func (u *used) up(t *testing.T) {
	t.Helper()
	u.attach(t)
	testenv.Must(t, u.stage(asSidecar(t)))
	must[*csi.NodePublishVolumeResponse](t)(u.NodePublishVolume(asSidecar(t), &csi.NodePublishVolumeRequest{
		VolumeId: u.id, StagingTargetPath: u.staging(), TargetPath: u.target(), VolumeCapability: u.capability, VolumeContext: u.context,
	}))
}

func (u *used) down(t *testing.T) {
	t.Helper()
	ctx := asSidecar(t)
	must[*csi.NodeUnpublishVolumeResponse](t)(unlessBusy(func() (*csi.NodeUnpublishVolumeResponse, error) {
		return u.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: u.id, TargetPath: u.target()})
	}))
	must[*csi.NodeUnstageVolumeResponse](t)(unlessBusy(func() (*csi.NodeUnstageVolumeResponse, error) {
		return u.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: u.id, StagingTargetPath: u.staging()})
	}))
	u.detach(t)
}

// unlessBusy asks again while the path is in use, as kubelet does. A tool that this process starts for another volume holds the open files
// of the test between fork and exec. After a minute, the caller fails with what holds the path.
func unlessBusy[T any](call func() (T, error)) (T, error) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		answer, err := call()
		if status.Code(err) != codes.Aborted || time.Since(began) > time.Minute {
			return answer, err
		}
	}
}

func (u *used) detach(t *testing.T) {
	t.Helper()
	must[*csi.ControllerUnpublishVolumeResponse](t)(u.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: u.id, NodeId: u.server}))
}

func (u *used) remove(t *testing.T) {
	t.Helper()
	must[*csi.DeleteVolumeResponse](t)(u.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: u.id}))
}

func (u *used) file() string {
	if u.capability.GetBlock() != nil {
		return u.target()
	}
	return filepath.Join(u.target(), "data")
}

// written is how much the test's pods write, random bytes.
const written = 8 << 20

// write writes over the volume's data and gives the checksum of what it wrote.
func (u *used) write(t *testing.T) [sha256.Size]byte {
	t.Helper()
	data := make([]byte, written)
	_, _ = rand.Read(data) // it never fails
	f := testenv.Value(os.OpenFile(u.file(), os.O_WRONLY|os.O_CREATE, 0o600))(t)
	if _, err := f.Write(data); errors.Join(err, f.Sync(), f.Close()) != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

func (u *used) wantData(t *testing.T, what string, want [sha256.Size]byte) {
	t.Helper()
	f := testenv.Value(os.Open(u.file()))(t)
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, written))
	if got := [sha256.Size]byte(sum.Sum(nil)); got != want || err != nil {
		t.Errorf("%s: want the checksum %x, got %x of %d bytes, %v", what, want, got, n, err)
	}
}

func (u *used) wantSize(t *testing.T, what string, gib int64) {
	t.Helper()
	stats := must[*csi.NodeGetVolumeStatsResponse](t)(u.NodeGetVolumeStats(asSidecar(t), &csi.NodeGetVolumeStatsRequest{VolumeId: u.id, VolumePath: u.target()}))
	if total := stats.GetUsage()[0].GetTotal(); total < gib<<30-160<<20 || total > gib<<30 { // what a file system keeps for itself
		t.Errorf("%s: want about %d GiB, got %d bytes", what, gib, total)
	}
}

// mayGrowExt4 tells whether the kernel lets us grow a mounted ext4: it asks for CAP_SYS_RESOURCE, which containers' root often lacks.
func mayGrowExt4(t *testing.T) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	testenv.Must(t, unix.Capget(&header, &data[0]))
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

func TestAWholeLifeWithData(t *testing.T) {
	d, sim, dir := withDisks(t, dataplane.Options{Delay: 20 * time.Millisecond})
	t.Run("of", func(t *testing.T) { // so that what follows comes after the parallel ones
		for _, fsType := range []string{"ext4", "xfs", "btrfs", "block"} {
			t.Run(fsType, func(t *testing.T) {
				t.Parallel()
				wholeLife(t, d, sim, filepath.Join(dir, fsType), fsType)
			})
		}
	})
	if left := listed(t, d); len(left) > 0 {
		t.Errorf("want no volume left, got %v", left)
	}
	if images, err := os.ReadDir(filepath.Join(dir, "disks", "images")); len(images) > 0 || err != nil {
		t.Errorf("want no bytes left, got %v, %v", images, err)
	}
}

func wholeLife(t *testing.T, d *instance, sim *openstacksim.Sim, dir, fsType string) {
	grows := fsType != "ext4" || mayGrowExt4(t)
	larger := map[bool]int64{true: 2, false: 1}[grows]

	original := newUsed(t, d, dir, "original-"+fsType, fsType, 1)
	original.up(t)
	first := original.write(t)
	snapshot := ready(t, d, snapshotRequest("snapshot-"+fsType, original.id)).GetSnapshotId()
	second := original.write(t)
	clone := newUsed(t, d, dir, "clone-"+fsType, fsType, larger, func(r *csi.CreateVolumeRequest) {
		fromVolume(original.id)(r)
	})
	if grows {
		original.expand(t, 3)
		original.wantSize(t, "the expanded volume", 3)
	}
	original.wantData(t, "the original", second)
	original.down(t)

	backup := inprocess.NewAdmin(t, sim).Backup(original.id)
	for listed := false; !listed; _, listed = readiness(t, d, backup) {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
	third := func() [sha256.Size]byte { // written after the backup, which must not have it
		original.up(t)
		defer original.down(t)
		return original.write(t)
	}()

	restored := newUsed(t, d, dir, "restored-"+fsType, fsType, 1, fromSnapshot(snapshot))
	saved := newUsed(t, d, dir, "saved-"+fsType, fsType, map[bool]int64{true: 3, false: 1}[grows], fromSnapshot(backup))
	for _, c := range []struct {
		what string
		*used
		want [sha256.Size]byte
		gib  int64
	}{
		{"restored from the snapshot", restored, first, 1},
		{"cloned", clone, second, larger},
		{"restored from the backup", saved, second, map[bool]int64{true: 3, false: 1}[grows]},
		{"the original", original, third, map[bool]int64{true: 3, false: 1}[grows]},
	} {
		c.up(t)
		c.wantData(t, c.what, c.want)
		c.wantSize(t, c.what, c.gib)
		c.down(t)
	}

	for _, id := range []string{snapshot, backup} {
		must[*csi.DeleteSnapshotResponse](t)(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: id}))
	}
	for _, u := range []*used{original, clone, restored, saved} {
		u.remove(t)
	}
}

// expand grows the volume in use, as external-resizer and kubelet do.
func (u *used) expand(t *testing.T, gib int64) {
	t.Helper()
	room := &csi.CapacityRange{RequiredBytes: gib << 30}
	must[*csi.ControllerExpandVolumeResponse](t)(u.ControllerExpandVolume(asSidecar(t), &csi.ControllerExpandVolumeRequest{VolumeId: u.id, CapacityRange: room, VolumeCapability: u.capability}))
	grown := must[*csi.NodeExpandVolumeResponse](t)(u.NodeExpandVolume(asSidecar(t), &csi.NodeExpandVolumeRequest{
		VolumeId: u.id, VolumePath: u.target(), StagingTargetPath: u.staging(), CapacityRange: room, VolumeCapability: u.capability,
	}))
	if grown.GetCapacityBytes() != gib<<30 {
		t.Errorf("want %d GiB on the node, got %d bytes", gib, grown.GetCapacityBytes())
	}
}

// Cinder 26 shifts the data of a volume that it makes from a backup in Ceph. The simulated cloud does so too.
func TestTheDataOfABackupInCephIsRestoredAsItWas(t *testing.T) {
	d, sim, dir := withDisks(t, dataplane.Options{})
	sim.SetCephBackups(true)
	u := newUsed(t, d, dir, "pvc-1", "block", 1)
	u.up(t)
	data := []byte("behind 256 MiB of zeros " + rand.Text())
	disk := testenv.Value(os.OpenFile(u.target(), os.O_WRONLY, 0))(t)
	_, err := disk.WriteAt(data, 300<<20)
	testenv.Must(t, errors.Join(err, disk.Close()))
	u.down(t)
	backup := must[*csi.CreateSnapshotResponse](t)(unlessBusy(func() (*csi.CreateSnapshotResponse, error) {
		return d.CreateSnapshot(asSidecar(t), &csi.CreateSnapshotRequest{Name: "backup", SourceVolumeId: u.id, Parameters: map[string]string{"type": "backup"}})
	})).GetSnapshot()
	restored := newUsed(t, d, dir, "pvc-2", "block", 2, func(r *csi.CreateVolumeRequest) {
		fromSnapshot(backup.GetSnapshotId())(r)
	})
	restored.up(t)
	disk = testenv.Value(os.Open(restored.target()))(t)
	got := make([]byte, len(data))
	if _, err := disk.ReadAt(got, 300<<20); err != nil || string(got) != string(data) {
		t.Errorf("want %q, got %q, %v", data, got, err)
	}
	testenv.Check(t, disk.Close())
	restored.down(t)
}

func TestADiskThatMayNotBelongToTheVolumeIsNotUsed(t *testing.T) {
	for name, serial := range map[string]string{"a wrong serial": "wrong", "no serial": ""} {
		t.Run(name, func(t *testing.T) {
			d, _, dir := withDisks(t, dataplane.Options{Serial: func(string) string { return serial }})
			u := newUsed(t, d, dir, "volume", "ext4", 1)
			u.attach(t)
			for limit := 500 * time.Millisecond; ; limit *= 2 { // until the driver saw the disk before the time was over
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				err := u.stage(ctx)
				cancel()
				wantCode(t, err, codes.DeadlineExceeded, "")
				if strings.Contains(err.Error(), "the disks on this server are vdb (") {
					break
				}
				if limit > time.Minute {
					t.Fatalf("want the disk that the driver saw named, got %v", err)
				}
			}
			u.detach(t)
			var stat unix.Stat_t
			if err := unix.Stat(filepath.Join(dir, "disks", "images", u.id), &stat); err != nil || stat.Blocks != 0 {
				t.Errorf("want nothing written, got %d blocks, %v", stat.Blocks, err)
			}
			u.remove(t)
		})
	}
}
