package contract

import (
	"regexp"
	"strings"
)

// notLabel matches a run of characters that a label value may not hold.
var notLabel = regexp.MustCompile(`[^-a-zA-Z0-9_.]+`)

// maxLabel is the longest label value Kubernetes takes, in bytes.
const maxLabel = 63

// SanitizeZone turns the name of a zone into a label value, by upstream's rule, so that affinities of existing PersistentVolumes
// keep matching: every run of characters outside [-a-zA-Z0-9_.] becomes one "-", leading and trailing "-", "_" and "." go, and
// what is longer than 63 characters is cut. Where the cut leaves a trailing "-", "_" or "." it goes too, since Kubernetes would
// refuse the label. There is no way back: "zone 1" and "zone-1" give the same label.
func SanitizeZone(zone string) string {
	label := strings.Trim(notLabel.ReplaceAllString(zone, "-"), "-_.")
	if len(label) > maxLabel {
		label = strings.TrimRight(label[:maxLabel], "-_.")
	}
	return label
}
