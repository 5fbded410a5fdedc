package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
)

func TestTheReferenceOfMetricsListsEveryMetric(t *testing.T) {
	const path = "reference/metrics.md"
	all := telemetry.Families()
	slices.SortFunc(all, func(a, b *telemetry.Family) int { return strings.Compare(a.Name, b.Name) })
	var table strings.Builder
	table.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range all {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, strings.Join(f.Labels, ", "), f.Help)
	}
	page.Hold(t, path, map[string]string{"metrics": table.String()}, *update, "go test ./docs -update")
}
