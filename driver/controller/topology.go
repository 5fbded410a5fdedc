package controller

import (
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// topologyMapper translates between CSI topologies and volume zones, with the options at the time of the request.
type topologyMapper struct {
	key     string // of the segment whose value is a zone; "" without topology
	zoneMap contract.ZoneMap
	ignored bool // ignore-volume-az
}

func (s *Server) topologyMapper() topologyMapper {
	var p topologyMapper
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

// zones are the volume zones for a requirement, in order of preference. Each is the one in the zone map, or else the value of the
// segment itself. Segments with other keys do not concern volumes.
func (p topologyMapper) zones(wanted *csi.TopologyRequirement) []string {
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

// accessible returns the topologies where a volume can be used: the compute zones that its own zone serves. That zone is the one
// that Cinder reports. With ignore-volume-az, it returns the preferred topologies of the request, as upstream does. Without
// topology, it returns none.
func (p topologyMapper) accessible(v volume.Volume, wanted *csi.TopologyRequirement) []*csi.Topology {
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
