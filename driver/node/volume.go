package node

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/host"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// NodeStageVolume mounts a volume's file system at the staging path, made first if the disk is empty. Of a block volume it makes
// sure that the disk is here.
func (s *Server) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	staging, use, err := s.parseStage(r)
	if err != nil {
		return nil, err
	}
	err = s.lanes.run(ctx, r.GetVolumeId(), "stage", func(ctx context.Context) error {
		if !use.block {
			return s.machine.Stage(ctx, staging)
		}
		disk, err := s.machine.Await(ctx, staging.Volume)
		if err != nil {
			return err
		}
		return disk.Close()
	})
	return answer(&csi.NodeStageVolumeResponse{}, err)
}

// NodeUnstageVolume takes the mount at the staging path away.
func (s *Server) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetStagingTargetPath(), "staging_target_path"); err != nil {
		return nil, err
	}
	err := s.lanes.run(ctx, r.GetVolumeId(), "unstage", func(ctx context.Context) error {
		return s.machine.Unstage(ctx, volume.ID(r.GetVolumeId()), r.GetStagingTargetPath())
	})
	return answer(&csi.NodeUnstageVolumeResponse{}, err)
}

// NodePublishVolume shows a staged volume to a pod.
func (s *Server) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	publication, use, err := parsePublish(r)
	if err != nil {
		return nil, err
	}
	err = s.lanes.run(ctx, r.GetVolumeId(), "publish", func(ctx context.Context) error {
		if use.block {
			return s.machine.PublishBlock(ctx, publication)
		}
		return s.machine.Publish(ctx, publication)
	})
	return answer(&csi.NodePublishVolumeResponse{}, err)
}

// NodeUnpublishVolume takes a volume away from a pod.
func (s *Server) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetTargetPath(), "target_path"); err != nil {
		return nil, err
	}
	err := s.lanes.run(ctx, r.GetVolumeId(), "unpublish", func(context.Context) error {
		return s.machine.Unmount(r.GetTargetPath())
	})
	return answer(&csi.NodeUnpublishVolumeResponse{}, err)
}

// NodeGetVolumeStats tells how full a published or staged volume is. It takes no lane: it changes nothing, and kubelet asks while
// other calls work.
func (s *Server) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id", r.GetVolumePath(), "volume_path"); err != nil {
		return nil, err
	}
	stats, err := s.machine.Stats(ctx, r.GetVolumePath())
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

func usage(unit csi.VolumeUsage_Unit, u host.Usage) *csi.VolumeUsage {
	return &csi.VolumeUsage{Unit: unit, Total: u.Total, Available: u.Available, Used: u.Used}
}

// severities are the domain's in CSI's words.
var severities = map[volume.Severity]csi.VolumeHealthErrorType{
	volume.Degraded:     csi.VolumeHealthErrorType_DEGRADED,
	volume.Inaccessible: csi.VolumeHealthErrorType_INACCESSIBLE,
}

// NodeGetVolumeHealth tells what is wrong with a volume as this node sees it. It takes no lane: it changes nothing, and is asked
// because other calls do not get on.
func (s *Server) NodeGetVolumeHealth(ctx context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if err := required(r.GetVolumeId(), "volume_id"); err != nil {
		return nil, err
	}
	ailments, err := s.machine.Health(ctx, volume.ID(r.GetVolumeId()), r.GetStagingTargetPath(), r.GetVolumePublishPath())
	if err != nil {
		return nil, err
	}
	health := &csi.VolumeHealth{VolumeId: r.GetVolumeId()}
	for _, a := range ailments {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: severities[a.Severity], Reason: a.Reason, Message: a.Message,
		})
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// NodeExpandVolume grows a volume's file system to its disk, once the disk has grown.
func (s *Server) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	growth, err := parseExpand(r)
	if err != nil {
		return nil, err
	}
	var size volume.Size
	err = s.lanes.run(ctx, r.GetVolumeId(), "expand", func(ctx context.Context) (err error) {
		size, err = s.machine.Grow(ctx, growth)
		return err
	})
	if err != nil {
		return nil, err // and size is not looked at: work that goes on may still write it
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: int64(size)}, nil
}

// answer keeps a response from going out beside an error.
func answer[R any](response *R, err error) (*R, error) {
	if err != nil {
		return nil, err
	}
	return response, nil
}
