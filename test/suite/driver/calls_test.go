package driver_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
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
					testenv.Check(t, asSidecarDoes(func() error { return step.call(i) }))
				})
			}
			all.Wait()
			n := float64(len(sim.Requests())) / volumes
			if total += n; n < step.need || n > step.most {
				t.Errorf("%s: %.2f requests for each volume, want %.0f to %.1f", step.name, n, step.need, step.most)
			}
		}
		if t.Logf("a life: %.2f requests", total); total > 9.3 {
			t.Errorf("%.2f requests", total)
		}
	})
}

// twoProcessors is a cloud whose services share two processors, as on the bed of test/suite/openstack. So a request waits for those before it.
type twoProcessors struct {
	free chan struct{}
	next http.RoundTripper
}

func (c twoProcessors) RoundTrip(r *http.Request) (*http.Response, error) {
	busy := 45 * time.Millisecond
	switch attachment := strings.Contains(r.URL.Path, "os-volume_attachments"); {
	case r.Method == http.MethodPost && (attachment || strings.HasSuffix(r.URL.Path, "/volumes")):
		busy = 300 * time.Millisecond
	case r.Method != http.MethodGet:
		busy = 125 * time.Millisecond
	}
	c.free <- struct{}{}
	time.Sleep(busy)
	<-c.free
	return c.next.RoundTrip(r)
}

// On such a cloud fifty lives pass side by side, so that some call has always just begun. Measured there: 10.2 to 10.7 requests.
func TestFiftyLivesOnABusyCloudCostFewRequestsEach(t *testing.T) {
	const volumes = 50
	synctest.Test(t, func(t *testing.T) {
		config := openstacksim.Default()
		config.MaxDisks = 100
		sim := openstacksim.New(config)
		for op, takes := range map[openstacksim.Operation]time.Duration{
			openstacksim.CreateVolume: 600, openstacksim.Reserve: 300, openstacksim.Attach: 500,
			openstacksim.Detach: 300, openstacksim.ExtendVolume: 400, openstacksim.DeleteVolume: 300,
		} {
			sim.SetLatency(op, takes*time.Millisecond)
		}
		sim.SetTiming(openstacksim.Timing{Seed: 1, Spread: 0.3, Serial: true, Forget: 100 * time.Millisecond})
		d := start(t, sim.CloudConf(inprocess.URL), twoProcessors{make(chan struct{}, 2), memnet.Transport(sim.Handler())})
		az1, az2 := servers()
		places := map[string]chan struct{}{az1: make(chan struct{}, 21), az2: make(chan struct{}, 21)} // disks of a server
		must[*csi.ListVolumesResponse](t)(d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{}))
		sim.ResetRequests()
		began := time.Now()
		var all sync.WaitGroup
		for i := range volumes {
			all.Go(func() {
				node, id := []string{az1, az2}[i%2], ""
				for step, call := range []func() error{
					func() error {
						v, err := d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", i)))
						id = v.GetVolume().GetVolumeId()
						return err
					},
					func() error { return publish(t, d, id, node) },
					func() error { return outcome(d.ControllerExpandVolume(asSidecar(t), larger(id, 2<<30, 0))) },
					func() error { return unpublish(t, d, id, node) },
					func() error { return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) },
				} {
					if step == 1 {
						places[node] <- struct{}{}
					}
					testenv.Check(t, asSidecarDoes(call))
					if step == 3 {
						<-places[node]
					}
				}
			})
		}
		all.Wait()
		n := float64(len(sim.Requests())) / volumes
		if t.Logf("%v, a life: %.2f requests", time.Since(began), n); n < 7 || n > 11 {
			t.Errorf("%.2f requests for each volume, want 7 to 11", n)
		}
	})
}
