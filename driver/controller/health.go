package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// What the severities are in CSI.
var severities = map[volume.Severity]csi.VolumeHealthErrorType{
	volume.Degraded:     csi.VolumeHealthErrorType_DEGRADED,
	volume.Inaccessible: csi.VolumeHealthErrorType_INACCESSIBLE,
}

// ControllerGetVolumeHealth implements csi.ControllerServer. A request without the secret's cloud is about any of them.
func (s *Server) ControllerGetVolumeHealth(ctx context.Context, req *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	clouds := s.clouds
	if name, named := req.GetSecrets()[contract.SecretCloud]; named {
		if _, err := s.cloud(req.GetSecrets()); err != nil {
			return nil, err
		}
		clouds = []string{name}
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	var failed error
	for _, name := range clouds {
		h, err := s.o.Clouds[name].Volumes.Health(ctx, volume.ID(req.GetVolumeId()))
		if err == nil {
			return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: healthOf(h)}, nil
		}
		if !volume.Is(err, volume.NotFound) || failed == nil {
			failed = err // a cloud that cannot answer may have it
		}
	}
	return nil, failed
}

// ControllerListVolumeHealth implements csi.ControllerServer. It lists what is wrong with any volume of the project, whoever made
// it, cloud by cloud. Its tokens are those of ListVolumes.
func (s *Server) ControllerListVolumeHealth(ctx context.Context, req *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	if req.GetMaxEntries() < 0 {
		return nil, volume.Errorf(volume.InvalidArgument, "max_entries is %d", req.GetMaxEntries())
	}
	at, err := s.parseToken(req.GetStartingToken())
	switch {
	case err != nil:
		return nil, err
	case at.backups:
		return nil, badToken(req.GetStartingToken())
	}
	answer := &csi.ControllerListVolumeHealthResponse{}
	for more := true; more; {
		page, err := s.o.Clouds[at.cloud].Volumes.ListHealth(ctx, at.position, 0)
		if volume.Is(err, volume.NotFound) {
			return nil, badToken(req.GetStartingToken())
		}
		if err != nil {
			return nil, err
		}
		for _, h := range page {
			at.position = volume.PositionOf(h.Volume)
			if len(h.Issues) == 0 {
				continue
			}
			answer.Entries = append(answer.Entries, healthOf(h))
			if len(answer.Entries) == int(req.GetMaxEntries()) {
				answer.NextToken = at.String()
				return answer, nil
			}
		}
		if len(page) == 0 {
			at, more = s.nextCloud(at)
		}
	}
	return answer, nil
}

func healthOf(h volume.Health) *csi.VolumeHealth {
	answer := &csi.VolumeHealth{VolumeId: string(h.Volume.ID)}
	for _, a := range h.Issues {
		answer.HealthStatuses = append(answer.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: severities[a.Severity], Reason: a.Reason, Message: a.Message,
		})
	}
	return answer
}
