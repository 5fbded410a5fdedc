package status

import (
	"context"
	"math"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// timing is one of the wait loops of upstream's plugin: it reads at once, then after delays that grow by a factor, and gives up
// after so many tries (cloud-provider-openstack 1.36, pkg/csi/cinder/openstack).
type timing struct {
	tries  int
	factor float64
}

// The loops by what an object is doing when it is first read; the first delay is one second in each. Upstream waits for no
// creation and no deletion of a volume: these use the timing of an extension.
var (
	upstream = map[volume.Status]timing{
		volume.Reserved: {15, 1.2}, volume.Attaching: {15, 1.2}, volume.Detaching: {13, 1.2},
	}
	upstreamElse = timing{10, 1.1}
)

// Each polls for every waiter by itself, as upstream's plugin does. It is what the hub is measured against, and for nothing else.
type Each[ID ~string, T any] struct{ hub hub[ID, T] }

var (
	_ volume.Waiter         = (*Each[volume.ID, volume.Volume])(nil)
	_ volume.SnapshotWaiter = (*Each[volume.SnapshotID, volume.Snapshot])(nil)
)

// EachOf gives a waiter that polls what the hub h watches, without the hub. It needs no Run.
func EachOf[ID ~string, T any](h *hub[ID, T]) *Each[ID, T] { return &Each[ID, T]{hub: *h} }

// Await implements volume.Waiter and volume.SnapshotWaiter. When its tries are used up it gives up with DeadlineExceeded.
func (e *Each[ID, T]) Await(ctx context.Context, id ID, done func(object T, ok bool) (bool, error)) (T, error) {
	var loop timing
	for try := 0; ; try++ {
		e.hub.meter.Called("single")
		r := e.hub.kind.reading(ctx, id)
		switch {
		case r.err != nil && !r.absent && (!transient(r.err) || ctx.Err() != nil):
			return r.object, r.err
		case r.err == nil || r.absent:
			if finished, err := done(r.object, r.ok); finished || err != nil {
				return r.object, err
			}
		}
		if try == 0 {
			loop = upstreamElse
			if known, ok := upstream[e.hub.kind.look(r.object).status]; ok {
				loop = known
			}
		}
		if try == loop.tries-1 {
			return r.object, volume.Errorf(volume.DeadlineExceeded, "%s %s: it is %s after %d tries; a retry resumes the wait", e.hub.kind.noun, id,
				e.hub.kind.look(r.object).status, loop.tries).Op("wait")
		}
		select {
		case <-time.After(time.Duration(math.Pow(loop.factor, float64(try)) * float64(time.Second))):
		case <-ctx.Done():
			return r.object, e.hub.interrupted(ctx, id, &r)
		}
	}
}
