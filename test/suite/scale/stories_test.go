//go:build scale

package scale

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

// patience is how long a story may take to converge.
const patience = 15 * time.Minute

// claims creates claims with pods, spread over the namespaces, with a pause between two.
func (s *suite) claims(prefix string, count int, pause time.Duration) []*claim {
	var all []*claim
	begin := time.Now()
	if pause == 0 {
		numbers := make([]int, count)
		for i := range numbers {
			numbers[i] = i
		}
		all = make([]*claim, count)
		parallel(numbers, func(i int) {
			all[i] = s.world.create(s.t, s.namespaces[i%len(s.namespaces)], fmt.Sprintf("%s-%05d", prefix, i), "standard")
		})
		return all
	}
	for i := range count {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * pause)))
		all = append(all, s.world.create(s.t, s.namespaces[i%len(s.namespaces)], fmt.Sprintf("%s-%05d", prefix, i), "standard"))
	}
	return all
}

// converge waits until the pods of all claims run, and adds how long that and the steps to it took.
func (s *suite) converge(r *record.Story, claims []*claim, begin time.Time) {
	waitFor(s.t, r.Name+": pods", patience, func() bool { return s.world.count(claims, isRunning) == len(claims) })
	r.Figures["converged after, s"] = round(time.Since(begin).Seconds())
	bound, ran := delays(claims, s.world, createdAt, boundAt), delays(claims, s.world, createdAt, ranAt)
	r.Figures["claim to volume p50, s"], r.Figures["claim to volume p99, s"] = percentile(bound, 0.5), percentile(bound, 0.99)
	r.Figures["claim to pod p50, s"], r.Figures["claim to pod p99, s"] = percentile(ran, 0.5), percentile(ran, 0.99)
}

func (s *suite) rate() {
	count := int(steady.Seconds() * hourly / 3600)
	s.story("rate", fmt.Sprintf("%d claims at 10,000 an hour, each with a pod", count), count, func(r *record.Story) {
		begin := time.Now()
		all := s.claims("rate", count, time.Hour/hourly)
		s.created = append(s.created, all...)
		s.converge(r, all, begin)
	})
}

func (s *suite) burst() {
	s.story("burst", fmt.Sprintf("%d claims at once, each with a pod", *burst), *burst, func(r *record.Story) {
		begin := time.Now()
		all := s.claims("burst", *burst, 0)
		s.created = append(s.created, all...)
		s.converge(r, all, begin)
	})
}

func (s *suite) everything() []*claim { return slices.Concat(s.seeded, s.created) }

func (s *suite) rest() {
	count := len(s.everything())
	s.story("rest", fmt.Sprintf("%d volumes at rest for %s", count, *rest_), count, func(r *record.Story) {
		before := total(s.cloud.counts())
		time.Sleep(*rest_)
		requests := round(float64(total(s.cloud.counts())-before) / rest_.Seconds())
		resident := 0.0
		for _, replica := range s.replicas {
			now, _, _ := memoryOf(replica.pid("driver"))
			resident = max(resident, now)
		}
		r.Figures["requests to the cloud, each second"], r.Figures["driver, MiB resident"] = requests, round(resident)
		r.Budgets = []record.Budget{
			{Promise: "requests to the cloud, each second", Limit: 0.5, Measured: requests},
			{Promise: "resident memory of a driver, MiB", Limit: 64, Measured: round(resident)},
		}
	})
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// move loses a rack: nodes of one zone, until so many pods are on them.
func (s *suite) move() {
	on := map[string][]*claim{}
	s.world.mu.Lock()
	for _, c := range s.everything() {
		on[c.node] = append(on[c.node], c)
	}
	s.world.mu.Unlock()
	var names []string
	var movers []*claim
	for n := range *nodes {
		name := nodeName(n)
		if zoneOf(n) == zones[0] && len(on[name]) > 0 && len(movers) < *moved && len(names) < *nodes/4 {
			names, movers = append(names, name), append(movers, on[name]...)
		}
	}
	s.story("move", fmt.Sprintf("%d nodes are lost, with %d pods", len(names), len(movers)), len(movers), func(r *record.Story) {
		begin := time.Now()
		s.world.die(s.t, names, s.cloud.sim)
		lost := map[string]bool{}
		for _, name := range names {
			lost[name] = true
		}
		waitFor(s.t, "move: pods", patience, func() bool {
			return s.world.count(movers, func(c *claim) bool { return c.running && !lost[c.node] }) == len(movers)
		})
		took := delays(movers, s.world, func(*claim) time.Time { return begin }, ranAt)
		r.Figures["converged after, s"] = round(time.Since(begin).Seconds())
		r.Figures["loss to pod p50, s"], r.Figures["loss to pod p99, s"] = percentile(took, 0.5), percentile(took, 0.99)
		s.checkOneServer(movers)
	})
}

// checkOneServer fails for a volume that Nova or Cinder has on another server than that of its pod.
func (s *suite) checkOneServer(claims []*claim) {
	s.t.Helper()
	for _, c := range claims {
		state, _ := s.cloud.sim.VolumeState(c.handle)
		want := s.world.nodes[c.node].server
		if len(state.Disks) != 1 || state.Disks[0] != want {
			s.t.Errorf("volume %s of pod %s: Nova has it on %v, want %s", c.handle, c.key(), state.Disks, want)
		}
	}
}

// leader kills the pod that provisions, and waits for the first volume of the other.
func (s *suite) leader() {
	s.change("leader", "the leader is killed at %d volumes", "kill", (*replica).kill)
}

// stop ends that pod as an upgrade or a drain does.
func (s *suite) stop() {
	s.change("stop", "the leader is stopped at %d volumes, as by an upgrade", "stop", (*replica).stop)
}

// change ends the leader while a claim comes. Three spans add up. The first ends when the other replica has the lease.
// The second ends when its driver asks the cloud for the claim, and the third when the volume is bound. The promise is about the first two: the third is Cinder's.
func (s *suite) change(name, title, what string, end func(*replica)) {
	s.story(name, fmt.Sprintf(title, len(s.everything())), 1, func(r *record.Story) {
		old := leader(s.cluster, "provisioner", s.replicas)
		before := s.lookups()
		begin := time.Now()
		go end(old)
		probe := s.claims(name, 1, 0)
		lease := waitFor(s.t, "another leader", 2*time.Minute, func() bool {
			now := leader(s.cluster, "provisioner", s.replicas)
			return now != nil && now != old
		})
		waitFor(s.t, "the first RPC of the other leader", 5*time.Minute, func() bool { return s.lookups() > before })
		rpc := time.Since(begin)
		waitFor(s.t, "a volume of the other leader", 5*time.Minute, func() bool { return s.world.count(probe, isBound) == 1 })
		bound := time.Since(begin)
		s.created = append(s.created, probe...)
		r.Figures[what+" to lease, s"], r.Figures[what+" to first RPC, s"] = round(lease.Seconds()), round(rpc.Seconds())
		r.Figures["lease to first RPC, s"], r.Figures["first RPC to volume, s"] = round((rpc - lease).Seconds()), round((bound - rpc).Seconds())
		s.converge(r, probe, begin)
		r.Figures["claim to selected node, s"] = percentile(delays(probe, s.world, createdAt, selectedAt), 0.5)
		r.Budgets = []record.Budget{{Promise: "seconds from the " + what + " of the leader to the first RPC of the next", Limit: 10, Fails: 30, Measured: round(rpc.Seconds())}}
		old.ends.Wait()
		old.start(s.cluster, s.cloud.conf, s.repo)
	})
}

// lookups counts the requests with which CreateVolume begins: it looks for a volume with the name.
func (s *suite) lookups() (count int) {
	for kind, n := range s.cloud.counts() {
		if strings.HasPrefix(kind, "volume GET ") && strings.HasSuffix(kind, "?name") {
			count += n
		}
	}
	return count
}

// credentials replaces the application credential while claims come.
func (s *suite) credentials() {
	s.story("credentials", "the credential is replaced, and the old one deleted ten seconds later, while claims come", 30, func(r *record.Story) {
		begin := time.Now()
		made := s.cloud.sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: "second", User: "demo", Project: "demo", Roles: []string{"member"}})
		conf := string(s.cloud.sim.CloudConf(s.cloud.url))
		old := openstacksim.Default().ApplicationCredentials[0]
		conf = strings.NewReplacer(old.ID, made.ID, old.Secret, made.Secret).Replace(conf)
		all := s.claims("before", 10, time.Second)
		s.cloud.writeConf(s.t, []byte(conf))
		all = append(all, s.claims("between", 10, time.Second)...)
		s.cloud.sim.DeleteApplicationCredential(old.ID)
		all = append(all, s.claims("after", 10, time.Second)...)
		s.created = append(s.created, all...)
		s.converge(r, all, begin)
	})
}

// apiserver restarts the API server while claims come.
func (s *suite) apiserver() {
	s.story("apiserver", "the API server is killed, and starts again after five seconds, while claims come", 20, func(r *record.Story) {
		all := s.claims("before-api", 10, 200*time.Millisecond)
		begin := time.Now()
		s.cluster.plane.Restart(s.t, "kube-apiserver", 5*time.Second)
		s.cluster.wait(s.t, "API server", func() bool { return s.cluster.send("GET", "/readyz", nil, nil) == nil })
		r.Figures["API server ready after, s"] = round(time.Since(begin).Seconds())
		all = append(all, s.claims("after-api", 10, 200*time.Millisecond)...)
		s.created = append(s.created, all...)
		s.converge(r, all, begin)
	})
}

// zone lets one zone of the cloud fail while claims come, which the scheduler places in both.
func (s *suite) zone() {
	away := max(30*time.Second, min(*rest_, 10*time.Minute))
	s.story("zone", fmt.Sprintf("requests for one zone fail for %s, while claims come", away), 60, func(r *record.Story) {
		s.cloud.setAway(zones[1])
		all := s.claims("zone", 60, min(away/60, time.Second))
		begin := time.Now()
		time.Sleep(away)
		r.Figures["pods that run before the zone is back"] = float64(s.world.count(all, isRunning))
		s.cloud.setAway("")
		back := time.Now()
		s.created = append(s.created, all...)
		s.converge(r, all, begin)
		r.Figures["back to converged, s"] = round(time.Since(back).Seconds())
		for n, name := range zones {
			var in []*claim
			for _, c := range all {
				if s.world.zone(c) == name {
					in = append(in, c)
				}
			}
			r.Tenants = append(r.Tenants, tenant([]string{"the other zone", "the zone that is away"}[n], len(in), delays(in, s.world, createdAt, boundAt)))
		}
	})
}

// quota compares the claims of a tenant alone with those beside a tenant whose quota is full.
func (s *suite) quota() {
	const tenants = 20
	for _, name := range []string{"full", "other"} {
		s.cluster.create(s.t, "/api/v1/namespaces", object{"metadata": object{"name": name}})
	}
	ask := func(prefix string) []*claim {
		var all []*claim
		for i := range tenants {
			time.Sleep(time.Second)
			all = append(all, s.world.create(s.t, "other", fmt.Sprintf("%s-%02d", prefix, i), "standard"))
		}
		waitFor(s.t, "quota: "+prefix, patience, func() bool { return s.world.count(all, isBound) == len(all) })
		return all
	}
	s.story("quota", fmt.Sprintf("%d claims of a tenant with a full quota, beside %d of another tenant", *refused, tenants), tenants, func(r *record.Story) {
		alone := ask("alone")
		numbers := make([]int, *refused)
		for i := range numbers {
			numbers[i] = i
		}
		full := make([]*claim, *refused)
		parallel(numbers, func(i int) { full[i] = s.world.create(s.t, "full", fmt.Sprintf("full-%03d", i), "fast") })
		beside := ask("beside")
		// By now the refused claims come back at the pace that they keep until somebody raises the quota.
		time.Sleep(2 * time.Minute)
		tries := s.creates()
		settled := ask("later")
		r.Figures["tries of the refused claims, each second, two minutes later"] = round(float64(s.creates()-tries-tenants) / 20)
		// The scheduler selects the node, and only then the provisioner begins. The budget counts both; the second figure says where the time goes.
		later := map[string]float64{}
		for name, from := range map[string]func(*claim) time.Time{"claim to volume": createdAt, "node selected to volume": selectedAt} {
			before, after := delays(alone, s.world, from, provisionedAt), delays(beside, s.world, from, provisionedAt)
			quiet := delays(settled, s.world, from, provisionedAt)
			r.Tenants = append(r.Tenants, tenant("other, alone: "+name, tenants, before), tenant("other, beside the full one: "+name, tenants, after),
				tenant("other, two minutes later: "+name, tenants, quiet))
			r.Figures[name+", later at p50 after two minutes, s"] = round(percentile(quiet, 0.5) - percentile(before, 0.5))
			later[name] = round(percentile(after, 0.5) - percentile(before, 0.5))
			r.Figures[name+", later at p50, s"] = later[name]
		}
		slices.SortFunc(r.Tenants, func(a, b record.Tenant) int { return strings.Compare(a.Name, b.Name) })
		r.Tenants = append(r.Tenants, record.Tenant{Name: "full", Claims: *refused, Bound: s.world.count(full, isBound)})
		r.Budgets = []record.Budget{{
			Promise: "seconds that a full quota delays the volumes of another namespace, at the median", Limit: 2, Fails: 90, Measured: later["claim to volume"],
		}, {
			Promise: "the same, from the selected node on", Limit: 2, Fails: 15, Measured: later["node selected to volume"],
		}}
		s.world.abandon(full)
	})
}

// creates counts the requests to create a volume.
func (s *suite) creates() int { return s.cloud.counts()["volume POST /volumes"] }

func tenant(name string, claims int, sorted []float64) record.Tenant {
	return record.Tenant{Name: name, Claims: claims, Bound: len(sorted), P50: percentile(sorted, 0.5), P99: percentile(sorted, 0.99), Max: percentile(sorted, 1)}
}
