package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerPublishVolume implements csi.ControllerServer. Whether another server may have the volume too, the cloud decides.
func (s *Server) ControllerPublishVolume(ctx context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	switch {
	case req.GetVolumeId() == "":
		return nil, missing("volume id")
	case req.GetNodeId() == "":
		return nil, missing("node id")
	case req.GetVolumeCapability() == nil:
		return nil, missing("volume capability")
	case req.GetReadonly():
		return nil, volume.Errorf(volume.InvalidArgument, "volumes are not attached read-only; the capability PUBLISH_READONLY is not advertised")
	}
	if err := s.publishable(ctx, req.GetVolumeId(), req.GetVolumeCapability()); err != nil {
		return nil, err
	}
	server := volume.ServerID(req.GetNodeId())
	v, err := cloud.Attachments.Attach(ctx, volume.ID(req.GetVolumeId()), server)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{contract.ContextDevicePath: deviceAt(v, server)}}, nil
}

func deviceAt(v volume.Volume, server volume.ServerID) string {
	for _, a := range v.Attachments {
		if a.Server == server {
			return a.Device
		}
	}
	return ""
}

// ControllerUnpublishVolume implements csi.ControllerServer. Without a node the volume is detached from all.
func (s *Server) ControllerUnpublishVolume(ctx context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	if err := cloud.Attachments.Detach(ctx, volume.ID(req.GetVolumeId()), volume.ServerID(req.GetNodeId())); err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
