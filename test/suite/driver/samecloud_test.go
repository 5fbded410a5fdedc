package driver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// edited is a cloud whose answers pass through edit before the driver sees them.
type edited struct {
	next http.RoundTripper
	edit func(req *http.Request, body []byte) []byte
}

func (e edited) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := e.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = e.edit(req, body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return resp, nil
}

// editedCatalog is a cloud whose logins, once on, have the catalog that edit returns.
type editedCatalog struct {
	on   atomic.Bool
	edit func(services []any) []any
	next http.RoundTripper
}

func (e *editedCatalog) RoundTrip(req *http.Request) (*http.Response, error) {
	return edited{e.next, func(req *http.Request, body []byte) []byte {
		var answer struct {
			Token map[string]any `json:"token"`
		}
		if !e.on.Load() || !isLogin(req) || json.Unmarshal(body, &answer) != nil {
			return body
		}
		services, _ := answer.Token["catalog"].([]any)
		answer.Token["catalog"] = e.edit(services)
		body, _ = json.Marshal(answer)
		return body
	}}.RoundTrip(req)
}

func isLogin(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/auth/tokens")
}

func without(types ...string) func([]any) []any {
	return func(services []any) []any {
		return slices.DeleteFunc(services, func(s any) bool { return slices.Contains(types, s.(map[string]any)["type"].(string)) })
	}
}

// inRegion moves all endpoints of services to another region; the objects of the first do not exist there.
func inRegion(region string, types ...string) func([]any) []any {
	return func(services []any) []any {
		for _, s := range services {
			service := s.(map[string]any)
			if len(types) > 0 && !slices.Contains(types, service["type"].(string)) {
				continue
			}
			for _, e := range service["endpoints"].([]any) {
				endpoint := e.(map[string]any)
				endpoint["region"], endpoint["region_id"] = region, region
				endpoint["url"] = strings.Replace(endpoint["url"].(string), "/volume", "/none", 1)
			}
		}
		return services
	}
}

// reload gives the driver a new cloud.conf and waits until it has read it.
func reload(t *testing.T, d *instance, conf []byte) {
	t.Helper()
	testfile.Write(t, d.CloudConf, conf, 0o600)
	d.Changed <- struct{}{}
	time.Sleep(5 * time.Second)
}

func withKey(conf []byte, key, value string) []byte {
	return bytes.Replace(conf, []byte("[Global]\n"), fmt.Appendf(nil, "[Global]\n%s = %s\n", key, value), 1)
}

// otherProject is a cloud.conf of another project of the same cloud.
func otherProject() []byte {
	return fmt.Appendf(nil, "[Global]\nauth-url = %s/identity/v3\nusername = other\npassword = sim-other\ntenant-name = other\nuser-domain-name = Default\ntenant-domain-name = Default\n", inprocess.URL)
}

// Whatever a new file leads to, the old login goes on, and the failure is counted and explained. What is said to be done is done.
func TestALoginThatIsNotForTheKnownCloudIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		conf    func(sim *openstacksim.Sim) []byte
		catalog func([]any) []any
		text    string
	}{
		"another project": {conf: func(*openstacksim.Sim) []byte { return otherProject() }, text: "the login is for project "},
		"another region": {
			conf: func(sim *openstacksim.Sim) []byte {
				return withKey(confOf(another(sim, "next")), "region", "RegionTwo")
			},
			catalog: inRegion("RegionTwo"), text: "the login is for region RegionTwo, but the driver has worked in region RegionOne",
		},
		"another region, which no file names": {catalog: inRegion("RegionTwo"), text: "the login is for region RegionTwo"},
		"services of two regions":             {catalog: inRegion("RegionTwo", "block-storage", "volumev3"), text: "of region "},
		"without Cinder":                      {catalog: without("block-storage", "volumev3"), text: "has no block-storage service"},
		"without Nova":                        {catalog: without("compute"), text: "has no compute service"},
		"an empty catalog":                    {catalog: func([]any) []any { return []any{} }, text: "has no block-storage service"},
		"a project that is not expected": {
			conf: func(sim *openstacksim.Sim) []byte {
				return withKey(confOf(another(sim, "next")), "tenant-id", strings.Repeat("0", 32))
			},
			text: "cloud.conf expects project 0000",
		},
		"a wrong secret": {
			conf: func(sim *openstacksim.Sim) []byte {
				a := another(sim, "next")
				a.Secret = "wrong"
				return confOf(a)
			},
			text: "refuses the credentials",
		},
	} {
		story(t, strings.ReplaceAll(name, ",", ""), func(t *testing.T) {
			sim := simulated()
			wire := &editedCatalog{edit: test.catalog, next: memnet.Transport(sim.Handler())}
			d := start(t, confOf(openstacksim.Default().ApplicationCredentials[0]), wire)
			o := newObjects(t, d)
			wire.on.Store(test.catalog != nil)
			conf := confOf(another(sim, "another"))
			if test.conf != nil {
				conf = test.conf(sim)
			}
			reload(t, d, append(conf, []byte("[BlockStorage]\nignore-volume-az = true\n")...))
			if good, bad := d.Metric(t, reloaded), d.Metric(t, unusable); good != 0 || bad != 1 {
				t.Errorf("%v good and %v failed reloads", good, bad)
			}
			if log := d.Log.String(); !strings.Contains(log, test.text) {
				t.Errorf("the log does not say %q", test.text)
			}
			// all or nothing: the options of the file are not in force either
			v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-new", wanted("az2"), of("availability", "az1"))))
			if zone := v.GetVolume().GetAccessibleTopology()[0].GetSegments()[zoneKey]; zone != "az1" {
				t.Errorf("an option of the refused file is in force: zone %s", zone)
			}
			removeAll(t, d, sim, o)
		})
	}
}

// removeAll detaches and deletes objects: what is answered with OK must be done.
func removeAll(t *testing.T, d *instance, sim *openstacksim.Sim, o objects) {
	t.Helper()
	volumeExists := func() bool { _, exists := sim.VolumeState(o.volume); return exists }
	snapshotExists := func() bool { _, exists := sim.SnapshotState(o.snapshot); return exists }
	for _, step := range []struct {
		rpc  string
		left func() bool
	}{
		{"ControllerUnpublishVolume", func() bool { v, _ := sim.VolumeState(o.attached); return v.Status != "available" }},
		{"DeleteSnapshot", snapshotExists},
		{"DeleteVolume", volumeExists},
	} {
		i := slices.IndexFunc(controllerRPCs, func(rpc controllerRPC) bool { return rpc.name == step.rpc })
		if err := controllerRPCs[i].call(asSidecar(t), d, o); err != nil || step.left() {
			t.Errorf("%s: %v, not done %t", step.rpc, err, step.left())
		}
	}
}

// The old credential is revoked, and the new file leads elsewhere: no RPC works, and none says that it is done.
func TestARevokedCredentialIsNotReplacedByOneOfAnotherProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		o := newObjects(t, d)
		testfile.Write(t, d.CloudConf, otherProject(), 0o600)
		sim.DeleteApplicationCredential(theFirst(sim))
		for _, rpc := range controllerRPCs {
			if rpc.operation != "" {
				if err := rpc.call(asSidecar(t), d, o); err == nil {
					t.Errorf("%s: OK", rpc.name)
				}
			}
		}
		reload(t, d, confOf(another(sim, "next"))) // the way back
		removeAll(t, d, sim, o)
	})
}

// A process that has just started knows no project, but its cloud.conf may name one.
func TestTheFirstLoginMustBeForACloudThatCanServe(t *testing.T) {
	for name, test := range map[string]struct {
		tenant  string
		catalog func([]any) []any
		text    string
	}{
		"another project": {tenant: strings.Repeat("0", 32), text: "cloud.conf expects project 0000"},
		"without Cinder":  {catalog: without("block-storage", "volumev3"), text: "has no block-storage service"},
		"without Nova":    {catalog: without("compute"), text: "has no compute service"},
		"two regions":     {catalog: inRegion("RegionTwo", "compute"), text: "of region "},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			o := newObjects(t, startWith(t, sim))
			wire := &editedCatalog{edit: test.catalog, next: memnet.Transport(sim.Handler())}
			wire.on.Store(test.catalog != nil)
			conf := confOf(openstacksim.Default().ApplicationCredentials[0])
			if test.tenant != "" {
				conf = withKey(conf, "tenant-id", test.tenant)
			}
			d := start(t, conf, wire)
			for _, rpc := range controllerRPCs {
				if rpc.operation != "" {
					wantCode(t, rpc.call(asSidecar(t), d, o), codes.Unavailable, test.text)
				}
			}
			if _, exists := sim.VolumeState(o.volume); !exists {
				t.Error("the volume is gone")
			}
		})
	}
}

// moving is a cloud whose Cinder moves to another host name, which the catalog names. Old is the answer of the old one.
type moving struct {
	moved atomic.Bool
	old   func(req *http.Request) (*http.Response, error)
	next  http.RoundTripper
}

const newHost = "cinder.test"

func (m *moving) RoundTrip(req *http.Request) (*http.Response, error) {
	cinder := strings.HasPrefix(req.URL.Path, "/volume/")
	if cinder && m.moved.Load() != (req.URL.Hostname() == newHost) {
		return m.old(req)
	}
	if cinder {
		req = req.Clone(req.Context())
		req.URL.Host, req.Host = "cloud.test", "cloud.test"
	}
	return edited{m.next, func(req *http.Request, body []byte) []byte {
		if m.moved.Load() && isLogin(req) {
			return bytes.ReplaceAll(body, []byte("http://cloud.test/volume"), []byte("http://"+newHost+"/volume"))
		}
		return body
	}}.RoundTrip(req)
}

func answers(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// The operator of the cloud moves Cinder to a new address, as after a renewal of the load balancer. The driver needs no restart.
func TestAServiceThatMovedIsFoundWithinAMinute(t *testing.T) {
	for name, old := range map[string]func(*http.Request) (*http.Response, error){
		"nothing listens at the old address": func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		},
		"a load balancer without a backend": answers(http.StatusServiceUnavailable, "no server is available"),
		"a default page":                    answers(http.StatusNotFound, "404 default backend"),
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			wire := &moving{old: old, next: memnet.Transport(sim.Handler())}
			d := start(t, sim.CloudConf(inprocess.URL), wire)
			o := newObjects(t, d)
			time.Sleep(time.Hour)
			wire.moved.Store(true)
			began := time.Now()
			for {
				_, err := d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: o.volume})
				if err == nil {
					break
				}
				if time.Since(began) > time.Minute {
					t.Fatalf("a minute after the first failure: %v", err)
				}
				time.Sleep(5 * time.Second)
			}
			if !strings.Contains(d.Log.String(), "a service of the cloud has moved") {
				t.Error("the log does not say that it moved")
			}
			removeAll(t, d, sim, o)
		})
	}
}

// The catalog of a renewed token is read, although nothing has failed yet.
func TestARenewedTokenShowsThatAServiceMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := openstacksim.Default()
		config.TokenLifetime = time.Hour
		sim := openstacksim.New(config)
		old := memnet.Transport(sim.Handler())
		wire := &moving{old: old.RoundTrip, next: old} // the old address still answers
		d := start(t, sim.CloudConf(inprocess.URL), wire)
		id := made(t, d)
		wire.moved.Store(true)
		time.Sleep(2 * time.Hour)
		for range 2 {
			must[*csi.ControllerGetVolumeResponse](t)(d.ControllerGetVolume(asSidecar(t), &csi.ControllerGetVolumeRequest{VolumeId: id}))
		}
		if !strings.Contains(d.Log.String(), newHost) {
			t.Error("the log does not name the new address")
		}
	})
}
