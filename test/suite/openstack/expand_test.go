//go:build openstack

package openstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// newVolume creates a volume, of 1 GiB unless change sets another size. The end of the test deletes it.
func newVolume(t *testing.T, d *driver, fsType string, change ...func(*csi.CreateVolumeRequest)) *csi.Volume {
	t.Helper()
	request := csitest.Claim("bed-"+rand.Text(), append([]func(*csi.CreateVolumeRequest){csitest.As(csitest.Single(fsType))}, change...)...)
	made := testenv.Value(d.controller.CreateVolume(t.Context(), request))(t)
	id := made.GetVolume().GetVolumeId()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient(time.Minute))
		defer cancel()
		if _, err := d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
			t.Errorf("volume %s stays: %v", id, err)
		}
	})
	return made.GetVolume()
}

// mount attaches and mounts a volume on the server node-az1 of the bed. The end of the test unmounts it before the volume is deleted.
func mount(t *testing.T, d *driver, v *csi.Volume, fsType string) *mounted {
	t.Helper()
	here := testenv.Value(d.node.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}))(t)
	dir := t.TempDir()
	m := &mounted{
		driver: d, id: v.GetVolumeId(), server: here.GetNodeId(), capability: csitest.Single(fsType), context: v.GetVolumeContext(),
		staging: filepath.Join(dir, "staging"), target: filepath.Join(dir, "target"),
	}
	testenv.Must(t, os.MkdirAll(m.staging, 0o750))
	m.up(t, t.Context())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient(time.Minute))
		defer cancel()
		m.down(t, ctx)
	})
	return m
}

// file is the file that a test writes in a mounted volume.
func (m *mounted) file() string {
	if m.capability.GetBlock() != nil {
		return m.target
	}
	return filepath.Join(m.target, "data")
}

func (m *mounted) wantData(t *testing.T, want []byte) {
	t.Helper()
	f := testenv.Value(os.Open(m.file()))(t)
	defer f.Close()
	got := make([]byte, len(want))
	if _, err := f.Read(got); err != nil || !bytes.Equal(want, got) {
		t.Errorf("want %q, got %q, %v", want, got, err)
	}
}

// The ioctl that grows a mounted ext4 needs a right that root may not have on this machine. That of xfs does not need it.
func TestAVolumeInUseGrowsUnderItsFileSystem(t *testing.T) {
	d := startDriver(t, bed(t))
	for name, fsType := range map[string]string{"xfs": "xfs", "block": ""} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t, d, fsType)
			m, id := mount(t, d, v, fsType), v.GetVolumeId()
			want := []byte("written before it grew " + rand.Text())
			testenv.Must(t, writeAt(m.file(), want))
			grow := &csi.ControllerExpandVolumeRequest{VolumeId: id, VolumeCapability: m.capability, CapacityRange: &csi.CapacityRange{RequiredBytes: 2<<30 - 1}}
			for range 2 { // the second call changes nothing
				got, err := d.controller.ControllerExpandVolume(t.Context(), grow)
				if err != nil || got.GetCapacityBytes() != 2<<30 || !got.GetNodeExpansionRequired() {
					t.Fatalf("want 2 GiB, got %v, %v", got, err)
				}
			}
			grown, err := d.node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{
				VolumeId: id, VolumePath: m.target, StagingTargetPath: m.staging, VolumeCapability: m.capability, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30},
			})
			if err != nil || grown.GetCapacityBytes() < 2<<30-64<<20 {
				t.Fatalf("on the node: want about 2 GiB, got %v, %v", grown, err)
			}
			stats, err := d.node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: m.target})
			if err != nil || stats.GetUsage()[0].GetTotal() < 1900<<20 {
				t.Errorf("want almost 2 GiB in the stats, got %v, %v", stats, err)
			}
			m.wantData(t, want)
			_, err = d.controller.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
				VolumeId: id, VolumeCapability: m.capability, CapacityRange: &csi.CapacityRange{RequiredBytes: 100 << 40},
			})
			if status.Code(err) != codes.ResourceExhausted {
				t.Errorf("beyond the quota: want ResourceExhausted, got %v", err)
			}
		})
	}
}
