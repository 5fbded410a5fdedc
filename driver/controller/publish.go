package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerPublishVolume implements csi.ControllerServer. The cloud decides whether several servers may have the volume.
func (s *Server) ControllerPublishVolume(ctx context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	cloud, id, err := s.volumeOf(req)
	switch {
	case err != nil:
		return nil, err
	case req.GetNodeId() == "":
		return nil, missingField("node ID")
	case req.GetVolumeCapability() == nil:
		return nil, missingField("volume capability")
	case req.GetReadonly():
		return nil, volume.Errorf(volume.InvalidArgument, "the driver does not attach volumes read-only; it does not have the capability PUBLISH_READONLY")
	}
	if err := s.validatePublish(ctx, req.GetVolumeId(), req.GetVolumeCapability()); err != nil {
		return nil, err
	}
	server := volume.ParseServerID(req.GetNodeId())
	v, err := cloud.Attachments.Attach(ctx, id, server)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{contract.ContextDevicePath: deviceOn(v, server)}}, nil
}

func deviceOn(v volume.Volume, server volume.ServerID) string {
	for _, a := range v.Attachments {
		if a.Server == server {
			return a.Device
		}
	}
	return ""
}

// ControllerUnpublishVolume implements csi.ControllerServer. Without a node ID the driver detaches the volume from all nodes (CSI
// specification, ControllerUnpublishVolume).
func (s *Server) ControllerUnpublishVolume(ctx context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	cloud, id, err := s.volumeOf(req)
	if err != nil {
		return nil, err
	}
	if err := cloud.Attachments.Detach(ctx, id, volume.ParseServerID(req.GetNodeId())); err != nil {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}
