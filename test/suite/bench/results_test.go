package bench

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var only = flag.Int("volumes", 0, "compare at this many volumes only")

var results = flag.String("results", "", "compare at 1, 10, 100 and 1,000 volumes and write the tables to this `file`")

const seed = 20260101

func (r run) measured(t *testing.T) (l life) {
	t.Run(fmt.Sprintf("%d volumes on %d servers each=%v", r.volumes, r.servers, r.each), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { l = r.live(t) })
	})
	return l
}

// of picks the operations of one step.
func (l life) of(step openstacksim.Operation) (ops []op) {
	for _, o := range l.ops {
		if o.step == step {
			ops = append(ops, o)
		}
	}
	return ops
}

// line is a row of the table: one step of a run.
type line struct {
	calls                     float64
	own50, own95              time.Duration
	added50, added95, added99 time.Duration
	within, tries             float64
}

func (l life) line(step openstacksim.Operation) line {
	var own, added []time.Duration
	var n line
	ops := l.of(step)
	for _, o := range ops {
		own, added = append(own, o.own), append(added, o.added())
		if o.added() <= max(150*time.Millisecond, o.own/10) {
			n.within++
		}
		n.tries += float64(o.tries)
	}
	count := float64(len(ops))
	n.within, n.tries, n.calls = n.within/count*100, n.tries/count, float64(l.calls[step])/count
	n.own50, n.own95 = percentile(own, 50), percentile(own, 95)
	n.added50, n.added95, n.added99 = percentile(added, 50), percentile(added, 95), percentile(added, 99)
	return n
}

func (n line) String() string {
	ms := func(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
	return fmt.Sprintf("%.2f | %s | %s | %s | %s | %s | %.0f | %.2f", n.calls, ms(n.own50), ms(n.own95), ms(n.added50), ms(n.added95), ms(n.added99), n.within, n.tries)
}

func TestAFewVolumesLiveWithEitherWayOfPolling(t *testing.T) {
	for _, each := range []bool{false, true} {
		l := run{volumes: 8, repeats: 1, servers: 4, each: each, seed: seed}.measured(t)
		for _, step := range steps {
			if ops := l.of(step); len(ops) != 8 || l.calls[step] < 8 {
				t.Errorf("each=%v, %s: %d operations, %d calls", each, step, len(ops), l.calls[step])
			}
		}
		if l.idle > 1 {
			t.Errorf("each=%v: %.1f calls a minute while nothing happens", each, l.idle)
		}
	}
}

func TestResults(t *testing.T) {
	if *results == "" {
		return // make measure WHAT=waiting; the test above is the small form
	}
	var b strings.Builder
	b.WriteString(head)
	for _, size := range []run{{volumes: 1, repeats: 200, servers: 50}, {volumes: 10, repeats: 20, servers: 50}, {volumes: 50, repeats: 4, servers: 2}, {volumes: 100, repeats: 3, servers: 50}, {volumes: 1000, repeats: 1, servers: 50}} {
		if *only != 0 && *only != size.volumes {
			continue
		}
		begun := time.Now()
		size.seed = seed
		hub := size.measured(t)
		size.each = true
		each := size.measured(t)
		fmt.Fprintf(&b, "\n## %s on %d servers, %d times\n\n%s", plural(size.volumes), size.servers, size.repeats, columns)
		var calls, baseline float64
		for _, step := range steps {
			h, e := hub.line(step), each.line(step)
			fmt.Fprintf(&b, "| %s | hub | %s | |\n", step, h)
			fmt.Fprintf(&b, "| | each | %s | %.1f |\n", e, e.calls/h.calls)
			calls, baseline = calls+h.calls, baseline+e.calls
		}
		fmt.Fprintf(&b, "\nThe whole life of a volume: %.1f calls with the hub, %.1f without.\n", calls, baseline)
		fmt.Fprintf(&b, "\nAt rest: %.1f calls a minute with the hub, %.1f without, all of them for the ListVolumes of the attacher.\n", hub.idle, each.idle)
		t.Logf("%d volumes on %d servers: %v", size.volumes, size.servers, time.Since(begun).Round(time.Second))
	}
	b.WriteString(heap(t))
	testfile.Write(t, *results, b.String(), 0o644)
}

func plural(n int) string {
	if n == 1 {
		return "1 volume"
	}
	return fmt.Sprintf("%d volumes", n)
}

const head = `# Waiting, measured

Written by ` + "`make measure WHAT=waiting`" + `; [doc.go](doc.go) says what is measured and how. Times are virtual milliseconds. *own* is the cloud's time, *added*
what the driver adds to it. *within* is the percentage of operations to which it adds at most 150 ms or a tenth of the cloud's time. *tries* is
the number of calls of the sidecar. *calls* are all requests to OpenStack for one operation: reads before it, the request itself, and polls. *each*
polls every volume alone, with upstream's intervals; *ratio* is its calls divided by those of the hub.
`

const columns = `| operation | polling | calls | own p50 | own p95 | added p50 | added p95 | added p99 | within | tries | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`
