//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"maps"
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

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// loses forwards every request. For the first requests that have created an object, it drops the connection instead of the answer. A refusal
// reaches the driver: Cinder before 3.66 refuses the first request for a snapshot of a volume in use.
func loses(answers int32, path string) func(http.Handler) http.Handler {
	left := &atomic.Int32{}
	left.Store(answers)
	return func(pass http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, path) {
				pass.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			pass.ServeHTTP(answer, r)
			if answer.Code < http.StatusBadRequest && left.Add(-1) >= 0 {
				panic(http.ErrAbortHandler)
			}
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	}
}

// delays calls before ahead of each request that creates an object, and then forwards the request.
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

// pursue retries a call as external-provisioner does, until its answer is final.
func pursue[T any](t *testing.T, call func(ctx context.Context) (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patient(2*time.Minute))
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

// wanted requests a volume of a name from a driver until the driver returns it.
func wanted(t *testing.T, d *driver, name string) string {
	t.Helper()
	made := pursue(t, func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
		return d.controller.CreateVolume(ctx, csitest.Claim(name, csitest.As(csitest.Single(""))))
	})
	return made.GetVolume().GetVolumeId()
}

// oneIsLeft wants exactly one volume of the name and nothing else in the project, and deletes that volume.
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

// Two drivers get a request for the same volume at the same time, and answers of Cinder are lost. If an answer is lost, the create requests
// are more than a second apart, because Cinder's times have whole seconds. Within one second, a driver cannot always know which of two volumes
// the other has returned, so it deletes none.
func TestTwoDriversMakeOneVolumeWhateverAnswersAreLost(t *testing.T) {
	x := newTenant(t, bed(t))
	for name, test := range map[string]struct {
		first, second int32         // how many answers each driver loses
		apart         time.Duration // how long the second create request comes after the first, when both drivers have listed and found no volume
	}{
		"the first loses an answer":          {first: 1, apart: 1500 * time.Millisecond},
		"both lose an answer":                {first: 1, second: 1, apart: 1500 * time.Millisecond},
		"none does but both create at once":  {apart: time.Millisecond},
		"none does but the second is behind": {apart: 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			// A create request waits until both drivers send one, so that neither driver has seen the volume of the other.
			var creating sync.WaitGroup
			creating.Add(2)
			var once [2]sync.Once
			both := func(i int, more time.Duration) func() {
				return func() {
					once[i].Do(func() {
						if test.apart > 0 {
							creating.Done()
							creating.Wait()
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
				t.Errorf("want one volume from both drivers, got %v", ids)
			}
			x.oneIsLeft(t, a, name, ids[0])
		})
	}
}

// A driver is killed after Cinder has accepted its create request and before the driver gets the answer. The next driver finds the volume.
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
		_, err := a.controller.CreateVolume(t.Context(), csitest.Claim(name, csitest.As(csitest.Single(""))))
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

// The answers to the create requests of a snapshot and of an attachment are lost too. Each object is created once.
func TestLostAnswersMakeOneSnapshotAndOneAttachment(t *testing.T) {
	x := newTenant(t, bed(t), zonesOfBed[0])
	lossy := x.newFront(t, func(pass http.Handler) http.Handler {
		return loses(1, "/snapshots")(loses(1, "/os-volume_attachments")(pass))
	})
	d := x.startAnywhere(t, lossy.args...)
	id, node := newVolume(t, d, "").GetVolumeId(), x.servers[0].id
	pursue(t, func(ctx context.Context) (*csi.ControllerPublishVolumeResponse, error) {
		return d.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: csitest.Single("")})
	})
	name := "bed-" + rand.Text()
	shot := pursue(t, func(ctx context.Context) (*csi.CreateSnapshotResponse, error) {
		return d.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: id, Parameters: forInUse(t, map[string]string{})})
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
