package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

// pair is one figure of two runs of the same story in the same cluster.
type pair struct {
	name       string
	one, other float64
}

// apart is how far the two are apart, as a part of the larger one.
func (p pair) apart() float64 { return math.Abs(p.one-p.other) / max(p.one, p.other) }

// kinds of figures: how far two runs agree depends on what was measured.
var kinds = []struct {
	name string
	of   func(one, other record.Story) []pair
}{
	{"times of at least 30 s", func(one, other record.Story) []pair { return timesOf(one, other, 30, math.Inf(1)) }},
	{"times below 30 s", func(one, other record.Story) []pair { return timesOf(one, other, 0, 30) }},
	{"requests to the cloud, each volume or second", func(one, other record.Story) []pair {
		return []pair{{"requests", perVolume(one, cloudOf(one)), perVolume(other, cloudOf(other))}}
	}},
	{"requests to the API server, each volume or second", func(one, other record.Story) []pair {
		if one.Name == "apiserver" {
			return nil // its count ends with the old process
		}
		return []pair{{"requests", perVolume(one, one.API), perVolume(other, other.API)}}
	}},
	{"resident memory of a process", memoriesOf},
}

// timesOf are the figures in seconds whose larger one is at least from and below to.
func timesOf(one, other record.Story, from, to float64) (pairs []pair) {
	for name, a := range one.Figures {
		b, has := other.Figures[name]
		if larger := max(a, b); has && strings.HasSuffix(name, ", s") && larger >= from && larger < to {
			pairs = append(pairs, pair{name, a, b})
		}
	}
	return pairs
}

func cloudOf(s record.Story) int { return s.Cloud["Cinder"] + s.Cloud["Nova"] + s.Cloud["Keystone"] }

// perVolume is a number of requests for one volume of the story, or for a second of the one in which nothing happens.
func perVolume(s record.Story, count int) float64 {
	if s.Name == "rest" {
		return float64(count) / s.Seconds
	}
	return float64(count) / float64(s.Volumes)
}

// memoriesOf compares the busier one of two replicas, since either may lead.
func memoriesOf(one, other record.Story) (pairs []pair) {
	if one.Name != "rest" {
		return nil
	}
	for _, q := range quantities {
		if q.unit == "MiB" {
			pairs = append(pairs, pair{q.name, q.of(record.Run{}, one), q.of(record.Run{}, other)})
		}
	}
	return pairs
}

// agreement says for each cluster and kind how far a run and an earlier one of the same cluster are apart.
func agreement(runs, earlier []record.Run) string {
	var lines [][]string
	for _, run := range runs {
		for _, before := range earlier {
			same := before.Date == run.Date && before.Commit == run.Commit // the earlier record is of this run
			if same || size(before) != size(run) || before.Plugin != run.Plugin {
				continue
			}
			for _, kind := range kinds {
				if pairs := pairsOf(run, before, kind.of); len(pairs) > 0 {
					lines = append(lines, append([]string{size(run), kind.name}, spread(pairs)...))
				}
			}
		}
	}
	return page.Table([]string{"cluster", "figures", "number", "apart, median", "apart, most", "which: earlier, this run"}, lines)
}

// pairsOf are the figures of one kind in all stories that both runs have. A figure that is zero in one of them says nothing about agreement.
func pairsOf(run, before record.Run, of func(one, other record.Story) []pair) (pairs []pair) {
	for _, story := range run.Stories {
		for _, old := range before.Stories {
			if old.Name != story.Name {
				continue
			}
			for _, p := range of(old, story) {
				if p.one > 0 && p.other > 0 {
					pairs = append(pairs, pair{story.Name + ": " + p.name, p.one, p.other})
				}
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if a.apart() != b.apart() {
			return int(math.Copysign(1, a.apart()-b.apart()))
		}
		return strings.Compare(a.name, b.name)
	})
	return pairs
}

func spread(pairs []pair) []string {
	percent := func(p pair) string { return fmt.Sprintf("%.0f%%", p.apart()*100) }
	most := pairs[len(pairs)-1]
	return []string{strconv.Itoa(len(pairs)), percent(pairs[len(pairs)/2]), percent(most), fmt.Sprintf("%s: %s, %s", most.name, short(most.one), short(most.other))}
}
