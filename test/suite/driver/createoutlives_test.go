package driver_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// creates are the requests that create something, with the path of the POST.
func creates(t *testing.T, d *instance) map[string]func(ctx context.Context) error {
	t.Helper()
	source := made(t, d)
	return map[string]func(ctx context.Context) error{
		"volumes": func(ctx context.Context) error { return outcome(d.CreateVolume(ctx, claim("pvc-2"))) },
		"snapshots": func(ctx context.Context) error {
			return outcome(d.CreateSnapshot(ctx, snapshotRequest("snapshot-2", source)))
		},
		"backups": func(ctx context.Context) error { return outcome(d.CreateSnapshot(ctx, archive("backup-2", source))) },
	}
}

// A sidecar dies in the middle of a create, and its successor asks again. The answer of Cinder is not lost with the sidecar, so the driver
// needs no hold-off.
func TestACreateOutlivesItsSidecar(t *testing.T) {
	for _, path := range []string{"volumes", "snapshots", "backups"} {
		story(t, path, func(t *testing.T) {
			sim, d := started(t)
			create := creates(t, d)[path]
			sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/volume/v3/*/" + path, Delay: 20 * time.Second, Times: 1})
			dying, die := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, die)
			before, began := sent(sim, http.MethodPost, "/"+path), time.Now()
			wantCode(t, create(dying), codes.Canceled, "")
			for {
				err := create(asSidecar(t))
				if err == nil {
					break
				}
				if code := status.Code(err); code != codes.Aborted || time.Since(began) > 2*time.Minute {
					t.Fatalf("after %v: %v", time.Since(began), err)
				}
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("it took %v", took)
			}
			if n := sent(sim, http.MethodPost, "/"+path) - before; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A proxy gives up a create whose caller has left. The hold-off begins all the same.
func TestALostAnswerHoldsTheNextCreateOffAlsoWithoutACaller(t *testing.T) {
	for _, path := range []string{"volumes", "snapshots", "backups"} {
		story(t, path, func(t *testing.T) {
			sim, d := started(t)
			create := creates(t, d)[path]
			sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/volume/v3/*/" + path, Delay: 20 * time.Second, Status: http.StatusGatewayTimeout, Late: 30 * time.Second, Times: 1})
			dying, die := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, die)
			before := sent(sim, http.MethodPost, "/"+path)
			wantCode(t, create(dying), codes.Canceled, "")
			time.Sleep(25 * time.Second)
			wantCode(t, create(asSidecar(t)), codes.Unavailable, "504")
			time.Sleep(40 * time.Second) // the request has ended by now
			testenv.Check(t, create(asSidecar(t)))
			if n := sent(sim, http.MethodPost, "/"+path) - before; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// The driver ends while Cinder works on a create. It waits for the answer, as it does for that of an attach.
func TestTheDriverWaitsForCinderBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/volume/v3/*/volumes", Delay: 15 * time.Second, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := d.CreateVolume(ctx, claim("pvc-1"))
		wantCode(t, err, codes.DeadlineExceeded, "")
		stopped := time.Now()
		d.Stop()
		if err := d.Wait(); err != nil || time.Since(stopped).Round(time.Second) != 6*time.Second {
			t.Errorf("the driver ended with %v after %v", err, time.Since(stopped))
		}
		if n := len(sim.VolumeStates()); n != 1 {
			t.Errorf("%d volumes", n)
		}
	})
}
