package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// CreateVolume implements csi.ControllerServer.
func (s *Server) CreateVolume(ctx context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	mapper := s.topologyMapper()
	spec, format, err := s.parseCreateVolume(ctx, req, mapper)
	if err != nil {
		return nil, err
	}
	v, err := cloud.Volumes.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: newVolume(v, req, format, mapper)}, nil
}

// parseCreateVolume validates a request. It returns the volume to create, and how a node creates the file system.
func (s *Server) parseCreateVolume(ctx context.Context, req *csi.CreateVolumeRequest, mapper topologyMapper) (spec provision.CreateSpec, format contract.Format, err error) {
	if err := validateName(req.GetName()); err != nil {
		return spec, format, err
	}
	multiattach, err := needsMultiattach(req.GetVolumeCapabilities())
	if err != nil {
		return spec, format, err
	}
	class, err := s.storageClass(ctx, req.GetParameters())
	if err != nil {
		return spec, format, err
	}
	for _, c := range req.GetVolumeCapabilities() { // external-provisioner takes the file system out of the class
		if err := contract.CheckText("fsType", c.GetMount().GetFsType()); err != nil {
			return spec, format, volume.Errorf(volume.InvalidArgument, "StorageClass: %w", err)
		}
	}
	if err := s.validateFormat(class.Format, req.GetVolumeCapabilities()); err != nil {
		return spec, format, err
	}
	metadata, err := class.VolumeMetadata()
	if err != nil {
		return spec, format, volume.Errorf(volume.InvalidArgument, "StorageClass: %w", err)
	}
	attributes, err := attributesClass(req.GetMutableParameters())
	if err != nil {
		return spec, format, err
	}
	maps.Copy(metadata, attributes.Metadata)
	for _, key := range attributes.Remove {
		delete(metadata, key)
	}
	maps.Copy(metadata, modeMetadata(req.GetVolumeCapabilities()))
	if err := contract.CheckMetadataSize(metadata); err != nil {
		return spec, format, volume.Errorf(volume.InvalidArgument, "the request: %w", err)
	}
	clone, snapshot, err := sourceOf(req.GetVolumeContentSource())
	if err != nil {
		return spec, format, err
	}
	zones := mapper.zones(req.GetAccessibilityRequirements())
	for _, zone := range zones {
		if err := contract.CheckText("zone", zone); err != nil {
			return spec, format, volume.Errorf(volume.InvalidArgument, "the topology: %w", err)
		}
	}
	size := sizeRange(req.GetCapacityRange())
	if clone == "" && snapshot == "" {
		if err := validateInodes(class.Format, size); err != nil {
			return spec, format, err
		}
	}
	return provision.CreateSpec{
		Name:           req.GetName(),
		Size:           size,
		Type:           cmp.Or(attributes.Type, class.Type), // mutable parameters override parameters (CSI specification, CreateVolume)
		Zone:           class.Zone,
		Zones:          zones,
		AnyZone:        mapper.ignored,
		Multiattach:    multiattach,
		Source:         clone,
		Snapshot:       snapshot,
		Metadata:       metadata,
		Hints:          class.Hints,
		ClaimHints:     s.claimHints(class.PVCNamespace, class.PVCName),
		ClaimNamespace: class.PVCNamespace,
		DropHint:       s.dropHint(class.PVCNamespace, class.PVCName),
	}, class.Format, nil
}

// modeMetadata says in the metadata how the volume is used: as a file system, and which, or as a disk. It is empty if the capabilities differ.
func modeMetadata(capabilities []*csi.VolumeCapability) map[string]string {
	var mode map[string]string
	for _, c := range capabilities {
		one := map[string]string{contract.MetadataVolumeMode: contract.ModeBlock}
		if c.GetBlock() == nil {
			one[contract.MetadataVolumeMode] = contract.ModeFilesystem
			if fsType := c.GetMount().GetFsType(); fsType != "" {
				one[contract.MetadataFSType] = fsType
			}
		}
		if mode != nil && !maps.Equal(mode, one) {
			return nil
		}
		mode = one
	}
	return mode
}

func sizeRange(r *csi.CapacityRange) volume.Range {
	return volume.Range{Required: volume.Size(r.GetRequiredBytes()), Limit: volume.Size(r.GetLimitBytes())}
}

// sourceOf returns the volume to clone or the snapshot to restore, if the request has a source.
func sourceOf(source *csi.VolumeContentSource) (volume.ID, volume.SnapshotID, error) {
	clone, snapshot := source.GetVolume().GetVolumeId(), source.GetSnapshot().GetSnapshotId()
	switch {
	case source == nil:
	case source.GetSnapshot() != nil && snapshot == "":
		return "", "", missingField("source snapshot ID")
	case source.GetSnapshot() == nil && clone == "":
		return "", "", missingField("source volume ID")
	}
	return volume.ParseID(clone), volume.ParseSnapshotID(snapshot), nil
}

// newVolume describes a new volume. A volume with a source has the file system of its source, which a node may have to expand.
func newVolume(v volume.Volume, req *csi.CreateVolumeRequest, format contract.Format, mapper topologyMapper) *csi.Volume {
	described := &csi.Volume{
		VolumeId: string(v.ID), CapacityBytes: int64(v.Size), ContentSource: req.GetVolumeContentSource(),
		AccessibleTopology: mapper.accessible(v, req.GetAccessibilityRequirements()), VolumeContext: format.Context(),
	}
	if described.ContentSource != nil {
		described.VolumeContext = map[string]string{contract.ContextResizeRequired: "true"}
	}
	return described
}

// claimHints returns a function that reads the scheduler hints in the annotations of a claim; nil if the driver reads no claims. A missing claim
// has no hints. A lenient driver that may not read the claim creates the volume without hints, as upstream does.
func (s *Server) claimHints(namespace, claim string) func(ctx context.Context) (contract.Hints, error) {
	if s.o.Claims == nil {
		return nil
	}
	return func(ctx context.Context) (contract.Hints, error) {
		annotations, err := s.readAnnotations(ctx, namespace, claim)
		switch kind := volume.KindOf(err); {
		case err == nil:
		case kind == volume.NotFound:
			return contract.Hints{}, nil
		case !s.o.Strict && (kind == volume.PermissionDenied || kind == volume.InvalidArgument):
			s.tolerate(ctx, "unread annotations", kind.String(), "cannot read the annotations of a claim; the driver creates the volume without their scheduler hints", "error", err)
			return contract.Hints{}, nil
		default:
			return contract.Hints{}, err
		}
		hints, err := contract.HintsOfClaim(annotations)
		if err != nil {
			return contract.Hints{}, volume.Errorf(volume.InvalidArgument, "claim %s/%s: %w", namespace, claim, err)
		}
		return hints, nil
	}
}

// dropHint returns what a lenient driver does with a hint that names no volume of the namespace; nil if the driver is strict. Upstream accepts every
// volume of the project there, so the claims of a cluster that ran it may have such hints.
func (s *Server) dropHint(namespace, claim string) func(ctx context.Context, name string) {
	if s.o.Strict || s.o.Claims == nil {
		return nil
	}
	return func(ctx context.Context, name string) {
		claim := namespace + "/" + claim
		s.tolerate(ctx, "unread annotations", claim, "an annotation of a claim names no volume of its namespace; the driver creates the volume without that scheduler hint", "claim", claim, "hint", fmt.Sprintf("%.255q", name))
	}
}

func (s *Server) readAnnotations(ctx context.Context, namespace, claim string) (map[string]string, error) {
	if namespace == "" || claim == "" {
		return nil, volume.Errorf(volume.InvalidArgument, "the request does not name its claim, whose annotations hold scheduler hints; start external-provisioner with --extra-create-metadata")
	}
	return s.o.Claims.Annotations(ctx, namespace, claim)
}

// DeleteVolume implements csi.ControllerServer.
func (s *Server) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	cloud, id, err := s.volumeOf(req)
	if err != nil {
		return nil, err
	}
	if err := cloud.Volumes.Delete(ctx, id); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}
