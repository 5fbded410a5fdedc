package volume

import (
	"slices"
	"sync"
	"time"
)

// orders are the orders of this process whose answers were lost, by the name that was wished for. What came of one was told to nobody,
// and for a while something may still come of it. They only help to tidy up: without them, after a restart, a duplicate of the same
// second stays, and one that comes late. The mutex is held for a look only.
type orders struct {
	mu    sync.Mutex
	names []string // oldest first
	open  map[string][]order
}

// order is one request for something, by what it carries as contract.MetadataAttempt.
type order struct {
	attempt string
	lost    time.Time
	watched bool // somebody will look for what comes of it once that is over
}

const ordersKept = 1000 // names

// orderLives is how long after its answer was lost a request may still be carried out. What stands before Cinder's API gives up long
// before the API does: that waits for its database (MySQL's innodb_lock_wait_timeout is 50 s) and for its other services
// (oslo.messaging's rpc_response_timeout is 60 s), and holds the quota meanwhile.
const orderLives = 2 * time.Minute

func (o *orders) lost(name, attempt string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[string][]order{}
	}
	if _, known := o.open[name]; !known {
		if o.names = append(o.names, name); len(o.names) > ordersKept {
			delete(o.open, o.names[0])
			o.names = o.names[1:]
		}
	}
	o.open[name] = append(o.open[name], order{attempt: attempt, lost: time.Now()})
}

// unheard reports whether something of that name came of an order whose answer was lost.
func (o *orders) unheard(name, attempt string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return attempt != "" && slices.ContainsFunc(o.open[name], func(order order) bool { return order.attempt == attempt })
}

// heard forgets an order: what came of it is known.
func (o *orders) heard(name, attempt string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.open[name]) > 0 {
		o.open[name] = slices.DeleteFunc(o.open[name], func(order order) bool { return order.attempt == attempt })
	}
}

// pending reports whether something of that name may still come of a lost order.
func (o *orders) pending(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.open[name], func(order order) bool { return time.Since(order.lost) < orderLives })
}

// watch reports whether something may still come of an order that nobody watches yet, and takes it that the caller does from now on.
func (o *orders) watch(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	some := false
	for i := range o.open[name] {
		order := &o.open[name][i]
		if !order.watched && time.Since(order.lost) < orderLives {
			order.watched, some = true, true
		}
	}
	return some
}
