package controller

import (
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// places translates between CSI's topologies and volume zones, by the options as they were when a request came.
type places struct {
	key     string // of the segment whose value is a zone; empty without topology
	zoneMap contract.ZoneMap
	ignored bool // ignore-volume-az
}

func (s *Server) places() places {
	var p places
	if s.o.WithTopology {
		p.key = s.o.TopologyKey
	}
	if s.o.ZoneMap != nil {
		p.zoneMap = s.o.ZoneMap()
	}
	if s.o.IgnoreZone != nil {
		p.ignored = s.o.IgnoreZone()
	}
	return p
}

// zones are the volume zones that will do for a requirement, best first: each is the one that the zone map names, or else the
// node's label itself. Segments of other keys say nothing about volumes.
func (p places) zones(wanted *csi.TopologyRequirement) []string {
	if p.key == "" {
		return nil
	}
	var zones []string
	seen := map[string]bool{}
	for _, topologies := range [][]*csi.Topology{wanted.GetPreferred(), wanted.GetRequisite()} {
		for _, topology := range topologies {
			label := topology.GetSegments()[p.key]
			if zone := p.zoneMap.Volume(label); label != "" && !seen[zone] {
				seen[zone] = true
				zones = append(zones, zone)
			}
		}
	}
	return zones
}

// accessible says from where a volume can be used: from the compute zones that its own zone serves, which is the zone it really
// is in; with ignore-volume-az, as upstream's, from wherever the request preferred; without topology nothing is said.
func (p places) accessible(v volume.Volume, wanted *csi.TopologyRequirement) []*csi.Topology {
	switch {
	case p.key == "" || strings.TrimSpace(v.Zone) == "" && !p.ignored:
		return nil
	case p.ignored:
		return wanted.GetPreferred()
	}
	var all []*csi.Topology
	for _, label := range p.zoneMap.Labels(v.Zone) {
		all = append(all, &csi.Topology{Segments: map[string]string{p.key: label}})
	}
	return all
}
