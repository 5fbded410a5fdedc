package driver_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestACredentialIsReplacedDuringTwoHundredRPCs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		const many = 200
		begun := d.Metric(t, reloadedA)
		var under, made sync.WaitGroup
		under.Add(many)
		failures := make(chan error, 3*many)
		for i := range many {
			made.Go(func() {
				under.Done()
				v, err := d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", i)))
				failures <- err
				if err != nil {
					return
				}
				_, err = d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: v.GetVolume().GetVolumeId()})
				failures <- err
				_, err = d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: v.GetVolume().GetVolumeId()})
				failures <- err
			})
		}
		under.Wait()
		time.Sleep(3 * time.Second) // virtual: every volume is being made
		fresh := another(sim, "next")
		project(t, d.CloudConf, confOf(fresh))
		d.Changed <- struct{}{}
		time.Sleep(2 * time.Second)
		if n := d.Metric(t, reloaded); n != 1 {
			t.Fatalf("want one reload seen, got %v; %s", n, d.Log)
		}
		if d.Metric(t, reloadedA) <= begun {
			t.Error("the time of the last reload did not move")
		}
		sim.DeleteApplicationCredential(theFirst(sim))
		made.Wait()
		close(failures)
		count := 0
		for err := range failures {
			count++
			if err != nil {
				t.Error(err)
			}
		}
		if count != 3*many || d.Metric(t, unusable) != 0 {
			t.Errorf("%d RPCs, %v failed reloads", count, d.Metric(t, unusable))
		}
		if strings.Contains(d.Log.String(), fresh.Secret) {
			t.Error("the log holds the new secret")
		}
	})
}

// The driver gets no event for the changed file, and the old credential is already gone. The 401 alone makes it read the file.
func TestARefusalMakesTheDriverLookForNewCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		project(t, d.CloudConf, confOf(another(sim, "next")))
		sim.DeleteApplicationCredential(theFirst(sim))
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-2-", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := d.Metric(t, reloaded); n != 1 {
			t.Errorf("want one reload, got %v", n)
		}
	})
}

func TestARefusalWithoutNewCredentialsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		sim.DeleteApplicationCredential(theFirst(sim))
		_, err := d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: theServer()})
		wantCode(t, err, codes.Unauthenticated, "Keystone refused a new token")
		project(t, d.CloudConf, confOf(another(sim, "next")))
		_, err = d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: theServer()})
		wantCode(t, err, codes.NotFound, "")
	})
}

func theServer() string { one, _ := servers(); return one }

func TestAFileIsReadAgainEveryMinuteWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		project(t, d.CloudConf, confOf(another(sim, "next")))
		time.Sleep(time.Minute + 5*time.Second)
		if n := d.Metric(t, reloaded); n != 1 {
			t.Errorf("want one reload, got %v", n)
		}
		before := sim.RequestCount()
		time.Sleep(10 * time.Minute)
		if n := d.Metric(t, reloaded); n != 1 {
			t.Errorf("reloads of what did not change: %v", n-1)
		}
		for _, r := range sim.Requests()[before:] {
			if strings.HasSuffix(r.Path, "/auth/tokens") {
				t.Error("it logged in again with what did not change")
			}
		}
	})
}

func TestABrokenFileLeavesTheOldConfigurationInUse(t *testing.T) {
	good := func(sim *openstacksim.Sim) string { return string(sim.CloudConf(inprocess.URL)) }
	for name, test := range map[string]struct {
		content func(sim *openstacksim.Sim) string
		args    []string
		problem string
	}{
		"not an INI file":     {func(*openstacksim.Sim) string { return "[Global\n" }, nil, "line 1"},
		"empty":               {func(*openstacksim.Sim) string { return "" }, nil, "no section [Global]"},
		"a refused secret":    {func(s *openstacksim.Sim) string { return strings.Replace(good(s), "sim-appcred-secret", "hunter2", 1) }, nil, "refuses the credentials"},
		"another region":      {func(s *openstacksim.Sim) string { return strings.Replace(good(s), "RegionOne", "Mars", 1) }, nil, `no region "Mars"`},
		"a missing CA":        {func(s *openstacksim.Sim) string { return good(s) + "ca-file = /nonexistent.pem\n" }, nil, "/nonexistent.pem"},
		"a bad option":        {func(s *openstacksim.Sim) string { return good(s) + "[BlockStorage]\nignore-volume-az = maybe\n" }, nil, "ignore-volume-az"},
		"a typo when strict":  {func(s *openstacksim.Sim) string { return good(s) + "[BlockStorage]\nignore-volume-as = yes\n" }, []string{"--strict"}, "did you mean ignore-volume-az?"},
		"nowhere to be found": {nil, nil, "no such file"},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			d := startWith(t, sim, test.args...)
			must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
			if test.content == nil {
				testenv.Must(t, os.Remove(d.CloudConf))
			} else {
				project(t, d.CloudConf, []byte(test.content(sim)))
			}
			d.Changed <- struct{}{}
			time.Sleep(5*time.Minute + 10*time.Second)
			must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2")))
			if n := strings.Count(d.Log.String(), "cannot use the changed configuration"); n != 1 || !strings.Contains(d.Log.String(), strings.ReplaceAll(test.problem, `"`, `\"`)) || strings.Contains(d.Log.String(), "hunter2") {
				t.Errorf("want it logged once with %q, got it %d times:\n%s", test.problem, n, d.Log)
			}
			if good, bad := d.Metric(t, reloaded), d.Metric(t, unusable); good != 0 || bad != 6 {
				t.Errorf("%v good and %v bad reloads", good, bad)
			}
			project(t, d.CloudConf, confOf(another(sim, "next")))
			d.Changed <- struct{}{}
			time.Sleep(time.Second)
			sim.DeleteApplicationCredential(theFirst(sim))
			if n := d.Metric(t, reloaded); n != 1 {
				t.Errorf("the driver did not load the corrected file; %s", d.Log)
			}
			must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-3")))
		})
	}
}

// Somebody takes a broken file back: the driver says that the configuration is good again, although nothing differs from before.
func TestAFileThatIsAsBeforeEndsTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		made(t, d)
		reload(t, d, []byte("[Global\n"))
		reload(t, d, sim.CloudConf(inprocess.URL))
		if good, bad := d.Metric(t, reloaded), d.Metric(t, unusable); good != 1 || bad != 1 {
			t.Errorf("%v good and %v bad reloads", good, bad)
		}
	})
}

// An RPC meets a refusal, looks for new credentials, and its caller leaves while Keystone is slow. That says nothing about the files.
func TestACallerThatLeavesDuringAReloadMakesNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		id := made(t, d)
		next := another(sim, "next")
		testfile.Write(t, d.CloudConf, confOf(next), 0o600)
		sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/identity/v3/auth/tokens", Contains: next.ID, Delay: time.Hour, Times: 1})
		sim.DeleteApplicationCredential(theFirst(sim))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := d.ListVolumes(ctx, &csi.ListVolumesRequest{}); err == nil { // reads of one volume outlive their caller
			t.Error("it succeeded without a credential")
		}
		if bad := d.Metric(t, unusable); bad != 0 {
			t.Errorf("%v failed reloads", bad)
		}
		must[*csi.ControllerGetVolumeResponse](t)(d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: id}))
	})
}

func TestWrongCredentialsAtTheStartAreReplacedWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, []byte(strings.Replace(string(sim.CloudConf(inprocess.URL)), "sim-appcred-secret", "wrong", 1)), memnet.Transport(sim.Handler()))
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
		project(t, d.CloudConf, sim.CloudConf(inprocess.URL))
		d.Changed <- struct{}{}
		time.Sleep(time.Second)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
	})
}

func TestOptionsApplyAtOnceOrTheLogSaysThatTheyDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		zones := func(name string) int {
			v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim(name, func(r *csi.CreateVolumeRequest) {
				r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{
					{Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": "az2"}}, {Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": "az1"}},
				}}
			})))
			return len(v.GetVolume().GetAccessibleTopology())
		}
		if n := zones("pvc-1"); n != 1 {
			t.Errorf("want the volume's zone alone, got %d zones", n)
		}
		project(t, d.CloudConf, append(sim.CloudConf(inprocess.URL), "[BlockStorage]\nignore-volume-az = true\nnode-volume-attach-limit = 12\nignore-volume-as = true\n"...))
		for range 3 {
			d.Changed <- struct{}{}
			time.Sleep(time.Second)
		}
		if n := zones("pvc-2"); n != 2 {
			t.Errorf("want the zones asked for, got %d", n)
		}
		log := d.Log.String()
		for _, text := range []string{"option=node-volume-attach-limit", "did you mean ignore-volume-az?", "changed=[options]"} {
			if strings.Count(log, text) != 1 {
				t.Errorf("want %s once in\n%s", text, log)
			}
		}
		if d.Metric(t, reloaded) != 1 || d.Metric(t, "cinder_csi_config_complaints") != 1 {
			t.Error("the metrics do not say so")
		}
	})
}
