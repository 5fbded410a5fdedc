package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// still is a cloud in which nothing happens.
type still struct{}

func (still) Volume(_ context.Context, id volume.ID) (volume.Volume, error) {
	return volume.Volume{ID: id, Status: volume.Creating}, nil
}

func (still) Select(context.Context, volume.Selection) ([]volume.Volume, bool, error) {
	return nil, false, nil
}

// heap measures the memory of one wait, including the stack of the waiting goroutine.
func heap(t *testing.T) string {
	const waits = 10000
	measure := func(w volume.Waiter) float64 {
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		before := inUse()
		for n := range waits {
			all.Go(func() {
				_, _ = w.Await(ctx, volume.ID(fmt.Sprintf("%036d", n)), func(volume.Volume, bool) (bool, error) { return false, nil })
			})
		}
		time.Sleep(2 * time.Second) // real: no bubble, whose timers would be counted
		held := inUse() - before
		leave()
		all.Wait()
		return float64(held) / waits / 1024
	}
	hub := status.NewHub(still{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = hub.Run(ctx) }()
	shared := measure(hub)
	return fmt.Sprintf("\n## Memory\n\nOne wait of %d holds %.0f KiB with the hub, and %.0f KiB with each. This includes the stack of the waiting goroutine.\n",
		waits, shared, measure(each{still{}.Volume}))
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
