package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

// size names a run.
func size(run record.Run) string {
	return fmt.Sprintf("%s volumes, %s nodes", thousands(run.Volumes), thousands(run.Nodes))
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	if len(text) > 3 {
		return text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return text
}

func number(x float64) string {
	if x >= 100 {
		return thousands(int(x + 0.5))
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

func one(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// eachStory walks the stories of the runs: all sizes of a story together.
func eachStory(runs []record.Run, do func(record.Run, record.Story)) {
	var names []string
	for _, run := range runs {
		for _, story := range run.Stories {
			if !slices.Contains(names, story.Name) {
				names = append(names, story.Name)
			}
		}
	}
	for _, name := range names {
		for _, run := range runs {
			if story, has := storyOf(run, name); has {
				do(run, story)
			}
		}
	}
}

func storyOf(run record.Run, name string) (record.Story, bool) {
	i := slices.IndexFunc(run.Stories, func(s record.Story) bool { return s.Name == name })
	if i < 0 {
		return record.Story{Seconds: 1}, false
	}
	return run.Stories[i], true
}

// storyTable has the lines that a function makes of each story.
func storyTable(runs []record.Run, linesOf func(record.Run, record.Story) [][]string, head ...string) string {
	var lines [][]string
	eachStory(runs, func(run record.Run, story record.Story) { lines = append(lines, linesOf(run, story)...) })
	return page.Table(head, lines)
}

func budgets(runs []record.Run) string {
	return storyTable(runs, func(run record.Run, story record.Story) (lines [][]string) {
		for _, b := range story.Budgets {
			verdict := "kept"
			if !b.Kept() {
				verdict = "**not kept**"
			}
			lines = append(lines, []string{b.Promise, size(run), number(b.Limit), number(b.Measured), verdict})
		}
		return lines
	}, "budget", "cluster", "at most", "measured", "")
}

// times has a line for each figure of each story, and a column for each run.
func times(runs []record.Run) string {
	header := []string{"story", "figure"}
	for _, run := range runs {
		header = append(header, size(run))
	}
	at := map[string]int{}
	var lines [][]string
	eachStory(runs, func(run record.Run, story record.Story) {
		figures := maps.Clone(story.Figures)
		figures["volumes of the story"] = float64(story.Volumes)
		if story.Restarts > 0 {
			figures["containers that ended"] = float64(story.Restarts)
		}
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			key := story.Name + " " + name
			if _, has := at[key]; !has {
				at[key] = len(lines)
				lines = append(lines, append([]string{story.Name, name}, slices.Repeat([]string{""}, len(runs))...))
			}
			lines[at[key]][2+slices.IndexFunc(runs, func(r record.Run) bool { return size(r) == size(run) })] = number(figures[name])
		}
	})
	return page.Table(header, lines)
}

// requests are those for one volume of the story, and those of a second where nothing happens.
func requests(runs []record.Run) string {
	return storyTable(runs, func(run record.Run, story record.Story) [][]string {
		by, per := float64(story.Volumes), "volume"
		if story.Name == "rest" {
			by, per = story.Seconds, "second"
		}
		cells := []string{story.Name, size(run), per}
		for _, service := range []string{"Cinder", "Nova", "Keystone"} {
			cells = append(cells, strconv.FormatFloat(float64(story.Cloud[service])/by, 'f', 2, 64))
		}
		api := one(float64(story.API) / by)
		if story.Name == "apiserver" {
			api = "its count ends with the old process"
		}
		return [][]string{append(cells, api)}
	}, "story", "cluster", "per", "Cinder", "Nova", "Keystone", "API server")
}

func fairness(runs []record.Run) string {
	return storyTable(runs, func(run record.Run, story record.Story) (lines [][]string) {
		for _, t := range story.Tenants {
			lines = append(lines, []string{story.Name, size(run), t.Name, thousands(t.Claims), thousands(t.Bound), number(t.P50), number(t.P99)})
		}
		return lines
	}, "story", "cluster", "claims of", "claims", "got a volume", "p50, s", "p99, s")
}

func rpcs(runs []record.Run) string {
	return storyTable(runs, func(run record.Run, story record.Story) (lines [][]string) {
		for _, rpc := range story.RPCs {
			if strings.HasPrefix(rpc.Method, "Get") || rpc.Method == "Probe" || rpc.Method == "ControllerGetCapabilities" {
				continue // of the start of a sidecar
			}
			var codes []string
			for _, code := range slices.Sorted(maps.Keys(rpc.Codes)) {
				if code != "OK" {
					codes = append(codes, fmt.Sprintf("%s %s", thousands(rpc.Codes[code]), code))
				}
			}
			lines = append(lines, []string{story.Name, size(run), rpc.Method, thousands(rpc.Count), number(rpc.P50), number(rpc.P99), strings.Join(codes, ", ")})
		}
		return lines
	}, "story", "cluster", "RPC", "RPCs", "p50, s", "p99, s", "not OK")
}

// processes are the memory at the end of the rest, and the processor time of the first two stories, in which volumes come.
func processes(runs []record.Run) string {
	var lines [][]string
	for _, run := range runs {
		rest, _ := storyOf(run, "rest")
		for _, p := range rest.Processes {
			lines = append(lines, []string{
				size(run), p.Name, one(p.Resident), one(p.Own), one(p.Peak), one(p.CPU / rest.Seconds * 1000), one(spent(run, "rate", p.Name)), one(spent(run, "burst", p.Name)),
			})
		}
	}
	return page.Table([]string{"cluster", "process", "resident, MiB", "of its own, MiB", "peak, MiB", "at rest, ms of CPU a second", "rate, s of CPU", "burst, s of CPU"}, lines)
}

func spent(run record.Run, story, process string) float64 {
	s, _ := storyOf(run, story)
	return mostOf(s, process, func(p record.Process) float64 { return p.CPU })
}

// containers are those of the controller whose memory the sizes decide.
var containers = []string{"driver", "provisioner", "attacher", "resizer"}

// sizes is the memory of the busier replica over all stories: at rest, and at its peak.
func sizes(runs []record.Run) string {
	var lines [][]string
	for _, run := range runs {
		cells := []string{size(run)}
		for _, container := range containers {
			peak := 0.0
			for _, story := range run.Stories {
				peak = max(peak, peakOf(story, container))
			}
			cells = append(cells, fmt.Sprintf("%.0f, peak %.0f", memoryAtRest(run, container), peak))
		}
		lines = append(lines, cells)
	}
	return page.Table([]string{"cluster", "driver, MiB", "provisioner, MiB", "attacher, MiB", "resizer, MiB"}, lines)
}

// settings are what each size of cluster gets.
func settings([]record.Run) string {
	var lines [][]string
	for _, s := range v1alpha1.ClusterSizes {
		cells := []string{"`" + s.Name + "`", thousands(s.Volumes), thousands(s.Nodes)}
		for _, container := range containers {
			cells = append(cells, s.Memory[container])
		}
		lines = append(lines, append(cells, fmt.Sprintf("%d a second, burst %d", s.Attacher.QPS, s.Attacher.Burst), s.Attacher.ReconcileSync))
	}
	return page.Table([]string{"`spec.size`", "volumes", "nodes", "driver", "provisioner", "attacher", "resizer", "requests of the attacher", "listing every"}, lines)
}

// which lists the records, with their date and what they are of.
func which(runs []record.Run) string {
	var lines [][]string
	for _, run := range runs {
		driver, settings, later := "this driver", cmp.Or(run.Size, "as of that commit"), []string{}
		if run.Plugin != "" {
			driver, settings = "upstream's plugin", "upstream's manifests"
		}
		for _, story := range run.Stories {
			if story.Commit != "" {
				later = append(later, story.Name)
			}
		}
		lines = append(lines, []string{size(run), driver, settings, run.Date, one(run.Load), strings.Join(later, ", ")})
	}
	return page.Table([]string{"cluster", "driver", "size", "date", "load at the start", "stories of a second run"}, lines)
}

// memoryAtRest is the resident memory of a container at rest.
func memoryAtRest(run record.Run, container string) float64 {
	rest, _ := storyOf(run, "rest")
	return mostOf(rest, container, func(p record.Process) float64 { return p.Resident })
}

func peakOf(s record.Story, container string) float64 {
	return mostOf(s, container, func(p record.Process) float64 { return p.Peak })
}

// mostOf is the figure of a process, or of a container: of the busier replica, if there are two.
func mostOf(s record.Story, name string, figure func(record.Process) float64) (most float64) {
	for _, p := range s.Processes {
		if p.Name == name || strings.HasPrefix(p.Name, name+" ") {
			most = max(most, figure(p))
		}
	}
	return most
}
