//go:build scale

package scale

import "sync"

// queue holds keys to work on. A key that is added while it waits is there once.
type queue[K comparable] struct {
	mu      sync.Mutex
	ready   *sync.Cond
	keys    []K
	waiting map[K]bool
	closed  bool
}

// newQueue starts workers that call work for each key, until the queue is closed.
func newQueue[K comparable](workers int, work func(K)) *queue[K] {
	q := &queue[K]{waiting: map[K]bool{}}
	q.ready = sync.NewCond(&q.mu)
	for range workers {
		go func() {
			for {
				key, ok := q.next()
				if !ok {
					return
				}
				work(key)
			}
		}()
	}
	return q
}

func (q *queue[K]) add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.waiting[key] {
		q.waiting[key] = true
		q.keys = append(q.keys, key)
		q.ready.Signal()
	}
}

func (q *queue[K]) next() (key K, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.keys) == 0 && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return key, false
	}
	key = q.keys[0]
	q.keys = q.keys[1:]
	delete(q.waiting, key)
	return key, true
}

func (q *queue[K]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}
