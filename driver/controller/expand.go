package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// ControllerExpandVolume implements csi.ControllerServer. A node expands the file system.
//
// Nobody expands a raw block device, but Nova grows the disk of a server some time after Cinder shows the new size. So the node of an attached
// volume has to wait for the disk. Otherwise the claim would have a size that its pod does not see yet.
func (s *Server) ControllerExpandVolume(ctx context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	cloud, id, err := s.volumeOf(req)
	if err != nil {
		return nil, err
	}
	if req.GetCapacityRange() == nil {
		return nil, missingField("capacity range")
	}
	v, err := cloud.Volumes.Expand(ctx, id, sizeRange(req.GetCapacityRange()))
	if err != nil {
		return nil, err
	}
	onNode := req.GetVolumeCapability().GetBlock() == nil || len(v.Attachments) > 0
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: int64(v.Size), NodeExpansionRequired: onNode}, nil
}
