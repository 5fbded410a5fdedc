package host

import (
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestHostPassesItsMachineToItsParts(t *testing.T) {
	t.Parallel()
	b := newFakeHost(t)
	b.plug(t, "vdb", serial, num(254, 16))
	must(t, b.AwaitDisk(t.Context(), vol))
	if c := b.AttachCapacity(t.Context(), nil); c.Attached != 1 {
		t.Errorf("want one volume attached, got %+v", c)
	}
	const other = "/var/lib/kubelet/plugins/kubernetes.io/csi/another.csi.driver/6f1e/globalmount"
	b.mounter.add(Entry{Device: num(254, 16), Path: other, FSType: "ext4", Source: "/dev/vdb", Options: []string{"rw"}})
	if c := b.AttachCapacity(t.Context(), nil); c.Attached != 0 || c.Foreign != 1 {
		t.Errorf("want the volume of another driver foreign, got %+v", c)
	}
	m := testenv.NewMachine(t)
	h := New(Options{SysRoot: m.Sys, DevRoot: m.Dev, Metadata: metadata.Options{SearchOrder: []string{metadata.ConfigDrive}}})
	if _, err := h.Server(t.Context()); !volume.Is(err, volume.Unavailable) {
		t.Errorf("want Unavailable on a machine without disks, got %v", err)
	}
	wantKind(t, h.AwaitDisk(t.Context(), "short"), volume.NotFound)
}
