package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

var scaleRun = record.Run{Volumes: 1000, Nodes: 100, Stories: []record.Story{
	{
		Name: "rate", Title: "claims", Volumes: 10, Seconds: 5, Figures: map[string]float64{"b": 1.25, "a": 1234.4}, Cloud: map[string]int{"Cinder": 55, "Nova": 20}, API: 123, Restarts: 2,
		Processes: []record.Process{{Name: "driver controller-0", Resident: 30, Peak: 90, Own: 9, CPU: 3}},
		RPCs:      []record.RPC{{Method: "CreateVolume", Count: 12, P50: 1.5, P99: 8, Codes: map[string]int{"OK": 10, "Aborted": 2}}, {Method: "Probe", Count: 1}},
		Tenants:   []record.Tenant{{Name: "full", Claims: 500, P50: 2}},
	},
	{
		Name: "rest", Title: "nothing", Volumes: 10, Seconds: 20, Figures: map[string]float64{}, Cloud: map[string]int{"Cinder": 5}, API: 10,
		Processes: []record.Process{{Name: "driver controller-0", Resident: 40, Peak: 95, Own: 10, CPU: 2}, {Name: "driver controller-1", Resident: 20, Peak: 20}},
		Budgets:   []record.Budget{{Promise: "memory", Limit: 39, Measured: 40}, {Promise: "requests", Limit: 0.5, Measured: 0.25}},
	},
}}

// TestASizeAsksForTheMemoryThatWasMeasured holds the requests of spec.size to the records.
func TestASizeAsksForTheMemoryThatWasMeasured(t *testing.T) {
	runs, err := scaleRuns("../../" + scaleDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range v1alpha1.ClusterSizes {
		for _, run := range ours(runs) {
			if run.Volumes != s.Volumes {
				continue
			}
			for container, text := range s.Memory {
				asked, err := strconv.ParseFloat(strings.TrimSuffix(text, "Mi"), 64)
				if err != nil {
					t.Fatal(err)
				}
				at := memoryAtRest(run, container)
				if asked < at || asked > max(64, 1.5*at) { // 64 MiB is the budget of the driver
					t.Errorf("size %s: %s asks for %s, and %.0f MiB were measured", s.Name, container, text, at)
				}
			}
		}
	}
}

func TestEachTableShowsItsFigures(t *testing.T) {
	for name, want := range map[string][]string{
		"budgets":   {"| memory | 1,000 volumes, 100 nodes | 39 | 40 | **not kept** |", "| requests | 1,000 volumes, 100 nodes | 0.5 | 0.25 | kept |"},
		"times":     {"| story | figure | 1,000 volumes, 100 nodes |", "| rate | a | 1,234 |", "| rate | b | 1.25 |", "| rate | containers that ended | 2 |", "| rest | volumes of the story | 10 |"},
		"requests":  {"| rate | 1,000 volumes, 100 nodes | volume | 5.50 | 2.00 | 0.00 | 12.3 |", "| rest | 1,000 volumes, 100 nodes | second | 0.25 | 0.00 | 0.00 | 0.5 |"},
		"fairness":  {"| rate | 1,000 volumes, 100 nodes | full | 500 | 0 | 2 | 0 |"},
		"rpcs":      {"| rate | 1,000 volumes, 100 nodes | CreateVolume | 12 | 1.5 | 8 | 2 Aborted |"},
		"processes": {"| 1,000 volumes, 100 nodes | driver controller-0 | 40.0 | 10.0 | 95.0 | 100.0 | 3.0 | 0.0 |"},
	} {
		got := scaleTables[scaleResults][name]([]record.Run{scaleRun})
		for _, line := range want {
			if !strings.Contains(got, line+"\n") {
				t.Errorf("%s: want the line %s in\n%s", name, line, got)
			}
		}
		if strings.Contains(got, "Probe") {
			t.Errorf("%s shows an RPC of the start:\n%s", name, got)
		}
	}
	upstream := scaleRun
	upstream.Plugin = "cinder-csi-plugin"
	upstream.Stories = []record.Story{{Name: "rest", Seconds: 10, Cloud: map[string]int{"Cinder": 20}, API: 30}, {Name: "unknown"}}
	got := comparison([]record.Run{scaleRun, upstream})
	if want := "| 1,000 volumes, 100 nodes | rest | requests to the cloud, each second | 0.25 | 2.00 |\n"; !strings.Contains(got, want) || strings.Contains(got, "unknown") {
		t.Errorf("want %s and no other story, got\n%s", want, got)
	}
	if got := which([]record.Run{scaleRun, upstream}); !strings.Contains(got, "| upstream's plugin | upstream's manifests |") {
		t.Errorf("want the driver of each scaleRun, got\n%s", got)
	}
	if got, want := sizes([]record.Run{scaleRun}), "| 1,000 volumes, 100 nodes | 40, peak 95 | 0, peak 0 | 0, peak 0 | 0, peak 0 |\n"; !strings.HasSuffix(got, want) {
		t.Errorf("want %s, got\n%s", want, got)
	}
}

func TestARunFailsWhereABudgetDoes(t *testing.T) {
	for _, tt := range []struct {
		budget       record.Budget
		kept, failed bool
	}{
		{record.Budget{Limit: 10, Measured: 10}, true, false},
		{record.Budget{Limit: 10, Measured: 11}, false, true},
		{record.Budget{Limit: 10, Fails: 40, Measured: 11}, false, false},
		{record.Budget{Limit: 10, Fails: 40, Measured: 41}, false, true},
	} {
		if kept, failed := tt.budget.Kept(), tt.budget.Failed(); kept != tt.kept || failed != tt.failed {
			t.Errorf("%+v: kept %v, failed %v", tt.budget, kept, failed)
		}
	}
}
