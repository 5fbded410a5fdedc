package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

type mode = csi.VolumeCapability_AccessMode_Mode

// What the access modes ask of a volume; a mode that is missing here is not known.
var modes = map[mode]struct{ severalNodes bool }{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        {false},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   {false},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: {false},
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  {false},
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    {true},
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  {true},
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   {true},
}

// needsSharing reports whether several servers will use a volume of these capabilities at a time. An error says which of them
// nothing can satisfy: a file system that several servers mount would be destroyed, since none that the driver makes is meant
// for that.
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
		switch {
		case !known:
			return false, volume.Errorf(volume.InvalidArgument, "access mode %s is not known", c.GetAccessMode().GetMode())
		case m.severalNodes && c.GetMount() != nil:
			return false, volume.Errorf(volume.InvalidArgument, "access mode %s with a file system would destroy it; use volumeMode Block, or one node",
				c.GetAccessMode().GetMode())
		}
		shared = shared || m.severalNodes
	}
	return shared, nil
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (s *Server) ValidateVolumeCapabilities(ctx context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	volumes, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return nil, missing("volume capabilities")
	}
	v, err := volumes.Get(ctx, volume.ID(req.GetVolumeId()))
	if err != nil {
		return nil, err
	}
	shared, err := needsSharing(req.GetVolumeCapabilities())
	if err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	if shared && !v.Multiattach {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: "the volume's type " + v.Type + " allows one server only"}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
	}}, nil
}
