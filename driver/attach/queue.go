package attach

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// queueLimit is how many attach and detach requests wait for one server. The driver answers the next one with Aborted at once, and
// external-attacher retries it, after one second at first. Nova attaches 26 disks to a server by default, so a node that returns with all
// its volumes needs no retry. A slow server occupies that many workers of external-attacher and no more: our bundles give it 100
// (--worker-threads). With a limit of 8, fifty volumes at once on two servers took 16.2 calls for each attach instead of 8.4 (make
// bench).
const queueLimit = 25

// queueTimeout is how long a request waits for its turn. A server whose host answers has finished all others by then (0.3 s to 0.9 s
// each). If the host does not answer, each request takes one minute in Nova, and several exceed the deadline of every caller.
const queueTimeout = time.Minute

// answerTime is what must be left of the deadline when a request gets its turn. Nova answers an attach after 0.9 s (Nova 26 with
// fifty volumes, 2026-11). A request with less time would most likely lose its caller, and keep the volume locked.
const answerTime = time.Second

// serverQueues give each server one queue. One request at a time works on a server, the others wait first come, first served; servers
// do not wait for each other.
//
// Nova serialises the requests of a server too. It answers an attach once the host has the device, and gives the host one minute. So more
// requests at a time would wait in Nova, and a long queue there ends in 500s that leave reserved volumes. Eight volumes at once on one
// server took 2.3 s with one request at a time, 2.5 s with two, and 3.3 s with more. The figures are the best of 4 to 8 runs
// under load on a small cloud (Nova 26, 2026-11).
type serverQueues struct {
	mu       sync.Mutex // never held across a wait
	byServer map[volume.ServerID]*serverQueue
}

// serverQueue exists while requests for its server wait or work.
type serverQueue struct {
	turn     chan struct{} // full while a request works; a channel serves blocked senders in their order
	requests int           // that wait or work
}

// enter waits for the turn of a request. The caller calls leave when Nova has answered. Busy where the queue is full, or the turn does not
// come within queueTimeout. DeadlineExceeded or Canceled where ctx ends, or would end before the answer.
func (q *serverQueues) enter(ctx context.Context, server volume.ServerID) (leave func(), err error) {
	queue, before := q.join(server)
	if queue == nil {
		return nil, volume.Errorf(volume.Busy, "%d other attach and detach requests already wait for server %s", queueLimit, server).Cause(cause.AttachQueue)
	}
	defer volume.BeginStep(ctx, fmt.Sprintf("waiting behind %d other attach and detach requests for server %s", before, server))()
	timeout := time.NewTimer(queueTimeout)
	defer timeout.Stop()
	select {
	case queue.turn <- struct{}{}:
		leave = func() { <-queue.turn; q.leave(server, queue) }
		if err = timeForAnswer(ctx, server); err != nil {
			leave()
			return nil, err
		}
		return leave, nil
	case <-timeout.C:
		err = volume.Errorf(volume.Busy, "waited %v behind %d other attach and detach requests for server %s, so Nova or the host of the server is slow", queueTimeout, before, server).Cause(cause.AttachQueue)
	case <-ctx.Done():
		err = volume.Errorf(volume.KindOf(ctx.Err()), "waited behind %d other attach and detach requests for server %s: %w", before, server, ctx.Err())
	}
	q.leave(server, queue)
	return nil, err
}

// timeForAnswer returns an error where the context of a request that got its turn leaves no time for the answer.
func timeForAnswer(ctx context.Context, server volume.ServerID) error {
	if err := ctx.Err(); err != nil {
		return volume.Errorf(volume.KindOf(err), "the caller left before the turn at server %s: %w", server, err)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < answerTime {
		return volume.Errorf(volume.DeadlineExceeded, "the turn at server %s came less than %v before the deadline, too late for the answer", server, answerTime)
	}
	return nil
}

// join adds a request to the queue of a server and returns how many were there before it. It returns no queue if the queue is full.
func (q *serverQueues) join(server volume.ServerID) (queue *serverQueue, before int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue = q.byServer[server]
	if queue == nil {
		if q.byServer == nil {
			q.byServer = map[volume.ServerID]*serverQueue{}
		}
		queue = &serverQueue{turn: make(chan struct{}, 1)}
		q.byServer[server] = queue
	}
	if queue.requests > queueLimit { // one works, the others wait
		return nil, queue.requests
	}
	queue.requests++
	return queue, queue.requests - 1
}

// leave removes a request from the queue, and the queue with its last request.
func (q *serverQueues) leave(server volume.ServerID, queue *serverQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if queue.requests--; queue.requests == 0 {
		delete(q.byServer, server)
	}
}
