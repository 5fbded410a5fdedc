package controller

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud/paging"
)

// Snapshots are the snapshots of one cloud; *volume.Snapshots is them.
type Snapshots interface {
	Create(ctx context.Context, w snapshot.Spec) (volume.Snapshot, error)
	Delete(ctx context.Context, id volume.SnapshotID) error
	Get(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
	List(ctx context.Context, of volume.ID, p volume.SnapshotPosition, limit int) ([]volume.Snapshot, error)
}

// CreateSnapshot implements csi.ControllerServer. What it returns is ready to use.
func (s *Server) CreateSnapshot(ctx context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	switch {
	case req.GetName() == "":
		return nil, missing("name")
	case req.GetSourceVolumeId() == "":
		return nil, missing("source volume id")
	}
	class, err := s.snapshotClass(ctx, req.GetParameters())
	if err != nil {
		return nil, err
	}
	wish := snapshot.Spec{
		Name: req.GetName(), Volume: volume.ID(req.GetSourceVolumeId()), Force: class.Force, Metadata: snapshotMetadata(req.GetParameters()),
	}
	if class.Kind == contract.KindBackup {
		wish.Backup = &snapshot.BackupSpec{Zone: class.Zone, Incremental: class.Incremental, PerGiB: class.BackupTime}
	}
	p, err := cloud.Snapshots.Create(ctx, wish)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: describedSnapshot(p)}, nil
}

// snapshotClass reads the parameters of the VolumeSnapshotClass, by the rules of class.
func (s *Server) snapshotClass(ctx context.Context, parameters map[string]string) (contract.SnapshotClass, error) {
	class, unknown, err := contract.ParseSnapshotClass(parameters)
	if err != nil {
		return class, volume.Errorf(volume.InvalidArgument, "the VolumeSnapshotClass: %w", err)
	}
	return class, s.unknown(ctx, "VolumeSnapshotClass", unknown, contract.SnapshotClassKeys)
}

// snapshotMetadata is what external-snapshotter's --extra-create-metadata tells.
func snapshotMetadata(parameters map[string]string) map[string]string {
	metadata := map[string]string{}
	for _, key := range contract.SnapshotMetadata {
		if value := parameters[key]; value != "" {
			metadata[key] = value
		}
	}
	return metadata
}

func describedSnapshot(p volume.Snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: string(p.ID), SourceVolumeId: string(p.Volume), SizeBytes: int64(p.Size), CreationTime: timestamppb.New(p.CreatedAt), ReadyToUse: p.Ready(),
	}
}

// DeleteSnapshot implements csi.ControllerServer.
func (s *Server) DeleteSnapshot(ctx context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetSnapshotId() == "" {
		return nil, missing("snapshot id")
	}
	if err := cloud.Snapshots.Delete(ctx, volume.SnapshotID(req.GetSnapshotId())); err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot implements csi.ControllerServer (CSI specification, GetSnapshot: one that does not exist is NotFound).
func (s *Server) GetSnapshot(ctx context.Context, req *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetSnapshotId() == "" {
		return nil, missing("snapshot id")
	}
	p, err := cloud.Snapshots.Get(ctx, volume.SnapshotID(req.GetSnapshotId()))
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: describedSnapshot(p)}, nil
}

// ListSnapshots implements csi.ControllerServer. By id it tells of the snapshot whatever state that is in; external-snapshotter
// asks so whether one that was there before is ready. A list has the snapshots, then the backups; it lacks those that Cinder failed
// to make or is deleting.
func (s *Server) ListSnapshots(ctx context.Context, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	if req.GetMaxEntries() < 0 {
		return nil, volume.Errorf(volume.InvalidArgument, "max_entries is %d", req.GetMaxEntries())
	}
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetSnapshotId() != "" {
		return oneSnapshot(ctx, cloud.Snapshots, req)
	}
	name := req.GetSecrets()[contract.SecretCloud]
	at, err := s.parseToken(req.GetStartingToken())
	switch {
	case err != nil:
		return nil, err
	case req.GetStartingToken() != "" && at.cloud != name:
		return nil, badToken(req.GetStartingToken())
	}
	position := at.snapshots()
	answer := &csi.ListSnapshotsResponse{}
	room := func() int { // 0 is as many as there are
		if req.GetMaxEntries() == 0 {
			return 0
		}
		return int(req.GetMaxEntries()) - len(answer.Entries)
	}
	err = paging.Walk(paging.MaxItems, func(string) ([]volume.Snapshot, bool, error) {
		page, err := cloud.Snapshots.List(ctx, volume.ID(req.GetSourceVolumeId()), position, room())
		if len(page) > 0 {
			position = volume.SnapshotPositionOf(page[len(page)-1])
		}
		return page, true, err
	}, func(p volume.Snapshot) string { return string(p.ID) }, func(page []volume.Snapshot) bool {
		for _, p := range page {
			if p.Alive() {
				answer.Entries = append(answer.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: describedSnapshot(p)})
			}
		}
		if req.GetMaxEntries() > 0 && room() <= 0 {
			answer.NextToken = snapshotToken(position, name).String()
			return false
		}
		return true
	})
	switch {
	case volume.Is(err, volume.NotFound):
		return nil, badToken(req.GetStartingToken())
	case errors.Is(err, paging.ErrEndless):
		return nil, volume.Errorf(volume.Unavailable, "the project's snapshots: %w; Cinder, or a proxy before it, is broken: tell the administrator of the cloud", err)
	case err != nil:
		return nil, err
	}
	return answer, nil
}

// oneSnapshot lists the snapshot of one id, if there is one and it is of the volume that the request names, if it names one.
func oneSnapshot(ctx context.Context, snapshots Snapshots, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	p, err := snapshots.Get(ctx, volume.SnapshotID(req.GetSnapshotId()))
	switch {
	case volume.Is(err, volume.NotFound), err == nil && req.GetSourceVolumeId() != "" && string(p.Volume) != req.GetSourceVolumeId():
		return &csi.ListSnapshotsResponse{}, nil
	case err != nil:
		return nil, err
	}
	return &csi.ListSnapshotsResponse{Entries: []*csi.ListSnapshotsResponse_Entry{{Snapshot: describedSnapshot(p)}}}, nil
}
