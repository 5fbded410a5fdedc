package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

// beyond is the cluster that nobody measured.
const beyond = 100000

// quantity is what a cluster costs at rest, as a function of its volumes.
type quantity struct {
	name, unit string
	of         func(run record.Run, rest record.Story) float64
}

var quantities = []quantity{
	{"requests to the cloud without listings", "a minute", func(_ record.Run, rest record.Story) float64 {
		return float64(rest.Cloud["Cinder"]+rest.Cloud["Nova"]+rest.Cloud["Keystone"]-rest.Requests[listing]) / rest.Seconds * 60
	}},
	{"one listing of all volumes", "s", func(run record.Run, _ record.Story) float64 { return meanOf(run, "ListVolumes") }},
	{"requests to the API server", "a second", func(_ record.Run, rest record.Story) float64 { return float64(rest.API) / rest.Seconds }},
	{"driver", "MiB", memoryOf("driver")},
	{"provisioner", "MiB", memoryOf("provisioner")},
	{"attacher", "MiB", memoryOf("attacher")},
	{"resizer", "MiB", memoryOf("resizer")},
	{"kube-apiserver", "MiB", memoryOf("kube-apiserver")},
	{"etcd", "MiB", memoryOf("etcd")},
	{"kube-controller-manager", "MiB", memoryOf("kube-controller-manager")},
	{"kube-scheduler", "MiB", memoryOf("kube-scheduler")},
}

// listing is the request of a page of ListVolumes, as the suite names it.
const listing = "volume GET /volumes/detail"

// memoryOf is the resident memory of a process at rest: of the busier one, if there are two.
func memoryOf(name string) func(record.Run, record.Story) float64 {
	return func(_ record.Run, rest record.Story) (most float64) {
		for _, p := range rest.Processes {
			if p.Name == name || strings.HasPrefix(p.Name, name+" ") {
				most = max(most, p.Resident)
			}
		}
		return most
	}
}

// meanOf is how long an RPC took over all stories of a run.
func meanOf(run record.Run, method string) float64 {
	seconds, count := 0.0, 0
	for _, story := range run.Stories {
		for _, rpc := range story.RPCs {
			if rpc.Method == method && rpc.Mean > 0 {
				seconds, count = seconds+rpc.Mean*float64(rpc.Count), count+rpc.Count
			}
		}
	}
	if count == 0 {
		return 0
	}
	return seconds / float64(count)
}

// line is a cost that grows with the volumes: base + slope * volumes.
type line struct{ base, slope float64 }

func (l line) at(volumes float64) float64 { return l.base + l.slope*volumes }

// fit is the line with the least relative errors: each square counts by the measured value. Otherwise the largest cluster alone would decide.
func fit(x, y []float64) line {
	var w, wx, wy, wxx, wxy float64
	for i := range x {
		weight := 1 / (y[i] * y[i])
		w, wx, wy = w+weight, wx+weight*x[i], wy+weight*y[i]
		wxx, wxy = wxx+weight*x[i]*x[i], wxy+weight*x[i]*y[i]
	}
	slope := (w*wxy - wx*wy) / (w*wxx - wx*wx)
	return line{(wy - slope*wx) / w, slope}
}

// surprise is how far the line of the smaller clusters missed the largest, as a part of what was measured there. That was a step to ten times
// as many volumes, like the one from the largest cluster to beyond.
func surprise(x, y []float64) float64 {
	last := len(x) - 1
	return math.Abs(fit(x[:last], y[:last]).at(x[last])-y[last]) / y[last]
}

// atScale has a line for each quantity: what was measured, the function, and what it says about a cluster beyond.
func atScale(runs []record.Run) string {
	header := []string{"at rest", "unit"}
	for _, run := range runs {
		header = append(header, thousands(run.Volumes))
	}
	header = append(header, "base and growth for 1,000 volumes", "at "+thousands(beyond), "error")
	var lines [][]string
	for _, q := range quantities {
		var x, y []float64
		cells := []string{q.name, q.unit}
		for _, run := range runs {
			value := q.of(run, restOf(run))
			cells = append(cells, short(value))
			if value > 0 {
				x, y = append(x, float64(run.Volumes)), append(y, value)
			}
		}
		if len(x) < 3 {
			lines = append(lines, append(cells, "not measured in each", "", ""))
			continue
		}
		l, miss := fit(x, y), surprise(x, y)
		lines = append(lines, append(cells, fmt.Sprintf("%s + %s", short(l.base), short(l.slope*1000)), short(l.at(beyond)), fmt.Sprintf("%.0f%%", miss*100)))
	}
	return page.Table(header, lines)
}

func restOf(run record.Run) record.Story {
	for _, story := range run.Stories {
		if story.Name == "rest" {
			return story
		}
	}
	return record.Story{Seconds: 1}
}

// short writes about three digits.
func short(x float64) string {
	switch size := math.Abs(x); {
	case size >= 99.95:
		return thousands(int(math.Round(x)))
	case size >= 9.995:
		return one(x)
	case size < 0.005:
		return "0"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
