package openstacksim

import (
	"net/http"
	"slices"
)

type zone struct {
	name      string
	available bool
}

func (z zone) view() obj {
	return obj{{"zoneName", z.name}, {"zoneState", obj{{"available", z.available}}}}
}

func zonesOf(names []string, unavailable ...string) []zone {
	return each(names, func(n string) zone { return zone{n, !slices.Contains(unavailable, n)} })
}

func zoneNames(zones []zone) []string {
	return each(zones, func(z zone) string { return z.name })
}

// SetVolumeZones replaces the zones of Cinder; the first becomes the default. Volumes keep their zones.
func (s *Sim) SetVolumeZones(names ...string) { assign(s, &s.volumeZones, zonesOf(names)) }

// SetComputeZones replaces the zones of Nova. Servers keep their zones.
func (s *Sim) SetComputeZones(names ...string) { assign(s, &s.serverZones, zonesOf(names)) }

// SetZoneAvailable sets whether a zone is available, in Cinder and Nova.
func (s *Sim) SetZoneAvailable(name string, available bool) {
	defer s.lock()()
	for _, zones := range [][]zone{s.volumeZones, s.serverZones} {
		for i := range zones {
			if zones[i].name == name {
				zones[i].available = available
			}
		}
	}
}

// SetZoneFallback changes Config.ZoneFallback.
func (s *Sim) SetZoneFallback(on bool) { assign(s, &s.config.ZoneFallback, on) }

func (s *Sim) detailServerZones(c *call) reply {
	c.adminOnly("os_compute_api:os-availability-zone:detail")
	host := func(name string, services ...string) pair {
		var o obj
		for _, service := range services {
			o = append(o, pair{service, obj{{"available", true}, {"active", true}, {"updated_at", micros(now())}}})
		}
		return pair{name, o}
	}
	list := each(s.serverZones, func(z zone) obj { return append(z.view(), pair{"hosts", obj{host("compute-"+z.name, "nova-compute")}}) })
	list = append(list, append(zone{"internal", true}.view(), pair{"hosts", obj{host("sim", "nova-scheduler", "nova-conductor")}}))
	return reply{status: http.StatusOK, body: obj{{"availabilityZoneInfo", list}}}
}
