package histories

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// result is the result of a run.
type result struct {
	counts     counts
	violations []violation
	trace      []event
	classes    []string // of the requests since a countOnly
}

var runs atomic.Int64

// run plays a history in virtual time. dir is where its cloud.conf is written.
func run(t *testing.T, h history, dir string) (r result) {
	t.Helper()
	conf := filepath.Join(dir, fmt.Sprintf("cloud-%d.conf", runs.Add(1)))
	synctest.Test(t, func(*testing.T) {
		w := newWorld(h, conf)
		w.play()
		w.end()
		w.counts.Histories = 1
		r = result{w.counts, w.violations, w.trace, w.classes}
	})
	return r
}

// play plays all actors and faults. Then it waits until every request has ended, and checks what exists.
func (w *world) play() {
	over := make(chan struct{})
	w.background.Go(func() { w.repair(over) })
	for _, f := range w.history.Faults {
		if f.Step == 0 {
			w.background.Go(func() {
				select {
				case <-time.After(f.At):
					w.arm(f)
				case <-over:
				}
			})
		}
	}
	var actors sync.WaitGroup
	for i, a := range w.history.Actors {
		actors.Go(func() { (&player{world: w, actor: a, number: i}).play() })
	}
	actors.Wait()
	w.mu.Lock()
	w.faults = nil
	w.mu.Unlock()
	if !w.broken() {
		time.Sleep(15 * time.Minute) // longer than any request
		w.audit()
	}
	close(over)
}
