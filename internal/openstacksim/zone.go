package openstacksim

import (
	"net/http"
	"slices"
)

// zone is an availability zone of one service.
type zone struct {
	name      string
	available bool
}

func zonesOf(names []string, unavailable ...string) []zone {
	zones := make([]zone, 0, len(names))
	for _, n := range names {
		zones = append(zones, zone{n, !slices.Contains(unavailable, n)})
	}
	return zones
}

func zoneNames(zones []zone) []string {
	names := make([]string, 0, len(zones))
	for _, z := range zones {
		names = append(names, z.name)
	}
	return names
}

// SetVolumeZones replaces the zones of Cinder; the first becomes the default. Volumes keep their zones.
func (s *Sim) SetVolumeZones(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumeZones = zonesOf(names)
}

// SetComputeZones replaces the zones of Nova. Servers keep their zones.
func (s *Sim) SetComputeZones(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serverZones = zonesOf(names)
}

// SetZoneAvailable sets whether a zone is available, in Cinder and Nova.
func (s *Sim) SetZoneAvailable(name string, available bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, zones := range [][]zone{s.volumeZones, s.serverZones} {
		for i := range zones {
			if zones[i].name == name {
				zones[i].available = available
			}
		}
	}
}

// SetZoneFallback changes Config.ZoneFallback.
func (s *Sim) SetZoneFallback(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.ZoneFallback = on
}

func (s *Sim) listVolumeZones(*call) reply {
	list := []obj{}
	for _, z := range s.volumeZones {
		list = append(list, obj{{"zoneName", z.name}, {"zoneState", obj{{"available", z.available}}}})
	}
	return reply{status: http.StatusOK, body: obj{{"availabilityZoneInfo", list}}}
}

func (s *Sim) listServerZones(*call) reply {
	list := []obj{}
	for _, z := range s.serverZones {
		list = append(list, obj{{"zoneName", z.name}, {"zoneState", obj{{"available", z.available}}}, {"hosts", nil}})
	}
	return reply{status: http.StatusOK, body: obj{{"availabilityZoneInfo", list}}}
}

func (s *Sim) detailServerZones(c *call) reply {
	if !c.token.admin() {
		return forbidden("os_compute_api:os-availability-zone:detail")
	}
	list := []obj{}
	host := func(name string, services ...string) pair {
		var o obj
		for _, service := range services {
			o = append(o, pair{service, obj{{"available", true}, {"active", true}, {"updated_at", micros(now())}}})
		}
		return pair{name, o}
	}
	for _, z := range s.serverZones {
		list = append(list, obj{{"zoneName", z.name}, {"zoneState", obj{{"available", z.available}}}, {"hosts", obj{host("compute-"+z.name, "nova-compute")}}})
	}
	list = append(list, obj{{"zoneName", "internal"}, {"zoneState", obj{{"available", true}}}, {"hosts", obj{host("sim", "nova-scheduler", "nova-conductor")}}})
	return reply{status: http.StatusOK, body: obj{{"availabilityZoneInfo", list}}}
}
