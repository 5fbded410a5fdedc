package anatomy

import (
	"cmp"
	"fmt"
	"math"
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
	least = math.Inf(1)
	for _, run := range g.runs {
		s := run.Seconds()
		mean += s / float64(len(g.runs))
		least, most = min(least, s), max(most, s)
	}
	return mean, least, most
}

// head is the head of a table: columns of words, then columns of numbers.
func head(words, numbers []string) string {
	return "| " + strings.Join(slices.Concat(words, numbers), " | ") + " |\n|" + strings.Repeat(" --- |", len(words)) + strings.Repeat(" ---: |", len(numbers)) + "\n"
}

// Markdown are the tables of the page: each flow by layer, and each flow step by step.
func (m Measurement) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s. Seconds, averages over all runs; a run of many pods counts each pod.\n\n", m.When)
	b.WriteString("![time of each flow by layer](../../../docs/images/e2e-anatomy.svg)\n\n")
	numbers := []string{"runs", "total (least to most)"}
	for _, layer := range Layers {
		numbers = append(numbers, string(layer))
	}
	b.WriteString(head([]string{"flow", "driver"}, numbers))
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
	var drivers []string
	seconds := make([]map[step]float64, len(flow))
	for i, g := range flow {
		seconds[i], drivers = map[step]float64{}, append(drivers, g.driver)
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
	b.WriteString(head([]string{"until", "layer"}, drivers))
	for _, s := range order {
		fmt.Fprintf(&b, "| %s | %s |", s.name, s.layer)
		for i := range flow {
			fmt.Fprintf(&b, " %.2f |", seconds[i][s])
		}
		b.WriteString("\n")
	}
	return b.String()
}
