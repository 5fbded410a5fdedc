package histories

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

var (
	full  = flag.Bool("full", false, "let every fault happen to every request of every RPC, and play more random histories; minutes")
	which = flag.String("history", "", "play this one history, a file with its JSON, and print its story")
)

// scenario is one way through an RPC: what is prepared, the step that faults happen to, and what cleans up.
type scenario struct {
	name   string
	target int // the step, counted from 1
	actor
	cloud kind // what the cloud does wrong by itself during the step
}

func scenarioOf(name string, a actor, target step, before ...step) scenario {
	a.Steps = append(slices.Clone(before), target)
	n := len(a.Steps)
	// Were all deleted at once, a request that is carried out later would find nothing left to change.
	a.Steps = append(a.Steps, step{Do: unpublish, Think: 100 * time.Second}, step{Do: unpublish, Server: 1})
	a.Steps = append(a.Steps, step{Do: deleteSnapshot}, step{Do: deleteVolume, Volume: 1}, step{Do: deleteVolume})
	return scenario{name: name, actor: a, target: n}
}

func (s scenario) with(cloud kind) scenario {
	s.cloud = cloud
	s.name += ", " + string(cloud)
	return s
}

func scenarios() []scenario {
	var (
		az1, both = actor{Zones: []string{"az1"}}, actor{Zones: []string{"az2", "az1"}}
		shared    = actor{Shared: true}
		made      = step{Do: createVolume}
		there     = step{Do: publish}
		pictured  = step{Do: createSnapshot}
		backedUp  = step{Do: createSnapshot, Backup: true}
	)
	all := []scenario{
		scenarioOf("create in a zone", az1, made),
		scenarioOf("create anywhere", actor{}, made),
		scenarioOf("create in one of two zones", both, made),
		scenarioOf("create", az1, made).with(createFails),
		scenarioOf("create in one of two zones", both, made).with(zoneFull),
		scenarioOf("create shared", shared, made),
		scenarioOf("clone", az1, step{Do: createVolume, Volume: 1, From: fromVolume}, made),
		scenarioOf("restore a snapshot", az1, step{Do: createVolume, Volume: 1, From: fromSnapshot}, made, pictured),
		scenarioOf("restore a backup", az1, step{Do: createVolume, Volume: 1, From: fromSnapshot}, made, backedUp),
		scenarioOf("delete", az1, step{Do: deleteVolume}, made),
		scenarioOf("delete", az1, step{Do: deleteVolume}, made).with(deleteFails),
		scenarioOf("attach", az1, there, made),
		scenarioOf("attach", az1, there, made).with(attachDropped),
		scenarioOf("attach to a second server", shared, step{Do: publish, Server: 1}, made, there),
		scenarioOf("detach", az1, step{Do: unpublish}, made, there),
		scenarioOf("detach", az1, step{Do: unpublish}, made, there).with(detachDropped),
		scenarioOf("detach", az1, step{Do: unpublish}, made, there).then("attach again", there),
		scenarioOf("detach from one of two servers", shared, step{Do: unpublish}, made, there, step{Do: publish, Server: 1}),
		scenarioOf("expand", az1, step{Do: expand, Size: 3}, made),
		scenarioOf("expand in use", az1, step{Do: expand, Size: 3}, made, there),
		scenarioOf("expand", az1, step{Do: expand, Size: 3}, made).with(extendFails),
		scenarioOf("modify", az1, step{Do: modify, Think: 1}, made),
		scenarioOf("snapshot", az1, pictured, made),
		scenarioOf("snapshot in use", az1, pictured, made, there),
		scenarioOf("snapshot", az1, pictured, made).with(snapshotFails),
		scenarioOf("backup", az1, backedUp, made),
		scenarioOf("backup in use", az1, backedUp, made, there),
		scenarioOf("backup", az1, backedUp, made).with(backupFails),
		scenarioOf("delete a snapshot", az1, step{Do: deleteSnapshot}, made, pictured),
		scenarioOf("delete a backup", az1, step{Do: deleteSnapshot}, made, backedUp),
	}
	for _, do := range []operation{listVolumes, listSnapshots, getVolume, getCapacity} {
		all = append(all, scenarioOf(string(do), az1, step{Do: do}, made, there))
	}
	return all
}

// history is a scenario with a fault that is armed when the step begins.
func (s scenario) history(abandon bool, faults ...fault) history {
	h := history{Seed: 1, Replicas: 1, Timeout: 3 * time.Minute, Actors: []actor{s.actor}}
	h.Actors[0].Steps = slices.Clone(s.Steps)
	if abandon {
		h.Actors[0].Steps[s.target-1].Abandon = time.Second
	}
	if s.cloud != "" {
		faults = append(faults, fault{Kind: s.cloud, Times: 1})
	}
	for _, f := range faults {
		f.Step = s.target
		h.Faults = append(h.Faults, f)
	}
	return h
}

// then adds a step between the one that faults happen to and the clean-up.
func (s scenario) then(name string, next step) scenario {
	s.Steps = slices.Insert(slices.Clone(s.Steps), s.target, next)
	s.name += ", " + name
	return s
}

// requests are the requests that a step sends when nothing goes wrong, by class and how many of that class came before. Waits repeat
// theirs: two of each are enough.
func (s scenario) requests(t *testing.T, dir string) []fault {
	counted := s.history(false, fault{Kind: countOnly})
	r := run(t, counted, dir)
	if len(r.violations) > 0 {
		t.Fatalf("%s goes wrong by itself: %v\n%s", s.name, r.violations, story(counted, r))
	}
	var all []fault
	seen := map[string]int{}
	for _, class := range r.classes {
		if seen[class] < 2 {
			all = append(all, fault{Class: class, Skip: seen[class]})
		}
		seen[class]++
	}
	return all
}

// Every fault happens to every request of every RPC; then the sidecar retries, or its object is deleted meanwhile.
func TestEveryFaultAtEveryRequestOfEveryRPCLosesNothing(t *testing.T) {
	var mu sync.Mutex
	var sum counts
	t.Run("matrix", func(t *testing.T) {
		for i, s := range scenarios() {
			if !*full && i%16 != 0 {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				c := s.matrix(t)
				mu.Lock()
				defer mu.Unlock()
				sum.add(c)
			})
		}
	})
	t.Log(sum.String())
}

func (s scenario) matrix(t *testing.T) counts {
	var sum counts
	dir := t.TempDir()
	abandons := []bool{false}
	if do := s.Steps[s.target-1].Do; do == createVolume || do == createSnapshot || do == publish {
		abandons = append(abandons, true)
	}
	for _, at := range s.requests(t, dir) {
		for _, m := range mishaps() {
			f := at
			f.Kind, f.For, f.Replica, f.Times = m.kind, lasts[m.kind], m.replicas-1, 1
			for _, abandon := range abandons {
				h := s.history(abandon, f)
				h.Replicas, h.Skew = m.replicas, m.skew
				r := run(t, h, dir)
				sum.add(r.counts)
				if len(r.violations) > 0 {
					t.Errorf("%s: %s at %s %d, clock skew %s, abandoned %t: %v\n%s", s.name, m.kind, f.Class, f.Skip+1, m.skew, abandon, r.violations[0], story(h, r))
				}
			}
		}
	}
	return sum
}

// mishap is what happens at a request of the matrix.
type mishap struct {
	kind     kind
	replicas int
	skew     time.Duration // of the clock of one of Cinder's hosts
}

// mishaps are all of them. A change of leader needs a second replica. A wrong clock matters where a reply is lost.
func mishaps() []mishap {
	var all []mishap
	for _, k := range requestFaults {
		all = append(all, mishap{k, 1, 0})
	}
	for _, k := range []kind{cloudSlow, quotaExhausted, processKilled, processTerminated, reloaded} {
		all = append(all, mishap{k, 1, 0})
	}
	return append(all, mishap{leaderChanged, 2, 0}, mishap{lostAfter, 1, 10 * time.Minute}, mishap{lostAfter, 1, -10 * time.Minute})
}

// lasts is how long a fault lasts where nothing else is said.
var lasts = map[kind]time.Duration{
	replyLate: 200 * time.Second, carriedOutLater: 90 * time.Second, lostThenDone: 30 * time.Second, killBefore: 5 * time.Second, killAfter: 5 * time.Second,
	cloudSlow: time.Minute, quotaExhausted: time.Minute, processKilled: 5 * time.Second, processTerminated: 5 * time.Second,
}

func (c counts) String() string {
	s := fmt.Sprintf("%d histories, %d operations, %d calls, %d requests, %d processes ended, at most %d retries after the last fault, %d duplicates that the hold-off allows, %d attaches or detaches that nobody knew of\n",
		c.Histories, c.Operations, c.Calls, c.Requests, c.Crashes, c.Retries, c.Duplicates, c.Late)
	total := 0
	for _, k := range slices.Concat(requestFaults, cloudFaults, processFaults) {
		s += fmt.Sprintf("  %7d  %s\n", c.Faults[k], k)
		total += c.Faults[k]
	}
	return s + fmt.Sprintf("  %7d  faults", total)
}

// story is what happened, for a person.
func story(h history, r result) string {
	text := fmt.Sprintf("%d replicas, timeout %s, clock skew %s\n", h.Replicas, h.Timeout, h.Skew)
	for _, line := range r.trace {
		text += line.String() + "\n"
	}
	return text
}
