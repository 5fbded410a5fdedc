package nodekills

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// moment is the point of a lifecycle at which the driver is killed. It is a system call of a step, counted among those
// that look the same. The kill is before or after the call.
type moment struct {
	step  int
	call  call
	nth   int
	after bool
	held  int // calls that strace holds before it, since it cannot tell them apart: of the same name and path
}

func (m moment) when() string {
	if m.after {
		return "after"
	}
	return "before"
}

// TestTheNodeSurvivesAKillAtEverySystemCall lists the calls by a lifecycle without kills, and then runs one lifecycle
// for each of them, killed before and after it.
func TestTheNodeSurvivesAKillAtEverySystemCall(t *testing.T) {
	testenv.NeedRoot(t)
	for _, k := range kinds {
		if !testenv.Full() && (k.fsType == "btrfs" || !*ci && k.name != "ext4") {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			var moments []moment
			if !t.Run("list", func(t *testing.T) { moments = listMoments(t, k) }) {
				return
			}
			if !testenv.Full() && !*ci {
				moments = moments[:3] // enough to see that the test still works
			}
			for i, m := range moments {
				t.Run(fmt.Sprintf("%03d %s %s", i, m.call.name, m.when()), func(t *testing.T) { killAt(t, k, m) })
			}
		})
	}
}

// listMoments runs a lifecycle under strace, and lists every call that changes something.
func listMoments(t *testing.T, k kind) (all []moment) {
	l := newLifecycle(t, k)
	for i, s := range l.steps() {
		l.prepare(t, s)
		if s.plain {
			untilOK(t, s.String(), 0, s.call)
		} else {
			tr := l.attach(t, changing, l.withoutOpenTree()...)
			untilOK(t, s.String(), 0, s.call)
			tr.detach()
			seen, held := map[call]int{}, map[[2]string]int{}
			for e := range tr.events {
				if e.done || !e.changes() {
					continue
				}
				alike := [2]string{e.name, e.path()}
				m := moment{step: i, call: e.call, nth: seen[e.call], held: held[alike]}
				all = append(all, m)
				m.after = true
				all = append(all, m)
				seen[e.call]++
				held[alike]++
			}
			if len(seen) == 0 && (l.fsType != "" || s.rpc != "NodeStageVolume" && s.rpc != "NodeExpandVolume") {
				t.Errorf("%s: the trace shows no call that changes anything", s)
			}
		}
		l.check(t, s)
	}
	return all
}

func (l *lifecycle) prepare(t *testing.T, s step) {
	if s.first != nil {
		s.first(t)
	}
}

func (l *lifecycle) check(t *testing.T, s step) {
	t.Helper()
	if s.then != nil {
		s.then(t)
	}
}

// withoutOpenTree are the arguments of strace that withhold open_tree(2), for a lifecycle before Linux 5.2.
func (l *lifecycle) withoutOpenTree() []string {
	if !l.oldKernel {
		return nil
	}
	return []string{"-e", "inject=open_tree:error=ENOSYS"}
}

// killAt runs a lifecycle in which the driver is killed at one moment.
func killAt(t *testing.T, k kind, m moment) {
	l := newLifecycle(t, k)
	o := outcome{kind: k.name, call: m.call, when: m.when()}
	for i, s := range l.steps() {
		l.prepare(t, s)
		if i == m.step {
			o.rpc = s.String()
			defer func() { o.lost = t.Failed(); report(o) }()
			l.killDuring(t, s, m)
			l.start(t)
			o.retries = l.retry(t, s)
		} else {
			untilOK(t, s.String(), 0, s.call)
		}
		l.check(t, s)
	}
}

// retry retries after a kill, and gives how many retries it took.
func (l *lifecycle) retry(t *testing.T, s step) int {
	if l.oldKernel {
		tr := l.attach(t, []string{"open_tree"}, l.withoutOpenTree()...)
		defer tr.detach()
	}
	return 1 + untilOKBeside(t, s.String(), mostRetries, s.call, l.toolWorks)
}

// killDuring makes the call and kills the driver with its tools at the moment.
func (l *lifecycle) killDuring(t *testing.T, s step, m moment) {
	t.Helper()
	hold := "delay_enter"
	if m.after {
		hold = "delay_exit"
	}
	length := "20s" // far longer than the test takes to kill
	if m.held > 0 {
		length = "2s" // those before it are held as long
	}
	// strace chooses by system call and by path. Where it knows no path of a call, the test chooses among all of that
	// name.
	inject := fmt.Sprintf("inject=%s:%s=%s", m.call.name, hold, length)
	arguments := append(l.withoutOpenTree(), "-e", inject)
	if l.oldKernel && m.call.name == "open_tree" {
		arguments = []string{"-e", inject + ":error=ENOSYS"}
	}
	if path := (names{l.Path(), l.disk}).real(m.call.path()); strings.HasPrefix(path, "/") && path != "/" {
		arguments = append(arguments, "-P", path)
		if l.oldKernel {
			arguments = append(arguments, "-P", l.staging(), "-P", l.disk)
		}
	}
	calls := []string{m.call.name}
	if l.oldKernel && m.call.name != "open_tree" {
		calls = append(calls, "open_tree")
	}
	tr := l.attach(t, calls, arguments...)
	answered := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	go func() { answered <- s.call(ctx) }()
	nth := 0
	for {
		select {
		case e := <-tr.events:
			if e.call != m.call || e.done != m.after {
				continue
			}
			if nth++; nth <= m.nth {
				continue
			}
			l.kill(t, tr)
			for late := range tr.events {
				if !m.after && late.call == m.call && late.done && !strings.Contains(tr.text(), "= ?") {
					t.Fatalf("%s ended before the driver was killed: this machine is too slow for the test\n%s", m.call, tr.text())
				}
			}
			if err := <-answered; err == nil {
				t.Fatalf("%s: the driver was killed during the call and the call succeeded", s)
			}
			return
		case err := <-answered:
			t.Fatalf("%s: the call %s was not made; the answer is %v; strace shows:\n%s", s, m.call, err, tr.text())
		}
	}
}
