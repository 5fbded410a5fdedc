package controller

import (
	"context"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// CreateVolume implements csi.ControllerServer.
func (s *Server) CreateVolume(ctx context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	volumes, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	wish, err := s.wish(ctx, req)
	if err != nil {
		return nil, err
	}
	v, err := volumes.Create(ctx, wish)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: s.created(v, req)}, nil
}

// wish reads what a request asks for.
func (s *Server) wish(ctx context.Context, req *csi.CreateVolumeRequest) (volume.Wish, error) {
	if req.GetName() == "" {
		return volume.Wish{}, missing("name")
	}
	shared, err := needsSharing(req.GetVolumeCapabilities())
	if err != nil {
		return volume.Wish{}, err
	}
	if len(req.GetMutableParameters()) > 0 {
		return volume.Wish{}, volume.Errorf(volume.InvalidArgument, "VolumeAttributesClasses are not supported: the request has mutable parameters")
	}
	class, err := s.class(ctx, req.GetParameters())
	if err != nil {
		return volume.Wish{}, err
	}
	clone, snapshot, err := sourceOf(req.GetVolumeContentSource())
	if err != nil {
		return volume.Wish{}, err
	}
	return volume.Wish{
		Name:     req.GetName(),
		Size:     volume.Range{Required: volume.Size(req.GetCapacityRange().GetRequiredBytes()), Limit: volume.Size(req.GetCapacityRange().GetLimitBytes())},
		Type:     class.Type,
		Zones:    s.zones(class, req.GetAccessibilityRequirements()),
		Shared:   shared,
		Source:   clone,
		Snapshot: snapshot,
		Metadata: metadataOf(class),
	}, nil
}

// class reads the parameters of the StorageClass. Parameters nobody knows are refused if the driver is strict, but for those
// that a newer sidecar may have added; otherwise they are warned about, once each.
func (s *Server) class(ctx context.Context, parameters map[string]string) (contract.StorageClass, error) {
	class, unknown, err := contract.ParseStorageClass(parameters)
	if err != nil {
		return class, volume.Errorf(volume.InvalidArgument, "the StorageClass: %w", err)
	}
	return class, s.unknown(ctx, "StorageClass", unknown, contract.StorageClassKeys)
}

// unknown refuses or warns about parameters that nobody knows; kind is the class they are of, known what they could be.
func (s *Server) unknown(ctx context.Context, kind string, keys, known []string) error {
	for _, key := range keys {
		hint := ""
		if near, ok := contract.Nearest(key, known); ok {
			hint = "; did you mean " + near + "?"
		}
		if s.o.Strict && !contract.FromSidecar(key) {
			return volume.Errorf(volume.InvalidArgument, "the %s has the unknown parameter %q%s", kind, key, hint)
		}
		if s.warned.first(kind + " " + key) {
			s.o.Log.WarnContext(ctx, "a "+kind+" has an unknown parameter, which is ignored"+hint, "parameter", key)
		}
	}
	return nil
}

// warned remembers what was warned about.
type warned struct{ keys sync.Map }

func (w *warned) first(key string) bool {
	_, before := w.keys.LoadOrStore(key, true)
	return !before
}

// sourceOf is the volume to clone or the snapshot to restore, if either.
func sourceOf(source *csi.VolumeContentSource) (volume.ID, volume.SnapshotID, error) {
	clone, snapshot := source.GetVolume().GetVolumeId(), source.GetSnapshot().GetSnapshotId()
	switch {
	case source == nil:
	case source.GetSnapshot() != nil && snapshot == "":
		return "", "", missing("source snapshot's id")
	case source.GetSnapshot() == nil && clone == "":
		return "", "", missing("source volume's id")
	}
	return volume.ID(clone), volume.SnapshotID(snapshot), nil
}

// zones are the volume zones that will do, best first. The class's own wins over the topology.
func (s *Server) zones(class contract.StorageClass, wanted *csi.TopologyRequirement) []string {
	if class.Zone != "" {
		return []string{class.Zone}
	}
	if !s.o.WithTopology {
		return nil
	}
	var zones []string
	seen := map[string]bool{}
	for _, topologies := range [][]*csi.Topology{wanted.GetPreferred(), wanted.GetRequisite()} {
		for _, topology := range topologies {
			if zone := topology.GetSegments()[s.o.TopologyKey]; zone != "" && !seen[zone] {
				seen[zone] = true
				zones = append(zones, zone)
			}
		}
	}
	return zones
}

func metadataOf(class contract.StorageClass) map[string]string {
	metadata := map[string]string{}
	for key, value := range class.Metadata {
		metadata[key] = value
	}
	for key, value := range map[string]string{
		contract.MetadataPVCName: class.PVCName, contract.MetadataPVCNamespace: class.PVCNamespace, contract.MetadataPVName: class.PVName,
	} {
		if value != "" {
			metadata[key] = value
		}
	}
	return metadata
}

// created describes a volume that was just made. Its zone is the one it really is in.
func (s *Server) created(v volume.Volume, req *csi.CreateVolumeRequest) *csi.Volume {
	answer := &csi.Volume{VolumeId: string(v.ID), CapacityBytes: int64(v.Size), ContentSource: req.GetVolumeContentSource()}
	if answer.ContentSource != nil {
		answer.VolumeContext = map[string]string{contract.ContextResizeRequired: "true"}
	}
	switch {
	case !s.o.WithTopology:
	case s.o.IgnoreZone != nil && s.o.IgnoreZone():
		answer.AccessibleTopology = req.GetAccessibilityRequirements().GetPreferred()
	case strings.TrimSpace(v.Zone) != "":
		answer.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{s.o.TopologyKey: contract.SanitizeZone(v.Zone)}}}
	}
	return answer
}

// DeleteVolume implements csi.ControllerServer.
func (s *Server) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	volumes, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	if err := volumes.Delete(ctx, volume.ID(req.GetVolumeId())); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}
