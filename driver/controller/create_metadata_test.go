package controller

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
)

// Who recovers a lost cluster has nothing but the metadata. A class cannot change what it says about the disk.
func TestTheMetadataSaysHowTheVolumeIsUsed(t *testing.T) {
	const mode, fs = "cinder.csi.openstack.org/volume-mode", "cinder.csi.openstack.org/fs-type"
	mounted := func(fsType string) *csi.VolumeCapability {
		c := capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)
		c.GetMount().FsType = fsType
		return c
	}
	block := capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, true)
	for name, test := range map[string]struct {
		capabilities []*csi.VolumeCapability
		want         map[string]string
	}{
		"a file system":                  {[]*csi.VolumeCapability{mounted("xfs")}, map[string]string{mode: "Filesystem", fs: "xfs"}},
		"a file system without a name":   {[]*csi.VolumeCapability{mounted("")}, map[string]string{mode: "Filesystem"}},
		"a disk":                         {[]*csi.VolumeCapability{block}, map[string]string{mode: "Block"}},
		"the same twice":                 {[]*csi.VolumeCapability{mounted("xfs"), mounted("xfs")}, map[string]string{mode: "Filesystem", fs: "xfs"}},
		"capabilities that differ":       {[]*csi.VolumeCapability{mounted("xfs"), block}, map[string]string{}},
		"file systems that differ, back": {[]*csi.VolumeCapability{mounted("xfs"), mounted("ext4"), mounted("xfs")}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			if _, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: test.capabilities}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, f.spec.Metadata); diff != "" {
				t.Error("-want +got\n", diff)
			}
		})
	}
}
