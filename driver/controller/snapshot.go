package controller

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// Snapshots creates, lists and deletes the snapshots and backups of one cloud; *snapshot.Service implements it.
type Snapshots interface {
	Create(ctx context.Context, spec snapshot.Spec) (volume.Snapshot, error)
	Delete(ctx context.Context, id volume.SnapshotID) error
	Get(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error)
	List(ctx context.Context, source volume.ID, p volume.SnapshotPosition, limit int) ([]volume.Snapshot, error)
}

// CreateSnapshot implements csi.ControllerServer. The snapshot in the response is always ready to use.
func (s *Server) CreateSnapshot(ctx context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if err := validateName(req.GetName()); err != nil {
		return nil, err
	}
	if req.GetSourceVolumeId() == "" {
		return nil, missingField("source volume ID")
	}
	class, err := s.snapshotClass(ctx, req.GetParameters())
	if err != nil {
		return nil, err
	}
	metadata, err := snapshotMetadata(class, req.GetParameters())
	if err != nil {
		return nil, err
	}
	spec := snapshot.Spec{Name: req.GetName(), Volume: volume.ParseID(req.GetSourceVolumeId()), Force: class.Force, Metadata: metadata}
	if class.Kind == contract.KindBackup {
		spec.Backup = &snapshot.BackupSpec{Zone: class.Zone, Incremental: class.Incremental, PerGiB: class.BackupTime}
	}
	p, err := cloud.Snapshots.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: csiSnapshot(p)}, nil
}

// snapshotMetadata is that of the class, and what external-snapshotter adds to the parameters with --extra-create-metadata. Kubernetes
// does not validate the names in a VolumeSnapshotContent.
func snapshotMetadata(class contract.SnapshotClass, parameters map[string]string) (map[string]string, error) {
	metadata := map[string]string{}
	maps.Copy(metadata, class.Metadata)
	for _, key := range contract.SnapshotMetadata {
		value := parameters[key]
		if err := contract.CheckText(key, value); err != nil {
			return nil, volume.Errorf(volume.InvalidArgument, "parameter %w", err)
		}
		if value != "" {
			metadata[key] = value
		}
	}
	if err := contract.CheckMetadataSize(metadata); err != nil {
		return nil, volume.Errorf(volume.InvalidArgument, "the request: %w", err)
	}
	return metadata, nil
}

func csiSnapshot(p volume.Snapshot) *csi.Snapshot {
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
		return nil, missingField("snapshot ID")
	}
	if err := cloud.Snapshots.Delete(ctx, volume.ParseSnapshotID(req.GetSnapshotId())); err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot implements csi.ControllerServer. NotFound if the snapshot does not exist (CSI specification, GetSnapshot).
func (s *Server) GetSnapshot(ctx context.Context, req *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetSnapshotId() == "" {
		return nil, missingField("snapshot ID")
	}
	p, err := cloud.Snapshots.Get(ctx, volume.ParseSnapshotID(req.GetSnapshotId()))
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: csiSnapshot(p)}, nil
}

// ListSnapshots implements csi.ControllerServer. A request with an ID returns that snapshot in any status: external-snapshotter asks in this way
// whether an imported snapshot is ready. A list holds the snapshots, then the backups, but not those that have failed or are being deleted.
func (s *Server) ListSnapshots(ctx context.Context, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	if err := validateMaxEntries(req); err != nil {
		return nil, err
	}
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetSnapshotId() != "" {
		return listOneSnapshot(ctx, cloud.Snapshots, req)
	}
	name := req.GetSecrets()[contract.SecretCloud]
	at, err := s.parseToken(req.GetStartingToken())
	switch {
	case err != nil:
		return nil, err
	case req.GetStartingToken() != "" && at.cloud != name:
		return nil, invalidToken(req.GetStartingToken())
	}
	position := at.snapshotPosition()
	response := &csi.ListSnapshotsResponse{}
	most := cmp.Or(int(req.GetMaxEntries()), mostEntries)
	remaining := func() int { return most - len(response.Entries) }
	err = paging.Walk(paging.MaxItems, func(string) ([]volume.Snapshot, bool, error) {
		page, err := cloud.Snapshots.List(ctx, volume.ParseID(req.GetSourceVolumeId()), position, remaining())
		if len(page) > 0 {
			position = volume.SnapshotPositionOf(page[len(page)-1])
		}
		return page, true, err
	}, func(p volume.Snapshot) string { return string(p.ID) }, func(page []volume.Snapshot) bool {
		for _, p := range page {
			if p.Alive() {
				response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: csiSnapshot(p)})
			}
		}
		if remaining() <= 0 {
			response.NextToken = snapshotToken(position, name).String()
			return false
		}
		return true
	})
	switch {
	case volume.Is(err, volume.NotFound):
		return nil, invalidToken(req.GetStartingToken())
	case errors.Is(err, paging.ErrEndless):
		return nil, endless("snapshots", err)
	case err != nil:
		return nil, err
	}
	return response, nil
}

// listOneSnapshot lists the snapshot with the ID of the request. The list is empty if it does not exist, or if its volume is not the requested one.
func listOneSnapshot(ctx context.Context, snapshots Snapshots, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	p, err := snapshots.Get(ctx, volume.ParseSnapshotID(req.GetSnapshotId()))
	switch {
	case volume.Is(err, volume.NotFound), err == nil && req.GetSourceVolumeId() != "" && p.Volume != volume.ParseID(req.GetSourceVolumeId()):
		return &csi.ListSnapshotsResponse{}, nil
	case err != nil:
		return nil, err
	}
	return &csi.ListSnapshotsResponse{Entries: []*csi.ListSnapshotsResponse_Entry{{Snapshot: csiSnapshot(p)}}}, nil
}
