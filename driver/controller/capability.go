package controller

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

type mode = csi.VolumeCapability_AccessMode_Mode

// What the access modes ask of a volume; a mode that is missing here is not known. A volume that several servers only read is not
// asked to be one that several can have: upstream's driver makes such claims of any type, and whoever wants a second server learns
// when it is attached.
var modes = map[mode]struct {
	shared bool // several servers, of which at least one writes
}{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        {false},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   {false},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: {false},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  {false},
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    {false},
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  {true},
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   {true},
}

// needsSharing reports whether several servers will use a volume of these capabilities at a time. An error says which of them
// nothing can satisfy: a file system that is written while several servers have it mounted would be destroyed, since none that
// the driver makes is meant for that.
func needsSharing(capabilities []*csi.VolumeCapability) (bool, error) {
	if len(capabilities) == 0 {
		return false, missing("volume capabilities")
	}
	shared := false
	for _, c := range capabilities {
		if c.GetBlock() == nil && c.GetMount() == nil {
			return false, missing("access type, block or mount, in a volume capability")
		}
		m, known := modes[c.GetAccessMode().GetMode()]
		if !known {
			return false, volume.Errorf(volume.InvalidArgument, "access mode %s is not known", c.GetAccessMode().GetMode())
		}
		if m.shared && c.GetMount() != nil {
			return false, sharedFileSystem(c)
		}
		if err := checkMountFlags(c.GetMount().GetMountFlags()); err != nil {
			return false, err
		}
		shared = shared || m.shared
	}
	return shared, nil
}

func sharedFileSystem(c *csi.VolumeCapability) error {
	return volume.Errorf(volume.InvalidArgument, "access mode %s with a file system would destroy it; use volumeMode Block, or one node",
		c.GetAccessMode().GetMode())
}

// publishable says why a volume must not be attached for such a use. Volumes that exist are taken as they are, but for mount flags
// that no node takes; file systems for several writers, which upstream's driver made, only a strict driver refuses.
func (s *Server) publishable(ctx context.Context, id string, c *csi.VolumeCapability) error {
	if err := checkMountFlags(c.GetMount().GetMountFlags()); err != nil {
		return err
	}
	if !modes[c.GetAccessMode().GetMode()].shared || c.GetMount() == nil {
		return nil
	}
	if s.o.Strict {
		return sharedFileSystem(c)
	}
	s.lenient(ctx, "shared file system", id, "a volume with a file system is attached for several writers; it will be destroyed if two nodes write",
		"volume", id, "mode", c.GetAccessMode().GetMode().String())
	return nil
}

// checkMountFlags refuses what no node would mount with.
func checkMountFlags(flags []string) error {
	if _, _, err := contract.ParseMountFlags(flags); err != nil {
		return volume.Errorf(volume.InvalidArgument, "%w", err)
	}
	return nil
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (s *Server) ValidateVolumeCapabilities(ctx context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return nil, missing("volume capabilities")
	}
	v, err := cloud.Volumes.Get(ctx, volume.ID(req.GetVolumeId()))
	if err != nil {
		return nil, err
	}
	if err := s.confirm(ctx, v, req); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
		MutableParameters: req.GetMutableParameters(),
	}}, nil
}

// confirm says why a volume is not what a request takes it for. The type in its parameters is not compared: it may have been
// changed since, by a VolumeAttributesClass or by hand.
func (s *Server) confirm(ctx context.Context, v volume.Volume, req *csi.ValidateVolumeCapabilitiesRequest) error {
	shared, err := needsSharing(req.GetVolumeCapabilities())
	if err != nil {
		return err
	}
	if shared && !v.Multiattach {
		return volume.Errorf(volume.InvalidArgument, "the volume's type %s allows one server only", v.Type)
	}
	class, err := s.class(ctx, req.GetParameters())
	if err != nil {
		return err
	}
	if err := s.validateFormat(class.Format, req.GetVolumeCapabilities()); err != nil {
		return err
	}
	attributes, err := attributesClass(req.GetMutableParameters())
	if err != nil {
		return err
	}
	if attributes.Type != "" && !volume.ID(attributes.Type).Exists() && !strings.EqualFold(attributes.Type, v.Type) {
		return volume.Errorf(volume.InvalidArgument, "the volume is of type %s, not %s", v.Type, attributes.Type)
	}
	for key, value := range attributes.Metadata {
		if v.Metadata[key] != value {
			return volume.Errorf(volume.InvalidArgument, "the volume's metadata %s is %q, not %q", key, v.Metadata[key], value)
		}
	}
	return nil
}
