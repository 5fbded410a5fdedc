//go:build scale

package scale

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/suite/scale/record"
)

// snapshot is what the counters show at one time.
type snapshot struct {
	at        time.Time
	cloud     map[string]int
	api, mine float64 // requests that the API server answered, and those of the suite
	cpu       map[string]float64
	rpcs      map[string]buckets // by method
	sums      map[string]float64 // seconds of all RPCs of a method
	codes     map[string]map[string]float64
}

// buckets is a histogram: how many RPCs took at most so many seconds.
type buckets map[float64]float64

func (s *suite) snapshot() snapshot {
	now := snapshot{at: time.Now(), cloud: s.cloud.counts(), mine: float64(s.world.sent.Load()), cpu: map[string]float64{}, rpcs: map[string]buckets{}, sums: map[string]float64{}, codes: map[string]map[string]float64{}}
	if response, err := s.world.do(s.t.Context(), http.MethodGet, "/metrics", nil); err == nil {
		read(response, func(name string, labels map[string]string, value float64) {
			if name == "apiserver_request_total" {
				now.api += value
			}
		})
	}
	for name, pid := range s.processes() {
		now.cpu[name] = cpuOf(pid)
	}
	for _, r := range s.replicas {
		if r.pid("driver") == 0 {
			continue
		}
		if response, err := http.Get("http://" + r.http["driver"] + "/metrics"); err == nil {
			read(response, now.rpc)
		}
	}
	return now
}

// rpc adds one line about RPCs.
func (s snapshot) rpc(name string, labels map[string]string, value float64) {
	method := labels["method"]
	switch name {
	case "cinder_csi_rpc_duration_seconds_bucket":
		limit, err := strconv.ParseFloat(labels["le"], 64)
		if err != nil {
			return
		}
		if s.rpcs[method] == nil {
			s.rpcs[method] = buckets{}
		}
		s.rpcs[method][limit] += value
	case "cinder_csi_rpc_duration_seconds_sum":
		s.sums[method] += value
	case "cinder_csi_rpc_duration_seconds_count":
		if s.codes[method] == nil {
			s.codes[method] = map[string]float64{}
		}
		s.codes[method][labels["code"]] += value
	}
}

var label = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// read reads a page of metrics.
func read(response *http.Response, line func(name string, labels map[string]string, value float64)) {
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		at := strings.LastIndexByte(text, ' ')
		if at < 0 || text[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(text[at+1:], 64)
		if err != nil {
			continue
		}
		name, rest, _ := strings.Cut(text[:at], "{")
		labels := map[string]string{}
		if strings.HasPrefix(name, "cinder_csi") {
			for _, pair := range label.FindAllStringSubmatch(rest, -1) {
				labels[pair[1]] = pair[2]
			}
		}
		line(name, labels, value)
	}
}

// processes are the measured ones, by name.
func (s *suite) processes() map[string]int {
	all := map[string]int{"cloud and nodes": os.Getpid()}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all[name] = s.cluster.plane.PID(name)
	}
	for _, r := range s.replicas {
		for _, name := range []string{"driver", "provisioner", "attacher", "resizer"} {
			if pid := r.pid(name); pid != 0 {
				all[name+" "+r.name] = pid
			}
		}
	}
	return all
}

// cpuOf is the processor time of a process in seconds.
func cpuOf(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // USER_HZ of Linux
}

// memoryOf is the resident memory of a process in MiB: now, at its peak, and the part without pages of files.
func memoryOf(pid int) (resident, peak, own float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			resident = kilobytes / 1024
		case "VmHWM:":
			peak = kilobytes / 1024
		case "RssAnon:":
			own = kilobytes / 1024
		}
	}
	return resident, peak, own
}

// story measures what work costs, and keeps its record.
func (s *suite) story(name, title string, volumes int, work func(r *record.Story)) {
	s.t.Helper()
	r := record.Story{Name: name, Title: title, Volumes: volumes, Figures: map[string]float64{}}
	before, restarts := s.snapshot(), s.restarts()
	work(&r)
	after := s.snapshot()
	r.Seconds = round(after.at.Sub(before.at).Seconds())
	r.Cloud = map[string]int{}
	kinds := map[string]int{}
	for kind, count := range after.cloud {
		if more := count - before.cloud[kind]; more > 0 {
			kinds[kind] = more
			service, _, _ := strings.Cut(kind, " ")
			r.Cloud[services[service]] += more
		}
	}
	r.Requests = largest(kinds, 12)
	// The API server begins to count again when it restarts.
	if r.API = int(after.api - before.api - (after.mine - before.mine)); r.API < 0 {
		r.API = 0
	}
	for name, pid := range s.processes() {
		resident, peak, own := memoryOf(pid)
		cpu := after.cpu[name] - before.cpu[name]
		if cpu < 0 {
			cpu = after.cpu[name]
		}
		r.Processes = append(r.Processes, record.Process{Name: name, Resident: round(resident), Peak: round(peak), Own: round(own), CPU: round(cpu)})
	}
	sort.Slice(r.Processes, func(i, j int) bool { return r.Processes[i].Name < r.Processes[j].Name })
	r.RPCs = rpcs(before, after)
	r.Restarts = s.restarts() - restarts
	s.keep(r)
}

var services = map[string]string{"identity": "Keystone", "volume": "Cinder", "compute": "Nova"}

func (s *suite) restarts() int {
	total := 0
	for _, r := range s.replicas {
		r.mu.Lock()
		total += r.restarts
		r.mu.Unlock()
	}
	return total
}

func largest(kinds map[string]int, limit int) map[string]int {
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return kinds[b] - kinds[a] })
	out := map[string]int{}
	for _, name := range names[:min(limit, len(names))] {
		out[name] = kinds[name]
	}
	return out
}

// rpcs compares the histograms. After the death of a driver process its counts are lost: then they are those of the other process.
func rpcs(before, after snapshot) []record.RPC {
	var all []record.RPC
	for _, method := range slices.Sorted(maps.Keys(after.rpcs)) {
		more := buckets{}
		for limit, count := range after.rpcs[method] {
			more[limit] = max(0, count-before.rpcs[method][limit])
		}
		count := more[math.Inf(1)]
		if count == 0 {
			continue
		}
		codes := map[string]int{}
		for code, n := range after.codes[method] {
			if d := int(n - before.codes[method][code]); d > 0 {
				codes[code] = d
			}
		}
		all = append(all, record.RPC{Method: method, Count: int(count), Mean: round(max(0, after.sums[method]-before.sums[method]) / count), P50: round(more.quantile(0.5)), P99: round(more.quantile(0.99)), Codes: codes})
	}
	return all
}

// quantile interpolates within a bucket, as Prometheus does.
func (b buckets) quantile(q float64) float64 {
	limits := slices.Sorted(maps.Keys(b))
	rank, below, low := q*b[math.Inf(1)], 0.0, 0.0
	for _, limit := range limits {
		if count := b[limit]; count >= rank {
			if math.IsInf(limit, 1) {
				return low
			}
			return low + (limit-low)*(rank-below)/max(count-below, 1e-9)
		} else {
			below, low = count, limit
		}
	}
	return low
}

func round(x float64) float64 { return math.Round(x*100) / 100 }

// delays are sorted durations in seconds.
func delays(claims []*claim, w *world, from, to func(*claim) time.Time) []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []float64
	for _, c := range claims {
		if begin, end := from(c), to(c); !begin.IsZero() && !end.IsZero() {
			all = append(all, end.Sub(begin).Seconds())
		}
	}
	slices.Sort(all)
	return all
}

func createdAt(c *claim) time.Time { return c.created }

func selectedAt(c *claim) time.Time { return c.selected }

func provisionedAt(c *claim) time.Time { return c.provisioned }

func boundAt(c *claim) time.Time { return c.bound }

func ranAt(c *claim) time.Time { return c.ran }

// percentile is one of sorted values; 0 of none.
func percentile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return round(sorted[int(math.Ceil(q*float64(len(sorted))))-1])
}
