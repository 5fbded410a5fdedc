package controller

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
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

func TestAFileSystemWithControlCharactersIsRefused(t *testing.T) {
	for _, fsType := range []string{"ext4\x1b[2J", "ext4\n", strings.Repeat("x", 256)} {
		f, c := &fake{}, capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, false)
		c.GetMount().FsType = fsType
		_, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{c}})
		if !volume.Is(err, volume.InvalidArgument) || f.spec.Name != "" {
			t.Errorf("%.10q: %v", fsType, err)
		}
	}
}
