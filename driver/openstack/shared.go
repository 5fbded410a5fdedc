package openstack

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Shared is a Cloud whose volume.SharedReads go through status hubs. Those replace the methods of the Cloud.
type Shared struct {
	*Cloud
	Volumes *status.Hub
	Servers *status.ServerHub
}

var _ volume.SharedReads = Shared{}

// Volume implements volume.SharedReads.
func (s Shared) Volume(ctx context.Context, id volume.ID) (volume.Volume, error) {
	return s.Volumes.Read(ctx, id)
}

// ServerAttachments implements volume.SharedReads.
func (s Shared) ServerAttachments(ctx context.Context, server volume.ServerID) ([]volume.Attachment, error) {
	return s.Servers.Read(ctx, server)
}
