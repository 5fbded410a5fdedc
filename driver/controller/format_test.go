package controller

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func formatted(fsType string, parameters map[string]string) *csi.CreateVolumeRequest {
	c := capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, fsType == "block")
	if m := c.GetMount(); m != nil {
		m.FsType = fsType
	}
	return &csi.CreateVolumeRequest{Name: "pvc-1", VolumeCapabilities: []*csi.VolumeCapability{c}, Parameters: parameters}
}

func TestCreateVolumeReturnsTheSameFormatOnEachRetry(t *testing.T) {
	ext := map[string]string{"blockSize": "1024", "inodeSize": "128", "numberOfInodes": "1000"}
	for name, test := range map[string]struct {
		fsType, defaults string
		parameters       map[string]string
		source           bool
		want             map[string]string
	}{
		"nothing": {fsType: "ext4"},
		"ext4": {fsType: "ext4", parameters: ext, want: map[string]string{
			"cinder.csi.openstack.org/blockSize": "1024", "cinder.csi.openstack.org/inodeSize": "128", "cinder.csi.openstack.org/numberOfInodes": "1000",
		}},
		"xfs":                          {fsType: "xfs", parameters: map[string]string{"inodeSize": "2048"}, want: map[string]string{"cinder.csi.openstack.org/inodeSize": "2048"}},
		"nobody says which":            {parameters: map[string]string{"bytesPerInode": "4096"}, want: map[string]string{"cinder.csi.openstack.org/bytesPerInode": "4096"}},
		"the default":                  {defaults: "xfs", parameters: map[string]string{"inodeSize": "512"}, want: map[string]string{"cinder.csi.openstack.org/inodeSize": "512"}},
		"a source's file system stays": {fsType: "ext4", parameters: map[string]string{"numberOfInodes": "99999999"}, source: true, want: map[string]string{"cinder.csi.openstack.org/resizeRequired": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{volume: volume.Volume{ID: first, Size: volume.GiB(1)}}
			s := server(f, func(o *Options) { o.DefaultFSType, o.Strict = test.defaults, true })
			for range 2 {
				r := formatted(test.fsType, test.parameters)
				if test.source {
					r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: second}}}
				}
				got, err := s.CreateVolume(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got.GetVolume().GetVolumeContext()); diff != "" {
					t.Error("-want +got\n", diff)
				}
			}
		})
	}
}

func TestCreateVolumeValidatesTheFormat(t *testing.T) {
	for name, test := range map[string]struct {
		fsType, defaults, key, value, text string
	}{
		"no number":                    {"ext4", "", "blockSize", "4Ki", `blockSize: "4Ki" is not a whole number`},
		"blocks that no node mounts":   {"ext4", "", "blockSize", "8192", "blockSize 8192: ext4 needs a power of two from 1024 to 4096"},
		"inodes too small for xfs":     {"xfs", "", "inodeSize", "128", "inodeSize 128: xfs needs a power of two from 512 to 2048"},
		"xfs has no bytes per inode":   {"xfs", "", "bytesPerInode", "4096", `bytesPerInode 4096: the file system "xfs" does not have this option`},
		"nor has it as the default":    {"", "xfs", "numberOfInodes", "4096", `numberOfInodes 4096: the file system "xfs" does not have this option`},
		"btrfs has nothing":            {"btrfs", "", "blockSize", "4096", `blockSize 4096: the file system "btrfs" does not have this option`},
		"no file system at all":        {"block", "", "blockSize", "4096", "a block volume does not have"},
		"more inodes than room for it": {"ext4", "", "numberOfInodes", "1048577", "numberOfInodes 1048577: a volume of 1073741824 bytes has room for 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				f := &fake{}
				s := server(f, func(o *Options) { o.DefaultFSType, o.Strict = test.defaults, strict })
				_, err := s.CreateVolume(t.Context(), formatted(test.fsType, map[string]string{test.key: test.value}))
				kindIs(t, err, volume.InvalidArgument, test.text)
				if len(f.calls) != 0 {
					t.Errorf("the domain was asked: %v", f.calls)
				}
			}
		})
	}
}

func TestValidateVolumeCapabilitiesValidatesTheFormat(t *testing.T) {
	f := &fake{volume: volume.Volume{ID: first}}
	r := formatted("xfs", map[string]string{"bytesPerInode": "4096"})
	got, err := server(f).ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId: first, VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	})
	if err != nil || got.GetConfirmed() != nil || got.GetMessage() == "" {
		t.Errorf("want it not confirmed and why, got %v, %v", got, err)
	}
}
