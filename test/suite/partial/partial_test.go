package partial

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var (
	update = flag.Bool("update", false, "with -full: write the table into the page")
	only   = flag.String("only", "", "play only the cells whose name contains this text, and log each")
)

// played are the outcomes of all cells.
type played struct {
	mu    sync.Mutex
	cells []outcome
	seen  map[kind]bool
}

type outcome struct {
	cell
	healthy, got run
}

func TestAFaultOfOneKindOfRequestStaysSmall(t *testing.T) {
	table, all := readTable(t), &played{seen: map[kind]bool{}}
	t.Run("cells", func(t *testing.T) {
		for i, s := range scenarios {
			for _, n := range inFlight {
				if testenv.Full() || n == inFlight[len(inFlight)-1] {
					t.Run(fmt.Sprintf("%s/%d in flight", s, n), func(t *testing.T) {
						t.Parallel()
						all.play(t, table, s, n, i)
					})
				}
			}
		}
	})
	if t.Failed() || *only != "" {
		return
	}
	all.coverEveryCall(t)
	switch {
	case *update:
		all.write(t)
	case testenv.Full():
		all.compare(t)
	}
}

// lagging plays a scenario while every read shows what was there before, as with a database server that lags. That costs time, and fails no call.
func lagging(t *testing.T, s scenario, n int, healthy run) {
	lags := []cloudTime{2 * second, 400 * time.Millisecond}
	if !testenv.Full() {
		lags = lags[:1]
	}
	for _, lag := range lags {
		got := play(t, s, n, kind{}, &fault{lag: lag})
		if want, code := status.Code(healthy.worst()), status.Code(got.worst()); code != want || len(got.doubled) > 0 {
			t.Errorf("a lag of %v: want %s as without, got %s in %d of %d: %s; two have the same name: %v", lag, want, code, got.failed(), n, got.said, got.doubled)
		}
		if longest := 3*healthy.took + 2*volume.Lag; got.took > longest {
			t.Errorf("a lag of %v: took %v, longer than %v", lag, got.took, longest)
		}
	}
}

// play plays the healthy run of a scenario, and then the cells of each kind of request that it sent. Without -full, a kind has one cell: that of
// the next fault in turn.
func (p *played) play(t *testing.T, table map[string][]codes.Code, s scenario, n, first int) {
	healthy := play(t, s, n, kind{}, nil)
	p.note(healthy)
	if *only == "" {
		lagging(t, s, n, healthy)
	}
	for at, k := range healthy.sorted() {
		if !isListed(s, k) {
			t.Errorf("%s sends %s: add it to plain, whole or spared in rule_test.go, and say what the RPC does without it", s, k)
		}
		apply := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !f.applies(k) })
		if !testenv.Full() && *only == "" {
			apply = apply[(first+at)%len(apply):][:1]
		}
		for _, f := range apply {
			c := cell{s, k, f, n}
			if !strings.Contains(c.String(), *only) {
				continue
			}
			got := play(t, s, n, k, &f)
			if *only != "" {
				t.Logf("%s: %v after %v (healthy %v), %d calls (healthy %d), %d met the fault: %s", c, got.worst(), got.took, healthy.took, got.calls, healthy.calls, got.hits, got.said)
			}
			for _, broken := range c.judge(table, healthy, got) {
				t.Errorf("%s: %s", c, broken)
			}
			p.add(outcome{c, healthy, got})
		}
	}
}

func (p *played) note(healthy run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range healthy.kinds {
		p.seen[k] = true
	}
}

func (p *played) add(o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cells = append(p.cells, o)
}

// coverEveryCall wants cells for each request in the driver's table.
func (p *played) coverEveryCall(t *testing.T) {
	t.Helper()
	for _, call := range openstack.Calls {
		if !slices.ContainsFunc(p.cells, func(o outcome) bool { return o.kind.Call == call }) {
			t.Errorf("no scenario sends %s %s %s, so no cell breaks it", call.Method, call.Path, call.Microversion)
		}
	}
}
