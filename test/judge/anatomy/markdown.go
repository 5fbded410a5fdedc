package anatomy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// group are the runs of one flow with one driver.
type group struct {
	flow, driver string
	runs         []Run
}

// groups keeps the order in which flows and drivers appear first.
func (m Measurement) groups() []group {
	var all []group
	for _, run := range m.Runs {
		i := slices.IndexFunc(all, func(g group) bool { return g.flow == run.Flow && g.driver == run.Driver })
		if i < 0 {
			all, i = append(all, group{flow: run.Flow, driver: run.Driver}), len(all)
		}
		all[i].runs = append(all[i].runs, run)
	}
	flows := map[string]int{}
	for _, g := range all {
		if _, known := flows[g.flow]; !known {
			flows[g.flow] = len(flows)
		}
	}
	slices.SortStableFunc(all, func(a, b group) int {
		return cmp.Or(cmp.Compare(flows[a.flow], flows[b.flow]), cmp.Compare(a.driver, b.driver))
	})
	return all
}

// mean is the average time of each run in a layer.
func (g group) mean(layer Layer) (seconds float64) {
	for _, run := range g.runs {
		for _, p := range run.Parts {
			if p.Layer == layer {
				seconds += p.Seconds / float64(len(g.runs))
			}
		}
	}
	return seconds
}

// repetitions is how often the flow ran; a flow of many pods has several runs in one.
func (g group) repetitions() int {
	seen := map[int]bool{}
	for _, run := range g.runs {
		seen[run.Round] = true
	}
	return len(seen)
}

func (g group) total() (mean, least, most float64) {
	for i, run := range g.runs {
		s := run.Seconds()
		mean += s / float64(len(g.runs))
		most = max(most, s)
		if least = min(least, s); i == 0 {
			least = s
		}
	}
	return mean, least, most
}

// Markdown are the tables of the page: each flow by layer, and each flow step by step.
func (m Measurement) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s. Seconds, averages over all runs; a run of many pods counts each pod.\n\n", m.When)
	b.WriteString("![time of each flow by layer](../../../docs/images/e2e-anatomy.svg)\n\n")
	b.WriteString("| flow | driver | runs | total (least to most) |")
	for _, layer := range Layers {
		fmt.Fprintf(&b, " %s |", layer)
	}
	b.WriteString("\n| --- | --- | ---: | ---: |" + strings.Repeat(" ---: |", len(Layers)) + "\n")
	groups := m.groups()
	for _, g := range groups {
		mean, least, most := g.total()
		fmt.Fprintf(&b, "| %s | %s | %d | %.1f (%.1f to %.1f) |", g.flow, g.driver, g.repetitions(), mean, least, most)
		for _, layer := range Layers {
			fmt.Fprintf(&b, " %.2f |", g.mean(layer))
		}
		b.WriteString("\n")
	}
	for _, flow := range flowsOf(groups) {
		fmt.Fprintf(&b, "\n%s, step by step:\n\n%s", strings.ToUpper(flow[0].flow[:1])+flow[0].flow[1:], steps(flow))
	}
	return b.String()
}

func flowsOf(groups []group) [][]group {
	var all [][]group
	for i, g := range groups {
		if i == 0 || groups[i-1].flow != g.flow {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], g)
	}
	return all
}

type step struct {
	layer Layer
	name  string
}

// steps is the table of one flow: a row for each step, a column for each driver.
func steps(flow []group) string {
	var order []step
	seconds := make([]map[step]float64, len(flow))
	for i, g := range flow {
		seconds[i] = map[step]float64{}
		for _, run := range g.runs {
			for at, p := range run.Parts {
				s := step{p.Layer, p.Step}
				if !slices.Contains(order, s) {
					order = slices.Insert(order, min(at, len(order)), s)
				}
				seconds[i][s] += p.Seconds / float64(len(g.runs))
			}
		}
	}
	var b strings.Builder
	b.WriteString("| until | layer |")
	for _, g := range flow {
		fmt.Fprintf(&b, " %s |", g.driver)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" ---: |", len(flow)) + "\n")
	for _, s := range order {
		fmt.Fprintf(&b, "| %s | %s |", s.name, s.layer)
		for i := range flow {
			fmt.Fprintf(&b, " %.2f |", seconds[i][s])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// colours are those of the chart; each differs from its neighbours also without colour vision, since each bar part has its layer's place.
var colours = map[Layer]string{
	Cloud: "#b8bec7", Driver: "#c2410c", NodeDriver: "#f59e0b", Sidecars: "#2563eb",
	Controllers: "#7c3aed", Scheduler: "#db2777", KubeletWait: "#0d9488", Kubelet: "#65a30d",
}

// SVG is the chart: one bar for each flow and driver.
func (m Measurement) SVG() string {
	const width, left, row, top = 1050, 430, 26, 70
	groups := m.groups()
	longest := 1.0
	for _, g := range groups {
		mean, _, _ := g.total()
		longest = max(longest, mean)
	}
	scale := (width - left - 60) / longest
	var b strings.Builder
	height := top + row*len(groups) + 20
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n", width, height)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height)
	for i, layer := range Layers {
		x, y := 20+(i%4)*215, 20+(i/4)*22
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n", x, y-11, colours[layer], x+18, y, layer)
	}
	for i, g := range groups {
		y, x := float64(top+i*row), float64(left)
		mean, _, _ := g.total()
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%s, %s</text>\n", left-8, y+14, g.flow, g.driver)
		for _, layer := range Layers {
			w := g.mean(layer) * scale
			fmt.Fprintf(&b, "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"18\" fill=\"%s\"><title>%s: %.2f s</title></rect>\n", x, y, w, colours[layer], layer, g.mean(layer))
			x += w
		}
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.0f\">%.1f s</text>\n", x+6, y+14, mean)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
