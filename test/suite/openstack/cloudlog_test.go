//go:build openstack

package openstack

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// cloudLogs are the logs of the bed from a point in time on. They show what the cloud did, and how long that took.
type cloudLogs struct {
	tenant *tenant
	from   map[string]int64 // size of each log at the start
}

func (x *tenant) openLogs(t *testing.T) cloudLogs {
	t.Helper()
	logs := cloudLogs{tenant: x, from: map[string]int64{}}
	for _, name := range []string{"cinder-api", "cinder-volume", "nova-api", "nova-compute-az1", "nova-compute-az2"} {
		info := testenv.Value(os.Stat(logs.path(name)))(t)
		logs.from[name] = info.Size()
	}
	return logs
}

func (l cloudLogs) path(name string) string {
	return filepath.Join(l.tenant.bed, "log", name+".log")
}

// logLine is a line of oslo.log: its time, its request ID, and the request ID of the caller if the caller is a service.
type logLine struct {
	at              time.Time
	caller, request string
	text            string
}

var oslo = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \d+ INFO \S+ \[(\S+) (req-\S+) \S+ (\S+) [^\]]*\] (.*)$`)

// lines returns the lines of a log that belong to the tenant.
func (l cloudLogs) lines(t *testing.T, name string) (all []logLine) {
	t.Helper()
	f := testenv.Value(os.Open(l.path(name)))(t)
	defer f.Close()
	testenv.Value(f.Seek(l.from[name], io.SeekStart))(t)
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		m := oslo.FindStringSubmatch(scanner.Text())
		if m == nil || m[4] != l.tenant.project {
			continue
		}
		at := testenv.Value(time.ParseInLocation("2006-01-02 15:04:05.000", m[1], time.Local))(t)
		all = append(all, logLine{at: at, caller: m[2], request: m[3], text: m[5]})
	}
	testenv.Must(t, scanner.Err())
	return all
}

// span is a time of work.
type span struct{ begun, end time.Time }

func (s span) took() time.Duration { return s.end.Sub(s.begun) }

// busy is the total time of some spans. Time in which spans overlap counts once.
func busy(spans []span) (total time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return a.begun.Compare(b.begun) })
	var until time.Time
	for _, s := range spans {
		if s.begun.Before(until) {
			s.begun = until
		}
		if s.end.After(s.begun) {
			total, until = total+s.took(), s.end
		}
	}
	return total
}

var (
	answered = regexp.MustCompile(`"(GET|POST|PUT|DELETE) .*status: \d+ +len: \d+ time: ([0-9.]+)`)
	atVolume = regexp.MustCompile(`(Attaching|Detaching) volume ([0-9a-f-]{36})`)
)

// atWork are the spans of nova-compute by step and volume: from its first line to Cinder's answer to its last call.
func (l cloudLogs) atWork(t *testing.T, cinder []logLine) map[string]span {
	t.Helper()
	last := map[string]time.Time{}
	for _, line := range cinder {
		if strings.HasPrefix(line.caller, "req-") && answered.MatchString(line.text) {
			last[line.caller] = line.at
		}
	}
	work := map[string]span{}
	for _, name := range []string{"nova-compute-az1", "nova-compute-az2"} {
		for _, line := range l.lines(t, name) {
			if m := atVolume.FindStringSubmatch(line.text); m != nil {
				step := map[string]string{"Attaching": "attach ", "Detaching": "detach "}[m[1]]
				work[step+m[2]] = span{line.at, last[line.request]}
			}
		}
	}
	return work
}

// made are the spans in which cinder-volume creates a volume: from its first line about the request to its last.
func (l cloudLogs) made(t *testing.T) map[string]span {
	t.Helper()
	spans := map[string]span{}
	for _, line := range l.lines(t, "cinder-volume") {
		s, known := spans[line.request]
		switch {
		case !known && strings.Contains(line.text, "being created as"):
			spans[line.request] = span{line.at, line.at}
		case known:
			spans[line.request] = span{s.begun, line.at}
		}
	}
	return spans
}

// summary reports the time that the cloud itself needed.
func (l cloudLogs) summary(t *testing.T, all []*lived, wall, processor time.Duration) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "  the cloud's processes used %.1f s of processor time in %.1f s\n", processor.Seconds(), wall.Seconds())
	cinder := l.lines(t, "cinder-api")
	for name, lines := range map[string][]logLine{"cinder-api": cinder, "nova-api": l.lines(t, "nova-api")} {
		var took, own []time.Duration
		for _, line := range lines {
			m := answered.FindStringSubmatch(line.text)
			if m == nil {
				continue
			}
			seconds := testenv.Value(strconv.ParseFloat(m[2], 64))(t)
			if d := time.Duration(seconds * float64(time.Second)); strings.HasPrefix(line.caller, "req-") {
				own = append(own, d)
			} else {
				took = append(took, d)
			}
		}
		fmt.Fprintf(&text, "  %-10s  answered %d calls from outside (p50 %s, p95 %s) and %d of other services (p50 %s)\n", name, len(took),
			centile(took, 50).Round(time.Millisecond), centile(took, 95).Round(time.Millisecond), len(own), centile(own, 50).Round(time.Millisecond))
	}
	var making []span
	for _, s := range l.made(t) {
		making = append(making, s)
	}
	fmt.Fprintf(&text, "  cinder-volume made %d volumes, p50 %s\n", len(making), middle(making))
	work := l.atWork(t, cinder)
	for _, step := range []string{"attach", "detach"} {
		var spans []span
		var lag []time.Duration
		byServer := map[string][]span{}
		for _, v := range all {
			if s, known := work[step+" "+v.id]; known {
				spans = append(spans, s)
				lag = append(lag, v.end[step].Sub(s.end))
				byServer[v.server.id] = append(byServer[v.server.id], s)
			}
		}
		fmt.Fprintf(&text, "  nova-compute did %d of %s, p50 %s; the driver answered after its end: p50 %s, p95 %s; at work at once:", len(spans), step, middle(spans),
			centile(lag, 50).Round(time.Millisecond), centile(lag, 95).Round(time.Millisecond))
		for _, spans := range byServer {
			fmt.Fprintf(&text, " %.1f s of %.1f s", busy(spans).Seconds(), (span{earliest(spans), latest(spans)}).took().Seconds())
		}
		text.WriteString("\n")
	}
	return text.String()
}

func middle(spans []span) time.Duration {
	var d []time.Duration
	for _, s := range spans {
		d = append(d, s.took())
	}
	return centile(d, 50).Round(time.Millisecond)
}

func earliest(spans []span) time.Time {
	return slices.MinFunc(spans, func(a, b span) int { return a.begun.Compare(b.begun) }).begun
}

func latest(spans []span) time.Time {
	return slices.MaxFunc(spans, func(a, b span) int { return a.end.Compare(b.end) }).end
}

// processorTime is the processor time of the bed's daemons and their children so far, from /proc. A process belongs to the bed if a pid in
// run/ is among its ancestors.
func (x *tenant) processorTime(t *testing.T) time.Duration {
	t.Helper()
	roots := map[string]bool{}
	pids := testenv.Value(filepath.Glob(filepath.Join(x.bed, "run", "*.pid")))(t)
	for _, file := range pids {
		if text, err := os.ReadFile(file); err == nil {
			pid, _, _ := strings.Cut(string(text), " ") // the start time follows
			roots[pid] = true
		}
	}
	stats := testenv.Value(filepath.Glob("/proc/[0-9]*/stat"))(t)
	parents, ticks := map[string]string{}, map[string]int{}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has just ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // proc(5): state is the first of these
		if len(fields) < 15 {
			continue
		}
		pid := filepath.Base(filepath.Dir(file))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		parents[pid], ticks[pid] = fields[1], user+system
	}
	var sum int
	for pid := range ticks {
		for up := pid; up != "" && up != "0"; up = parents[up] {
			if roots[up] {
				sum += ticks[pid]
				break
			}
		}
	}
	return time.Duration(sum) * time.Second / 100 // USER_HZ
}
