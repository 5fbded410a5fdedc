package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerModifyVolume implements csi.ControllerServer. What the request does not name stays unchanged.
func (s *Server) ControllerModifyVolume(ctx context.Context, req *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missingField("volume ID")
	}
	class, err := attributesClass(req.GetMutableParameters())
	if err != nil {
		return nil, err
	}
	change := provision.Change{Type: class.Type, Migrate: class.Migrate, Metadata: class.Metadata, Remove: class.Remove}
	if err := cloud.Volumes.Modify(ctx, volume.ParseID(req.GetVolumeId()), change); err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}
