package controller

import (
	"maps"
	"slices"
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
// segment itself. Segments with other keys choose no zone.
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

// accessible returns the topologies where a volume can be used. They are the compute zones that its own zone serves, with the other segments
// that the request required. Two clouds may have a zone of the same name, and another segment then tells their nodes apart. The volume zone is the one
// that Cinder reports. With ignore-volume-az, accessible returns the preferred topologies of the request, as upstream does. Without topology,
// it returns none.
func (p topologyMapper) accessible(v volume.Volume, wanted *csi.TopologyRequirement) []*csi.Topology {
	switch {
	case p.key == "" || strings.TrimSpace(v.Zone) == "" && !p.ignored:
		return nil
	case p.ignored:
		return wanted.GetPreferred()
	}
	var all []*csi.Topology
	for _, label := range p.zoneMap.Labels(v.Zone) {
		all = append(all, p.required(label, wanted.GetRequisite())...)
	}
	return all
}

// required returns the requisite topologies in the zone with a label, each once. If there are none, it returns that zone, with the segments that
// all requisite topologies have in common.
func (p topologyMapper) required(label string, requisite []*csi.Topology) []*csi.Topology {
	var in []*csi.Topology
	for _, topology := range requisite {
		known := func(other *csi.Topology) bool { return maps.Equal(other.GetSegments(), topology.GetSegments()) }
		if topology.GetSegments()[p.key] == label && !slices.ContainsFunc(in, known) {
			in = append(in, topology)
		}
	}
	if len(in) > 0 {
		return in
	}
	segments := map[string]string{}
	for i, topology := range requisite {
		if i == 0 {
			maps.Copy(segments, topology.GetSegments())
		}
		maps.DeleteFunc(segments, func(key, value string) bool { return topology.GetSegments()[key] != value })
	}
	segments[p.key] = label
	return []*csi.Topology{{Segments: segments}}
}
