package openstack

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Shared is a Cloud whose callers share reads: of one volume, of the volumes with a name, and of the attachments of one server. Every
// answer was read after its call began.
type Shared struct {
	*Cloud
	Hub     *status.Hub
	Servers *status.ServerHub
	Names   *NameBatcher
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
