package provision

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// zonesAge is how old the list of zones may be. It only saves calls: Cinder refuses a zone that went away meanwhile, and one that
// came is tried a little later. Cinder's own list is an hour old (az_cache_time).
const zonesAge = time.Minute

// zones is the list of Cinder's zones, read when it is needed.
type zones struct {
	turn  chan struct{} // holds one token: who has it may read and write the rest
	names []string      // nil when the cloud does not tell
	read  time.Time
}

func newZones() *zones {
	z := &zones{turn: make(chan struct{}, 1)}
	z.turn <- struct{}{}
	return z
}

// known are the names of Cinder's zones; nil when they cannot be known.
func (s *Service) known(ctx context.Context) []string {
	z := s.zones
	select {
	case <-ctx.Done():
		return nil
	case <-z.turn:
	}
	defer func() { z.turn <- struct{}{} }()
	if !z.read.IsZero() && time.Since(z.read) < zonesAge {
		return z.names
	}
	names, err := s.cloud.VolumeZones(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "cannot read Cinder's zones; nodes' labels are taken for their names", "error", err)
		names = nil
		if ctx.Err() != nil || volume.Is(err, volume.Unavailable) {
			return nil // the next call asks again
		}
	}
	z.names, z.read = names, time.Now()
	return names
}

// candidates are the volume zones to try for a wish, best first; "" leaves the choice to Cinder. NotHere when Cinder has none of
// those that will do.
func (s *Service) candidates(ctx context.Context, w CreateSpec) ([]string, error) {
	switch {
	case w.Zone != "":
		return []string{w.Zone}, nil
	case len(w.Zones) == 0:
		return []string{""}, nil
	}
	known := s.known(ctx)
	if len(known) == 0 {
		return w.Zones, nil
	}
	var all []string
	for _, label := range w.Zones {
		named := contract.ZonesLabelled(label, known)
		switch {
		case len(named) == 0 && w.AnyZone:
			named = []string{label}
		case len(named) > 1:
			s.log.WarnContext(ctx, "several of Cinder's zones have the same label; they are tried in this order", "label", label, "zones", named)
		}
		for _, zone := range named {
			if !slices.Contains(all, zone) {
				all = append(all, zone)
			}
		}
	}
	if len(all) == 0 {
		return nil, volume.Errorf(volume.NotHere, "Cinder has no zone called or labelled %s; it has %s. Where compute zones have other names than volume zones, "+
			"map them with [Zone] sections of cloud.conf, or turn topology off", strings.Join(w.Zones, " or "), strings.Join(known, ", ")).Op("create")
	}
	return all, nil
}

// sameZone compares zones that may come from labels.
func sameZone(a, b string) bool { return contract.ZoneLabel(a) == contract.ZoneLabel(b) }

// allows reports whether a volume in that zone is as wished.
func (w CreateSpec) allows(zone string) bool {
	return w.Zone != "" || len(w.Zones) == 0 || w.AnyZone || strings.TrimSpace(zone) == "" ||
		slices.ContainsFunc(w.Zones, func(wished string) bool { return sameZone(wished, zone) })
}

// zonal reports whether another zone may do where one cannot have the volume.
func (w CreateSpec) zonal() bool { return w.Zone == "" && len(w.Zones) > 0 }
