package controller

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

type mode = csi.VolumeCapability_AccessMode_Mode

// modes has, for each access mode, whether several servers use the volume at the same time, and at least one writes. Then its type must be multiattach.
// A mode that is not listed is unknown. Several readers need no multiattach type: the upstream driver creates such volumes of any type, and the
// attach to a second server reports the error.
var modes = map[mode]bool{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        false,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   false,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: false,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  false,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    false,
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  true,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   true,
}

// needsMultiattach reports whether several servers will use a volume with these capabilities at the same time. It refuses file systems for
// several writers: none of the file systems of the driver supports that, and the data would be destroyed.
func needsMultiattach(capabilities []*csi.VolumeCapability) (bool, error) {
	if len(capabilities) == 0 {
		return false, missingField("volume capabilities")
	}
	multiattach := false
	for _, c := range capabilities {
		if c.GetBlock() == nil && c.GetMount() == nil {
			return false, missingField("access type, block or mount, in a volume capability")
		}
		shared, known := modes[c.GetAccessMode().GetMode()]
		if !known {
			return false, volume.Errorf(volume.InvalidArgument, "access mode %s is unknown", c.GetAccessMode().GetMode())
		}
		if shared && c.GetMount() != nil {
			return false, sharedFileSystem(c)
		}
		if err := contract.CheckText("fsType", c.GetMount().GetFsType()); err != nil {
			return false, volume.Errorf(volume.InvalidArgument, "the volume capability: %w", err)
		}
		if err := validateMountFlags(c.GetMount().GetMountFlags()); err != nil {
			return false, err
		}
		multiattach = multiattach || shared
	}
	return multiattach, nil
}

func sharedFileSystem(c *csi.VolumeCapability) error {
	return volume.Errorf(volume.InvalidArgument, "access mode %s would destroy a file system; use volumeMode Block, or an access mode for one node",
		c.GetAccessMode().GetMode())
}

// validatePublish returns why the driver must not attach a volume with a capability. It accepts existing volumes as they are, except mount flags
// that no node accepts. Only a strict driver refuses file systems for several writers, which the upstream driver created.
func (s *Server) validatePublish(ctx context.Context, id string, c *csi.VolumeCapability) error {
	if err := validateMountFlags(c.GetMount().GetMountFlags()); err != nil {
		return err
	}
	if !modes[c.GetAccessMode().GetMode()] || c.GetMount() == nil {
		return nil
	}
	if s.o.Strict {
		return sharedFileSystem(c)
	}
	s.tolerate(ctx, "shared file system", id, "attaching a volume with a file system for several writers; two writing nodes destroy the file system",
		"volume", id, "mode", c.GetAccessMode().GetMode().String())
	return nil
}

// validateMountFlags refuses mount flags that no node accepts.
func validateMountFlags(flags []string) error {
	if _, _, err := contract.ParseMountFlags(flags); err != nil {
		return volume.Errorf(volume.InvalidArgument, "%w", err)
	}
	return nil
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (s *Server) ValidateVolumeCapabilities(ctx context.Context, req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	cloud, id, err := s.volumeOf(req)
	if err != nil {
		return nil, err
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return nil, missingField("volume capabilities")
	}
	v, err := cloud.Volumes.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := s.validateCapabilities(ctx, v, req); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(), Parameters: req.GetParameters(),
		MutableParameters: req.GetMutableParameters(),
	}}, nil
}

// validateCapabilities returns why a volume does not have what a request expects. It ignores the type in the parameters: a
// VolumeAttributesClass or an administrator may have changed the type since.
func (s *Server) validateCapabilities(ctx context.Context, v volume.Volume, req *csi.ValidateVolumeCapabilitiesRequest) error {
	multiattach, err := needsMultiattach(req.GetVolumeCapabilities())
	if err != nil {
		return err
	}
	if multiattach && !v.Multiattach {
		return volume.Errorf(volume.InvalidArgument, "the volume type %s does not allow several servers", v.Type).Cause(cause.CreateTypeSingle)
	}
	class, err := s.storageClass(ctx, req.GetParameters())
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
		return volume.Errorf(volume.InvalidArgument, "the volume type is %s instead of %s", v.Type, attributes.Type)
	}
	for key, value := range attributes.Metadata {
		if v.Metadata[key] != value {
			return volume.Errorf(volume.InvalidArgument, "the volume metadata %s is %q instead of %q", key, v.Metadata[key], value)
		}
	}
	for _, key := range attributes.Remove {
		if value, has := v.Metadata[key]; has {
			return volume.Errorf(volume.InvalidArgument, "the volume has the metadata %s, %q, which the class removes", key, value)
		}
	}
	return nil
}
