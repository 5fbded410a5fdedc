package driver_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// The requests of each life of fifty volumes at once, on a cloud that answers in 40 ms. Those that change or prove something cannot go; the rest is
// shared.
func TestFiftyVolumesAtOnceCostFewRequestsEach(t *testing.T) {
	const volumes = 50
	synctest.Test(t, func(t *testing.T) {
		config := openstacksim.Default()
		config.MaxDisks = 100
		sim := openstacksim.New(config)
		for op, takes := range map[openstacksim.Operation]time.Duration{
			openstacksim.Answer: 40, openstacksim.CreateVolume: 800, openstacksim.Reserve: 300, openstacksim.Attach: 500,
			openstacksim.Detach: 300, openstacksim.ExtendVolume: 500, openstacksim.DeleteVolume: 400,
		} {
			sim.SetLatency(op, takes*time.Millisecond)
		}
		d := startWith(t, sim)
		az1, az2 := servers()
		node := func(i int) string { return []string{az1, az2}[i%2] }
		ids := make([]string, volumes)
		total := 0.0
		for _, step := range []struct {
			name string
			need float64 // requests that change or prove something
			most float64
			call func(i int) error
		}{
			{"create", 2, 2.4, func(i int) error {
				v, err := d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", i)))
				ids[i] = v.GetVolume().GetVolumeId()
				return err
			}},
			{"publish", 1, 2.5, func(i int) error { return publish(t, d, ids[i], node(i)) }},
			{"expand", 1, 1.6, func(i int) error { return outcome(d.ControllerExpandVolume(asSidecar(t), larger(ids[i], 2<<30, 0))) }},
			{"unpublish", 1, 2, func(i int) error { return unpublish(t, d, ids[i], node(i)) }},
			{"delete", 2, 2.3, func(i int) error {
				return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: ids[i]}))
			}},
		} {
			sim.ResetRequests()
			var all sync.WaitGroup
			for i := range volumes {
				all.Go(func() {
					if err := asSidecarDoes(func() error { return step.call(i) }); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			n := float64(len(sim.Requests())) / volumes
			if total += n; n < step.need || n > step.most {
				t.Errorf("%s: %.2f requests for each volume, want %.0f to %.1f", step.name, n, step.need, step.most)
			}
		}
		if t.Logf("a life: %.2f requests", total); total > 10 {
			t.Errorf("%.2f requests", total)
		}
	})
}
