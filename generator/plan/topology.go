package plan

import (
	"maps"
	"slices"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// TopologyIsOff begins the warning about zones that do not match.
const TopologyIsOff = "topology is off: "

// topology is enabled if and only if every compute zone has a volume zone of the same name, after zoneMap. The operator of OpenShift
// has the same rule. A zone that is unavailable for the moment still counts, or an outage would change the decision.
func (d *decider) topology() (Decision[bool], Decision[map[string]string]) {
	mode := d.spec.Topology.Mode
	d.checkZoneNames()
	decision := Decision[bool]{
		Value:  mode == v1alpha1.Enabled,
		Source: FromConfig,
		Reason: "spec.topology.mode is " + mode,
	}
	if mode == v1alpha1.Disabled {
		return decision, d.zoneMap(decision)
	}
	compute, computeKnown := d.zones("zones.compute", d.inv.Zones.Compute)
	volume, volumeKnown := d.zones("zones.volume", d.inv.Zones.Volume)
	if mode == v1alpha1.Auto {
		decision.Source = Inferred
	}
	if !computeKnown || !volumeKnown {
		return decision, Decision[map[string]string]{Source: Default} // the run has ended already
	}
	decision.Facts = []v1alpha1.NamedFact{list("zones.compute", compute), list("zones.volume", volume)}
	d.checkZoneMap(compute, volume)
	missing := d.unmatched(compute, volume)
	if mode == v1alpha1.Enabled {
		d.checkLabels("compute", compute)
		d.checkLabels("volume", volume)
		if len(compute) == 0 {
			d.fail("topology is enabled by spec.topology.mode, but the cloud lists no compute zone, so no server can run there: ask the operator of the cloud")
		}
		if len(missing) > 0 {
			d.fail("topology is enabled by spec.topology.mode, but no volume zone is called as %s; volumes for nodes there cannot be made: set spec.topology.zoneMap", quoted(missing))
		}
		return decision, d.zoneMap(decision)
	}
	switch {
	case len(compute) == 0:
		decision.Reason = "the cloud lists no compute zone"
		d.warn(TopologyIsOff + "the cloud lists no compute zone, so no server can run there: ask the operator of the cloud")
	case len(missing) > 0:
		decision.Reason = "no volume zone has the name of compute zone " + quoted(missing) + "; spec.topology.zoneMap could say which serve them"
		d.warn(TopologyIsOff+"compute zone %s has no volume zone of the same name; the volume zones are %s. Volumes and nodes carry no zone; "+
			"spec.topology.zoneMap names the volume zones, and spec.topology.mode: disabled ends this warning", quoted(missing), quoted(volume))
	default:
		d.checkLabels("compute", compute)
		d.checkLabels("volume", volume)
		decision.Value = true
		decision.Reason = "every compute zone has a volume zone of the same name"
		if len(d.spec.Topology.ZoneMap) > 0 {
			decision.Reason += ", after spec.topology.zoneMap"
		}
	}
	return decision, d.zoneMap(decision)
}

// checkZoneNames refuses a map that the driver would refuse.
func (d *decider) checkZoneNames() {
	zoneMap := contract.ZoneMap(d.spec.Topology.ZoneMap)
	if err := zoneMap.Check(); err != nil {
		d.problem("spec.topology.zoneMap: %v", err)
	}
}

// zoneMap is the configured map; where topology is off it is left out, because nodes report no zones then.
func (d *decider) zoneMap(topology Decision[bool]) Decision[map[string]string] {
	if len(d.spec.Topology.ZoneMap) == 0 {
		return Decision[map[string]string]{Source: Default}
	}
	if !topology.Value {
		d.warn("spec.topology.zoneMap has no effect: topology is off, because %s", topology.Reason)
		return Decision[map[string]string]{Source: Default}
	}
	return Decision[map[string]string]{
		Value: d.spec.Topology.ZoneMap, Facts: topology.Facts, Source: FromConfig,
		Reason: "spec.topology.zoneMap: nodes report their compute zone, and the driver makes their volumes in the volume zone it names",
	}
}

func (d *decider) checkLabels(which string, zones []string) {
	first := map[string]string{}
	for _, zone := range zones {
		label := contract.ZoneLabel(zone)
		if other, twice := first[label]; twice {
			d.fail("%s zones %q and %q have the same label, %q: volumes for one may be made in the other; see %s", which, other, zone, label, pages.Zones.Title())
			continue
		}
		first[label] = zone
	}
}

func (d *decider) zones(name string, fact v1alpha1.Fact[[]v1alpha1.Zone]) ([]string, bool) {
	if !listed(d, name, fact) {
		return nil, false
	}
	for _, z := range fact.Value {
		if !z.Available {
			d.notice("%s: %s is not available at the moment; it counts all the same", name, z.Name)
		}
	}
	return zoneNames(fact.Value), true
}

func (d *decider) volumeZone(compute string) string {
	if mapped, ok := d.spec.Topology.ZoneMap[compute]; ok {
		return mapped
	}
	return compute
}

func (d *decider) unmatched(compute, volume []string) []string {
	var missing []string
	for _, c := range compute {
		if !slices.Contains(volume, d.volumeZone(c)) {
			missing = append(missing, c)
		}
	}
	return missing
}

func (d *decider) checkZoneMap(compute, volume []string) {
	for _, from := range slices.Sorted(maps.Keys(d.spec.Topology.ZoneMap)) {
		to := d.spec.Topology.ZoneMap[from]
		if !slices.Contains(compute, from) {
			d.warn("spec.topology.zoneMap: the cloud lists no compute zone %q%s", from, d.hint(from, compute))
		}
		if !slices.Contains(volume, to) {
			d.warn("spec.topology.zoneMap.%s: the cloud lists no volume zone %q%s", from, to, d.hint(to, volume))
		}
	}
}
