package driver_test

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestTheLogHasOneLineForEachRPCWithItsObjectsAndRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
		if err == nil {
			t.Error("an attached volume was deleted")
		}
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az1}))
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
		const request = `requests=\[req-[0-9a-f-]{36}\]`
		for _, line := range []string{
			`method=CreateVolume volume=` + id + ` name=pvc-1 ` + request + ` duration=\S+ code=OK`,
			`method=ControllerPublishVolume volume=` + id + ` server=` + az1 + ` ` + request + ` duration=\S+ code=OK`,
			`method=DeleteVolume volume=` + id + ` duration=\S+ code=FailedPrecondition kind=conflict cause=volume.attached written=false error=`,
			`method=ControllerUnpublishVolume volume=` + id + ` server=` + az1 + ` ` + request + ` duration=\S+ code=OK`,
			`method=DeleteVolume volume=` + id + ` ` + request + ` duration=\S+ code=OK`,
		} {
			if n := len(regexp.MustCompile(`msg=rpc `+line).FindAllString(d.Log.String(), -1)); n != 1 {
				t.Errorf("want one line %s, got %d in\n%s", line, n, d.Log)
			}
		}
	})
}

func TestTheLogSaysWhereAnRPCHangsBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		node, _ := servers()
		id := made(t, d)
		testenv.Must(t, publish(t, d, id, node))
		sim.SetLatency(openstacksim.Detach, 100*time.Second)
		testenv.Must(t, unpublish(t, d, id, node))
		line := `msg="rpc in progress" method=ControllerUnpublishVolume volume=` + id + ` server=` + node + ` duration=(15|30|1m0)s step="waiting for volume ` + id +
			` to become detached from server ` + node + `" step_duration=\d+m?\d*s state="volume ` + id + `: its status is detaching" requests=\[req-`
		if n := len(regexp.MustCompile(line).FindAllString(d.Log.String(), -1)); n != 3 {
			t.Errorf("want three lines %s, got %d in\n%s", line, n, d.Log)
		}
	})
}

func TestUnknownKeysOfCloudConfAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, append(sim.CloudConf(inprocess.URL), "[BlockStorage]\nignore-volume-as=true\n[LoadBalancer]\nuse-octavia=true\n"...), memnet.Transport(sim.Handler()))
		must[*csi.ProbeResponse](t)(d.Probe(asSidecar(t), &csi.ProbeRequest{}))
		if log := d.Log.String(); strings.Count(log, "did you mean ignore-volume-az?") != 1 || strings.Contains(log, "octavia") {
			t.Error(log)
		}
	})
}

func TestAnUnencryptedConnectionIsLoggedOnceAlsoWithStrict(t *testing.T) {
	for _, args := range [][]string{nil, {"--strict"}} {
		synctest.Test(t, func(t *testing.T) {
			sim := simulated()
			conf := strings.Replace(string(sim.CloudConf(inprocess.URL)), "[Global]", "[Global]\ntls-insecure=true", 1)
			d := start(t, []byte(conf), memnet.Transport(sim.Handler()), args...)
			for range 3 {
				synctest.Wait()
				d.Changed <- struct{}{}
				time.Sleep(time.Second)
			}
			for _, problem := range []string{"are not verified", "is not encrypted"} {
				if log := d.Log.String(); strings.Count(log, problem) != 1 {
					t.Errorf("%v: want %q once in\n%s", args, problem, log)
				}
			}
			if n := d.Metric(t, "cinder_csi_config_insecure_settings"); n != 2 {
				t.Errorf("%v: %v settings are counted, want 2", args, n)
			}
		})
	}
}

// weakening is a cloud with https. Once weak, its catalog has an http address for Cinder. While it is down, it refuses every login. Once it has
// moved, nothing listens at the https address of Cinder.
type weakening struct {
	weak, down, moved atomic.Bool
	next              http.RoundTripper
}

func (w *weakening) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case isLogin(req) && w.down.Load():
		return answers(http.StatusServiceUnavailable, "down")(req)
	case w.moved.Load() && req.URL.Scheme == "https" && strings.HasPrefix(req.URL.Path, "/volume/"):
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	return edited{w.next, func(req *http.Request, body []byte) []byte {
		if !isLogin(req) {
			return body
		}
		body = bytes.ReplaceAll(body, []byte("http://"), []byte("https://"))
		if w.weak.Load() {
			body = bytes.ReplaceAll(body, []byte("https://cloud.test/volume"), []byte("http://cloud.test/volume"))
		}
		return body
	}}.RoundTrip(req)
}

// The token goes to each address of the catalog, which may change whenever the driver logs in.
func TestAnUnencryptedCatalogURLIsLoggedOnceAndCounted(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, d *instance, w *weakening){
		"always":           nil,
		"first login late": nil,
		"reloaded": func(t *testing.T, d *instance, _ *weakening) {
			conf := testfile.Read(t, d.CloudConf)
			reload(t, d, bytes.Replace(conf, []byte("[Global]"), []byte("[Global]\nos-endpoint-type=public"), 1))
		},
		"token renewed":     func(*testing.T, *instance, *weakening) { time.Sleep(2 * time.Hour) },
		"the service moved": func(_ *testing.T, _ *instance, w *weakening) { w.moved.Store(true) },
	} {
		story(t, name, func(t *testing.T) {
			config := openstacksim.Default()
			config.TokenLifetime = time.Hour
			sim := openstacksim.New(config)
			w := &weakening{next: memnet.Transport(sim.Handler())}
			w.weak.Store(change == nil)
			w.down.Store(name == "first login late")
			d := start(t, sim.CloudConf(strings.Replace(inprocess.URL, "http:", "https:", 1)), w)
			time.Sleep(5 * time.Minute)
			w.down.Store(false)
			made(t, d)
			if change != nil {
				if n := d.Metric(t, "cinder_csi_config_insecure_settings"); n != 0 || strings.Contains(d.Log.String(), "not encrypted") {
					t.Fatalf("before the change: %v settings, log\n%s", n, d.Log)
				}
				w.weak.Store(true)
				change(t, d, w)
			}
			for range 3 {
				_, _ = d.ListVolumes(asSidecar(t), &csi.ListVolumesRequest{})
				time.Sleep(time.Minute)
			}
			if log := d.Log.String(); strings.Count(log, "which is not encrypted") != 1 || !strings.Contains(log, "the catalog has http://cloud.test/volume/v3/") {
				t.Errorf("want the warning once in\n%s", log)
			}
			if n := d.Metric(t, "cinder_csi_config_insecure_settings"); n != 1 {
				t.Errorf("%v settings are counted, want 1", n)
			}
		})
	}
}
