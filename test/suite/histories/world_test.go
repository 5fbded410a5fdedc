package histories

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

const (
	gib     = 1 << 30
	zoneKey = "topology.cinder.csi.openstack.org/zone"
)

// world is the run of a history.
type world struct {
	history history
	sim     *openstacksim.Sim
	cloud   http.RoundTripper
	conf    string // path of cloud.conf
	servers []string
	random  func() float64
	begun   time.Time
	// background are goroutines that the end of the bubble waits for.
	background sync.WaitGroup

	mu        sync.Mutex // guards what follows; never held over a wait
	replicas  []*process // nil while a replica is away
	processes int
	leaders   map[sidecar]*leader
	faults    []fault // armed
	slow      time.Duration
	slowUntil time.Time
	calm      time.Time // the end of the last fault
	calls     map[*process][]*call
	ledger    ledger
	ending    bool // no killed process comes back
	counting  bool
	classes   []string // of requests since counting

	credential openstacksim.ApplicationCredential // that cloud.conf names

	moments    map[string]int // how often offset was called
	trace      []event
	names      map[string]string // IDs in the trace, by what they are
	violations []violation
	counts     counts
}

// event is one line of the trace.
type event struct {
	at   time.Duration
	what string
}

func (e event) String() string {
	return fmt.Sprintf("%10s  %s", e.at.Truncate(time.Millisecond), e.what)
}

// violation is one broken promise.
type violation struct{ Rule, Detail string }

// counts sums up runs.
type counts struct {
	Histories, Operations, Calls, Requests, Crashes int
	Faults                                          map[kind]int
	Retries                                         int // the most that an operation took after the last fault
	Duplicates                                      int // that the create hold-off allows
	Late                                            int // attaches and detaches that Nova processed when no process knew of them
}

func (c *counts) add(other counts) {
	c.Histories += other.Histories
	c.Operations += other.Operations
	c.Calls += other.Calls
	c.Requests += other.Requests
	c.Crashes += other.Crashes
	c.Duplicates += other.Duplicates
	c.Late += other.Late
	c.Retries = max(c.Retries, other.Retries)
	if c.Faults == nil {
		c.Faults = map[kind]int{}
	}
	for k, n := range other.Faults {
		c.Faults[k] += n
	}
}

// newWorld prepares the cloud of a history; conf is where its cloud.conf is written. It must be called inside a bubble.
func newWorld(h history, conf string) *world {
	config := openstacksim.Default()
	config.Seed = h.Seed
	config.Projects[1].Quota = map[string]int{"volumes": -1, "gigabytes": -1, "snapshots": -1, "backups": -1, "backup_gigabytes": -1}
	config.CephBackups = h.Ceph
	w := &world{
		history: h, sim: openstacksim.New(config), conf: conf, begun: time.Now(), calm: time.Now(), names: map[string]string{}, moments: map[string]int{},
		calls: map[*process][]*call{}, leaders: map[sidecar]*leader{}, replicas: make([]*process, h.Replicas),
	}
	source := rand.New(rand.NewPCG(h.Seed, 1))
	var randomness sync.Mutex
	w.random = func() float64 {
		randomness.Lock()
		defer randomness.Unlock()
		return source.Float64()
	}
	w.ledger.make()
	w.counts.Faults = map[kind]int{}
	w.cloud = memnet.Transport(w.sim.Handler())
	for _, s := range config.Servers {
		w.servers = append(w.servers, s.ID)
	}
	for i := range 2 {
		w.servers = append(w.servers, w.sim.AddServer(openstacksim.Server{Name: fmt.Sprintf("node-more-%d", i), Project: "demo", Zone: config.ComputeZones[i]}))
	}
	w.sim.SetAllLatency(4 * time.Second)
	w.sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
	// Different durations keep events in one order, so that a history repeats itself.
	w.sim.SetTiming(openstacksim.Timing{Seed: h.Seed, Spread: 0.6, Jitter: 0.3, Serial: true})
	w.sim.SetClockSkew(h.Skew)
	w.sim.SetLag(h.Lag)
	w.credential = config.ApplicationCredentials[0]
	w.configure()
	for i := range w.replicas {
		w.replicas[i] = w.start(i)
	}
	for _, s := range sidecars {
		w.leaders[s] = &leader{changed: make(chan struct{})}
	}
	return w
}

// at is the current process of a replica, or nil.
func (w *world) at(replica int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replicas[replica]
}

// processEnded records that a process accepts no more calls, and starts its successor after a time.
func (w *world) processEnded(p *process, away time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Crashes++
	w.replicas[p.replica] = nil
	w.calm = time.Now().Add(away)
	if w.ending {
		return
	}
	w.background.Go(func() {
		time.Sleep(away)
		w.mu.Lock()
		ending := w.ending
		w.mu.Unlock()
		if ending {
			return
		}
		next := w.start(p.replica)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.replicas[p.replica] = next
	})
}

func (w *world) callBegins(p *process, c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Calls++
	w.calls[p] = slices.DeleteFunc(w.calls[p], func(c *call) bool { return !c.ended.IsZero() && time.Since(c.ended) > onItsWay })
	w.calls[p] = append(w.calls[p], c)
	for _, object := range []string{c.name, c.volume} {
		if object != "" {
			w.ledger.served[object] = append(w.ledger.served[object], p)
		}
	}
}

// callsOf returns copies of the calls to a process, as they are now: a call that is in progress may end at any moment.
func (w *world) callsOf(p *process) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var calls []call
	for _, c := range w.calls[p] {
		calls = append(calls, *c)
	}
	return calls
}

func (w *world) callEnds(p *process, c *call, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.ended, c.answered = time.Now(), answered
}

// note adds a line to the trace.
func (w *world) note(format string, values ...any) {
	line := event{time.Since(w.begun), fmt.Sprintf(format, values...)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, line)
}

// plain replaces IDs by readable names.
func (w *world) plain(s string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, id := range w.servers {
		s = strings.ReplaceAll(s, id, fmt.Sprintf("server-%d", i))
	}
	for id, name := range w.names {
		s = strings.ReplaceAll(s, id, name)
	}
	return s
}

// violate records a broken promise.
func (w *world) violate(rule, format string, values ...any) {
	detail := w.plain(fmt.Sprintf(format, values...))
	w.note("VIOLATION: %s: %s", rule, detail)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, violation{rule, detail})
}

// offset is a delay of less than a millisecond, which differs for each key and call. Many goroutines wake at one moment, such as after a
// change of leader. Without the delay the scheduler would choose their order, and with it the whole history.
func (w *world) offset(key string) time.Duration {
	w.mu.Lock()
	w.moments[key]++
	n := w.moments[key]
	w.mu.Unlock()
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", w.history.Seed, key, n)
	return time.Duration(h.Sum64()%1_000_000) + 1
}

// broken reports whether a promise was broken. The rest of the history is then of no use.
func (w *world) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.violations) > 0
}

// end stops every process and waits until the bubble has no goroutines left.
func (w *world) end() {
	w.mu.Lock()
	w.ending = true
	running := slices.Clone(w.replicas)
	w.mu.Unlock()
	for _, p := range running {
		if p != nil {
			p.terminate(0)
		}
	}
	w.background.Wait()
}

// sorted are the keys of a map in order. The order of a map must not change a history.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
