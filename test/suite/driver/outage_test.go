package driver_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

// The driver stays alive and ready while Keystone is down at its start, and while the whole cloud is down later. RPCs return Unavailable.
func TestTheDriverSurvivesAnOutageOfKeystoneAtTheStartAndOfTheCloudLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		wire := &switched{down: true, next: memnet.Transport(sim.Handler())}
		d := start(t, sim.CloudConf(inprocess.URL), wire)
		alive := func(readyz, startupz int) {
			t.Helper()
			for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": readyz, "/startupz": startupz} {
				if page, code := d.Get(t, path); code != want {
					t.Errorf("%s: want %d, got %d: %s", path, want, code, page)
				}
			}
			wantReady := startupz == http.StatusOK // at the start the sidecars wait; see TestSidecarsWaitForTheFirstLoginButNotUntilARestart
			if ready := must[*csi.ProbeResponse](t)(d.Probe(asSidecar(t), &csi.ProbeRequest{})); ready.GetReady().GetValue() != wantReady {
				t.Errorf("want ready %t, got %v", wantReady, ready)
			}
		}
		alive(http.StatusServiceUnavailable, http.StatusServiceUnavailable)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.Unavailable, "Keystone")
		wire.set(false)
		time.Sleep(10 * time.Second) // virtual
		alive(http.StatusOK, http.StatusOK)
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		wire.set(true)
		alive(http.StatusServiceUnavailable, http.StatusOK)
		for name, call := range map[string]func() error{
			"create": func() error { _, err := d.CreateVolume(asSidecar(t), claim("pvc-2")); return err },
			"get": func() error {
				return outcome(d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: id}))
			},
			"delete": func() error { return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) },
			"list":   func() error { _, err := d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{}); return err },
		} {
			if err := call(); status.Code(err) != codes.Unavailable {
				t.Errorf("%s: want Unavailable, got %v", name, err)
			}
		}
		time.Sleep(time.Hour) // virtual
		wire.set(false)
		alive(http.StatusOK, http.StatusOK)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2")))
	})
}

// With wrong credentials the sidecars of a pod do not compete with those of the old pod at first. But a driver whose probe fails for two minutes would be
// restarted.
func TestSidecarsWaitForTheFirstLoginButNotUntilARestart(t *testing.T) {
	for name, test := range map[string]struct {
		secret string
		want   []bool // after 1, 60, 89 and 91 seconds
	}{
		"wrong credentials": {"wrong", []bool{false, false, false, true}},
		"right credentials": {"sim-appcred-secret", []bool{true, true, true, true}},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			conf := bytes.Replace(sim.CloudConf(inprocess.URL), []byte("sim-appcred-secret"), []byte(test.secret), 1)
			d := start(t, conf, memnet.Transport(sim.Handler()))
			began := time.Now()
			for i, after := range []time.Duration{time.Second, time.Minute, 89 * time.Second, 91 * time.Second} {
				time.Sleep(time.Until(began.Add(after))) // virtual
				answer := must[*csi.ProbeResponse](t)(d.Probe(asSidecar(t), &csi.ProbeRequest{}))
				if got := answer.GetReady().GetValue(); got != test.want[i] {
					t.Errorf("after %s: want ready %t, got %t", after, test.want[i], got)
				}
			}
		})
	}
}

func TestWrongCredentialsAreLoggedAndDoNotEndTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		conf := bytes.Replace(sim.CloudConf(inprocess.URL), []byte("sim-appcred-secret"), []byte("wrong"), 1)
		d := start(t, conf, memnet.Transport(sim.Handler()))
		_, err := d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{})
		wantCode(t, err, codes.Unauthenticated, "credentials")
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.Unavailable, "credentials") // an earlier call may have left a volume
		synctest.Wait()                                    // the login at the start fails in the same instant
		if !strings.Contains(d.Log.String(), "cannot log in") {
			t.Errorf("the log does not say so: %s", d.Log)
		}
	})
}

func TestA404RightAfterARenewedLoginIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id := made(t, d)
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
		for name, call := range map[string]func() error{
			"delete":    func() error { return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})) },
			"unpublish": func() error { az1, _ := servers(); return unpublish(t, d, id, az1) },
		} {
			sim.ResetRequests()
			sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/volumes/" + id, Status: http.StatusUnauthorized, Times: 1})
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := sent(sim, http.MethodPost, "/auth/tokens"); n != 1 {
				t.Errorf("%s: %d logins", name, n)
			}
		}
	})
}
