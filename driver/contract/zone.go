package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// notLabel matches characters that a label value must not contain.
var notLabel = regexp.MustCompile(`[^-a-zA-Z0-9_.]+`)

// maxLabel is the longest label value of Kubernetes, in bytes.
const maxLabel = 63

// sanitizeZone converts the name of a zone to a label value, by upstream's rule, so that the affinities of existing PersistentVolumes still
// match. It replaces each run of characters outside [-a-zA-Z0-9_.] by one "-", removes "-", "_" and "." at both ends, and cuts the text after
// 63 characters. After the cut it again removes them at the end, because Kubernetes refuses such a label. The result may be empty, and
// several zones may have the same: see ZoneLabel and ZonesLabelled.
func sanitizeZone(zone string) string {
	label := strings.Trim(notLabel.ReplaceAllString(zone, "-"), "-_.")
	if len(label) > maxLabel {
		label = strings.TrimRight(label[:maxLabel], "-_.")
	}
	return label
}

// ZoneLabel is the label value of a zone in the topology of nodes and volumes; empty only for a zone without a name. It is the result of
// sanitizeZone, because a node that upstream labelled must keep its label. Kubelet does not register a driver that reports another value
// ("topology value collision"). If that result is empty, the label is "zone-" and a hash of the name. ZonesLabelled is the inverse.
func ZoneLabel(zone string) string {
	label := sanitizeZone(zone)
	if label == "" && strings.TrimSpace(zone) != "" {
		sum := sha256.Sum256([]byte(zone))
		return "zone-" + hex.EncodeToString(sum[:8])
	}
	return label
}

// ZonesLabelled finds the zones with a label among all zones: the zone whose name is the label, otherwise those whose ZoneLabel it is, sorted.
// The labels of nodes do not distinguish several of them.
func ZonesLabelled(label string, zones []string) []string {
	if slices.Contains(zones, label) {
		return []string{label}
	}
	var found []string
	for _, zone := range zones {
		if ZoneLabel(zone) == label {
			found = append(found, zone)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// ZoneMap maps compute zones to volume zones, by name. The volume zone of a compute zone without an entry has the same name.
type ZoneMap map[string]string

// Check reports a zone without a name, and two compute zones with one label but different volume zones.
func (m ZoneMap) Check() error {
	labelled := map[string]string{}
	for _, compute := range slices.Sorted(maps.Keys(m)) {
		label := ZoneLabel(compute)
		other, twice := labelled[label]
		switch {
		case label == "":
			return fmt.Errorf("a compute zone has no name: %q", compute)
		case strings.TrimSpace(m[compute]) == "":
			return fmt.Errorf("compute zone %q has no volume zone", compute)
		case twice && m[other] != m[compute]:
			return fmt.Errorf("compute zones %q and %q must not have different volume zones, %q and %q: the nodes of both have the label %q",
				other, compute, m[other], m[compute], label)
		}
		labelled[label] = compute
	}
	return nil
}

// Volume is the volume zone for the compute zone with a label; the label itself if m has no entry.
func (m ZoneMap) Volume(label string) string {
	for compute, zone := range m {
		if ZoneLabel(compute) == label {
			return zone
		}
	}
	return label
}

// Labels are the sorted labels of the compute zones of a volume zone. These are the zones that m maps to it, and the zone with its own name,
// unless m maps that to another volume zone. The result may be empty.
func (m ZoneMap) Labels(zone string) []string {
	var labels []string
	for compute, of := range m {
		if of == zone {
			labels = append(labels, ZoneLabel(compute))
		}
	}
	if own := ZoneLabel(zone); own != "" && (m.Volume(own) == own || m.Volume(own) == zone) {
		labels = append(labels, own)
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}
