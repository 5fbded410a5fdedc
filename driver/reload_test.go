package driver

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
)

// project gives a file new content as kubelet does in a mounted Secret: a directory of its own, and the link ..data moved to it.
func project(t *testing.T, path string, content []byte) {
	t.Helper()
	dir, name := filepath.Dir(path), filepath.Base(path)
	fresh, err := os.MkdirTemp(dir, "..2026_")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return os.WriteFile(filepath.Join(fresh, name), content, 0o600) },
		func() error { return os.Symlink(filepath.Base(fresh), filepath.Join(dir, "..data_tmp")) },
		func() error { return os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")) },
		func() error { return os.RemoveAll(path) }, // a plain file at first
		func() error { return os.Symlink(filepath.Join("..data", name), path) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

// get asks the driver's HTTP endpoint.
func (d *instance) get(t *testing.T, path string) (page []byte, code int) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: d.web.DialContext, DisableKeepAlives: true}}
	resp, err := client.Get("http://driver" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if page, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return page, resp.StatusCode
}

// metric reads one line of /metrics; a metric that is not there fails the test.
func (d *instance) metric(t *testing.T, name string) float64 {
	t.Helper()
	page, _ := d.get(t, "/metrics")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (.*)$`).FindSubmatch(page)
	if found == nil {
		t.Fatalf("there is no %s in\n%s", name, page)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

const (
	reloaded  = `cinder_csi_config_reloads_total{result="success"}`
	unusable  = `cinder_csi_config_reloads_total{result="failure"}`
	reloadedA = `cinder_csi_config_last_reload_success_timestamp_seconds`
)

// confOf is a cloud.conf with an application credential.
func confOf(a openstacksim.ApplicationCredential) []byte {
	return fmt.Appendf(nil, "[Global]\nauth-url = %s/identity/v3\napplication-credential-id = %s\napplication-credential-secret = %s\n", cloudURL, a.ID, a.Secret)
}

func another(sim *openstacksim.Sim, name string) openstacksim.ApplicationCredential {
	return sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: name, User: "demo", Project: "demo", Roles: []string{"member"}})
}

func theFirst(*openstacksim.Sim) string { return openstacksim.Default().ApplicationCredentials[0].ID }

func TestACredentialIsReplacedDuringTwoHundredRPCs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		const many = 200
		begun := d.metric(t, reloadedA)
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
		project(t, d.conf, confOf(fresh))
		d.changed <- struct{}{}
		time.Sleep(2 * time.Second)
		if n := d.metric(t, reloaded); n != 1 {
			t.Fatalf("want one reload seen, got %v; %s", n, d.log)
		}
		if d.metric(t, reloadedA) <= begun {
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
		if count != 3*many || d.metric(t, unusable) != 0 {
			t.Errorf("%d RPCs, %v failed reloads", count, d.metric(t, unusable))
		}
		if strings.Contains(d.log.String(), fresh.Secret) {
			t.Error("the log holds the new secret")
		}
	})
}

// The driver gets no event for the changed file, and the old credential is already gone. The 401 alone makes it read the file.
func TestARefusalMakesTheDriverLookForNewCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		project(t, d.conf, confOf(another(sim, "next")))
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
		if n := d.metric(t, reloaded); n != 1 {
			t.Errorf("want one reload, got %v", n)
		}
	})
}

func TestARefusalWithoutNewCredentialsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		sim.DeleteApplicationCredential(theFirst(sim))
		_, err := d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: theServer()})
		wantCode(t, err, codes.Unauthenticated, "Keystone refused a new token")
		project(t, d.conf, confOf(another(sim, "next")))
		_, err = d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: theServer()})
		wantCode(t, err, codes.NotFound, "")
	})
}

func theServer() string { one, _ := servers(); return one }

func TestAFileIsReadAgainEveryMinuteWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		project(t, d.conf, confOf(another(sim, "next")))
		time.Sleep(rereadInterval + 5*time.Second)
		if n := d.metric(t, reloaded); n != 1 {
			t.Errorf("want one reload, got %v", n)
		}
		before := sim.RequestCount()
		time.Sleep(10 * rereadInterval)
		if n := d.metric(t, reloaded); n != 1 {
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
	good := func(sim *openstacksim.Sim) string { return string(sim.CloudConf(cloudURL)) }
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simulated()
				d := startWith(t, sim, test.args...)
				must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
				if test.content == nil {
					if err := os.Remove(d.conf); err != nil {
						t.Fatal(err)
					}
				} else {
					project(t, d.conf, []byte(test.content(sim)))
				}
				d.changed <- struct{}{}
				time.Sleep(5*rereadInterval + 10*time.Second)
				must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2")))
				if n := strings.Count(d.log.String(), "cannot use the changed configuration"); n != 1 || !strings.Contains(d.log.String(), strings.ReplaceAll(test.problem, `"`, `\"`)) || strings.Contains(d.log.String(), "hunter2") {
					t.Errorf("want it logged once with %q, got it %d times:\n%s", test.problem, n, d.log)
				}
				if good, bad := d.metric(t, reloaded), d.metric(t, unusable); good != 0 || bad != 6 {
					t.Errorf("%v good and %v bad reloads", good, bad)
				}
				project(t, d.conf, confOf(another(sim, "next")))
				d.changed <- struct{}{}
				time.Sleep(time.Second)
				sim.DeleteApplicationCredential(theFirst(sim))
				if n := d.metric(t, reloaded); n != 1 {
					t.Errorf("the driver did not load the corrected file; %s", d.log)
				}
				must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-3")))
			})
		})
	}
}

func TestWrongCredentialsAtTheStartAreReplacedWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := start(t, []byte(strings.Replace(string(sim.CloudConf(cloudURL)), "sim-appcred-secret", "wrong", 1)), memnet.Transport(sim.Handler()))
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
		project(t, d.conf, sim.CloudConf(cloudURL))
		d.changed <- struct{}{}
		time.Sleep(time.Second)
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
	})
}

func TestOptionsApplyAtOnceOrTheLogSaysThatTheyDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
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
		project(t, d.conf, append(sim.CloudConf(cloudURL), "[BlockStorage]\nignore-volume-az = true\nnode-volume-attach-limit = 12\nignore-volume-as = true\n"...))
		for range 3 {
			d.changed <- struct{}{}
			time.Sleep(time.Second)
		}
		if n := zones("pvc-2"); n != 2 {
			t.Errorf("want the zones asked for, got %d", n)
		}
		log := d.log.String()
		for _, text := range []string{"option=node-volume-attach-limit", "did you mean ignore-volume-az?", "changed=[options]"} {
			if strings.Count(log, text) != 1 {
				t.Errorf("want %s once in\n%s", text, log)
			}
		}
		if d.metric(t, reloaded) != 1 || d.metric(t, "cinder_csi_config_complaints") != 1 {
			t.Error("the metrics do not say so")
		}
	})
}
