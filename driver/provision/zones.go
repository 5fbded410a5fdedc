package provision

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// zoneCacheAge is how long the driver uses a list of zones. The cache only saves calls: Cinder refuses a zone that has disappeared, and the
// driver uses a new zone a little later. The list of Cinder itself may be an hour old (az_cache_time).
const zoneCacheAge = time.Minute

// zonePause is how long the driver does not ask again after Cinder did not answer. The calls in flight must not wait for one failure after
// another.
const zonePause = 10 * time.Second

type zoneCache struct {
	lock   chan struct{} // full while a call reads or writes the rest
	names  []string      // nil where the cloud does not show them
	unread error         // why the driver has never read them; nil after the first answer
	until  time.Time     // when the next call reads them again
}

// volumeZones returns the names of the volume zones; nil where the driver cannot know them. Unread is why, if Cinder did not answer.
func (s *Service) volumeZones(ctx context.Context) (names []string, unread error) {
	cache := s.zones
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case cache.lock <- struct{}{}:
	}
	defer func() { <-cache.lock }()
	if time.Now().Before(cache.until) {
		return cache.names, cache.unread
	}
	names, err := s.cloud.VolumeZones(volume.WithOneAttempt(ctx))
	switch {
	case ctx.Err() != nil: // the next call reads again
		return cache.names, ctx.Err()
	case volume.Is(err, volume.Unavailable):
		s.log.WarnContext(ctx, "cannot read the volume zones of Cinder; the driver uses those that it has read last, or else zone labels of nodes as zone names", "zones", cache.names, "error", err)
		cache.until = time.Now().Add(zonePause)
		if cache.names == nil {
			cache.unread = err
		}
	case err != nil:
		s.log.WarnContext(ctx, "cannot read the volume zones of Cinder; the driver uses zone labels of nodes as zone names", "error", err)
		cache.names, cache.unread, cache.until = nil, nil, time.Now().Add(zoneCacheAge)
	default:
		cache.names, cache.unread, cache.until = names, nil, time.Now().Add(zoneCacheAge)
	}
	return cache.names, cache.unread
}

// candidateZones returns the volume zones to try, best first; "" leaves the choice to Cinder. NotInZone where Cinder has none of the allowed
// zones. Unread is why they are only zone labels of nodes, if Cinder did not answer.
func (s *Service) candidateZones(ctx context.Context, spec CreateSpec) (candidates []string, unread, err error) {
	switch {
	case spec.Zone != "":
		return []string{spec.Zone}, nil, nil
	case len(spec.Zones) == 0:
		return []string{""}, nil, nil
	}
	existing, unread := s.volumeZones(ctx)
	if len(existing) == 0 {
		return spec.Zones, unread, nil
	}
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
		return nil, nil, volume.Errorf(volume.NotInZone, "Cinder has no volume zone with the name or label %s; its zones are %s. If compute zones and volume zones have different names, "+
			"map them with [Zone] sections in cloud.conf, or turn topology off", strings.Join(spec.Zones, " or "), volume.Few(existing)).Cause(cause.CreateZone).Op("create")
	}
	return candidates, nil, nil
}

// sameZone compares two zones by their labels: either may be a label already.
func sameZone(a, b string) bool { return contract.ZoneLabel(a) == contract.ZoneLabel(b) }
