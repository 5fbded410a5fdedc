package driver_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// asSidecarDoes repeats a call as the sidecars do.
func asSidecarDoes(call func() error) error {
	_, _, err := repeated(call)
	return err
}

// Cinder's lists are slow (a large project, a database without an index), and never fail. Reads of one object are fast, and so are the RPCs.
func TestASlowListingDoesNotHoldBackTheReadsOfSingleObjects(t *testing.T) {
	for name, test := range map[string]struct {
		list string
		call func(t *testing.T, d *instance, o objects, second bool) error
	}{
		"attaches, the list of volumes": {"/volume/v3/*/volumes/detail", func(t *testing.T, d *instance, o objects, second bool) error {
			if second {
				return publish(t, d, o.source, o.az2)
			}
			return publish(t, d, o.volume, o.az1)
		}},
		"deletes, the list of snapshots": {"/volume/v3/*/snapshots/detail", func(t *testing.T, d *instance, o objects, second bool) error {
			id := o.snapshot
			if second {
				id = o.other
			}
			return outcome(d.DeleteSnapshot(asSidecar(t), &csi.DeleteSnapshotRequest{SnapshotId: id}))
		}},
	} {
		story(t, strings.ReplaceAll(name, ",", ""), func(t *testing.T) {
			sim := openstacksim.New(openstacksim.Default())
			sim.SetLatency(openstacksim.Attach, time.Second)
			sim.SetLatency(openstacksim.DeleteSnapshot, time.Second)
			d := startWith(t, sim)
			o := newObjects(t, d)
			o.other = ready(t, d, snapshotRequest("snapshot-2", o.source)).GetSnapshotId()
			time.Sleep(time.Minute)
			sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: test.list, Delay: 28 * time.Second})
			began := time.Now()
			var all sync.WaitGroup
			for _, second := range []bool{false, true} {
				all.Go(func() {
					testenv.Check(t, test.call(t, d, o, second))
				})
			}
			all.Wait()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("they took %v", took)
			}
		})
	}
}

// The cloud answers 429 and asks for a pause. Until then it refuses everything, and counts what comes in spite of that.
func TestALongRetryAfterIsKept(t *testing.T) {
	for _, pause := range []time.Duration{20 * time.Second, 2 * time.Minute, 20 * time.Minute} {
		story(t, pause.String(), func(t *testing.T) {
			sim := simulated()
			wire := &pausing{next: memnet.Transport(sim.Handler())}
			d := start(t, sim.CloudConf(inprocess.URL), wire)
			var ids []string
			for i := range 10 {
				ids = append(ids, must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", i)))).GetVolume().GetVolumeId())
			}
			time.Sleep(time.Minute)
			wire.set(pause)
			var all sync.WaitGroup
			for _, id := range ids {
				all.Go(func() {
					testenv.Check(t, asSidecarDoes(func() error { az1, _ := servers(); return publish(t, d, id, az1) }))
				})
			}
			all.Wait()
			if wire.refused > 10 { // some are on their way when the first answer comes
				t.Errorf("%d requests came although the cloud asked for a pause", wire.refused)
			}
		})
	}
}

// pausing is a cloud that refuses everything but logins for a time, with Retry-After.
type pausing struct {
	mu      sync.Mutex
	until   time.Time
	refused int
	next    http.RoundTripper
}

func (p *pausing) set(pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(pause)
}

func (p *pausing) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	left := time.Until(p.until)
	if left > 0 && req.Header.Get("X-Auth-Token") != "" { // not the check once a minute whether the services answer
		p.refused++
	}
	p.mu.Unlock()
	if left <= 0 || isLogin(req) {
		return p.next.RoundTrip(req)
	}
	resp, err := answers(http.StatusTooManyRequests, "")(req)
	resp.Header.Set("Retry-After", fmt.Sprint(int(left.Seconds())+1))
	return resp, err
}
