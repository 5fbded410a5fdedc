package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerExpandVolume implements csi.ControllerServer. A node expands the file system; a raw block device needs no expansion on the node.
func (s *Server) ControllerExpandVolume(ctx context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missingField("volume ID")
	}
	if req.GetCapacityRange() == nil {
		return nil, missingField("capacity range")
	}
	v, err := cloud.Volumes.Expand(ctx, volume.ID(req.GetVolumeId()), sizeRange(req.GetCapacityRange()))
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: int64(v.Size), NodeExpansionRequired: req.GetVolumeCapability().GetBlock() == nil}, nil
}
