package telemetry

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Names of metrics follow Prometheus' conventions: alerts and dashboards of users depend on them.
func TestMetricsFollowPrometheusConventions(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	var list operation.List
	rpcs := NewRPCs(registry, &list)
	NewBuild(registry, "v1")
	NewPanics(registry, func() uint64 { return 0 })
	NewReload(registry).Done(nil)
	NewLenience(registry)
	NewDuplicates(registry).Of("")
	node := NewNode(registry)
	node.VolumeLimit(map[string]int64{"limit": 24, "free": 25})
	node.CountVolumes(func() int { return 1 })
	node.VolumeHealth("v", []string{"NotResponding"})
	checks := NewChecks(registry)
	checks.Unavailable("", "identity", "tls", []string{"tls"})
	checks.Expires("", time.Now())
	NewQuota(registry).Saw(map[string]volume.Quota{"gigabytes": {Limit: 1}, "volumes": {Limit: 1}})
	NewHubs(registry).Of("", "volume").Waiting(1, time.Now())
	NewBudgets(registry).Of("").Limited("read", 1)
	NewOpenStack(registry).Of("")
	rpcs.Began("Probe")("Aborted", "volume.busy")
	list.Begin(operation.Key{Method: "DeleteVolume", Object: "volume v"}, &volume.Progress{})
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
