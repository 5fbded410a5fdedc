package controller

import (
	"context"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerModifyVolume implements csi.ControllerServer. What the request does not name stays as it is.
func (s *Server) ControllerModifyVolume(ctx context.Context, req *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	class, err := attributesClass(req.GetMutableParameters())
	if err != nil {
		return nil, err
	}
	change := provision.Change{Type: class.Type, Migrate: class.Migrate, Metadata: class.Metadata}
	if err := cloud.Volumes.Modify(ctx, volume.ID(req.GetVolumeId()), change); err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}

// attributesClass reads the parameters of a VolumeAttributesClass, which are always strict.
func attributesClass(parameters map[string]string) (contract.AttributesClass, error) {
	class, err := contract.ParseAttributesClass(parameters)
	if err != nil {
		return class, volume.Errorf(volume.InvalidArgument, "the VolumeAttributesClass: %w", err)
	}
	return class, nil
}

// withMetadata adds more to metadata, replacing what is there under the same keys.
func withMetadata(metadata, more map[string]string) map[string]string {
	maps.Copy(metadata, more)
	return metadata
}
