package provision

import (
	"context"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// findVolume returns the ID of the volume that a hint names, or "" if the driver ignores that name.
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
	if ofClaim, err = s.resolveClaimHints(ctx, spec, ofClaim); err != nil {
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
			if id != "" {
				*list.to = append(*list.to, string(id))
			}
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

// resolveClaimHints is resolveHints for the hints in the annotations of a claim. They may name only the volumes of claims in its namespace, which
// one list of the cloud holds. Users of a namespace must not find out by trying which other volumes the project has. So the outcome is the same for
// a missing volume and for a volume of another namespace or cluster. It is also the same for a volume that this driver did not create and for
// an ambiguous name.
func (s *Service) resolveClaimHints(ctx context.Context, spec CreateSpec, h contract.Hints) (contract.Hints, error) {
	names := slices.Concat(h.SameHost, h.DifferentHost)
	if len(names) == 0 {
		return h, nil
	}
	found, err := s.namedInNamespace(ctx, spec.ClaimNamespace, names)
	if err != nil {
		return contract.Hints{}, err
	}
	return resolveHints(ctx, h, func(ctx context.Context, name string) (volume.ID, error) {
		switch ids := found[name]; {
		case len(ids) == 1:
			return ids[0], nil
		case spec.DropHint != nil:
			spec.DropHint(ctx, name)
			return "", nil
		}
		return "", volume.Errorf(volume.InvalidArgument, "a scheduler hint in the annotations of the claim names volume %.255q. Exactly one volume of a claim in namespace %s must have that name or ID",
			name, spec.ClaimNamespace).Op("create")
	})
}

// namedInNamespace returns the volumes of claims in a namespace that have these names or IDs. An ID comes before a name.
func (s *Service) namedInNamespace(ctx context.Context, namespace string, names []string) (map[string][]volume.ID, error) {
	found := map[string][]volume.ID{}
	if namespace == "" {
		return found, nil
	}
	of := map[string]string{contract.MetadataPVCNamespace: namespace, contract.MetadataCluster: s.owner.Cluster}
	visit := func(page []volume.Volume) bool {
		for _, v := range page {
			if v.Metadata[contract.MetadataPVCNamespace] != namespace || v.Metadata[contract.MetadataCluster] != s.owner.Cluster {
				continue // a cloud may ignore the filter
			}
			for _, name := range names {
				switch ids := found[name]; {
				case strings.EqualFold(name, string(v.ID)):
					found[name] = []volume.ID{v.ID}
				case name == v.Name && len(ids) < 2 && !(len(ids) == 1 && strings.EqualFold(name, string(ids[0]))):
					found[name] = append(ids, v.ID)
				}
			}
		}
		return true
	}
	return found, s.walk(ctx, volume.Position{}, of, visit)
}
