//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// loses passes every request on, and drops the connection instead of the answer to the first ones that make an object.
func loses(answers int32, path string) func(http.Handler) http.Handler {
	left := &atomic.Int32{}
	left.Store(answers)
	return func(pass http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, path) || left.Add(-1) < 0 {
				pass.ServeHTTP(w, r)
				return
			}
			pass.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
	}
}

// delays calls before with each request that makes an object, before it is passed on.
func delays(path string, before func(), then func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(pass http.Handler) http.Handler {
		if then != nil {
			pass = then(pass)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path) {
				before()
			}
			pass.ServeHTTP(w, r)
		})
	}
}

// pursue repeats a call as external-provisioner does, for as long as its answer is not final.
func pursue[T any](t *testing.T, call func(ctx context.Context) (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	for {
		answer, err := call(ctx)
		switch status.Code(err) {
		case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
			t.Logf("again, after %v", err)
			select {
			case <-time.After(200 * time.Millisecond):
				continue
			case <-ctx.Done():
			}
		}
		if err != nil {
			t.Error(err)
		}
		return answer
	}
}

// wanted asks a driver for a volume of a name until it has it.
func wanted(t *testing.T, d *driver, name string) string {
	t.Helper()
	made := pursue(t, func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
		return d.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}, VolumeCapabilities: []*csi.VolumeCapability{capability("")},
		})
	})
	return made.GetVolume().GetVolumeId()
}

// oneIsLeft wants one volume of the name and nothing else in the project, and deletes it.
func (x *tenant) oneIsLeft(t *testing.T, d *driver, name, id string) {
	t.Helper()
	eventually(t, "one volume is left", func() bool { return len(x.named(t, name)) <= 1 })
	if left := x.named(t, name); len(left) != 1 || left[0] != id {
		t.Errorf("want volume %s, the project has %v", id, left)
	}
	if held := x.holds(t); held["volumes"] != 1 || len(held) != 1 {
		t.Errorf("the project holds %v, want one volume", held)
	}
	pursue(t, func(ctx context.Context) (*csi.DeleteVolumeResponse, error) {
		return d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	})
}

// Two drivers are asked for the same volume at the same time, and answers of Cinder are lost. Those orders are more than a second apart:
// Cinder's times have whole seconds, and within one it cannot always be told which of two volumes somebody was told of, so none goes.
func TestTwoDriversMakeOneVolumeWhateverAnswersAreLost(t *testing.T) {
	x := newTenant(t, bed(t))
	for name, test := range map[string]struct {
		first, second int32         // how many answers they lose
		apart         time.Duration // how long the second's order comes after the first's, when both have looked and found none
	}{
		"the first loses an answer":          {first: 1, apart: 1500 * time.Millisecond},
		"both lose an answer":                {first: 1, second: 1, apart: 1500 * time.Millisecond},
		"none does but both order at once":   {apart: time.Millisecond},
		"none does but the second is behind": {apart: 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			// Whoever orders waits until both do, so that neither has seen the other's volume.
			var ordering sync.WaitGroup
			ordering.Add(2)
			var once [2]sync.Once
			both := func(i int, more time.Duration) func() {
				return func() {
					once[i].Do(func() {
						if test.apart > 0 {
							ordering.Done()
							ordering.Wait()
							time.Sleep(more)
						}
					})
				}
			}
			a := x.startAnywhere(t, x.newFront(t, delays("/volumes", both(0, 0), loses(test.first, "/volumes"))).args...)
			b := x.startAnywhere(t, x.newFront(t, delays("/volumes", both(1, test.apart), loses(test.second, "/volumes"))).args...)
			name := "bed-" + rand.Text()
			var ids [2]string
			var all sync.WaitGroup
			for i, d := range []*driver{a, b} {
				all.Go(func() { ids[i] = wanted(t, d, name) })
			}
			all.Wait()
			if ids[0] != ids[1] {
				t.Errorf("the drivers tell of volumes %v", ids)
			}
			x.oneIsLeft(t, a, name, ids[0])
		})
	}
}

// A driver is killed when Cinder has taken its order and it has not heard so: whoever takes over finds the volume.
func TestADriverKilledBetweenOrderAndAnswerLeavesOneVolume(t *testing.T) {
	x := newTenant(t, bed(t))
	taken, dead := make(chan struct{}), make(chan struct{})
	a := x.startAnywhere(t, x.newFront(t, func(pass http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/volumes") {
				pass.ServeHTTP(w, r)
				return
			}
			pass.ServeHTTP(httptest.NewRecorder(), r)
			close(taken)
			<-dead
		})
	}).args...)
	b := x.startAnywhere(t, x.newFront(t, nil).args...)
	name := "bed-" + rand.Text()
	answer := make(chan error, 1)
	go func() {
		_, err := a.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}, VolumeCapabilities: []*csi.VolumeCapability{capability("")},
		})
		answer <- err
	}()
	<-taken
	a.kill(t)
	close(dead)
	if err := <-answer; status.Code(err) != codes.Unavailable {
		t.Errorf("the killed driver's caller: %v", err)
	}
	if there := x.named(t, name); len(there) != 1 {
		t.Fatalf("Cinder took the order and has %v", there)
	}
	x.oneIsLeft(t, b, name, wanted(t, b, name))
}

// The answers to a snapshot's and an attachment's making are lost too: each is made once.
func TestLostAnswersMakeOneSnapshotAndOneAttachment(t *testing.T) {
	x := newTenant(t, bed(t), zonesOfBed[0])
	lossy := x.newFront(t, func(pass http.Handler) http.Handler {
		return loses(1, "/snapshots")(loses(1, "/os-volume_attachments")(pass))
	})
	d := x.startAnywhere(t, lossy.args...)
	id, node := newVolume(t, d, "").GetVolumeId(), x.servers[0].id
	pursue(t, func(ctx context.Context) (*csi.ControllerPublishVolumeResponse, error) {
		return d.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: capability("")})
	})
	name := "bed-" + rand.Text()
	shot := pursue(t, func(ctx context.Context) (*csi.CreateSnapshotResponse, error) {
		return d.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: id})
	})
	if held := x.holds(t); held["snapshots"] != 1 || held["attachments"] != 1 || held["volumes"] != 1 {
		t.Errorf("the project holds %v, want one each", held)
	}
	pursue(t, func(ctx context.Context) (*csi.DeleteSnapshotResponse, error) {
		return d.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: shot.GetSnapshot().GetSnapshotId()})
	})
	pursue(t, func(ctx context.Context) (*csi.ControllerUnpublishVolumeResponse, error) {
		return d.controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
	})
}
