package main

import (
	"math"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/judge/scale/record"
)

func TestALineIsFoundAgain(t *testing.T) {
	want := line{50, 0.02}
	x := []float64{100, 1000, 10000}
	var y []float64
	for _, v := range x {
		y = append(y, want.at(v))
	}
	got := fit(x, y)
	if math.Abs(got.base-want.base) > 1e-6 || math.Abs(got.slope-want.slope) > 1e-9 {
		t.Errorf("want %v, got %v", want, got)
	}
	if miss := surprise(x, y); miss > 1e-9 {
		t.Errorf("a line misses nothing, got %v", miss)
	}
}

func TestTheErrorIsWhatTheSmallerClustersDidNotSay(t *testing.T) {
	// The line of the first two is 10 + 0.01 x, so 110 at 10,000, where 220 was measured.
	if got := surprise([]float64{100, 1000, 10000}, []float64{11, 20, 220}); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("want half, got %v", got)
	}
}

func TestASmallMeasurementCountsAsMuchAsALargeOne(t *testing.T) {
	l := fit([]float64{100, 1000, 10000}, []float64{10, 40, 200})
	if at := l.at(100); math.Abs(at-10) > 5 {
		t.Errorf("want about 10 at 100 volumes, got %v of %v", at, l)
	}
}

func TestTheCostOfAClusterBeyondIsShownWithItsError(t *testing.T) {
	of := func(volumes int, memory, listed float64, api int) record.Run {
		return record.Run{Volumes: volumes, Stories: []record.Story{{
			Name: "rest", Seconds: 60, API: api, Cloud: map[string]int{"Cinder": 7, "Nova": 1}, Requests: map[string]int{listing: 2},
			Processes: []record.Process{{Name: "driver controller-0", Resident: 1}, {Name: "driver controller-1", Resident: memory}},
			RPCs:      []record.RPC{{Method: "ListVolumes", Count: 2, Mean: listed}},
		}}}
	}
	got := atScale([]record.Run{of(100, 12, 0.1, 60), of(1000, 30, 1, 600), of(10000, 210, 10, 0)})
	for _, want := range []string{
		"| requests to the cloud without listings | a minute | 6.00 | 6.00 | 6.00 | 6.00 + 0 | 6.00 | 0% |\n",
		"| driver | MiB | 12.0 | 30.0 | 210 | 10.0 + 20.0 | 2,010 | 0% |\n",
		"| one listing of all volumes | s | 0.10 | 1.00 | 10.0 | 0 + 1.00 | 100 | 0% |\n",
		"| requests to the API server | a second | 1.00 | 10.0 | 0 | not measured in each |  |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want the line %s in\n%s", want, got)
		}
	}
}
