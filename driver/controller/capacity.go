package controller

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// GetCapacity implements csi.ControllerServer. The request has no secrets, so the capability exists only with a single cloud.
func (s *Server) GetCapacity(ctx context.Context, req *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if !s.o.WithCapacity {
		return nil, volume.Errorf(volume.Unimplemented, "the driver does not report capacity; start it with --with-capacity")
	}
	multiattach := false
	if len(req.GetVolumeCapabilities()) > 0 {
		var err error
		if multiattach, err = needsMultiattach(req.GetVolumeCapabilities()); err != nil {
			return nil, err
		}
	}
	class, err := s.storageClass(ctx, req.GetParameters())
	if err != nil {
		return nil, err
	}
	mapper, segment := s.topologyMapper(), req.GetAccessibleTopology()
	if class.Zone != "" && !mapper.reaches(class.Zone, segment) {
		return &csi.GetCapacityResponse{}, nil
	}
	spec := provision.CreateSpec{
		Type: class.Type, Zone: class.Zone, Zones: mapper.zones(&csi.TopologyRequirement{Requisite: []*csi.Topology{segment}}), AnyZone: mapper.ignored, Multiattach: multiattach,
	}
	capacity, err := s.o.Clouds[s.clouds[0]].Volumes.Capacity(ctx, spec)
	if err != nil {
		return nil, err
	}
	response := &csi.GetCapacityResponse{AvailableCapacity: int64(capacity.Available)}
	if capacity.Largest > 0 {
		response.MaximumVolumeSize = wrapperspb.Int64(int64(capacity.Largest))
	}
	if capacity.Smallest > 0 {
		response.MinimumVolumeSize = wrapperspb.Int64(int64(capacity.Smallest))
	}
	return response, nil
}

// reaches reports whether a volume in that zone can be used in a segment.
func (p topologyMapper) reaches(zone string, segment *csi.Topology) bool {
	label := segment.GetSegments()[p.key]
	return label == "" || p.ignored || slices.Contains(p.zoneMap.Labels(zone), label)
}
