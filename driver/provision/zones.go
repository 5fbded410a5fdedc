package provision

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// zoneCacheAge is how long the driver uses a list of zones. The cache only saves calls: Cinder refuses a zone that has disappeared, and the
// driver uses a new zone a little later. The list of Cinder itself may be an hour old (az_cache_time).
const zoneCacheAge = time.Minute

// zoneCache keeps the volume zones of Cinder.
type zoneCache struct {
	lock   chan struct{} // full while a call reads or writes the rest
	names  []string      // nil where the cloud does not show them
	readAt time.Time
}

func newZoneCache() *zoneCache { return &zoneCache{lock: make(chan struct{}, 1)} }

// volumeZones returns the names of the volume zones; nil where the driver cannot know them.
func (s *Service) volumeZones(ctx context.Context) []string {
	cache := s.zones
	select {
	case <-ctx.Done():
		return nil
	case cache.lock <- struct{}{}:
	}
	defer func() { <-cache.lock }()
	if !cache.readAt.IsZero() && time.Since(cache.readAt) < zoneCacheAge {
		return cache.names
	}
	names, err := s.cloud.VolumeZones(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read the volume zones of Cinder; the driver uses zone labels of nodes as zone names", "error", err)
		names = nil
		if ctx.Err() != nil || volume.Is(err, volume.Unavailable) {
			return nil // the next call reads again
		}
	}
	cache.names, cache.readAt = names, time.Now()
	return names
}

// candidateZones returns the volume zones to try, best first; "" leaves the choice to Cinder. NotInZone where Cinder has none of the allowed
// zones.
func (s *Service) candidateZones(ctx context.Context, spec CreateSpec) ([]string, error) {
	switch {
	case spec.Zone != "":
		return []string{spec.Zone}, nil
	case len(spec.Zones) == 0:
		return []string{""}, nil
	}
	existing := s.volumeZones(ctx)
	if len(existing) == 0 {
		return spec.Zones, nil
	}
	var candidates []string
	for _, label := range spec.Zones {
		names := contract.ZonesLabelled(label, existing)
		switch {
		case len(names) == 0 && spec.AnyZone:
			names = []string{label}
		case len(names) > 1:
			s.log.WarnContext(ctx, "several volume zones have the same label; the driver tries them in this order", "label", label, "zones", names)
		}
		for _, name := range names {
			if !slices.Contains(candidates, name) {
				candidates = append(candidates, name)
			}
		}
	}
	if len(candidates) == 0 {
		return nil, volume.Errorf(volume.NotInZone, "Cinder has no volume zone with the name or label %s; its zones are %s. If compute zones and volume zones have different names, "+
			"map them with [Zone] sections in cloud.conf, or turn topology off", strings.Join(spec.Zones, " or "), strings.Join(existing, ", ")).Op("create")
	}
	return candidates, nil
}

// sameZone compares two zones by their labels: either may be a label already.
func sameZone(a, b string) bool { return contract.ZoneLabel(a) == contract.ZoneLabel(b) }
