package pictures

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
)

// dashboardFiles are the dashboards that are pictures: all that the chart has.
const dashboardFiles = "charts/cinder-csi/dashboards/*/*.json"

// dashboard is the part of Grafana's format that the project's dashboards use.
type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ H, W, X, Y float64 }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

// dashboards draws each dashboard of the chart with the recorded answers of Prometheus, by file name of the picture.
func dashboards(repository fs.FS) (map[string]string, error) {
	files, err := fs.Glob(repository, dashboardFiles)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no file %s", dashboardFiles)
	}
	recording, err := readRecording(repository)
	if err != nil {
		return nil, err
	}
	drawn := map[string]string{}
	for _, file := range files {
		text, err := fs.ReadFile(repository, file)
		if err != nil {
			return nil, err
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(path.Base(file), ".json")
		svg, err := d.draw(recording, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		drawn["dashboard-"+strings.TrimPrefix(name, "cinder-csi-")+".svg"] = svg
	}
	return drawn, nil
}

// Grafana's grid has 24 columns. A panel of 8 rows must have room for its graph and three lines of a legend.
const (
	dashboardWidth = 600
	gridColumn     = (dashboardWidth - 12) / 24.0
	gridRow        = 22
	gridGap        = 8
)

func (d dashboard) draw(r Recording, name string) (string, error) {
	c := &canvas{width: dashboardWidth}
	c.text(10, 24, "title", d.Title)
	c.text(10, 44, "dim", fmt.Sprintf("From a real Prometheus: %d minutes of a small cluster on the simulated cloud.", r.Seconds/60))
	y := 62.0
	var faults []Fault
	for _, f := range r.Faults {
		if slices.Contains(f.Dashboards, name) {
			faults = append(faults, f)
			c.rect(10, y-11, 16, 14, "fault")
			c.middle(18, y, "small", fmt.Sprint(len(faults)))
			c.text(32, y, "dim", f.What)
			y += 18
		}
	}
	plots := make([]plot, len(d.Panels))
	legendLines := map[float64]int{} // by row of the grid: the graphs of one row have the same height
	for i, p := range d.Panels {
		var err error
		if plots[i], err = p.plot(r); err != nil {
			return "", fmt.Errorf("panel %q: %w", p.Title, err)
		}
		legendLines[p.GridPos.Y] = max(legendLines[p.GridPos.Y], len(plots[i].legend(p.width()-16)))
	}
	var titles []string
	for i, p := range d.Panels {
		titles = append(titles, p.Title)
		c.panel(p, plots[i], r, faults, y-4, legendLines[p.GridPos.Y])
	}
	c.height -= 4
	return c.svg("The dashboard " + d.Title + " in a run with faults. Panels: " + strings.Join(titles, ", ")), nil
}

func (p panel) width() float64 { return p.GridPos.W*gridColumn - gridGap }

// plot is what a panel shows, the highest lines first.
type plot struct {
	unit  unit
	lines []line
	top   float64 // of the axis
	tick  float64
}

type line struct {
	name    string
	numbers []float64
	peak    float64
}

var labelName = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

func (p panel) plot(r Recording) (plot, error) {
	var out plot
	if p.Type != "timeseries" {
		return out, fmt.Errorf("tools/pictures cannot draw a panel of the type %q", p.Type)
	}
	var known bool
	if out.unit, known = units[p.FieldConfig.Defaults.Unit]; !known {
		return out, fmt.Errorf("tools/pictures does not know the unit %q", p.FieldConfig.Defaults.Unit)
	}
	peak := 0.0
	for _, t := range p.Targets {
		if len(r.Answers[t.Expr]) == 0 {
			return out, fmt.Errorf("%s has no data for %s; `make test-monitoring UPDATE=1` records it", RecordingFile, t.Expr)
		}
		for _, s := range r.Answers[t.Expr] {
			numbers, err := s.numbers()
			if err != nil {
				return out, err
			}
			l := line{numbers: numbers, name: strings.Join(strings.Fields(labelName.ReplaceAllStringFunc(t.LegendFormat, func(label string) string {
				return s.Labels[labelName.FindStringSubmatch(label)[1]]
			})), " ")}
			if l.name == "" {
				l.name = "none" // the label is empty, as that of "or vector(0)"
			}
			for _, n := range numbers {
				if !math.IsNaN(n) {
					l.peak = max(l.peak, n)
				}
			}
			peak = max(peak, l.peak)
			out.lines = append(out.lines, l)
		}
	}
	slices.SortStableFunc(out.lines, func(a, b line) int { return cmp.Or(cmp.Compare(b.peak, a.peak), cmp.Compare(a.name, b.name)) })
	out.tick = out.unit.tick(peak)
	out.top = max(1, math.Ceil(peak/out.tick-0.001)) * out.tick
	return out, nil
}

// unit is one of Grafana's units.
type unit struct {
	steps []float64 // between two marks of the axis; empty: 1, 2 and 5 of each power of ten
	least float64   // the smallest step
	text  func(value, step float64) string
}

const mebibyte = 1 << 20

var units = map[string]unit{
	"none":        {least: 1, text: func(v, _ float64) string { return fmt.Sprintf("%g", v) }},
	"reqps":       {least: 0.001, text: func(v, _ float64) string { return fmt.Sprintf("%g/s", rounded(v)) }},
	"percentunit": {least: 0.01, text: func(v, _ float64) string { return fmt.Sprintf("%g%%", rounded(100*v)) }},
	"bytes": {
		steps: []float64{mebibyte, 2 * mebibyte, 5 * mebibyte, 10 * mebibyte, 20 * mebibyte, 50 * mebibyte, 100 * mebibyte},
		text:  func(v, _ float64) string { return fmt.Sprintf("%g MiB", v/mebibyte) },
	},
	"s": {
		steps: []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
		text: func(v, step float64) string {
			switch {
			case step < 1:
				return fmt.Sprintf("%g ms", rounded(1000*v))
			case step < 60:
				return fmt.Sprintf("%g s", rounded(v))
			}
			return fmt.Sprintf("%g min", rounded(v/60))
		},
	},
}

// rounded removes what binary fractions leave.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// mostTicks is how many marks an axis has at most, besides 0.
const mostTicks = 4

func (u unit) tick(peak float64) float64 {
	for _, step := range u.steps {
		if peak <= mostTicks*step {
			return step
		}
	}
	if len(u.steps) > 0 {
		return u.steps[len(u.steps)-1]
	}
	for power := u.least; ; power *= 10 {
		for _, step := range []float64{power, 2 * power, 5 * power} {
			if peak <= mostTicks*step {
				return step
			}
		}
	}
}

// colours are the classes of the lines that the legend names, in the order of the legend.
var colours = []string{"a", "b", "c", "d", "e", "g"}

const (
	legendFont  = 10.5
	legendRow   = 14
	mostEntries = 3 // lines of a legend
	// letter is the width of a letter in a legend. Fonts differ, so it is that of a wide one.
	letter = 0.61 * legendFont
)

// entry is one name in a legend. Its line is number of plot.lines; -1 stands for all lines that the legend does not name.
type entry struct {
	x      float64
	name   string
	number int
}

// legend puts as many names as fit into lines of a width, and says how many more there are.
func (p plot) legend(width float64) [][]entry {
	const swatch, between = 14, 10
	long := func(name string) float64 { return swatch + letter*float64(len([]rune(name))) }
	rows, x := [][]entry{nil}, 0.0
	add := func(name string, number int) bool {
		w := long(name)
		if x > 0 && x+w > width {
			if len(rows) == mostEntries {
				return false
			}
			rows, x = append(rows, nil), 0
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], entry{x, name, number})
		x += w + between
		return true
	}
	for i, l := range p.lines {
		name := []rune(l.name)
		if most := int((width - swatch) / letter); len(name) > most {
			name = append(name[:most-1], '…')
		}
		// The text about the rest must fit behind the last name.
		rest := p.rest(i + 1)
		before, at := slices.Clone(rows[len(rows)-1]), x
		count := len(rows)
		fits := i < len(colours) && add(string(name), i)
		if fits && rest != "" && len(rows) == mostEntries && x+long(rest) > width {
			rows, x = rows[:count], at
			rows[count-1] = before
			fits = false
		}
		if !fits {
			if i == 0 {
				add(string(name), i) // one name, however long
				return rows
			}
			add(p.rest(i), -1)
			return rows
		}
	}
	return rows
}

// rest says how many lines there are from a number on.
func (p plot) rest(from int) string {
	rest := p.lines[from:]
	switch {
	case len(rest) == 0:
		return ""
	case rest[0].peak == 0:
		return fmt.Sprintf("%d more at 0", len(rest))
	}
	return fmt.Sprintf("%d more", len(rest))
}

// panel draws a panel below y.
func (c *canvas) panel(p panel, data plot, r Recording, faults []Fault, y float64, legendLines int) {
	x := 10 + p.GridPos.X*gridColumn
	y += p.GridPos.Y * gridRow
	w, h := p.width(), p.GridPos.H*gridRow-gridGap
	c.rect(rounded(x), y, w, h, "box")
	c.text(rounded(x+8), y+17, "bold", p.Title)

	left, right, above, below := x+48, x+w-10, y+36, y+h-24-legendRow*float64(legendLines)
	across := func(seconds float64) float64 { return left + (right-left)*seconds/float64(r.Seconds) }
	up := func(value float64) float64 { return below - (below-above)*value/data.top }
	for i, f := range faults {
		from, to := across(float64(f.From)), across(float64(f.To))
		fmt.Fprintf(&c.b, "<rect x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\" class=\"fault\"/>\n", from, above, to-from, below-above)
		c.middle((from+to)/2, above-4, "small dim", fmt.Sprint(i+1))
	}
	for i := 0.0; i*data.tick <= data.top*1.001; i++ {
		at := up(i * data.tick)
		fmt.Fprintf(&c.b, "<path d=\"M%g %.1fH%g\" class=\"grid\"/>\n", left, at, right)
		c.end(left-5, rounded(at+3.5), "small dim", data.unit.text(i*data.tick, data.tick))
	}
	every := 60 * math.Ceil(float64(r.Seconds)/60/4)
	for s := 0.0; s <= float64(r.Seconds); s += every {
		label := fmt.Sprintf("%g", s/60)
		if s+every > float64(r.Seconds) {
			c.end(right, below+14, "small dim", label+" min")
			continue
		}
		c.middle(rounded(across(s)), below+14, "small dim", label)
	}

	class := map[int]string{}
	legend := data.legend(w - 16)
	for row, entries := range legend {
		for _, e := range entries {
			colour := "f"
			if e.number >= 0 {
				colour = colours[e.number]
				class[e.number] = colour
			}
			at := below + 32 + legendRow*float64(row)
			fmt.Fprintf(&c.b, "<path d=\"M%.1f %.1fh9\" class=\"curve %s\"/>\n", x+8+e.x, at-3.5, colour)
			c.text(rounded(x+8+e.x+13), at, "legend", e.name)
		}
	}
	// The highest line is drawn last, above the others. Many lines at 0 are the same path.
	var drawn []string
	for i, l := range slices.Backward(data.lines) {
		colour := class[i]
		if colour == "" {
			colour = "f"
		}
		if d := curve(l.numbers, func(i int) float64 { return across(float64((i + 1) * r.Step)) }, up); d != "" && (class[i] != "" || !slices.Contains(drawn, d)) {
			drawn = append(drawn, d)
			fmt.Fprintf(&c.b, "<path d=%q class=\"curve %s\"/>\n", d, colour)
		}
	}
}

// curve is the path of a line with gaps where it has no number. A number alone is a dot.
func curve(numbers []float64, across func(int) float64, up func(float64) float64) string {
	var d strings.Builder
	for i, n := range numbers {
		if math.IsNaN(n) {
			continue
		}
		first := i == 0 || math.IsNaN(numbers[i-1])
		separator := " " // the next pair of a path is a line
		if first {
			separator = "M"
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", separator, across(i), up(n))
		if first && (i+1 == len(numbers) || math.IsNaN(numbers[i+1])) {
			d.WriteString("h.1")
		}
	}
	return d.String()
}
