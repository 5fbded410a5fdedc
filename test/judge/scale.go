package main

import (
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

// scaleResults has the tables that only a person who changes the driver reads; the page about sizing has the others.
const scaleResults = "test/suite/scale/RESULTS.md"

// scaleDir has the records of `make test-scale`.
const scaleDir = "test/suite/scale/records"

// scaleTables are the tables of each page: by the names of the parts.
var scaleTables = map[string]map[string]func([]record.Run) string{
	scaleResults:               {"budgets": budgets, "times": times, "requests": requests, "fairness": fairness, "rpcs": rpcs, "processes": processes, "comparison": comparison, "runs": which},
	"docs/reference/sizing.md": {"sizes": sizes, "settings": settings},
}

// scaleParts makes the parts of a page.
func scaleParts(name string) func(root string) (map[string]string, error) {
	return func(root string) (map[string]string, error) {
		runs, err := scaleRuns(filepath.Join(root, scaleDir))
		if err != nil {
			return nil, err
		}
		parts := map[string]string{}
		for table, of := range scaleTables[name] {
			if table == "comparison" || table == "runs" {
				parts[table] = of(runs)
			} else {
				parts[table] = of(ours(runs))
			}
		}
		return parts, nil
	}
}

// scaleRuns reads the records, the smallest cluster first.
func scaleRuns(dir string) ([]record.Run, error) {
	all, err := page.Records[record.Run](dir)
	slices.SortFunc(all, func(a, b record.Run) int { return a.Volumes - b.Volumes })
	return all, err
}

// ours are the runs with our driver.
func ours(runs []record.Run) []record.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r record.Run) bool { return r.Plugin != "" })
}

// comparison has a line for each figure that our driver and another have of the same story in the same cluster.
func comparison(runs []record.Run) string {
	var lines [][]string
	for _, other := range runs {
		if other.Plugin == "" {
			continue
		}
		for _, own := range ours(runs) {
			if size(own) == size(other) {
				lines = append(lines, compared(own, other)...)
			}
		}
	}
	return page.Table([]string{"cluster", "story", "figure", "this driver", "upstream's plugin"}, lines)
}

func compared(own, other record.Run) [][]string {
	var lines [][]string
	for _, theirs := range other.Stories {
		story, both := storyOf(own, theirs.Name)
		if !both {
			continue
		}
		mine, back := figuresOf(story), figuresOf(theirs)
		for i := range mine {
			lines = append(lines, []string{size(own), theirs.Name, mine[i].name, mine[i].text, back[i].text})
		}
	}
	return lines
}

type figure struct{ name, text string }

// figuresOf are the figures of a story that a person compares.
func figuresOf(s record.Story) []figure {
	show := func(name string) string {
		if value, has := s.Figures[name]; has {
			return number(value)
		}
		return "not reached"
	}
	per := func(count int, by float64) string { return strconv.FormatFloat(float64(count)/by, 'f', 2, 64) }
	memory := figure{"driver at its peak, MiB", one(peakOf(s, "driver"))}
	cloud := s.Cloud["Cinder"] + s.Cloud["Nova"] + s.Cloud["Keystone"]
	switch s.Name {
	case "rest":
		return []figure{{"requests to the cloud, each second", per(cloud, s.Seconds)}, {"requests to the API server, each second", per(s.API, s.Seconds)}, memory}
	case "move":
		return []figure{{"loss to pod p50, s", show("loss to pod p50, s")}, {"loss to pod p99, s", show("loss to pod p99, s")}, {"requests to the cloud, each volume", per(cloud, float64(s.Volumes))}}
	case "leader":
		return []figure{{"kill to lease, s", show("kill to lease, s")}, {"claim to pod, s", show("claim to pod p50, s")}}
	}
	return []figure{
		{"claim to pod p50, s", show("claim to pod p50, s")},
		{"claim to pod p99, s", show("claim to pod p99, s")},
		{"requests to the cloud, each volume", per(cloud, float64(s.Volumes))},
		memory,
	}
}
