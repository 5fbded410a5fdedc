package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerExpandVolume implements csi.ControllerServer. What grows on the node is the file system; a raw block device is as
// large as its volume.
func (s *Server) ControllerExpandVolume(ctx context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	if req.GetCapacityRange() == nil {
		return nil, missing("capacity range")
	}
	v, err := cloud.Volumes.Expand(ctx, volume.ID(req.GetVolumeId()), volume.Range{
		Required: volume.Size(req.GetCapacityRange().GetRequiredBytes()), Limit: volume.Size(req.GetCapacityRange().GetLimitBytes()),
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: int64(v.Size), NodeExpansionRequired: req.GetVolumeCapability().GetBlock() == nil}, nil
}
