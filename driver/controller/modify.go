package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/provision"
)

// ControllerModifyVolume implements csi.ControllerServer. What the request does not name stays unchanged.
func (s *Server) ControllerModifyVolume(ctx context.Context, req *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	cloud, id, err := s.volumeOf(req)
	if err != nil {
		return nil, err
	}
	class, err := attributesClass(req.GetMutableParameters())
	if err != nil {
		return nil, err
	}
	change := provision.Change{Type: class.Type, Migrate: class.Migrate, Metadata: class.Metadata, Remove: class.Remove}
	if err := cloud.Volumes.Modify(ctx, id, change); err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}
