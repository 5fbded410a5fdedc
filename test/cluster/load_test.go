//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// step says what a worker waits for now.
func (l *load) step(i int, what string) {
	l.steps[i].Store(what)
	l.begun.Add(1)
}

// cycle reports whether it was the worker's last one.
func (l *load) cycle(i int, name, snapshotClass string) (last bool, err error) {
	l.step(i, "create and attach")
	objects := claim{name: name, gib: 1, class: "load-growing"}.manifest(l.c.namespace) + pod{name: name, claim: name}.manifest(l.c.namespace)
	if err := l.kubectl(objects, "apply", "-f", "-"); err != nil {
		return false, err
	}
	if err := l.wait("pod/"+name, "condition=Ready"); err != nil {
		return false, err
	}
	l.step(i, "snapshot")
	if err := l.kubectl(snapshotManifest(name, name, snapshotClass, l.c.namespace), "apply", "-f", "-"); err != nil {
		return false, err
	}
	if err := l.wait("volumesnapshot/"+name, "jsonpath={.status.readyToUse}=true"); err != nil {
		return false, err
	}
	l.step(i, "expand")
	if err := l.kubectl("", "patch", "pvc", name, "--namespace="+l.c.namespace, "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`); err != nil {
		return false, err
	}
	if err := l.wait("pvc/"+name, "jsonpath={.status.capacity.storage}=2Gi"); err != nil {
		return false, err
	}
	if l.last.Load() {
		return true, nil
	}
	l.step(i, "delete")
	return false, l.kubectl("", "delete", "pod/"+name, "volumesnapshot/"+name, "pvc/"+name, "--namespace="+l.c.namespace, "--timeout=300s")
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

// awaitStep waits until a worker has begun another step since there were so many.
func (l *load) awaitStep(t *testing.T, since int64) {
	t.Helper()
	eventually(t, 4*time.Minute, "another step of the load", func() error {
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
	eventually(t, 4*time.Minute, fmt.Sprintf("%d cycles of the load", n), func() error {
		l.check(t)
		if done := l.cycles.Load() - began; done < n {
			return fmt.Errorf("there were %d; under way: %s", done, l.doing())
		}
		return nil
	})
}
