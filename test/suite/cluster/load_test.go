//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// load is work that never ends while something is disrupted. Each worker makes a claim with a pod and a snapshot of it, expands it, and deletes
// everything: that is one cycle. No step may fail within five minutes.
type load struct {
	c       *cluster
	ctx     context.Context
	end     context.CancelFunc // a worker that has failed ends all
	last    atomic.Bool        // each worker ends its cycle with everything in place
	workers sync.WaitGroup
	steps   []atomic.Value // what each worker waits for
	begun   atomic.Int64   // steps of all workers
	paused  sync.RWMutex   // held by each step, and by pause
	grows   atomic.Bool    // the steps include expand
	cycles  atomic.Int64
	failed  chan error
}

// loadClass is growing under a name of its own.
var loadClass = strings.Replace(growing, "walk-growing", "load-growing", 1)

// startLoad starts the workers.
func (c *cluster) startLoad(t *testing.T, workers int) *load {
	t.Helper()
	c.apply(t, loadClass)
	t.Cleanup(func() {
		_, _, _ = c.try(context.Background(), "", "kubectl", "delete", "storageclass", "load-growing", "--ignore-not-found")
	})
	l := &load{c: c, steps: make([]atomic.Value, workers), failed: make(chan error, workers)}
	l.grows.Store(true)
	l.ctx, l.end = context.WithCancel(t.Context())
	t.Cleanup(func() { l.end(); l.workers.Wait() })
	snapshotClass := c.snapshotClass(t)
	for i := range workers {
		l.workers.Go(func() {
			if err := l.work(i, snapshotClass); err != nil {
				l.failed <- err
				l.end()
			}
		})
	}
	return l
}

// work is a worker: cycles until the last one, of which everything stays.
func (l *load) work(i int, snapshotClass string) error {
	for n := 0; ; n++ {
		name := fmt.Sprintf("load-%d-%d", i, n)
		last, err := l.cycle(i, name, snapshotClass)
		if err != nil {
			return fmt.Errorf("worker %d, %s, %v: %w", i, name, l.steps[i].Load(), err)
		}
		if last {
			return nil
		}
		l.cycles.Add(1)
	}
}

// step does one step of a worker.
func (l *load) step(i int, what string, do func() error) error {
	l.paused.RLock()
	defer l.paused.RUnlock()
	return l.begin(i, what, do)
}

func (l *load) begin(i int, what string, do func() error) error {
	l.steps[i].Store(what)
	l.begun.Add(1)
	return do()
}

// expand is a step while volumes may grow. It asks that in the step: a worker that waits for the end of a pause has to follow what was said meanwhile.
func (l *load) expand(i int, name string) error {
	l.paused.RLock()
	defer l.paused.RUnlock()
	if !l.grows.Load() {
		return nil
	}
	return l.begin(i, "expand", func() error {
		if err := l.kubectl("", "patch", "pvc", name, "--namespace="+l.c.namespace, "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`); err != nil {
			return err
		}
		return l.wait("pvc/"+name, "jsonpath={.status.capacity.storage}=2Gi")
	})
}

// cycle reports whether it was the worker's last one.
func (l *load) cycle(i int, name, snapshotClass string) (last bool, err error) {
	in := "--namespace=" + l.c.namespace
	err = l.step(i, "create and attach", func() error {
		objects := claim{name: name, gib: 1, class: "load-growing"}.manifest(l.c.namespace) + pod{name: name, claim: name}.manifest(l.c.namespace)
		if err := l.kubectl(objects, "apply", "-f", "-"); err != nil {
			return err
		}
		return l.wait("pod/"+name, "condition=Ready")
	})
	if err != nil {
		return false, err
	}
	err = l.step(i, "snapshot", func() error {
		if err := l.kubectl(snapshotManifest(name, name, snapshotClass, l.c.namespace), "apply", "-f", "-"); err != nil {
			return err
		}
		return l.wait("volumesnapshot/"+name, "jsonpath={.status.readyToUse}=true")
	})
	if err != nil {
		return false, err
	}
	if err := l.expand(i, name); err != nil {
		return false, err
	}
	if l.last.Load() {
		return true, nil
	}
	return false, l.step(i, "delete", func() error {
		return l.kubectl("", "delete", "pod/"+name, "volumesnapshot/"+name, "pvc/"+name, in, "--timeout=300s")
	})
}

// pause waits until no worker is in a step and nothing of an ended step is left to be deleted. No worker begins another step until resume.
func (l *load) pause(t *testing.T) (resume func()) {
	t.Helper()
	l.paused.Lock()
	resume = sync.OnceFunc(l.paused.Unlock)
	t.Cleanup(resume)
	eventually(t, patience, "what was deleted is gone", func() error {
		l.check(t)
		return l.c.nothingGoes(t)
	})
	return resume
}

// nothingGoes fails while something is being deleted. A volume goes from the moment its claim is gone, and a snapshot from that of its VolumeSnapshot,
// although it says so only later.
func (c *cluster) nothingGoes(t *testing.T) error {
	t.Helper()
	type reference struct{ Namespace, UID string }
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name, UID, DeletionTimestamp string }
			Spec     struct{ ClaimRef, VolumeSnapshotRef reference }
		}
	}
	// What is made for an object is read before the object: else a new one would look like one without its object.
	const kinds = "pv,volumesnapshotcontents,volumeattachments,pvc,volumesnapshots"
	testenv.Must(t, json.Unmarshal([]byte(c.kubectl(t, "get", kinds, "--namespace="+c.namespace, "-o", "json")), &list))
	objects := map[string]bool{}
	for _, item := range list.Items {
		if item.Metadata.DeletionTimestamp != "" {
			return fmt.Errorf("%s %s is being deleted", item.Kind, item.Metadata.Name)
		}
		objects[item.Metadata.UID] = true
	}
	for _, item := range list.Items {
		for _, of := range []reference{item.Spec.ClaimRef, item.Spec.VolumeSnapshotRef} {
			if of.Namespace == c.namespace && !objects[of.UID] {
				return fmt.Errorf("%s %s is there without what it was made for", item.Kind, item.Metadata.Name)
			}
		}
	}
	return nil
}

func (l *load) wait(object, condition string) error {
	return l.kubectl("", "wait", object, "--namespace="+l.c.namespace, "--for="+condition, "--timeout=300s")
}

func (l *load) kubectl(stdin string, args ...string) error {
	_, _, err := l.c.try(l.ctx, stdin, "kubectl", args...)
	return err
}

// check fails if a worker has failed.
func (l *load) check(t *testing.T) {
	t.Helper()
	select {
	case err := <-l.failed:
		t.Fatalf("under load: %v", err)
	default:
	}
}

// doing is what the workers wait for.
func (l *load) doing() string {
	var all []string
	for i := range l.steps {
		all = append(all, fmt.Sprint(l.steps[i].Load()))
	}
	return strings.Join(all, ", ")
}

// finish waits until every worker has ended its cycle. A claim, a pod and a snapshot of each are left.
func (l *load) finish(t *testing.T) {
	t.Helper()
	l.last.Store(true)
	l.workers.Wait()
	l.check(t)
}

// snapshotClass is one whose snapshots are Cinder's, not backups.
func (c *cluster) snapshotClass(t *testing.T) string {
	t.Helper()
	out := c.kubectl(t, "get", "volumesnapshotclasses", "-o", `jsonpath={range .items[*]}{.driver} {.metadata.name} {.parameters.type}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == driverName && (len(fields) == 2 || fields[2] == "snapshot") {
			return fields[1]
		}
	}
	t.Fatalf("no class for snapshots among %q", out)
	return ""
}

func snapshotManifest(name, claim, class, namespace string) string {
	return fmt.Sprintf(`---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: %s, namespace: %s}
spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: %s}}
`, name, namespace, class, claim)
}

// stuck is longer than a cycle without a failed step can take: the worker says better what it waits for.
const stuck = 5 * patience

// awaitStep waits until a worker has begun another step since there were so many.
func (l *load) awaitStep(t *testing.T, since int64) {
	t.Helper()
	eventually(t, stuck, "another step of the load", func() error {
		l.check(t)
		if l.begun.Load() == since {
			return fmt.Errorf("under way: %s", l.doing())
		}
		return nil
	})
}

// awaitCycles waits for so many further cycles.
func (l *load) awaitCycles(t *testing.T, n int64) {
	t.Helper()
	began := l.cycles.Load()
	eventually(t, time.Duration(n)*stuck, fmt.Sprintf("%d cycles of the load", n), func() error {
		l.check(t)
		if done := l.cycles.Load() - began; done < n {
			return fmt.Errorf("there were %d; under way: %s", done, l.doing())
		}
		return nil
	})
}
