package nodekills

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// tool is a program that changes the disk while the driver waits for it.
type tool struct {
	kind string
	name string
	step string // in which it runs
	all  bool   // it is killed at each of its writes
}

var tools = []tool{
	{"ext4", "mkfs.ext4", "NodeStageVolume, empty disk", false},
	{"xfs", "mkfs.xfs", "NodeStageVolume, empty disk", false},
	{"btrfs", "mkfs.btrfs", "NodeStageVolume, empty disk", false},
	{"ext4", "fsck.ext4", "NodeStageVolume, file system with a log to replay", true},
	{"ext4", "resize2fs", "NodeExpandVolume", false},
	{"xfs", "xfs_growfs", "NodeExpandVolume", false},
	{"btrfs", "btrfs", "NodeExpandVolume", false},
}

// write is one call by which a tool changes the disk. Unlike the driver a tool has one thread, so strace can count its
// calls. count is the number of the call among those of its name on that path. What is written differs from run to run,
// for instance the UUID.
type write struct {
	name  string
	path  string
	count int
	place int // among all writes of the tool, from 1
	of    int
}

// momentsOfATool is how many of its writes are killed at.
const momentsOfATool = 10

// TestAVolumeSurvivesAKillWhileAToolWorksOnItsDisk kills at ten writes of each tool, the first and the last among them.
// It kills the driver with the tool, as the end of a container does. It also kills the driver alone while the tool is
// stopped. In the second case the driver starts again and is called before the tool continues, so two tools would meet
// on one disk. A tool that the driver has started dies with it.
func TestAVolumeSurvivesAKillWhileAToolWorksOnItsDisk(t *testing.T) {
	testenv.NeedRoot(t)
	some := tools
	if !testenv.Full() && !*ci {
		some = tools[1:2] // mkfs.xfs, the one whose kill leaves something to repair
	}
	for _, tl := range some {
		k := kindNamed(tl.kind)
		if tl.name == "resize2fs" && !mayGrowExt4() {
			continue // said in the report
		}
		t.Run(tl.name, func(t *testing.T) {
			var writes []write
			if !t.Run("list", func(t *testing.T) { writes = listWrites(t, k, tl) }) {
				return
			}
			switch {
			case testenv.Full() && tl.all: // it writes the superblock in pieces
			case testenv.Full():
				writes = spread(writes, momentsOfATool)
			case *ci:
				writes = spread(writes, 5)
			default:
				writes = spread(writes, 1)
			}
			for _, w := range writes {
				for _, alone := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %d of %d alone %t", w.name, w.place, w.of, alone), func(t *testing.T) { killAtWrite(t, k, tl, w, alone) })
				}
			}
		})
	}
}

func kindNamed(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	panic("no kind " + name)
}

// spread chooses that many of all, the first and the last among them; of one, it is the middle.
func spread(all []write, many int) (some []write) {
	if many == 1 {
		return all[len(all)/2 : len(all)/2+1]
	}
	if len(all) <= many {
		return all
	}
	for i := range many {
		some = append(some, all[i*(len(all)-1)/(many-1)])
	}
	return some
}

// listWrites runs a lifecycle under strace, and lists what the tool does to the disk.
func listWrites(t *testing.T, k kind, tl tool) (all []write) {
	l := newLifecycle(t, k)
	l.upTo(t, tl.step, func(s step) {
		tr := l.attach(t, writing)
		untilOK(t, s.String(), 0, s.call)
		tr.detach()
		counts := map[[2]string]int{}
		for e := range tr.events {
			if e.done || e.by != tl.name || e.path() != "$DISK" && !strings.HasPrefix(e.path(), "$DIR") {
				continue
			}
			of := [2]string{e.name, e.path()}
			counts[of]++
			if e.name == "ioctl" && !strings.HasPrefix(e.args, "<$DIR/kubelet") {
				continue // those to a disk only ask; those to a mounted file system grow it
			}
			all = append(all, write{name: e.name, path: e.path(), count: counts[of]})
		}
		if len(all) == 0 {
			t.Errorf("%s changes nothing on the disk, says strace:\n%s", tl.name, tr.text())
		}
	})
	for i := range all {
		all[i].place, all[i].of = i+1, len(all)
	}
	return all
}

// upTo runs a lifecycle to a step, and does that.
func (l *lifecycle) upTo(t *testing.T, name string, do func(s step)) {
	t.Helper()
	for _, s := range l.steps() {
		l.prepare(t, s)
		if s.String() == name {
			do(s)
			return
		}
		untilOK(t, s.String(), 0, s.call)
		l.check(t, s)
	}
	t.Fatalf("a lifecycle has no step %q", name)
}

// killAtWrite runs a lifecycle in which the driver is killed as a tool is about to change the disk.
func killAtWrite(t *testing.T, k kind, tl tool, w write, alone bool) {
	l := newLifecycle(t, k)
	o := outcome{kind: k.name, call: call{by: tl.name, name: w.name}, when: "driver and tool", tool: true}
	if alone {
		o.when = "driver alone"
	}
	for _, s := range l.steps() {
		l.prepare(t, s)
		if s.String() == tl.step {
			o.rpc = s.String()
			defer func() { o.lost = t.Failed(); report(o) }()
			o.retries = l.killTool(t, s, tl, w, alone)
		} else {
			untilOK(t, s.String(), 0, s.call)
		}
		l.check(t, s)
	}
}

// killTool makes the call, kills at the write, and retries. It gives how many retries it took.
func (l *lifecycle) killTool(t *testing.T, s step, tl tool, w write, alone bool) (retries int) {
	t.Helper()
	tr := l.attach(t, []string{w.name}, "-e", fmt.Sprintf("inject=%s:delay_enter=20s:when=%d", w.name, w.count), "-P", (names{l.Path(), l.disk}).real(w.path))
	answered := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	go func() { answered <- s.call(ctx) }()
	for count := 0; count < w.count; {
		select {
		case e := <-tr.events:
			if e.done || e.by != tl.name {
				continue
			}
			if count++; count < w.count {
				continue
			}
			if !alone {
				l.kill(t, tr)
				break
			}
			must(t, "stop the tool", unix.Kill(e.pid, unix.SIGSTOP))
			stopped := true
			defer func() {
				if stopped { // the test has failed
					_ = unix.Kill(e.pid, unix.SIGKILL)
				}
			}()
			l.killAlone(t, tr)
			<-answered
			l.start(t)
			if err := once(t, s.call); err != nil {
				retries++
				t.Logf("%s while %s of the killed driver stands still: %v", s, tl.name, err)
			}
			if err := unix.Kill(e.pid, unix.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) { // a tool of the driver's own dies with it
				must(t, "let the tool go on", err)
			}
			stopped = false
			return retries + 1 + untilOKBeside(t, s.String(), mostRetries, s.call, l.toolWorks)
		case err := <-answered:
			t.Fatalf("%s: %s made no write %d; the answer is %v; strace shows:\n%s", s, tl.name, w.count, err, tr.text())
		}
	}
	<-answered
	l.start(t)
	return 1 + untilOKBeside(t, s.String(), mostRetries, s.call, l.toolWorks)
}
