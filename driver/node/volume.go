package node

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// NodeStageVolume mounts the file system of a volume at the staging path, and makes it first if the disk is empty. For
// a block volume it waits for the disk.
func (s *Server) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	spec, capability, err := s.parseStage(r)
	if err != nil {
		return nil, err
	}
	err = s.inFlight.run(ctx, r.GetVolumeId(), "stage", func(ctx context.Context) error {
		if capability.block {
			return s.machine.AwaitDisk(ctx, spec.Volume)
		}
		return s.machine.Stage(ctx, spec)
	})
	return answer(&csi.NodeStageVolumeResponse{}, err)
}

// NodeUnstageVolume unmounts the staging path.
func (s *Server) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetStagingTargetPath(), "staging_target_path"); err != nil {
		return nil, err
	}
	err := s.inFlight.run(ctx, r.GetVolumeId(), "unstage", func(ctx context.Context) error {
		return s.machine.Unstage(ctx, volumeID(r.GetVolumeId()), r.GetStagingTargetPath())
	})
	if err == nil {
		s.options.Metrics.VolumeHealth(string(volumeID(r.GetVolumeId())), nil)
	}
	return answer(&csi.NodeUnstageVolumeResponse{}, err)
}

// NodePublishVolume binds a staged volume at the target path of a pod.
func (s *Server) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	spec, capability, err := parsePublish(r)
	if err != nil {
		return nil, err
	}
	err = s.inFlight.run(ctx, r.GetVolumeId(), "publish", func(ctx context.Context) error {
		if capability.block {
			return s.machine.PublishBlock(ctx, spec)
		}
		return s.machine.Publish(ctx, spec)
	})
	return answer(&csi.NodePublishVolumeResponse{}, err)
}

// NodeUnpublishVolume unmounts the target path of a pod.
func (s *Server) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetTargetPath(), "target_path"); err != nil {
		return nil, err
	}
	err := s.inFlight.run(ctx, r.GetVolumeId(), "unpublish", func(ctx context.Context) error {
		return s.machine.Unpublish(ctx, r.GetTargetPath())
	})
	return answer(&csi.NodeUnpublishVolumeResponse{}, err)
}

// NodeGetVolumeStats returns the usage of a published or staged volume. It does not lock the volume: it changes
// nothing, and kubelet calls it while other operations are in flight.
func (s *Server) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetVolumePath(), "volume_path"); err != nil {
		return nil, err
	}
	stats, err := s.machine.Stats(ctx, r.GetVolumePath())
	if reasons, known := findings(stats, err); known && volumeID(r.GetVolumeId()).Exists() {
		s.options.Metrics.VolumeHealth(string(volumeID(r.GetVolumeId())), reasons)
	}
	if err != nil {
		return nil, err
	}
	if stats.Block {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: stats.Bytes.Total}}}, nil
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		usage(csi.VolumeUsage_BYTES, stats.Bytes), usage(csi.VolumeUsage_INODES, stats.Inodes),
	}}, nil
}

// findings are the reasons of what is wrong with a volume, as reading its usage showed. kubelet asks for that of every mounted volume, once a
// minute by default, so this costs no read of its own. known is false if the caller left before the answer.
func findings(stats host.Stats, err error) (reasons []string, known bool) {
	for _, issue := range stats.Issues {
		reasons = append(reasons, issue.Reason)
	}
	switch {
	case err == nil, volume.Is(err, volume.NotFound): // nothing is mounted there
	case volume.Is(err, volume.Canceled), volume.Is(err, volume.DeadlineExceeded):
		return nil, false
	case volume.Is(err, volume.Unavailable):
		reasons = append(reasons, "NotResponding")
	default:
		reasons = append(reasons, "InputOutputError")
	}
	return reasons, true
}

func usage(unit csi.VolumeUsage_Unit, u host.Usage) *csi.VolumeUsage {
	return &csi.VolumeUsage{Unit: unit, Total: u.Total, Available: u.Available, Used: u.Used}
}

var severities = map[volume.Severity]csi.VolumeHealthErrorType{
	volume.Degraded:     csi.VolumeHealthErrorType_DEGRADED,
	volume.Inaccessible: csi.VolumeHealthErrorType_INACCESSIBLE,
}

// NodeGetVolumeHealth reports what is wrong with a volume as this node sees it. It does not lock the volume: it changes
// nothing, and it is called because other operations are stuck.
func (s *Server) NodeGetVolumeHealth(ctx context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id"); err != nil {
		return nil, err
	}
	issues, err := s.machine.Health(ctx, volumeID(r.GetVolumeId()), r.GetStagingTargetPath(), r.GetVolumePublishPath())
	if err != nil {
		return nil, err
	}
	health := &csi.VolumeHealth{VolumeId: r.GetVolumeId()}
	for _, a := range issues {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: severities[a.Severity], Reason: a.Reason, Message: a.Message,
		})
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// NodeExpandVolume waits until the disk of a volume has grown, and grows its file system.
func (s *Server) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	spec, err := parseExpand(r)
	if err != nil {
		return nil, err
	}
	var size volume.Size
	err = s.inFlight.run(ctx, r.GetVolumeId(), "expand", func(ctx context.Context) (err error) {
		size, err = s.machine.Expand(ctx, spec)
		return err
	})
	if err != nil {
		return nil, err // without reading size: an operation that continues may still write it
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: int64(size)}, nil
}

// answer returns either the response or the error.
func answer[R any](response *R, err error) (*R, error) {
	if err != nil {
		return nil, err
	}
	return response, nil
}
