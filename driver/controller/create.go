package controller

import (
	"cmp"
	"context"
	"sync"

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
	wish, format, err := s.wish(ctx, req, mapper)
	if err != nil {
		return nil, err
	}
	v, err := cloud.Volumes.Create(ctx, wish)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: created(v, req, format, mapper)}, nil
}

// wish reads what a request asks for, of the cloud and of whoever makes the file system.
func (s *Server) wish(ctx context.Context, req *csi.CreateVolumeRequest, mapper topologyMapper) (provision.CreateSpec, contract.Format, error) {
	if req.GetName() == "" {
		return provision.CreateSpec{}, contract.Format{}, missing("name")
	}
	shared, err := needsSharing(req.GetVolumeCapabilities())
	if err != nil {
		return provision.CreateSpec{}, contract.Format{}, err
	}
	class, err := s.class(ctx, req.GetParameters())
	if err != nil {
		return provision.CreateSpec{}, contract.Format{}, err
	}
	size := volume.Range{Required: volume.Size(req.GetCapacityRange().GetRequiredBytes()), Limit: volume.Size(req.GetCapacityRange().GetLimitBytes())}
	if err := s.validateFormat(class.Format, req.GetVolumeCapabilities()); err != nil {
		return provision.CreateSpec{}, contract.Format{}, err
	}
	metadata, err := class.VolumeMetadata()
	if err != nil {
		return provision.CreateSpec{}, contract.Format{}, volume.Errorf(volume.InvalidArgument, "the StorageClass: %w", err)
	}
	attributes, err := attributesClass(req.GetMutableParameters())
	if err != nil {
		return provision.CreateSpec{}, contract.Format{}, err
	}
	clone, snapshot, err := sourceOf(req.GetVolumeContentSource())
	if err != nil {
		return provision.CreateSpec{}, contract.Format{}, err
	}
	if clone == "" && snapshot == "" {
		if err := validateInodes(class.Format, size); err != nil {
			return provision.CreateSpec{}, contract.Format{}, err
		}
	}
	return provision.CreateSpec{
		Name:        req.GetName(),
		Size:        size,
		Type:        cmp.Or(attributes.Type, class.Type), // mutable parameters win (CSI specification, CreateVolume)
		Zone:        class.Zone,
		Zones:       mapper.zones(req.GetAccessibilityRequirements()),
		AnyZone:     mapper.ignored,
		Multiattach: shared,
		Source:      clone,
		Snapshot:    snapshot,
		Metadata:    withMetadata(metadata, attributes.Metadata),
		Hints:       class.Hints,

		ClaimHints:     s.hintsOf(class.PVCNamespace, class.PVCName),
		ClaimNamespace: class.PVCNamespace,
	}, class.Format, nil
}

// hintsOf reads the hints in a claim's annotations, where they are to be read. A claim that is gone hints nothing. What a lenient
// driver may not read it goes on without, as upstream's does.
func (s *Server) hintsOf(namespace, claim string) func(ctx context.Context) (contract.Hints, error) {
	if s.o.Claims == nil {
		return nil
	}
	return func(ctx context.Context) (contract.Hints, error) {
		annotations, err := map[string]string(nil), error(volume.Errorf(volume.InvalidArgument,
			"the request does not tell its claim, whose annotations are to be read; external-provisioner needs --extra-create-metadata"))
		if namespace != "" && claim != "" {
			annotations, err = s.o.Claims.Annotations(ctx, namespace, claim)
		}
		switch kind := volume.KindOf(err); {
		case err == nil:
		case kind == volume.NotFound:
			return contract.Hints{}, nil
		case !s.o.Strict && (kind == volume.PermissionDenied || kind == volume.InvalidArgument):
			s.lenient(ctx, "unread annotations", kind.String(), "a claim's annotations cannot be read; its volume is made without their scheduler hints", "error", err)
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
		s.lenient(ctx, "unknown parameter", kind+" "+key, "a "+kind+" has an unknown parameter, which is ignored"+hint, "parameter", key)
	}
	return nil
}

// warned remembers what was warned about. Volumes come and go for as long as the driver runs: once there are mostWarned it begins anew.
type warned struct {
	mu   sync.Mutex
	keys map[string]bool
}

const mostWarned = 1000

func (w *warned) first(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[key] {
		return false
	}
	if w.keys == nil || len(w.keys) >= mostWarned {
		w.keys = map[string]bool{}
	}
	w.keys[key] = true
	return true
}

// lenient notes what a strict driver refuses: every time in the count of its kind, once by key in the log.
func (s *Server) lenient(ctx context.Context, what, key, message string, attributes ...any) {
	if s.o.Lenient != nil {
		s.o.Lenient(what)
	}
	if s.warned.first(what + " " + key) {
		s.o.Log.WarnContext(ctx, message, attributes...)
	}
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

// created describes a volume that was just made. The file system of one that was made from a source is its source's.
func created(v volume.Volume, req *csi.CreateVolumeRequest, format contract.Format, mapper topologyMapper) *csi.Volume {
	answer := &csi.Volume{
		VolumeId: string(v.ID), CapacityBytes: int64(v.Size), ContentSource: req.GetVolumeContentSource(),
		AccessibleTopology: mapper.accessible(v, req.GetAccessibilityRequirements()), VolumeContext: format.Context(),
	}
	if answer.ContentSource != nil {
		answer.VolumeContext = map[string]string{contract.ContextResizeRequired: "true"}
	}
	return answer
}

// DeleteVolume implements csi.ControllerServer.
func (s *Server) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	cloud, err := s.cloud(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	if err := cloud.Volumes.Delete(ctx, volume.ID(req.GetVolumeId())); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}
