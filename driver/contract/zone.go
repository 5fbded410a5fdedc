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

// notLabel matches a run of characters that a label value may not hold.
var notLabel = regexp.MustCompile(`[^-a-zA-Z0-9_.]+`)

// maxLabel is the longest label value Kubernetes takes, in bytes.
const maxLabel = 63

// SanitizeZone turns the name of a zone into a label value, by upstream's rule, so that affinities of existing PersistentVolumes
// keep matching: every run of characters outside [-a-zA-Z0-9_.] becomes one "-", leading and trailing "-", "_" and "." go, and
// what is longer than 63 characters is cut. Where the cut leaves a trailing "-", "_" or "." it goes too, since Kubernetes would
// refuse the label. Nothing may be left, and several zones may have the same: see ZoneLabel and ZonesLabelled.
func SanitizeZone(zone string) string {
	label := strings.Trim(notLabel.ReplaceAllString(zone, "-"), "-_.")
	if len(label) > maxLabel {
		label = strings.TrimRight(label[:maxLabel], "-_.")
	}
	return label
}

// ZoneLabel is the label value that stands for a zone in a node's topology and in a volume's; empty only for a zone without a
// name. A name that is a label value already stands for itself, and any other becomes what upstream makes of it: kubelet refuses
// to register a driver that tells another value than the label its node has ("topology value collision"), so that a node which
// upstream labelled must keep its label. A name of which upstream's rule leaves nothing becomes "zone-" and a hash of it.
// ZonesLabelled is the way back.
func ZoneLabel(zone string) string {
	label := SanitizeZone(zone)
	if label == "" && strings.TrimSpace(zone) != "" {
		sum := sha256.Sum256([]byte(zone))
		return "zone-" + hex.EncodeToString(sum[:8])
	}
	return label
}

// ZonesLabelled finds the zones that a label stands for among all the zones there are: the one of that very name, or else those
// that ZoneLabel gives that label, sorted. More than one cannot be told apart by their nodes' labels.
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

// ZoneMap says which volume zone serves a compute zone, by their names: compute zone -> volume zone. A compute zone that is not
// in it is served by the volume zone of its own name.
type ZoneMap map[string]string

// Check says why m cannot be used: a zone without a name, or two compute zones of different volume zones that have one label.
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
			return fmt.Errorf("compute zones %q and %q cannot have different volume zones, %q and %q: the nodes of both are labelled %q",
				other, compute, m[other], m[compute], label)
		}
		labelled[label] = compute
	}
	return nil
}

// Volume is the volume zone that serves the compute zone with that label: its name where m has it, otherwise the label itself.
func (m ZoneMap) Volume(label string) string {
	for compute, zone := range m {
		if ZoneLabel(compute) == label {
			return zone
		}
	}
	return label
}

// Labels are the labels of the compute zones that a volume zone serves, sorted: those that m gives to it, and that of its own
// name unless m gives that to another. There may be none.
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
