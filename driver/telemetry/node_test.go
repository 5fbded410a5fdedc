package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestTheNodesNumbersAreReplaced(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m := NewNode(registry)
	m.VolumeLimit(map[string]int64{"limit": 24, "free": 25})
	m.VolumeLimit(map[string]int64{"limit": 7})
	m.ZoneChanged(true)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, s := range f.GetMetric() {
			term := ""
			for _, l := range s.GetLabel() {
				term = l.GetValue()
			}
			got = append(got, f.GetName()+" "+term+" "+strings.TrimPrefix(s.GetGauge().String(), "value:"))
		}
	}
	if want := "cinder_csi_node_registered  0; cinder_csi_node_volume_limit  7; cinder_csi_node_zone_changed  1"; strings.Join(got, "; ") != want {
		t.Errorf("want %s, got %s", want, strings.Join(got, "; "))
	}
	m.VolumeLimit(map[string]int64{"limit": 24, "free": 25})
	wantOn(t, registry, "cinder_csi_node_volume_limit 24", `cinder_csi_node_volume_limit_part{part="free"} 25`)
	m.VolumeLimit(map[string]int64{"limit": 7})
	m.ZoneChanged(false)
	wantOn(t, registry, "cinder_csi_node_zone_changed 0")
}

func TestAVolumeHasASeriesForEachFindingAndNoneWithout(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m := NewNode(registry)
	m.Registered(true)
	m.VolumeHealth("v1", []string{"FileSystemReadOnly", "FileSystemErrors"})
	m.VolumeHealth("v2", []string{"NotResponding"})
	wantOn(t, registry, "cinder_csi_node_registered 1", `cinder_csi_node_volume_unhealthy{reason="FileSystemErrors",volume="v1"} 1`,
		`cinder_csi_node_volume_unhealthy{reason="NotResponding",volume="v2"} 1`)
	m.VolumeHealth("v1", nil)
	m.VolumeHealth("v2", []string{"FileSystemReadOnly"})
	got := page(registry)
	if strings.Contains(got, `volume="v1"`) || strings.Contains(got, `reason="NotResponding"`) || !strings.Contains(got, `{reason="FileSystemReadOnly",volume="v2"} 1`) {
		t.Errorf("want one finding of v2, got\n%s", got)
	}
}

// A finding that comes after the unstage of its volume leaves a series behind.
func TestTheSeriesOfVolumesAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m := NewNode(registry)
	for i := range 2 * mostUnhealthy {
		m.VolumeHealth(fmt.Sprint("v", i), []string{"NotResponding"})
		m.VolumeHealth(fmt.Sprint("v", i), []string{"InputOutputError"}) // the same volume
	}
	got := page(registry)
	if n := strings.Count(got, "\ncinder_csi_node_volume_unhealthy{"); n != mostUnhealthy || strings.Contains(got, "NotResponding\"") ||
		!strings.Contains(got, fmt.Sprintf(`volume="v%d"`, mostUnhealthy)) || strings.Contains(got, fmt.Sprintf(`volume="v%d"`, mostUnhealthy-1)) {
		t.Errorf("want the last %d volumes, got %d series", mostUnhealthy, n)
	}
}

func TestTheVolumesOfANodeAreCountedAtEachScrape(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, n := NewNode(registry), 3
	if got := page(registry); strings.Contains(got, "cinder_csi_node_volumes") {
		t.Errorf("nothing counts, but\n%s", got)
	}
	m.CountVolumes(func() int { n++; return n })
	wantOn(t, registry, "cinder_csi_node_volumes 4")
	wantOn(t, registry, "cinder_csi_node_volumes 5")
}
