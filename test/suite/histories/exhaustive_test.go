package histories

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var which = flag.String("history", "", "play this one history, a file with its JSON, and print its story")

// scenario is one way through an RPC: the steps before it, the step with the faults, and the clean-up.
type scenario struct {
	name   string
	target int // the step, counted from 1
	actor
	cloud kind // the fault of the cloud during the step
	ceph  bool // the backup store
}

func scenarioOf(name string, a actor, target step, before ...step) scenario {
	a.Steps = append(slices.Clone(before), target)
	n := len(a.Steps)
	// The clean-up waits, so that a request that the cloud processes late still finds its object.
	a.Steps = append(a.Steps, step{Do: unpublish, Think: 100 * time.Second}, step{Do: unpublish, Server: 1})
	a.Steps = append(a.Steps, step{Do: deleteSnapshot}, step{Do: deleteVolume, Volume: 1}, step{Do: deleteVolume})
	return scenario{name: name, actor: a, target: n}
}

func (s scenario) with(cloud kind) scenario {
	s.cloud = cloud
	s.name += ", " + string(cloud)
	return s
}

func (s scenario) inCeph() scenario {
	s.ceph = true
	s.name += " in Ceph"
	return s
}

func scenarios() []scenario {
	var (
		az1, both   = actor{Zones: []string{"az1"}}, actor{Zones: []string{"az2", "az1"}}
		shared      = actor{Shared: true}
		made        = step{Do: createVolume}
		there       = step{Do: publish}
		snapshotted = step{Do: createSnapshot}
		backedUp    = step{Do: createSnapshot, Backup: true}
	)
	all := []scenario{
		scenarioOf("create in a zone", az1, made),
		scenarioOf("create anywhere", actor{}, made),
		scenarioOf("create in one of two zones", both, made),
		scenarioOf("create", az1, made).with(createFails),
		scenarioOf("create in one of two zones", both, made).with(zoneFull),
		scenarioOf("create shared", shared, made),
		scenarioOf("clone", az1, step{Do: createVolume, Volume: 1, From: fromVolume}, made),
		scenarioOf("restore a snapshot", az1, step{Do: createVolume, Volume: 1, From: fromSnapshot}, made, snapshotted),
		scenarioOf("restore a backup", az1, step{Do: createVolume, Volume: 1, From: fromSnapshot}, made, backedUp),
		scenarioOf("restore a backup", az1, step{Do: createVolume, Volume: 1, From: fromSnapshot}, made, backedUp).inCeph(),
		scenarioOf("restore a backup", az1, step{Do: createVolume, Volume: 1, From: fromSnapshot}, made, backedUp).inCeph().with(restoreFails),
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
		scenarioOf("snapshot", az1, snapshotted, made),
		scenarioOf("snapshot in use", az1, snapshotted, made, there),
		scenarioOf("snapshot", az1, snapshotted, made).with(snapshotFails),
		scenarioOf("backup", az1, backedUp, made),
		scenarioOf("backup in use", az1, backedUp, made, there),
		scenarioOf("backup", az1, backedUp, made).with(backupFails),
		scenarioOf("delete a snapshot", az1, step{Do: deleteSnapshot}, made, snapshotted),
		scenarioOf("delete a backup", az1, step{Do: deleteSnapshot}, made, backedUp),
	}
	for _, do := range []operation{listVolumes, listSnapshots, getVolume, getCapacity} {
		all = append(all, scenarioOf(string(do), az1, step{Do: do}, made, there))
	}
	return all
}

// history is a scenario with a fault that is armed when the step begins.
func (s scenario) history(abandon bool, faults ...fault) history {
	h := history{Seed: 1, Replicas: 1, Ceph: s.ceph, Timeout: 3 * time.Minute, Actors: []actor{s.actor}}
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

// then adds a step between the one with the faults and the clean-up.
func (s scenario) then(name string, next step) scenario {
	s.Steps = slices.Insert(slices.Clone(s.Steps), s.target, next)
	s.name += ", " + name
	return s
}

// requests are the requests that a step sends without a fault, by class and number of earlier ones of the class. Waits repeat requests, so
// two of each are enough.
func (s scenario) requests(t *testing.T, dir string) []fault {
	counted := s.history(false, fault{Kind: countOnly})
	r := run(t, counted, dir)
	if len(r.violations) > 0 {
		t.Fatalf("%s fails without a fault: %v\n%s", s.name, r.violations, story(counted, r))
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

// Each fault is applied to each request of each RPC. Then the sidecar retries, or the user deletes its object.
func TestEveryFaultAtEveryRequestOfEveryRPCLosesNothing(t *testing.T) {
	testenv.NeedFull(t, "plays thousands of histories; without it, test/suite/errortable breaks each request of each RPC once")
	var mu sync.Mutex
	var sum counts
	t.Run("matrix", func(t *testing.T) {
		for _, s := range scenarios() {
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
		for _, m := range faultCases() {
			f := at
			f.Kind, f.For, f.Replica, f.Times = m.kind, faultDurations[m.kind], m.replicas-1, 1
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

// faultCase is the fault of a request in the matrix.
type faultCase struct {
	kind     kind
	replicas int
	skew     time.Duration // of the clock of one of Cinder's hosts
}

// faultCases returns all of them. A change of leader needs a second replica. A wrong clock matters if a reply is lost.
func faultCases() []faultCase {
	var all []faultCase
	for _, k := range requestFaults {
		all = append(all, faultCase{k, 1, 0})
	}
	for _, k := range []kind{cloudSlow, quotaExhausted, processKilled, processTerminated, reloaded} {
		all = append(all, faultCase{k, 1, 0})
	}
	return append(all, faultCase{leaderChanged, 2, 0}, faultCase{lostAfter, 1, 10 * time.Minute}, faultCase{lostAfter, 1, -10 * time.Minute})
}

// faultDurations are how long the faults of the matrix last.
var faultDurations = map[kind]time.Duration{
	replyLate: 200 * time.Second, processedLater: 90 * time.Second, lostThenProcessed: 30 * time.Second, killBefore: 5 * time.Second, killAfter: 5 * time.Second,
	cloudSlow: time.Minute, quotaExhausted: time.Minute, processKilled: 5 * time.Second, processTerminated: 5 * time.Second,
}

func (c counts) String() string {
	s := fmt.Sprintf("%d histories, %d operations, %d calls, %d requests, %d processes ended, at most %d retries after the last fault, %d duplicates that the hold-off allows, %d attaches or detaches that no process knew of\n",
		c.Histories, c.Operations, c.Calls, c.Requests, c.Crashes, c.Retries, c.Duplicates, c.Late)
	total := 0
	for _, k := range slices.Concat(requestFaults, cloudFaults, processFaults) {
		s += fmt.Sprintf("  %7d  %s\n", c.Faults[k], k)
		total += c.Faults[k]
	}
	return s + fmt.Sprintf("  %7d  faults", total)
}

// story is the trace as text.
func story(h history, r result) string {
	text := fmt.Sprintf("%d replicas, timeout %s, clock skew %s\n", h.Replicas, h.Timeout, h.Skew)
	for _, line := range r.trace {
		text += line.String() + "\n"
	}
	return text
}
