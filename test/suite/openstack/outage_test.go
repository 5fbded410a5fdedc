//go:build openstack

package openstack

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// outage is a cloud that does not answer while it is down. It drops every other request. It does the remaining requests but drops their
// answers.
type outage struct {
	down atomic.Bool
	lost atomic.Int64
}

func (o *outage) meddle(pass http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !o.down.Load() {
			pass.ServeHTTP(w, r)
			return
		}
		if o.lost.Add(1)%2 == 0 {
			pass.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	})
}

// Cinder and Nova become unreachable again and again while the test creates, attaches, expands, detaches and deletes volumes. In the end each
// operation is done once, and nothing is left.
func TestOutagesUnderWayLoseNothing(t *testing.T) {
	x := newTenant(t, bed(t), zonesOfBed[0])
	o := &outage{}
	d := x.startAnywhere(t, x.newFront(t, o.meddle).args...)
	done, all := make(chan struct{}), make([]*lived, 4)
	var running, outages sync.WaitGroup
	for i := range all {
		all[i] = &lived{id: "bed-" + rand.Text(), server: x.servers[0], begun: map[string]time.Time{}, end: map[string]time.Time{}}
		running.Go(func() { all[i].run(t, d, make(chan struct{}, 1)) })
	}
	outages.Go(func() {
		for {
			for _, down := range []bool{false, true} {
				o.down.Store(down)
				select {
				case <-time.After(2 * time.Second):
				case <-done:
					o.down.Store(false)
					return
				}
			}
		}
	})
	running.Wait()
	close(done)
	outages.Wait()
	again := 0
	for _, l := range all {
		again += l.again
	}
	t.Logf("%d requests were lost, %d calls repeated\n%s", o.lost.Load(), again, table(all))
	if o.lost.Load() == 0 {
		t.Error("no request was lost: nothing is proven")
	}
	if held := x.holds(t); len(held) > 0 {
		t.Errorf("left in the project: %v", held)
	}
}
