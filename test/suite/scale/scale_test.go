//go:build scale

package scale

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

var (
	volumes = flag.Int("volumes", 100, "volumes in the cluster when the stories begin to disturb it")
	nodes   = flag.Int("nodes", 20, "hollow nodes")
	steady  = flag.Duration("steady", 30*time.Second, "how long claims come at 10,000 an hour")
	burst   = flag.Int("burst", 40, "claims that come at once")
	rest_   = flag.Duration("rest", time.Minute, "how long nothing happens")
	moved   = flag.Int("moved", 20, "about how many pods move at once")
	refused = flag.Int("refused", 50, "claims of the tenant whose quota is full")
	only    = flag.String("only", "", "comma-separated stories; all without it")
	kubeQPS = flag.Int("kube-qps", 0, "requests a second of kube-controller-manager and kube-scheduler; 0: their defaults, 20 and 50")
	instead = flag.String("instead", "", "comma-separated CONTAINER=--FLAG=VALUE that replace arguments of the bundle, to compare settings")
	also    = flag.String("also", "", "comma-separated CONTAINER=--FLAG=VALUE that the bundle does not have, to compare settings")
	size    = flag.String("size", "", "spec.size of the bundle; empty: the one for these volumes")
	plugin  = flag.String("plugin", "", "upstream's cinder-csi-plugin in place of our driver, with the flags of upstream's manifests")
	out     = flag.String("record", "", "file for the record")
	keep    = flag.Bool("keep", false, "keep the stories of the record that this run does not repeat")
)

// hourly is the rate of claims of the first story.
const hourly = 10000

// suite is one run.
type suite struct {
	t          *testing.T
	repo       string
	cloud      *cloud
	cluster    *cluster
	world      *world
	replicas   []*replica
	namespaces []string
	seeded     []*claim
	created    []*claim // by the stories
	run        record.Run
}

func TestScale(t *testing.T) {
	testenv.NeedRoot(t) // a host name for each replica
	s := newSuite(t)
	for _, story := range []struct {
		name string
		tell func()
	}{
		{"rate", s.rate},
		{"burst", s.burst},
		{"rest", s.rest},
		{"move", s.move},
		{"leader", s.leader},
		{"stop", s.stop},
		{"credentials", s.credentials},
		{"apiserver", s.apiserver},
		{"zone", s.zone},
		{"quota", s.quota},
	} {
		if *only == "" || strings.Contains(","+*only+",", ","+story.name+",") {
			story.tell()
		}
	}
	s.judge()
}

func newSuite(t *testing.T) *suite {
	t.Helper()
	repo := testenv.Value(filepath.Abs("../../.."))(t)
	dir := testenv.Value(os.MkdirTemp("", "scale"))(t)
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
			return
		}
		t.Logf("the logs are in %s", dir)
	})
	s := &suite{t: t, repo: repo}
	ctx, cancel := context.WithCancel(t.Context())
	s.cloud = startCloud(t, dir, *nodes)
	s.cluster = startCluster(t, dir)
	t.Cleanup(cancel)
	s.world = newWorld(ctx, s.cluster.rest)
	for n := range max(4, min(50, *volumes/20)) {
		name := fmt.Sprintf("tenant-%02d", n)
		s.namespaces = append(s.namespaces, name)
		s.cluster.create(t, "/api/v1/namespaces", object{"metadata": object{"name": name}})
	}
	begin := time.Now()
	s.world.createNodes(t, *nodes)
	steadyClaims := int(steady.Seconds() * hourly / 3600)
	s.seeded = s.world.seed(t, s.cloud.sim, max(0, *volumes-steadyClaims-*burst), s.namespaces)
	s.logf("%d nodes and %d volumes are there after %s", *nodes, len(s.seeded), time.Since(begin).Round(time.Second))
	s.world.watch(ctx)
	go s.world.renew(ctx)
	s.cluster.startControllers(t)
	for n := range 2 {
		s.replicas = append(s.replicas, startReplica(t, replicaName(n), s.cluster, s.cloud.conf, repo))
	}
	waitFor(t, "a leader of each sidecar", 2*time.Minute, func() bool {
		for sidecar := range leaseNames {
			if leader(s.cluster, sidecar, s.replicas) == nil {
				return false
			}
		}
		return true
	})
	s.run = record.Run{KubeQPS: *kubeQPS, Instead: strings.Trim(*instead+","+*also, ","), Size: sizeOfRun(t).Name, Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(repo), CPUs: runtime.NumCPU(), Load: load(), Volumes: *volumes, Nodes: *nodes, Seeded: len(s.seeded)}
	if *plugin != "" {
		s.run.Plugin, s.run.Size = filepath.Base(*plugin), ""
	}
	if *keep {
		s.run = s.recorded()
	}
	return s
}

// recorded is the record of an earlier run of the same cluster.
func (s *suite) recorded() record.Run {
	s.t.Helper()
	var old record.Run
	text, err := os.ReadFile(*out)
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil || old.Volumes != s.run.Volumes || old.Nodes != s.run.Nodes || old.Plugin != s.run.Plugin {
		s.t.Fatalf("-keep: %s is no record of %d volumes and %d nodes: %v", *out, s.run.Volumes, s.run.Nodes, err)
	}
	return old
}

// commit is that of the code. The record that this run writes does not count as a change of it.
func commit(repo string) string {
	text, _ := exec.Command("git", "-C", repo, "describe", "--always").Output()
	name := strings.TrimSpace(string(text))
	if changed, _ := exec.Command("git", "-C", repo, "status", "--porcelain", "--", ":/", ":/!test/suite/scale/records", ":/!docs").Output(); len(changed) > 0 {
		name += "-dirty"
	}
	return name
}

// load is the mean number of processes that wanted a processor in the last minute.
func load() (mean float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &mean)
	return mean
}

func (s *suite) logf(format string, args ...any) {
	s.t.Helper()
	s.t.Logf("measured: "+format, args...)
}

// keep prints a story, and writes the record.
func (s *suite) keep(r record.Story) {
	s.t.Helper()
	if at := slices.IndexFunc(s.run.Stories, func(old record.Story) bool { return old.Name == r.Name }); at >= 0 {
		r.Commit = commit(s.repo)
		s.run.Stories[at] = r
	} else {
		if s.run.Commit != commit(s.repo) {
			r.Commit = commit(s.repo)
		}
		s.run.Stories = append(s.run.Stories, r)
	}
	s.logf("%s: %s", r.Name, r.Title)
	s.logf("  %.1f s, %d volumes, %v, requests %v, API server %d, restarts %d", r.Seconds, r.Volumes, r.Figures, r.Cloud, r.API, r.Restarts)
	for _, rpc := range r.RPCs {
		s.logf("  %-32s %6d  p50 %.2f  p99 %.2f  %v", rpc.Method, rpc.Count, rpc.P50, rpc.P99, rpc.Codes)
	}
	for _, p := range r.Processes {
		s.logf("  %-32s resident %.0f MiB (peak %.0f, own %.0f), %.1f s of processor time", p.Name, p.Resident, p.Peak, p.Own, p.CPU)
	}
	for _, tenant := range r.Tenants {
		s.logf("  %+v", tenant)
	}
	s.logf("  requests: %v", r.Requests)
	if *out == "" {
		return
	}
	text, err := json.MarshalIndent(s.run, "", " ")
	if err == nil {
		err = os.WriteFile(*out, append(text, '\n'), 0o644)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// judge fails for each budget that was not kept.
func (s *suite) judge() {
	s.t.Helper()
	for _, story := range s.run.Stories {
		for _, b := range story.Budgets {
			if b.Failed() {
				s.t.Errorf("%s: %s: want at most %v, got %v", story.Name, b.Promise, max(b.Limit, b.Fails), b.Measured)
			} else if !b.Kept() {
				s.logf("budget not kept: %s: %s: at most %v, got %v", story.Name, b.Promise, b.Limit, b.Measured)
			}
		}
	}
}
