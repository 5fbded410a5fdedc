package pictures

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestEachDashboardOfTheChartHasAPicture(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(top, dashboardFiles))
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := dashboards(os.DirFS(top))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 || len(drawn) != len(files) {
		t.Errorf("want a picture for each of %v, got %d", files, len(drawn))
	}
}

func TestADashboardThatCannotBeDrawnIsAnError(t *testing.T) {
	t.Parallel()
	const good = `{"seconds": 60, "step": 30, "answers": {"up": [{"labels": {"pod": "a"}, "values": "1 2"}]}}`
	for name, c := range map[string]struct{ panel, recording, want string }{
		"a panel without data":      {`"type": "timeseries", "targets": [{"expr": "down"}]`, good, "has no data for down"},
		"one query without data":    {`"type": "timeseries", "targets": [{"expr": "up"}, {"expr": "down"}]`, good, "has no data for down"},
		"another kind of panel":     {`"type": "gauge", "targets": [{"expr": "up"}]`, good, `"gauge"`},
		"another unit":              {`"type": "timeseries", "fieldConfig": {"defaults": {"unit": "furlongs"}}`, good, `"furlongs"`},
		"a value that is no number": {`"type": "timeseries", "targets": [{"expr": "up"}]`, strings.Replace(good, "1 2", "1 x", 1), `"x"`},
		"a recording without times": {`"type": "timeseries", "targets": [{"expr": "up"}]`, `{"answers": {}}`, "does not say how long"},
	} {
		panel := c.panel
		if !strings.Contains(panel, "unit") {
			panel += `, "fieldConfig": {"defaults": {"unit": "none"}}`
		}
		files := fstest.MapFS{
			"charts/cinder-csi/dashboards/node/x.json": {Data: []byte(`{"title": "X", "panels": [{"title": "P", "gridPos": {"w": 12, "h": 8}, ` + panel + `}]}`)},
			RecordingFile: {Data: []byte(c.recording)},
		}
		if _, err := dashboards(files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %s, got %v", name, c.want, err)
		}
	}
	if _, err := dashboards(fstest.MapFS{RecordingFile: {Data: []byte(good)}}); err == nil || !strings.Contains(err.Error(), dashboardFiles) {
		t.Errorf("want an error for a chart without dashboards, got %v", err)
	}
}

func TestAxesHaveFewRoundMarks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit string
		peak float64
		want string
	}{
		{"none", 0, "0, 1"},
		{"none", 3, "0, 1, 2, 3"},
		{"none", 22, "0, 10, 20, 30"},
		{"reqps", 0.37, "0/s, 0.1/s, 0.2/s, 0.3/s, 0.4/s"},
		{"reqps", 100, "0/s, 50/s, 100/s"},
		{"percentunit", 0.55, "0%, 20%, 40%, 60%"},
		{"percentunit", 1, "0%, 50%, 100%"},
		{"s", 0.21, "0 ms, 100 ms, 200 ms, 300 ms"},
		{"s", 55, "0 s, 20 s, 40 s, 60 s"},
		{"s", 400, "0 min, 2 min, 4 min, 6 min, 8 min"},
		{"bytes", 23 * mebibyte, "0 MiB, 10 MiB, 20 MiB, 30 MiB"},
	} {
		p := panel{Type: "timeseries"}
		p.FieldConfig.Defaults.Unit = c.unit
		p.Targets = []struct{ Expr, LegendFormat string }{{Expr: "up"}}
		drawn, err := p.plot(Recording{Answers: map[string][]Series{"up": {{Values: Values([]float64{0, c.peak})}}}})
		if err != nil {
			t.Fatal(err)
		}
		var marks []string
		for i := 0.0; i*drawn.tick <= drawn.top*1.001; i++ {
			marks = append(marks, drawn.unit.text(i*drawn.tick, drawn.tick))
		}
		if got := strings.Join(marks, ", "); got != c.want {
			t.Errorf("%g %s: want the marks %s, got %s", c.peak, c.unit, c.want, got)
		}
	}
}

func TestALegendFitsAndSaysHowManyLinesItLeavesOut(t *testing.T) {
	t.Parallel()
	const width = 270
	for name, c := range map[string]struct {
		names []string // of the lines; "=" before a name: its line is at 0
		want  []string
	}{
		"all":            {[]string{"read", "write"}, []string{"read, write"}},
		"too many":       {slices.Repeat([]string{"volume"}, 9), []string{"volume, volume, volume, volume", "volume, volume, 3 more"}},
		"the rest is 0":  {append(slices.Repeat([]string{"volume"}, 6), "=a", "=b"), []string{"volume, volume, volume, volume", "volume, volume, 2 more at 0"}},
		"long names":     {slices.Repeat([]string{"ControllerUnpublishVolume Unavailable"}, 5), append(slices.Repeat([]string{"ControllerUnpublishVolume Unavailable"}, 2), "3 more")},
		"one name, long": {[]string{strings.Repeat("x", 60)}, []string{strings.Repeat("x", 38) + "…"}},
	} {
		var p plot
		for _, n := range c.names {
			l := line{name: strings.TrimPrefix(n, "="), peak: 1}
			if l.name != n {
				l.peak = 0
			}
			p.lines = append(p.lines, l)
		}
		var got []string
		for _, row := range p.legend(width) {
			var names []string
			for _, e := range row {
				names = append(names, e.name)
				if end := e.x + 14 + letter*float64(len([]rune(e.name))); end > width {
					t.Errorf("%s: %q ends at %g of %d", name, e.name, end, width)
				}
			}
			got = append(got, strings.Join(names, ", "))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestACurveHasGapsAndDots(t *testing.T) {
	t.Parallel()
	numbers, err := Series{Values: Values([]float64{1, 2.0004, math.NaN(), 4, math.NaN()})}.numbers()
	if err != nil {
		t.Fatal(err)
	}
	got := curve(numbers, func(i int) float64 { return float64(10 * i) }, func(v float64) float64 { return v })
	if want := "M0.0 1.0 10.0 2.0M30.0 4.0h.1"; got != want {
		t.Errorf("want %s, got %s (%s)", want, got, fmt.Sprint(numbers))
	}
}
