package main

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/judge/scale/record"
)

func TestTwoRunsAreComparedKindByKind(t *testing.T) {
	before := record.Run{Commit: "old", Volumes: 1000, Nodes: 100, Stories: []record.Story{
		{
			Name: "rate", Volumes: 10, Figures: map[string]float64{"long, s": 40, "longer, s": 100, "short, s": 2, "count": 7, "only before, s": 50},
			Cloud: map[string]int{"Cinder": 50, "Nova": 30}, API: 100,
		},
		{Name: "rest", Seconds: 10, Cloud: map[string]int{}, API: 20, Processes: []record.Process{{Name: "driver controller-0", Resident: 30}, {Name: "driver controller-1", Resident: 10}}},
		{Name: "apiserver", Volumes: 1, API: 1},
		{Name: "only before", Volumes: 1, API: 1},
	}}
	now := record.Run{Commit: "new", Volumes: 1000, Nodes: 100, Stories: []record.Story{
		{
			Name: "rate", Volumes: 20, Figures: map[string]float64{"long, s": 50, "longer, s": 100, "short, s": 1, "count": 1},
			Cloud: map[string]int{"Cinder": 200}, API: 100,
		},
		{Name: "rest", Seconds: 20, Cloud: map[string]int{"Cinder": 1}, API: 40, Processes: []record.Process{{Name: "driver controller-0", Resident: 10}, {Name: "driver controller-1", Resident: 40}}},
		{Name: "apiserver", Volumes: 1, API: 100},
	}}
	other := before
	other.Volumes = 100
	got := agreement([]record.Run{now}, []record.Run{other, before, now})
	want := strings.Join([]string{
		"| cluster | figures | number | apart, median | apart, most | which: earlier, this run |",
		"| --- | --- | --- | --- | --- | --- |",
		"| 1,000 volumes, 100 nodes | times of at least 30 s | 2 | 20% | 20% | rate: long, s: 40.0, 50.0 |",
		"| 1,000 volumes, 100 nodes | times below 30 s | 1 | 50% | 50% | rate: short, s: 2.00, 1.00 |",
		"| 1,000 volumes, 100 nodes | requests to the cloud, each volume or second | 1 | 20% | 20% | rate: requests: 8.00, 10.0 |",
		"| 1,000 volumes, 100 nodes | requests to the API server, each volume or second | 2 | 50% | 50% | rate: requests: 10.0, 5.00 |",
		"| 1,000 volumes, 100 nodes | resident memory of a process | 1 | 25% | 25% | rest: driver: 30.0, 40.0 |",
		"",
	}, "\n")
	if got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
}
