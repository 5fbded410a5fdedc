package bench

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/attach"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/controller"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/rpc"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// timing is one of the wait loops of upstream's plugin. It reads at once, then after delays that grow by a factor, and gives up
// after the last try (cloud-provider-openstack 1.36, pkg/csi/cinder/openstack). The first delay is one second.
type timing struct {
	tries  int
	factor float64
}

// timingOf selects the loop by the status that the first read shows. Upstream waits for no creation and no deletion of a volume:
// these use the timing of an extension.
func timingOf(s volume.Status) timing {
	switch s {
	case volume.Reserved, volume.Attaching:
		return timing{15, 1.2}
	case volume.Detaching:
		return timing{13, 1.2}
	}
	return timing{10, 1.1}
}

// each is the baseline: a volume.Waiter that polls every volume by itself, with upstream's timings.
type each struct {
	read func(context.Context, volume.ID) (volume.Volume, error)
}

// Await implements volume.Waiter. After the last try it returns DeadlineExceeded.
func (e each) Await(ctx context.Context, id volume.ID, done func(v volume.Volume, ok bool) (bool, error)) (volume.Volume, error) {
	var loop timing
	for try := 0; ; try++ {
		v, err := e.read(ctx, id)
		absent := volume.Is(err, volume.NotFound)
		if err != nil && !absent {
			return v, err
		}
		if finished, err := done(v, !absent); finished || err != nil {
			return v, err
		}
		if try == 0 {
			loop = timingOf(v.Status)
		}
		if try == loop.tries-1 {
			return v, volume.Errorf(volume.DeadlineExceeded, "volume %s is %s after %d tries", id, v.Status, loop.tries)
		}
		select {
		case <-time.After(time.Duration(math.Pow(loop.factor, float64(try)) * float64(time.Second))):
		case <-ctx.Done():
			return v, volume.Errorf(volume.KindOf(ctx.Err()), "volume %s: %w", id, ctx.Err())
		}
	}
}

// baseline starts a controller that waits with each, and has no hub and no request budget.
func baseline(t *testing.T, sim *openstacksim.Sim) csi.ControllerClient {
	t.Helper()
	api := adapter(t, sim)
	wait := each{api.Volume}
	volumes := provision.New(api, wait, provision.Options{Owner: idempotent.Owner{Driver: contract.DriverName, Cluster: "bench"}})
	attachments := attach.New(api, wait, attach.Options{})
	server := rpc.NewServer(rpc.Services{Controller: controller.New(controller.Options{
		Clouds: map[string]controller.Cloud{"": {Volumes: volumes, Attachments: attachments}}, TopologyKey: contract.TopologyKey, Log: slog.New(slog.DiscardHandler),
	})}, nil, rpc.Codes("cinder.csi.openstack.org"))
	listener := memnet.Listen()
	return client(t, listener, func(ctx context.Context) error { return server.Serve(ctx, listener, time.Minute) })
}

func TestEachPollsAtUpstreamsMoments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status  volume.Status
		changes time.Duration // when the volume becomes available; 0 is never
		expires time.Duration // when the context ends; 0 is never
		kind    volume.Kind
		tries   int
		total   time.Duration // upstream's sum of delays
		third   time.Duration // when the third try is
	}{
		"attach":  {volume.Attaching, 0, 0, volume.DeadlineExceeded, 15, 59200 * time.Millisecond, 2200 * time.Millisecond},
		"detach":  {volume.Detaching, 0, 0, volume.DeadlineExceeded, 13, 39600 * time.Millisecond, 2200 * time.Millisecond},
		"extend":  {"extending", 0, 0, volume.DeadlineExceeded, 10, 13600 * time.Millisecond, 2100 * time.Millisecond},
		"changes": {volume.Creating, 1500 * time.Millisecond, 0, volume.Unknown, 3, 2100 * time.Millisecond, 2100 * time.Millisecond},
		"expires": {volume.Creating, 0, 500 * time.Millisecond, volume.DeadlineExceeded, 1, 500 * time.Millisecond, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var tries []time.Duration
			w := each{func(_ context.Context, id volume.ID) (volume.Volume, error) {
				tries = append(tries, time.Since(begin))
				if tc.changes > 0 && time.Since(begin) >= tc.changes {
					return volume.Volume{ID: id, Status: volume.Available}, nil
				}
				return volume.Volume{ID: id, Status: tc.status}, nil
			}}
			ctx := t.Context()
			if tc.expires > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.expires)
				defer cancel()
			}
			_, err := w.Await(ctx, "v", func(v volume.Volume, _ bool) (bool, error) { return v.Status == volume.Available, nil })
			took := time.Since(begin).Round(100 * time.Millisecond)
			if kind := volume.KindOf(err); (err == nil) != (tc.kind == volume.Unknown) || kind != tc.kind || len(tries) != tc.tries || took != tc.total {
				t.Errorf("%s: %v after %d tries and %v, want %v after %d and %v", name, err, len(tries), took, tc.kind, tc.tries, tc.total)
			}
			if tc.third > 0 && tries[2].Round(time.Millisecond) != tc.third {
				t.Errorf("%s: third try at %v, want %v", name, tries[2], tc.third)
			}
		})
	}
}
