package bench

import (
	"cmp"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// sequence is the order in which the cloud worked on the requests of a step. At is when each would have begun if every RPC had sent its
// request at once.
type sequence struct {
	step    openstacksim.Operation
	volumes []string
	servers []string
	at      []time.Duration
}

// sequenceOf keeps the order of the cloud on each server, and gives its first operation the earliest begin, and so on. So a driver that sends
// a short operation first gets neither an advantage nor a disadvantage.
func sequenceOf(step openstacksim.Operation, ops []op, effects []openstacksim.Effect) sequence {
	begun := map[string]time.Duration{}
	of := map[string][]time.Duration{} // per server
	serverOf := map[string]string{}
	for _, e := range effects {
		serverOf[e.Volume] = e.Server
	}
	for _, o := range ops {
		begun[o.volume] = o.begun
		of[serverOf[o.volume]] = append(of[serverOf[o.volume]], o.begun)
	}
	for _, times := range of {
		slices.Sort(times)
	}
	result, seen := sequence{step: step}, map[string]bool{}
	for _, e := range effects {
		if e.Operation != step || seen[e.Volume] {
			continue
		}
		seen[e.Volume] = true
		at := begun[e.Volume]
		if e.Server != "" {
			at, of[e.Server] = of[e.Server][0], of[e.Server][1:]
		}
		result.volumes, result.servers, result.at = append(result.volumes, e.Volume), append(result.servers, e.Server), append(result.at, at)
	}
	return result
}

// own measures the cloud's own time for each operation: the same work on the same cloud, with each request sent at once.
func (r run) own(t *testing.T, sequences []sequence, ops []op) {
	sim := r.cloud(0) // or the answers would change the order
	api := adapter(t, sim)
	ids, took := map[string]volume.ID{}, map[openstacksim.Operation]map[string]time.Duration{}
	var lock sync.Mutex
	for _, o := range sequences {
		sim.ResetEffects()
		begun := time.Now()
		var all sync.WaitGroup
		for i, v := range o.volumes {
			all.Go(func() {
				time.Sleep(o.at[i])
				lock.Lock()
				id := ids[v]
				lock.Unlock()
				made, err := send(t, api, o.step, v, id, volume.ServerID(o.servers[i]))
				if err != nil {
					t.Errorf("%s %s, sent at once: %v", o.step, v, err)
				}
				if o.step == openstacksim.CreateVolume {
					lock.Lock()
					ids[v] = made
					lock.Unlock()
				}
			})
		}
		all.Wait()
		time.Sleep(30 * time.Minute) // until everything has come to its end
		synctest.Wait()
		at := map[string]time.Duration{}
		for i, v := range o.volumes {
			at[v] = o.at[i]
		}
		for _, e := range sim.Effects() {
			if e.Operation == o.step {
				if took[o.step] == nil {
					took[o.step] = map[string]time.Duration{}
				}
				took[o.step][e.Volume] = e.Done.Sub(begun) - at[e.Volume]
			}
		}
	}
	for i, o := range ops {
		own, ok := took[o.step][o.volume]
		if !ok {
			t.Errorf("%s of %s did not come to its end", o.step, o.volume)
		}
		ops[i].own = own
	}
}

func send(t *testing.T, api *openstack.Cloud, step openstacksim.Operation, name string, id volume.ID, server volume.ServerID) (volume.ID, error) {
	ctx := t.Context()
	switch step {
	case openstacksim.CreateVolume:
		v, err := api.CreateVolume(ctx, volume.CreateOptions{Name: name, Size: volume.GiB(1)})
		return v.ID, err
	case openstacksim.Attach:
		return id, api.Attach(ctx, server, volume.Volume{ID: id})
	case openstacksim.ExtendVolume:
		return id, api.Extend(ctx, id, volume.GiB(2), true)
	case openstacksim.Detach:
		return id, api.Detach(ctx, server, id)
	}
	return id, api.DeleteVolume(ctx, id)
}

func adapter(t *testing.T, sim *openstacksim.Sim) *openstack.Cloud {
	t.Helper()
	return openstack.NewCurrent(cloud.Fixed(testenv.Login(t, sim)), slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// at gives the nth hundredth of values, by the nearest rank.
func percentile[T cmp.Ordered](values []T, n int) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*n+99)/100-1)]
}
