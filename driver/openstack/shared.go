package openstack

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Shared is a Cloud whose reads of one volume, of the volumes of a name, and of one server's attachments, are answered together
// with all others that are wanted at the same time. An answer still was read after the call for it began.
type Shared struct {
	*Cloud
	Hub     *status.Hub
	Servers *status.ServerHub
	Names   *Names
}

// Volume implements volume.Cloud.
func (s Shared) Volume(ctx context.Context, id volume.ID) (volume.Volume, error) {
	return s.Hub.Read(ctx, id)
}

// ServerAttachments implements volume.Cloud.
func (s Shared) ServerAttachments(ctx context.Context, server volume.ServerID) ([]volume.Attachment, error) {
	return s.Servers.Read(ctx, server)
}

// VolumesNamed implements volume.Cloud.
func (s Shared) VolumesNamed(ctx context.Context, name string) ([]volume.Volume, error) {
	return s.Names.VolumesNamed(ctx, name)
}
