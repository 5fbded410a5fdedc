package histories

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// sidecar is one of the programs that call the controller. Each elects a leader of its own among the replicas.
type sidecar string

const (
	provisioner sidecar = "external-provisioner"
	attacher    sidecar = "external-attacher"
	resizer     sidecar = "external-resizer"
	snapshotter sidecar = "external-snapshotter"
)

var sidecars = []sidecar{provisioner, attacher, resizer, snapshotter}

// leader is a term of a leader. The sidecar of one replica works until changed is closed.
type leader struct {
	replica int
	changed chan struct{}
}

// elect makes the sidecars of a replica the leaders.
func (w *world) elect(replica int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range sidecars {
		if old := w.leaders[s]; old.replica != replica {
			w.leaders[s] = &leader{replica: replica, changed: make(chan struct{})}
			close(old.changed)
		}
	}
}

func (w *world) leads(s sidecar) *leader {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leaders[s]
}

// The sidecars' --retry-interval-start and --retry-interval-max, by default in each of them.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// calmRetries is how often an operation may be retried after the last fault. The create hold-off alone takes seven.
const calmRetries = 12

// work is an operation as a sidecar sees it.
type work[A any] struct {
	by  sidecar
	rpc rpc
	do  func(context.Context, csi.ControllerClient) (A, error)
	// judge gets each answer, and whether the current leader got it. It returns true when the operation is done.
	judge func(a answer[A], current bool) bool
	// forgets reports that the sidecar does not call again, because its object was deleted. Nil is never.
	forgets func() bool
	// stays reports that another leader would not take over the operation. Nil is never.
	stays func() bool
}

// callUntilDone calls until the operation is done, with the back-off of the work queue of a sidecar. When the leader changes, the call of the
// old leader continues while the new leader sends its own. It returns when no call is in progress.
func callUntilDone[A any](w *world, o work[A]) {
	type result struct {
		answer[A]
		under *leader
	}
	var (
		answers         = make(chan result)
		now             = w.leads(o.by)
		changed         = now.changed
		pending         = 0
		attempts, quiet = 0, 0
		done            = false
		retry           <-chan time.Time
	)
	call := func() {
		pending++
		of := now
		go func() { answers <- result{invoke(w, of.replica, o.rpc, o.do), of} }()
	}
	call()
	for pending > 0 || !done {
		select {
		case <-changed:
			if changed = nil; done || o.stays != nil && o.stays() {
				continue
			}
			now = w.leads(o.by)
			changed, attempts, quiet, retry = now.changed, 0, 0, nil // the new leader begins with its shortest waits
			w.note("the leader of %s is replica %d: %s", o.by, now.replica, w.plain(o.rpc.String()))
			call()
		case <-retry:
			if retry = nil; o.forgets != nil && o.forgets() {
				w.note("%s forgets %s", o.by, w.plain(o.rpc.String()))
				done = true
				continue
			}
			call()
		case r := <-answers:
			pending--
			current := r.under == now
			switch {
			case o.judge(r.answer, current):
				done, retry = true, nil
			case w.broken():
				done, retry = true, nil
			case current && !done:
				attempts++
				quiet = w.retried(r.answer.of, quiet, r.err)
				retry = time.After(min(firstRetry<<min(attempts-1, 20), lastRetry))
			}
		}
	}
}

// retried counts the failed attempts since the last disturbance.
func (w *world) retried(c *call, quiet int, err error) int {
	w.mu.Lock()
	calm := c.begun.After(w.calm)
	if calm {
		quiet++
		w.counts.Retries = max(w.counts.Retries, quiet)
	} else {
		quiet = 0
	}
	w.mu.Unlock()
	if quiet > calmRetries {
		w.violate("everything converges", "%s still fails after %d retries without a fault: %s", c, quiet, outcome(err))
	}
	return quiet
}
