package attach

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// length is how many servers have a queue.
func (q *serverQueues) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byServer)
}

func TestRequestsForOneServerAreServedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &serverQueues{}
		var mu sync.Mutex
		var order []int
		working, most := 0, 0
		for n := range 9 {
			go func() {
				leave, err := q.enter(t.Context(), cloudtest.ServerA)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				working++
				most = max(most, working)
				order = append(order, n)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				working--
				mu.Unlock()
				leave()
			}()
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if !slices.IsSorted(order) || len(order) != 9 || most != 1 || q.length() != 0 {
			t.Errorf("order %v, at most %d at once, %d queues left", order, most, q.length())
		}
	})
}

func TestAFullQueueAndALongWaitAreBusyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &serverQueues{}
		leave, err := q.enter(t.Context(), cloudtest.ServerA)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, queueLimit)
		for range queueLimit {
			go func() { _, err := q.enter(t.Context(), cloudtest.ServerA); waited <- err }()
		}
		synctest.Wait()
		began := time.Now()
		_, err = q.enter(t.Context(), cloudtest.ServerA)
		if cloudtest.WantKind(t, err, volume.Busy, false); time.Since(began) != 0 || !strings.Contains(err.Error(), "25 other attach and detach requests already wait") {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for range 3 {
			if queue, before := q.join(cloudtest.ServerA); queue != nil || before != queueLimit+1 { // a refused request takes no place
				t.Errorf("a full queue accepts a request behind %d others", before)
			}
		}
		for range queueLimit {
			err := <-waited
			if cloudtest.WantKind(t, err, volume.Busy, false); time.Since(began) != queueTimeout || !strings.Contains(err.Error(), "waited 1m0s behind") {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		leave()
		if leave, err = q.enter(t.Context(), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		if leave(); q.length() != 0 {
			t.Errorf("%d queues left", q.length())
		}
	})
}

func TestServersDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &serverQueues{}
		leave, _ := q.enter(t.Context(), cloudtest.ServerA)
		defer leave()
		began := time.Now()
		other, err := q.enter(t.Context(), cloudtest.ServerB)
		if err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		other()
	})
}

func TestARequestThatLeavesTheQueueBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &serverQueues{}
		leave, _ := q.enter(t.Context(), cloudtest.ServerA)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gaveUp, entered := make(chan error, 1), make(chan error, 1)
		go func() { _, err := q.enter(short, cloudtest.ServerA); gaveUp <- err }()
		synctest.Wait()
		go func() {
			leave, err := q.enter(t.Context(), cloudtest.ServerA)
			entered <- err
			leave()
		}()
		cloudtest.WantKind(t, <-gaveUp, volume.DeadlineExceeded, false)
		leave()
		if err := <-entered; err != nil {
			t.Error(err)
		}
		// The turn may come at the moment at which the caller leaves. The next request gets it all the same.
		for range 100 {
			leave, _ := q.enter(t.Context(), cloudtest.ServerA)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if leave, err := q.enter(ctx, cloudtest.ServerA); err == nil {
					leave()
				}
			}()
			synctest.Wait()
			go cancel()
			leave()
			synctest.Wait()
			if n := q.length(); n != 0 {
				t.Fatalf("%d queues left", n)
			}
		}
	})
}

// Eight volumes at once go to one server and one to another. Nova gets one request at a time for the first, and the other at once.
func TestNovaGetsOneAttachAtATimeForAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var volumes []volume.Volume
		for n := range 9 {
			volumes = append(volumes, cloudtest.OwnVolume(n, volume.Available))
		}
		c := cloudtest.New(t, volumes...)
		var mu sync.Mutex
		at, most := 0, 0
		c.Hook["Attach"] = func() {
			mu.Lock()
			at++
			most = max(most, at)
			mu.Unlock()
			time.Sleep(time.Second) // Nova answers once the host has a device
			mu.Lock()
			at--
			mu.Unlock()
		}
		s := newService(c)
		began := time.Now()
		ended := make(chan error, len(volumes))
		for n := range 8 {
			go func() {
				_, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(n), cloudtest.ServerA)
				ended <- err
			}()
		}
		synctest.Wait()
		if _, err := s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(8), cloudtest.ServerB); err != nil || time.Since(began) > 3*time.Second {
			t.Errorf("the other server: %v after %v", err, time.Since(began))
		}
		for range 8 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if most != 2 { // one for each server
			t.Errorf("%d at once", most)
		}
	})
}

// Forty workers, fewer than our bundles give external-attacher, have 59 volumes to attach to a server that does not answer and one to
// another.
func TestASlowServerDoesNotOccupyEveryWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var volumes []volume.Volume
		for n := range 61 {
			volumes = append(volumes, cloudtest.OwnVolume(n, volume.Available))
		}
		c := cloudtest.New(t, volumes...)
		s := newService(c)
		slow := make(chan struct{})
		var first sync.Once
		c.Hook["Attach"] = func() {
			hold := false
			first.Do(func() { hold = true })
			if hold {
				<-slow
			}
		}
		var workers sync.WaitGroup
		workers.Go(func() { _, _ = s.Attach(cloudtest.Within(t, 60), cloudtest.VolumeID(0), cloudtest.ServerA) })
		time.Sleep(5 * time.Second) // Nova has the first by now
		work := make(chan int, 60)
		for n := range 60 {
			work <- n + 1
		}
		close(work)
		began := time.Now()
		other := make(chan time.Duration, 1)
		for range 40 {
			workers.Go(func() {
				for n := range work {
					server := cloudtest.ServerA
					if n == 60 {
						server = cloudtest.ServerB
					}
					_, err := s.Attach(cloudtest.Within(t, 180), cloudtest.VolumeID(n), server)
					switch {
					case n == 60:
						other <- time.Since(began)
					case err != nil:
						cloudtest.WantKind(t, err, volume.Busy, false)
					}
				}
			})
		}
		if waited := <-other; waited > 5*time.Second {
			t.Errorf("the other server's volume waited %v for a worker", waited)
		}
		time.Sleep(time.Until(began.Add(queueTimeout)))
		synctest.Wait()
		s.queues.mu.Lock()
		if left := s.queues.byServer[cloudtest.ServerA].requests; left != 1 { // the one in Nova
			t.Errorf("after %v %d requests are left", queueTimeout, left)
		}
		s.queues.mu.Unlock()
		close(slow)
		workers.Wait()
		synctest.Wait() // the first call has left; its request ends now
		if n := s.queues.length(); n != 0 {
			t.Errorf("%d queues left", n)
		}
	})
}

// A node returns with 25 volumes, which is what Nova attaches to a server beside its root disk: the queue limit hardly delays them.
func TestTheQueueLimitHardlyDelaysABurstOnAHealthyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var volumes []volume.Volume
		for n := range 25 {
			volumes = append(volumes, cloudtest.OwnVolume(n, volume.Available))
		}
		c := cloudtest.New(t, volumes...)
		c.Hook["Attach"] = func() { time.Sleep(300 * time.Millisecond) }
		s := newService(c)
		began := time.Now()
		var all sync.WaitGroup
		for n := range 25 {
			all.Go(func() {
				for pause := time.Second; ; pause *= 2 { // external-attacher's
					_, err := s.Attach(cloudtest.Within(t, 180), cloudtest.VolumeID(n), cloudtest.ServerA)
					if err == nil {
						return
					}
					cloudtest.WantKind(t, err, volume.Busy, false)
					time.Sleep(pause)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		t.Logf("25 attaches of 0.3 s take %v; one after the other %v", took, 25*300*time.Millisecond)
		if took > 16*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
