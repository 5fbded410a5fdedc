package provision

import (
	"context"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// findVolume returns the ID of the volume that a hint names.
type findVolume func(ctx context.Context, nameOrID string) (volume.ID, error)

// allHints returns the hints of the StorageClass and of the claim, with IDs instead of names: Cinder takes only IDs.
func (s *Service) allHints(ctx context.Context, spec CreateSpec) (contract.Hints, error) {
	hints, err := resolveHints(ctx, spec.Hints, s.findHinted)
	if err != nil || spec.ClaimHints == nil {
		return hints, err
	}
	ofClaim, err := spec.ClaimHints(ctx)
	if err != nil {
		return contract.Hints{}, err
	}
	ofClaim, err = resolveHints(ctx, ofClaim, func(ctx context.Context, nameOrID string) (volume.ID, error) {
		return s.findInNamespace(ctx, spec.ClaimNamespace, nameOrID)
	})
	if err != nil {
		return contract.Hints{}, err
	}
	hints = hints.With(ofClaim)
	hints.SameHost, hints.DifferentHost = unique(hints.SameHost), unique(hints.DifferentHost)
	return hints, nil
}

// resolveHints replaces the volumes that hints name, by ID or by name as with upstream, with their IDs.
func resolveHints(ctx context.Context, h contract.Hints, find findVolume) (contract.Hints, error) {
	resolved := contract.Hints{Query: h.Query, LocalToServer: h.LocalToServer}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{h.SameHost, &resolved.SameHost}, {h.DifferentHost, &resolved.DifferentHost}} {
		for _, nameOrID := range list.from {
			id, err := find(ctx, nameOrID)
			if err != nil {
				return contract.Hints{}, err
			}
			*list.to = append(*list.to, string(id))
		}
		*list.to = unique(*list.to)
	}
	return resolved, nil
}

// unique drops repeated IDs and keeps the order: the schema of Cinder allows each ID once.
func unique(ids []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(ids, func(id string) bool {
		repeated := seen[id]
		seen[id] = true
		return repeated
	})
}

// findHinted finds one volume by ID or name. InvalidArgument where no volume or more than one volume has the name.
func (s *Service) findHinted(ctx context.Context, nameOrID string) (volume.ID, error) {
	if id := volume.ID(nameOrID); id.Exists() {
		v, err := s.cloud.Volume(ctx, id)
		if err == nil || !volume.Is(err, volume.NotFound) {
			return v.ID, err
		}
	}
	found, err := s.cloud.VolumesNamed(ctx, nameOrID)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", volume.Errorf(volume.InvalidArgument, "a scheduler hint names volume %q, which does not exist", nameOrID).Op("create")
	case 1:
		return found[0].ID, nil
	}
	return "", volume.Errorf(volume.InvalidArgument, "a scheduler hint names volume %q, and %d volumes have that name; use the volume ID", nameOrID, len(found)).Op("create")
}

// longestName is the length limit of a volume name in bytes: Cinder allows 255 characters.
const longestName = 1020

// findInNamespace finds one volume by ID or name, as findHinted does, among the volumes of claims of a namespace. Users of a namespace must
// not find out by trying which other volumes the project has. So the error is the same for a missing volume and for a
// volume of another namespace or cluster. It is also the same for a volume that this driver did not create and for an ambiguous name.
func (s *Service) findInNamespace(ctx context.Context, namespace, nameOrID string) (volume.ID, error) {
	inNamespace := func(v volume.Volume) bool {
		return namespace != "" && v.Metadata[contract.MetadataPVCNamespace] == namespace && v.Metadata[contract.MetadataCluster] == s.owner.Cluster
	}
	if id := volume.ID(nameOrID); id.Exists() {
		v, err := s.cloud.Volume(ctx, id)
		if err != nil && !volume.Is(err, volume.NotFound) {
			return "", err
		}
		if err == nil && inNamespace(v) {
			return v.ID, nil
		}
	}
	var found []volume.Volume
	if len(nameOrID) <= longestName {
		var err error
		if found, err = s.cloud.VolumesNamed(ctx, nameOrID); err != nil {
			return "", err
		}
	}
	if found = slices.DeleteFunc(found, func(v volume.Volume) bool { return !inNamespace(v) }); len(found) != 1 {
		return "", volume.Errorf(volume.InvalidArgument, "a scheduler hint in the annotations of the claim names volume %.255q. Exactly one volume of a claim in namespace %s must have that name or ID",
			nameOrID, namespace).Op("create")
	}
	return found[0].ID, nil
}
