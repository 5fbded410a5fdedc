package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Zones are the names of the zones of a cloud.
type Zones struct{ Compute, Volume []string }

// ErrZones says that the zones of existing volumes cannot be kept with what is known.
var ErrZones = errors.New("the zones of existing volumes cannot be kept")

// mapByHand ends each error about zones.
const mapByHand = `. Or say which volume zone serves them, with a further file that has for each: [Zone "%s"] and the line volume-zone=VOLUME-ZONE`

// keepZones keeps topology on if volumes are bound to zones, and maps the compute zones that have no volume zone of their name. Errors: ErrZones.
func (f *survey) keepZones(t *v1alpha1.Topology, cloud *Zones) ([]Note, error) {
	bound := slices.Sorted(slices.Values(f.volumes.Zones))
	if len(bound) == 0 {
		return nil, nil
	}
	t.Mode = v1alpha1.Enabled // a file may turn it off for new volumes
	mapped := func(label string) bool {
		for compute := range t.ZoneMap {
			if contract.ZoneLabel(compute) == label {
				return true
			}
		}
		return false
	}
	bound = slices.DeleteFunc(bound, mapped)
	switch {
	case len(bound) == 0:
		return nil, nil
	case cloud == nil:
		return nil, fmt.Errorf("%w: PersistentVolumes are in %s, and the zones of Cinder are not known. Give the cloud with --os-cloud or --inventory"+mapByHand,
			ErrZones, strings.Join(bound, ", "), bound[0])
	}
	for _, label := range bound {
		if len(contract.ZonesLabelled(label, cloud.Compute)) == 0 {
			return nil, fmt.Errorf("%w: PersistentVolumes are in %s, and no compute zone of the cloud has this name. See that it is the cloud of this cluster"+mapByHand,
				ErrZones, label, label)
		}
	}
	return f.mapZones(t, cloud, bound)
}

// mapZones maps compute zones where there is one volume zone only. With several, a person must say which serves a zone with volumes.
func (f *survey) mapZones(t *v1alpha1.Topology, cloud *Zones, bound []string) ([]Note, error) {
	var notes []Note
	for _, compute := range cloud.Compute {
		_, given := t.ZoneMap[compute]
		switch {
		case given, slices.Contains(cloud.Volume, compute):
		case len(cloud.Volume) == 1:
			add(&t.ZoneMap, map[string]string{compute: cloud.Volume[0]})
			notes = append(notes, Note{File: "the cloud", Key: "compute zone " + compute, To: "spec.topology.zoneMap", Why: "no volume zone has its name, and there is one volume zone: " + cloud.Volume[0]})
		case slices.Contains(bound, contract.ZoneLabel(compute)):
			return nil, fmt.Errorf("%w: PersistentVolumes are in %s, which has no volume zone of its name. The volume zones are %s, and only the operator of the cloud knows which serves it"+mapByHand,
				ErrZones, compute, strings.Join(cloud.Volume, ", "), compute)
		}
	}
	return notes, nil
}
