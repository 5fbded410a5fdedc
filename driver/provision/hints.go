package provision

import (
	"context"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// hints finds the volumes that hints name with find, by id or by name, as upstream does; Cinder wants ids.
func (s *Service) hints(ctx context.Context, h contract.Hints, find func(ctx context.Context, name string) (volume.ID, error)) (contract.Hints, error) {
	resolved := contract.Hints{Query: h.Query, LocalToServer: h.LocalToServer}
	for _, side := range []struct {
		from []string
		to   *[]string
	}{{h.SameHost, &resolved.SameHost}, {h.DifferentHost, &resolved.DifferentHost}} {
		for _, name := range side.from {
			id, err := find(ctx, name)
			if err != nil {
				return contract.Hints{}, err
			}
			*side.to = append(*side.to, string(id))
		}
		*side.to = onlyOnce(*side.to)
	}
	return resolved, nil
}

// onlyOnce drops repeated ids: Cinder's schema wants each once.
func onlyOnce(ids []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(ids, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// hinted finds one volume by its id or its name. InvalidArgument when there is none, or more than one of that name.
func (s *Service) hinted(ctx context.Context, name string) (volume.ID, error) {
	if volume.ID(name).Exists() {
		v, err := s.cloud.Volume(ctx, volume.ID(name))
		if err == nil || !volume.Is(err, volume.NotFound) {
			return v.ID, err
		}
	}
	found, err := s.cloud.VolumesNamed(ctx, name)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", volume.Errorf(volume.InvalidArgument, "a scheduler hint names volume %q, which does not exist", name).Op("create")
	case 1:
		return found[0].ID, nil
	}
	return "", volume.Errorf(volume.InvalidArgument, "a scheduler hint names volume %q, and %d volumes are called so; give an id", name, len(found)).Op("create")
}

// longestHinted is how many bytes the name of a volume can have: Cinder takes 255 characters.
const longestHinted = 1020

// hintedOf finds one volume of a claim of a namespace, as hinted does. Users of a namespace may not learn by trying which other volumes
// the project has: a name that none has, one of another namespace's volume, of another cluster's, of one that this driver did not make
// and an ambiguous one get the same answer.
func (s *Service) hintedOf(ctx context.Context, namespace, name string) (volume.ID, error) {
	its := func(v volume.Volume) bool {
		return namespace != "" && v.Metadata[contract.MetadataPVCNamespace] == namespace && v.Metadata[contract.MetadataCluster] == s.owner.Cluster
	}
	var found []volume.Volume
	if volume.ID(name).Exists() {
		v, err := s.cloud.Volume(ctx, volume.ID(name))
		if err != nil && !volume.Is(err, volume.NotFound) {
			return "", err
		}
		if err == nil && its(v) {
			return v.ID, nil
		}
	}
	if len(name) <= longestHinted {
		var err error
		if found, err = s.cloud.VolumesNamed(ctx, name); err != nil {
			return "", err
		}
	}
	if found = slices.DeleteFunc(found, func(v volume.Volume) bool { return !its(v) }); len(found) != 1 {
		return "", volume.Errorf(volume.InvalidArgument, "a scheduler hint in the claim's annotations names volume %.255q, which is not the one volume of that id or name "+
			"that was made for a claim of namespace %s", name, namespace).Op("create")
	}
	return found[0].ID, nil
}
