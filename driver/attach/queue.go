package attach

import (
	"context"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"slices"
	"sync"
	"time"
)

// queueWidth is how many requests to attach or detach Nova has of one server at a time; what Nova does after it has answered is not
// counted. Nova serialises both by server, and answers an attach only once the server's host has a device, for which it gives the
// host a minute: more at a time wait there, and a long queue would end in 500s that leave reserved volumes. Eight volumes at once on
// one server of a small cloud (Nova 26, 2026-11; best of 4 to 8 runs under load): 2.3 s with 1, 2.5 s with 2, 3.3 s with 4 and with
// 8, the first of them after 0.7 s, 0.9 s, 1.4 s and 1.1 s.
const queueWidth = 1

// longestQueue is how many attaches and detaches wait for their turn at one server. The driver answers the next with Aborted at once, and
// external-attacher tries them again, after a second at first. Nova attaches 26 disks to a server by default, so a node that comes back
// with all its volumes needs no second try. A slow server holds that many of external-attacher's workers and no more: our bundles give
// it 100 (--worker-threads). With 8, which is below external-attacher's default of 10 workers, fifty volumes at once on two servers took
// 16.2 calls for each attach instead of 8.4 (make bench).
const longestQueue = 25

// longestTurn is how long a call waits for its turn. A server whose host answers has done all the others by then (0.3 s to 0.9 s each, as
// above); behind one that does not, each call would take the minute that Nova gives the host, and many times that is beyond every
// caller's deadline.
const longestTurn = time.Minute

// serverQueues let a few calls at a time work on one server; the others wait their turn, in the order in which they came. Servers do not
// wait for each other. The mutex is held for a look at the queues only.
type serverQueues struct {
	width  int
	mu     sync.Mutex
	queues map[volume.ServerID]*serverQueue
}

// serverQueue is the calls that are at work on a server, and those that wait: a channel each, closed when its turn has come.
type serverQueue struct {
	working int
	waiting []chan struct{}
}

// enter waits for the caller's turn at a server, and gives what ends it. Errors: Busy where the queue is full or the turn does not come
// within longestTurn; the end of the context.
func (l *serverQueues) enter(ctx context.Context, server volume.ServerID) (leave func(), err error) {
	turn, before := l.queue(server)
	if turn == nil {
		return nil, volume.Errorf(volume.Busy, "server %s: %d other attaches and detaches wait for it already; nothing was sent, and a retry comes to it when they are done", server, longestQueue)
	}
	select {
	case <-turn:
		return func() { l.leave(server) }, nil
	default:
	}
	select {
	case <-turn:
		return func() { l.leave(server) }, nil
	case <-time.After(longestTurn):
		l.giveUp(server, turn)
		return nil, volume.Errorf(volume.Busy, "server %s: waited %v for the turn behind %d other attaches and detaches there, so Nova or the server's host is slow; nothing was sent, and a retry queues again",
			server, longestTurn, before)
	case <-ctx.Done():
		l.giveUp(server, turn)
		return nil, volume.Errorf(volume.KindOf(ctx.Err()), "server %s: waited for the turn behind %d other attaches and detaches there; a retry queues again: %w", server, before, ctx.Err())
	}
}

// queue gives the channel that is closed once the caller's turn has come, and how many calls are before it; nil where too many are.
func (l *serverQueues) queue(server volume.ServerID) (turn chan struct{}, before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queues == nil {
		l.queues = map[volume.ServerID]*serverQueue{}
	}
	at := l.queues[server]
	if at == nil {
		at = &serverQueue{}
		l.queues[server] = at
	}
	turn, before = make(chan struct{}), at.working+len(at.waiting)
	if len(at.waiting) >= longestQueue {
		return nil, before
	}
	if at.working < l.width {
		at.working++
		close(turn)
	} else {
		at.waiting = append(at.waiting, turn)
	}
	return turn, before
}

// leave ends a turn: the first who waits gets it.
func (l *serverQueues) leave(server volume.ServerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.queues[server]
	if len(at.waiting) > 0 {
		close(at.waiting[0])
		at.waiting = at.waiting[1:]
		return
	}
	if at.working--; at.working == 0 {
		delete(l.queues, server)
	}
}

// giveUp leaves the queue; a turn that came in the meantime is passed on.
func (l *serverQueues) giveUp(server volume.ServerID, turn chan struct{}) {
	l.mu.Lock()
	at := l.queues[server]
	place := slices.Index(at.waiting, turn)
	if place >= 0 {
		at.waiting = slices.Delete(at.waiting, place, place+1)
	}
	l.mu.Unlock()
	if place < 0 {
		l.leave(server)
	}
}
