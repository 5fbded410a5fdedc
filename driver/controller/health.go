package controller

import (
	"cmp"
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

var severities = map[volume.Severity]csi.VolumeHealthErrorType{
	volume.Degraded:     csi.VolumeHealthErrorType_DEGRADED,
	volume.Inaccessible: csi.VolumeHealthErrorType_INACCESSIBLE,
}

// ControllerGetVolumeHealth implements csi.ControllerServer. If the secrets name no cloud, the driver asks every cloud.
func (s *Server) ControllerGetVolumeHealth(ctx context.Context, req *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	clouds := s.clouds
	if name, named := req.GetSecrets()[contract.SecretCloud]; named {
		if _, err := s.cloud(req.GetSecrets()); err != nil {
			return nil, err
		}
		clouds = []string{name}
	}
	if req.GetVolumeId() == "" {
		return nil, missingField("volume ID")
	}
	h, err := readFromAny(s, clouds, func(volumes Volumes) (volume.Health, error) {
		return volumes.Health(ctx, volume.ParseID(req.GetVolumeId()))
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: csiHealth(h)}, nil
}

// ControllerListVolumeHealth implements csi.ControllerServer. It lists the volumes of the project that have issues, cloud by cloud, also volumes
// that others created. Its tokens are those of ListVolumes.
func (s *Server) ControllerListVolumeHealth(ctx context.Context, req *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	at, err := s.volumeListStart(req)
	if err != nil {
		return nil, err
	}
	response := &csi.ControllerListVolumeHealthResponse{}
	most := cmp.Or(int(req.GetMaxEntries()), mostEntries)
	missing := map[volume.ServerID]bool{}
	for pages := 1; ; pages++ {
		if pages > mostPages {
			return nil, endless("volumes", fmt.Errorf("%w: it has more than %d pages", paging.ErrEndless, mostPages))
		}
		page, more, err := s.o.Clouds[at.cloud].Volumes.ListHealth(ctx, at.position, missing)
		if volume.Is(err, volume.NotFound) {
			return nil, invalidToken(req.GetStartingToken())
		}
		if err != nil {
			return nil, err
		}
		for _, h := range page {
			if at, err = at.after(h.Volume, 1, req); err != nil {
				return nil, err
			}
			if len(h.Issues) == 0 {
				continue
			}
			response.Entries = append(response.Entries, csiHealth(h))
			if len(response.Entries) == most {
				response.NextToken = at.String()
				return response, nil
			}
		}
		if !more {
			if at, more = s.nextCloud(at); !more {
				return response, nil
			}
		}
	}
}

func csiHealth(h volume.Health) *csi.VolumeHealth {
	health := &csi.VolumeHealth{VolumeId: string(h.Volume.ID)}
	for _, issue := range h.Issues {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: severities[issue.Severity], Reason: issue.Reason, Message: issue.Message,
		})
	}
	return health
}
