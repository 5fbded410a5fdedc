package volume

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// hints finds the volumes that hints name, by id or by name, as upstream does; Cinder wants ids.
func (s *Volumes) hints(ctx context.Context, h contract.Hints) (contract.Hints, error) {
	resolved := contract.Hints{Query: h.Query, LocalToServer: h.LocalToServer}
	for _, side := range []struct {
		from []string
		to   *[]string
	}{{h.SameHost, &resolved.SameHost}, {h.DifferentHost, &resolved.DifferentHost}} {
		seen := map[ID]bool{}
		for _, name := range side.from {
			id, err := s.hinted(ctx, name)
			if err != nil {
				return contract.Hints{}, err
			}
			if !seen[id] { // Cinder's schema wants every id once
				seen[id] = true
				*side.to = append(*side.to, string(id))
			}
		}
	}
	return resolved, nil
}

// hinted finds one volume by its id or its name. InvalidArgument when there is none, or more than one of that name.
func (s *Volumes) hinted(ctx context.Context, name string) (ID, error) {
	if ID(name).Exists() {
		v, err := s.cloud.Volume(ctx, ID(name))
		if err == nil || !Is(err, NotFound) {
			return v.ID, err
		}
	}
	found, err := s.cloud.VolumesNamed(ctx, name)
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", Errorf(InvalidArgument, "a scheduler hint names volume %q, which does not exist", name).Op("create")
	case 1:
		return found[0].ID, nil
	}
	return "", Errorf(InvalidArgument, "a scheduler hint names volume %q, and %d volumes are called so; give an id", name, len(found)).Op("create")
}
