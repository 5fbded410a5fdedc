package controller

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// GetCapacity implements csi.ControllerServer. The request has no secrets, so it is about the one cloud there is.
func (s *Server) GetCapacity(ctx context.Context, req *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if !s.o.WithCapacity {
		return nil, volume.Errorf(volume.Unimplemented, "capacities are not told; the flag --with-capacity makes the driver tell them")
	}
	shared := false
	if len(req.GetVolumeCapabilities()) > 0 {
		var err error
		if shared, err = needsSharing(req.GetVolumeCapabilities()); err != nil {
			return nil, err
		}
	}
	class, err := s.class(ctx, req.GetParameters())
	if err != nil {
		return nil, err
	}
	mapper, segment := s.topologyMapper(), req.GetAccessibleTopology()
	if class.Zone != "" && !mapper.reach(class.Zone, segment) {
		return &csi.GetCapacityResponse{}, nil
	}
	room := provision.CapacityRequest{
		Type: class.Type, Zone: class.Zone, Zones: mapper.zones(&csi.TopologyRequirement{Requisite: []*csi.Topology{segment}}), AnyZone: mapper.ignored, Multiattach: shared,
	}
	capacity, err := s.o.Clouds[s.clouds[0]].Volumes.Capacity(ctx, room)
	if err != nil {
		return nil, err
	}
	answer := &csi.GetCapacityResponse{AvailableCapacity: int64(capacity.Available)}
	if capacity.Largest > 0 {
		answer.MaximumVolumeSize = wrapperspb.Int64(int64(capacity.Largest))
	}
	if capacity.Smallest > 0 {
		answer.MinimumVolumeSize = wrapperspb.Int64(int64(capacity.Smallest))
	}
	return answer, nil
}

// reach reports whether a volume in that zone can be used in a segment.
func (p topologyMapper) reach(zone string, segment *csi.Topology) bool {
	label := segment.GetSegments()[p.key]
	return label == "" || p.ignored || slices.Contains(p.zoneMap.Labels(zone), label)
}
