package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
)

// recorder is a registry that keeps what is registered, since a metric without a value yet is not gathered.
type recorder struct {
	prometheus.Registerer
	metrics map[string]metric
}

type metric struct{ kind, labels, help string }

var description = regexp.MustCompile(`Desc{fqName: "([^"]*)", help: "(.*?)",(?: unit: "[^"]*",)? constLabels: {[^}]*}, variableLabels: {([^}]*)}}`)

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		descs := make(chan *prometheus.Desc, 10)
		c.Describe(descs)
		close(descs)
		for d := range descs {
			found := description.FindStringSubmatch(d.String())
			if found == nil {
				panic("cannot read " + d.String())
			}
			r.metrics[found[1]] = metric{kindOf(c), strings.ReplaceAll(found[3], ",", ", "), found[2]}
		}
	}
	r.Registerer.MustRegister(all...)
}

func (r *recorder) Register(c prometheus.Collector) error { r.MustRegister(c); return nil }

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case prometheus.Gauge, *prometheus.GaugeVec, *telemetry.RPCs, *telemetry.Quota, *telemetry.Hubs, *telemetry.Node:
		return "gauge"
	case prometheus.Counter, *prometheus.CounterVec:
		return "counter"
	case prometheus.Histogram, *prometheus.HistogramVec:
		return "histogram"
	}
	return fmt.Sprintf("%T", c)
}

// metrics are all that package telemetry registers.
func metrics() map[string]metric {
	r := &recorder{prometheus.NewRegistry(), map[string]metric{}}
	telemetry.NewOpenStack(r)
	telemetry.NewReload(r)
	telemetry.NewLenience(r)
	telemetry.NewDuplicates(r)
	telemetry.NewNode(r)
	telemetry.NewQuota(r)
	telemetry.NewHubs(r)
	telemetry.NewBudgets(r)
	telemetry.NewRPCs(r, &operation.List{})
	telemetry.NewBuild(r, "v1.2.3")
	return r.metrics
}

func TestTheReferenceOfMetricsListsEveryMetric(t *testing.T) {
	const path = "reference/metrics.md"
	all := metrics()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var table strings.Builder
	table.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, name := range names {
		m := all[name]
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, m.kind, m.labels, m.help)
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

// A metric that is made somewhere in telemetry and that the list above does not register would be missed.
func TestTheListOfMetricsIsComplete(t *testing.T) {
	files, err := filepath.Glob("../driver/telemetry/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all, name := metrics(), regexp.MustCompile(`"((?:cinder_csi|openstack)_[a-z_]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range name.FindAllStringSubmatch(string(text), -1) {
			if _, known := all[found[1]]; !known && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s makes %s, which docs/metrics_test.go does not register", file, found[1])
			}
		}
	}
}
