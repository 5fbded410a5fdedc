package errortable

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var update = flag.Bool("update", false, "write the answers to testdata")

// failure makes one request fail.
type failure struct {
	name  string
	fault openstacksim.Fault
	text  string // the error text of the answer, which distinguishes the meanings of one status
	write bool   // applies only to requests that change something
	brief bool   // is part of a run without -full too
	login bool   // the driver cannot log in again either
	leave bool   // the caller cancels
	twin  bool   // the same call is in progress already

	lag time.Duration // reads show what was there before
}

// The failures of each request: every status that Cinder, Nova and a proxy in front of them answer, and no answer.
var failures = []failure{
	{name: "400", fault: openstacksim.Fault{Status: 400}},
	{name: "400 of the zone", fault: openstacksim.Fault{Status: 400}, text: "Availability zone 'az1' is invalid.", write: true},
	{name: "400 of the size", fault: openstacksim.Fault{Status: 400}, text: "Specified volume size of '1' is less than the minimum required size of '2'", write: true},
	{name: "400 of the status", fault: openstacksim.Fault{Status: 400}, text: "Invalid volume: Volume status must be available", write: true},
	{name: "401", fault: openstacksim.Fault{Status: 401}},
	{name: "401, and no login", fault: openstacksim.Fault{Status: 401}, login: true},
	{name: "403", fault: openstacksim.Fault{Status: 403}, brief: true},
	{name: "403 of a quota", fault: openstacksim.Fault{Status: 403}, text: "Quota exceeded for instances", write: true},
	{name: "403 of the disks", fault: openstacksim.Fault{Status: 403}, text: "The maximum allowed number of disk devices (26) to attach to a single instance has been exceeded.", write: true},
	{name: "404", fault: openstacksim.Fault{Status: 404}},
	{name: "405", fault: openstacksim.Fault{Status: 405}, write: true},
	{name: "406", fault: openstacksim.Fault{Status: 406}, write: true},
	{name: "409", fault: openstacksim.Fault{Status: 409}},
	{name: "409 of the server's state", fault: openstacksim.Fault{Status: 409}, text: "Cannot 'attach_volume' instance while it is in vm_state error", write: true},
	{name: "413", fault: openstacksim.Fault{Status: 413}},
	{name: "413 of one volume's size", fault: openstacksim.Fault{Status: 413}, text: "Requested volume size 9 is larger than maximum allowed limit 8.", write: true},
	{name: "418", fault: openstacksim.Fault{Status: 418}},
	{name: "429", fault: openstacksim.Fault{Status: 429, Header: http.Header{"Retry-After": {"2"}}}},
	{name: "500", fault: openstacksim.Fault{Status: 500}, write: true},
	{name: "501", fault: openstacksim.Fault{Status: 501}},
	{name: "503", fault: openstacksim.Fault{Status: 503}, brief: true},
	{name: "dropped", fault: openstacksim.Fault{Drop: true}},
	{name: "answer lost", fault: openstacksim.Fault{Drop: true, After: true}, write: true, brief: true},
	{name: "504 of a proxy, too late", fault: openstacksim.Fault{Status: 504, After: true}, write: true},
	{name: "500 once", fault: openstacksim.Fault{Status: 500, Times: 1}, write: true},
	{name: "answer lost once", fault: openstacksim.Fault{Drop: true, After: true, Times: 1}, write: true},
	{name: "504 of a proxy, done later", fault: openstacksim.Fault{Status: 504, Late: 12 * time.Second, Times: 1}, write: true},
	{name: "no answer", fault: openstacksim.Fault{Delay: time.Hour}},
	{name: "the caller leaves", fault: openstacksim.Fault{Delay: time.Hour}, leave: true, brief: true},
	{name: "the same under way", fault: openstacksim.Fault{Delay: time.Hour, Times: 1}, twin: true},
}

// step is one request of a scenario.
type step struct {
	method, path string
	before       int // how many requests of this method and path precede it
}

var anyID = regexp.MustCompile(`^([0-9a-f]{32}|[0-9a-f-]{36})$`)

func (s step) String() string {
	return fmt.Sprintf("%s %s %d", s.method, strings.TrimPrefix(s.path, "/"), s.before+1)
}

// steps are the requests of a scenario without failures. A wait repeats its requests; two of each are enough.
func (s scenario) steps(t *testing.T) []step {
	var all []step
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s.begin(w)
		s.answer(w, failure{})
		seen := map[step]int{}
		for _, r := range w.sim.Requests() {
			path := strings.Split(r.Path, "/")
			for i, segment := range path {
				if anyID.MatchString(segment) {
					path[i] = "*"
				}
			}
			kind := step{method: r.Method, path: strings.Join(path, "/")}
			if seen[kind] < 2 && !strings.HasPrefix(r.Path, "/identity") {
				all = append(all, step{kind.method, kind.path, seen[kind]})
			}
			seen[kind]++
		}
	})
	return all
}

// begin prepares the scenario, and then sets the fault of the cloud.
func (s scenario) begin(w *world) {
	s.prepare(w)
	w.sim.ResetRequests()
	if s.disturb.Operation != "" {
		w.sim.SetFault(s.disturb)
	}
}

// answer makes the call. It returns the error of the call, and what the driver logs about it. The caller sets no deadline, so the
// driver's own deadline always ends the call.
func (s scenario) answer(w *world, m failure) (inprocess.Completion, error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	if m.leave {
		defer time.AfterFunc(17*time.Second, cancel).Stop()
	}
	if m.twin {
		first, leave := context.WithCancel(w.t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.call(first, w) }()
		defer func() { leave(); <-ended; synctest.Wait() }()
		time.Sleep(time.Second)
	}
	err := s.call(ctx, w)
	if err == nil {
		return inprocess.Completion{}, nil
	}
	synctest.Wait() // the driver has logged it too
	logged, missing := w.Log.Failed(s.rpc)
	if m.leave { // the caller no longer receives the code of the driver
		return logged, err
	}
	if missing != nil {
		w.t.Fatal(missing)
	}
	if code := status.Code(err).String(); logged.Code != code {
		w.t.Errorf("the caller gets %s, the log says %s: %s", code, logged.Code, logged.Error)
	}
	return logged, err
}

// inject makes one request of the scenario fail.
func (m failure) inject(w *world, at step) {
	f := m.fault
	f.Method, f.Path, f.Skip = at.method, at.path, at.before
	if m.text != "" {
		f.Body = fmt.Sprintf(`{"badRequest":{"code":%d,"message":%q}}`, f.Status, m.text)
	}
	w.sim.SetFault(f)
	if m.login {
		w.sim.SetFault(openstacksim.Fault{Path: "/identity/**", Status: 401})
	}
}

// failuresAt are the failures of the n-th request of the i-th scenario: all with -full, otherwise one of the brief ones in turn.
func failuresAt(i, n int) []failure {
	if testenv.Full() || *update {
		return failures
	}
	brief := slices.DeleteFunc(slices.Clone(failures), func(m failure) bool { return !m.brief })
	return brief[(i+n)%len(brief):][:1]
}

func (m failure) applies(at step) bool {
	return (!m.write || at.method != http.MethodGet) && (!m.twin || at.before == 0)
}

// The test causes every failure at every request of every path through an RPC. The answer is that of the table. Nothing is left in the
// cloud, whatever the caller does next.
func TestEveryFailureIsAnsweredByTheTableAndLeavesNothing(t *testing.T) {
	table := readTable(t)
	reached := &reached{cells: map[cell]string{}, how: map[cell]string{}}
	t.Run("sweep", func(t *testing.T) {
		for i, s := range scenarios {
			t.Run(s.rpc+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				s.sweep(t, table, reached, i)
			})
		}
	})
	if *update {
		writeTable(t, table, reached)
	} else if testenv.Full() && !t.Failed() {
		reached.all(t, table)
	}
}

func (s scenario) sweep(t *testing.T, table table, reached *reached, i int) {
	steps := s.steps(t)
	s.play(t, table, reached, failure{name: "no failure"}, step{})
	for _, lag := range []time.Duration{400 * time.Millisecond, 2 * time.Second} {
		s.play(t, table, reached, failure{name: "a lag of " + lag.String(), lag: lag}, step{})
	}
	for n, at := range steps {
		for _, m := range failuresAt(i, n) {
			if m.applies(at) {
				s.play(t, table, reached, m, at)
			}
		}
	}
}

// play runs the scenario with a failure. If the scenario creates something, its caller retries after a success and gives up after an error.
func (s scenario) play(t *testing.T, table table, reached *reached, m failure, at step) {
	what := m.name
	if at.method != "" {
		what += " at " + at.String()
	}
	t.Run(what, func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			s.begin(w)
			if at.method != "" {
				m.inject(w, at)
			}
			w.sim.SetLag(m.lag)
			logged, err := s.answer(w, m)
			w.sim.SetLag(0)
			if m.lag > 0 && err != nil && s.succeeds(t) {
				t.Errorf("it succeeds without the lag: %v", err)
			}
			if logged.Kind != "" {
				reached.judge(t, table, logged, s.rpc+"/"+s.name+": "+what)
			}
			if s.sidecar != nil && err == nil {
				w.sim.ClearFaults()
				s.sidecar(w).insisted(w, s.makes, s.others(w))
			} else if s.sidecar != nil {
				s.sidecar(w).abandoned(w, err)
			}
			w.cleared()
		})
	})
}

// succeeds reports whether the scenario succeeds without a failure.
func (s scenario) succeeds(t *testing.T) (ok bool) {
	w := newWorld(t)
	s.begin(w)
	_, err := s.answer(w, failure{})
	return err == nil
}

// others is how many objects of the kind that the scenario creates were prepared.
func (s scenario) others(w *world) int {
	if s.makes == "volumes" && w.volume != "" {
		return 1
	}
	return 0
}

// reached collects the cells of the table that an answer reached.
type reached struct {
	mu    sync.Mutex
	cells map[cell]string
	how   map[cell]string
}

// judge compares an answer with the table.
func (r *reached) judge(t *testing.T, table table, got inprocess.Completion, how string) {
	t.Helper()
	c := cell{got.Method, got.Kind, got.Written}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.cells[c]; !known {
		r.cells[c], r.how[c] = got.Code, how
	}
	if *update {
		return
	}
	if want, documented := table[c]; !documented || want.code != got.Code {
		t.Errorf("%v: want %q, got %s: %s", c, want.code, got.Code, got.Error)
	}
}

// all wants every cell of the table to have been reached.
func (r *reached) all(t *testing.T, table table) {
	t.Helper()
	for c := range table {
		if _, ok := r.cells[c]; !ok {
			t.Errorf("%v: no scenario reaches it; remove it from the table, or add a scenario that reaches it", c)
		}
	}
}
