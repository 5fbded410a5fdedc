package docs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/telemetry"
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
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?s)<!-- metrics -->\n.*?<!-- end -->`)
	want := part.ReplaceAllLiteralString(string(text), "<!-- metrics -->\n"+table.String()+"<!-- end -->")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not what the code says; go test ./docs -update writes it (-want +got):\n%s", path, diff)
	}
}
