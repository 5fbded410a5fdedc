package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerGetVolume implements csi.ControllerServer. The request has no secrets, so the driver asks every cloud.
func (s *Server) ControllerGetVolume(ctx context.Context, req *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, missingField("volume ID")
	}
	v, err := readFromAny(s, s.clouds, func(volumes Volumes) (volume.Volume, error) {
		return volumes.Get(ctx, volume.ParseID(req.GetVolumeId()))
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: existingVolume(v), Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: nodesOf(v)}}, nil
}

// readFromAny reads from each cloud until one has the volume. If none has, an error other than NotFound is the result: the cloud that failed
// may have the volume.
func readFromAny[T any](s *Server, clouds []string, read func(Volumes) (T, error)) (T, error) {
	var none T
	var failure error
	for _, name := range clouds {
		result, err := read(s.o.Clouds[name].Volumes)
		if err == nil {
			return result, nil
		}
		if !volume.Is(err, volume.NotFound) || failure == nil {
			failure = err
		}
	}
	return none, failure
}

// existingVolume describes a volume in a list. The driver does not know the context or topology that CreateVolume returned for it.
func existingVolume(v volume.Volume) *csi.Volume {
	return &csi.Volume{VolumeId: string(v.ID), CapacityBytes: int64(v.Size)}
}

func nodesOf(v volume.Volume) []string {
	var nodes []string
	for _, a := range v.Attachments {
		if a.Server.Exists() { // a host that is no Nova server is no node
			nodes = append(nodes, string(a.Server))
		}
	}
	return nodes
}

// mostEntries are those of an answer to a caller that names no limit. It reads the rest with the token, as each sidecar does. All volumes of a large
// project would take more memory than the driver has, and more than gRPC's 4 MiB.
const mostEntries = 1000

// mostPages are those that one answer reads: a page may have no volume with an issue.
const mostPages = 1000

// ListVolumes implements csi.ControllerServer. It lists every volume of the project, cloud by cloud, also volumes that others created.
// external-attacher treats a volume that is missing in the list as detached.
func (s *Server) ListVolumes(ctx context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	at, err := s.volumeListStart(req)
	if err != nil {
		return nil, err
	}
	response := &csi.ListVolumesResponse{}
	remaining := int(req.GetMaxEntries()) // 0 means no limit
	for {
		page, more, err := s.o.Clouds[at.cloud].Volumes.List(ctx, at.position, remaining)
		if volume.Is(err, volume.NotFound) {
			return nil, invalidToken(req.GetStartingToken())
		}
		if err != nil {
			return nil, err
		}
		for _, v := range page {
			response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{
				Volume: existingVolume(v), Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: nodesOf(v)},
			})
		}
		if more {
			at, err = at.after(page[len(page)-1], len(page), req)
		} else {
			at, more = s.nextCloud(at)
		}
		switch {
		case !more:
			return response, nil
		case err != nil:
			return nil, err
		case req.GetMaxEntries() == 0 && len(response.Entries) < mostEntries:
		case remaining <= len(page):
			response.NextToken = at.String()
			return response, nil
		default:
			remaining -= len(page)
		}
	}
}
