package driver_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// lists is the path of the lists of volumes in faults.
const lists = "/volume/v3/*/volumes/detail"

// together makes so many calls at once, and returns the time of the longest and their errors.
func together(n int, call func(i int) error) (time.Duration, error) {
	errs, begin := make([]error, n), time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = call(i) })
	}
	all.Wait()
	return time.Since(begin), errors.Join(errs...)
}

// quick is a cloud without quotas, whose volumes take a second.
func quick() *openstacksim.Sim {
	sim := simulated()
	sim.SetAllLatency(time.Second)
	sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
	for _, quota := range []string{"volumes", "gigabytes"} {
		sim.SetQuota("demo", quota, 100_000)
	}
	return sim
}

// live takes volumes through create, attach, detach and delete, and returns how long each step took.
func (d *instance) live(t *testing.T, n int) (took map[string]time.Duration) {
	t.Helper()
	took = map[string]time.Duration{}
	server, _ := servers()
	ids := make([]string, n)
	for _, step := range []struct {
		name string
		call func(i int) error
	}{
		{"create", func(i int) error {
			v, err := d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", i)))
			ids[i] = v.GetVolume().GetVolumeId()
			return err
		}},
		{"attach", func(i int) error {
			return outcome(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: ids[i], NodeId: server, VolumeCapability: writer}))
		}},
		{"detach", func(i int) error {
			return outcome(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: ids[i], NodeId: server}))
		}},
		{"delete", func(i int) error {
			return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: ids[i]}))
		}},
	} {
		longest, err := together(n, step.call)
		if err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		took[step.name] = longest
	}
	return took
}

// Reads of one volume and searches by name work. Every other list of volumes fails, or Cinder does not have the filter.
func TestVolumesLiveWithoutTheListsThatSaveCalls(t *testing.T) {
	testenv.NotShort(t)
	const request = 10 * time.Second // how long a failed list takes
	for name, faults := range map[string][]openstacksim.Fault{
		"HTTP 504 for every list": {
			{Contains: "updated_at", Status: http.StatusGatewayTimeout, Delay: request},
			{Contains: "limit=1000", Status: http.StatusGatewayTimeout, Delay: request, Skip: 0},
		},
		"no filter for times":       {{Contains: "updated_at", Status: http.StatusBadRequest, Message: "Invalid filters updated_at are found in query options."}},
		"no filter for names":       {{Contains: "name=", Status: http.StatusBadRequest, Message: "Invalid filters name are found in query options."}},
		"a policy against the list": {{Contains: "updated_at", Status: http.StatusForbidden}},
	} {
		for _, n := range []int{1, 4, 20} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				var healthy map[string]time.Duration
				synctest.Test(t, func(t *testing.T) { healthy = startWith(t, quick()).live(t, n) })
				synctest.Test(t, func(t *testing.T) {
					sim := quick()
					for _, f := range faults {
						f.Method, f.Path = http.MethodGet, lists
						if f.Contains == "limit=1000" { // but not the searches by name
							sim.SetFault(openstacksim.Fault{Method: f.Method, Path: lists, Contains: "name=", Delay: time.Nanosecond})
						}
						sim.SetFault(f)
					}
					for step, took := range startWith(t, sim).live(t, n) {
						if most := 3*healthy[step] + request; took > most {
							t.Errorf("%s takes %v, want at most %v; without the fault %v", step, took, most, healthy[step])
						}
					}
				})
			})
		}
	}
}

// One 503 is most often a restart of the API.
func TestOne503DoesNotSlowDownWhatFollows(t *testing.T) {
	testenv.NotShort(t)
	var took [2]time.Duration
	for i, faults := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			sim := quick()
			d := startWith(t, sim)
			time.Sleep(10 * time.Second)
			must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-0")))
			if faults > 0 {
				sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: lists, Contains: "name=", Status: http.StatusServiceUnavailable, Times: faults})
			}
			must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-0")))
			testenv.Value(together(150, func(i int) error { return outcome(d.CreateVolume(asSidecar(t), claim(fmt.Sprint("pvc-", i)))) }))(t)
			ids := slices.Sorted(maps.Keys(listed(t, d)))
			longest, err := together(150, func(i int) error {
				return outcome(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: ids[i]}))
			})
			if err != nil {
				t.Error(err)
			}
			took[i] = longest
		})
	}
	if took[1] > took[0]*11/10 {
		t.Errorf("150 deletes take %v after one 503, and %v without it", took[1], took[0])
	}
}

// external-provisioner retries after 1 s, 2 s, 4 s, ….
func TestAnErrorOfCinderItselfCostsAClaimSecondsAndALostAnswerMinutes(t *testing.T) {
	for status, limits := range map[int][2]time.Duration{
		http.StatusInternalServerError: {0, 8 * time.Second}, http.StatusServiceUnavailable: {0, 8 * time.Second}, http.StatusTooManyRequests: {0, 8 * time.Second},
		http.StatusBadGateway: {2 * time.Minute, 5 * time.Minute}, http.StatusGatewayTimeout: {2 * time.Minute, 5 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			sim := quick()
			d := startWith(t, sim)
			sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/volume/v3/*/volumes", Status: status, Times: 1})
			begin := time.Now()
			for pause := time.Second; ; pause *= 2 {
				if _, err := d.CreateVolume(asSidecar(t), claim("pvc-1")); err == nil {
					break
				}
				time.Sleep(pause)
			}
			if took := time.Since(begin); took < limits[0] || took > limits[1] || len(listed(t, d)) != 1 {
				t.Errorf("HTTP %d: %d volumes after %v, want one after %v to %v", status, len(listed(t, d)), took, limits[0], limits[1])
			}
		})
	}
}

// Everybody who reaches the driver may read these pages. Each page view must not become a request to Keystone.
func TestReadinessCostsOneRequestToKeystoneInFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		var keystone atomic.Int64
		d := start(t, sim.CloudConf(inprocess.URL), memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/identity/v3") && r.Method == http.MethodGet {
				keystone.Add(1)
				time.Sleep(100 * time.Millisecond)
			}
			sim.Handler().ServeHTTP(w, r)
		})))
		time.Sleep(time.Minute)
		before := keystone.Load()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 20 {
					if _, code := d.Get(t, "/readyz"); code != http.StatusOK {
						t.Errorf("HTTP %d", code)
					}
					time.Sleep(time.Second)
				}
			})
		}
		all.Wait()
		if n := keystone.Load() - before; n != 4 {
			t.Errorf("%d requests to Keystone for 1,000 page views in 20 s", n)
		}
		if counted := d.Metric(t, `openstack_api_requests_total{request="keystone_check"}`); int64(counted) != keystone.Load() {
			t.Errorf("%v requests are counted, of %d", counted, keystone.Load())
		}
	})
}

// An administrator may raise osapi_max_limit. The driver must not get more in one answer than it accepts.
func TestAProjectOf45000VolumesIsListedWhateverThePageSizeOfCinderIs(t *testing.T) {
	testenv.NotShort(t)
	const volumes, osapiMaxLimit = 45_000, 20_000
	synctest.Test(t, func(t *testing.T) {
		sim := openstacksim.New(openstacksim.Default())
		d := start(t, sim.CloudConf(inprocess.URL), memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/volumes/detail") {
				_, _ = w.Write(pageOf(r, volumes, osapiMaxLimit))
				return
			}
			sim.Handler().ServeHTTP(w, r)
		})))
		seen := map[string]bool{}
		for request := (&csi.ListVolumesRequest{}); ; {
			list, err := d.ListVolumes(asSidecar(t), request)
			if err != nil || len(list.GetEntries()) > 2*1000 {
				t.Fatalf("after %d volumes: %d more, %v", len(seen), len(list.GetEntries()), err)
			}
			for _, entry := range list.GetEntries() {
				seen[entry.GetVolume().GetVolumeId()] = true
			}
			if request.StartingToken = list.GetNextToken(); request.GetStartingToken() == "" {
				break
			}
		}
		if len(seen) != volumes {
			t.Errorf("%d volumes", len(seen))
		}
	})
}

// pageOf is a page of a project with so many volumes.
func pageOf(r *http.Request, volumes, most int) []byte {
	const id = "00000000-0000-4000-8000-%012d"
	begin, limit := 0, 0
	if _, err := fmt.Sscanf(r.URL.Query().Get("marker"), id, &begin); err == nil {
		begin++
	}
	if _, err := fmt.Sscan(r.URL.Query().Get("limit"), &limit); err != nil || limit > most {
		limit = most
	}
	end := min(volumes, begin+limit)
	page := []byte(`{"volumes": [`)
	for i := begin; i < end; i++ {
		if i > begin {
			page = append(page, ',')
		}
		page = fmt.Appendf(page, `{"id": "`+id+`", "name": "pvc-%d", "status": "in-use", "size": 1, "description": "%0100d", "attachments": [{"attachment_id": "`+id+`", "server_id": "`+id+`"}]}`, i, i, 0, i, i%1000)
	}
	page = append(page, ']')
	if end < volumes {
		page = append(page, `, "volumes_links": [{"rel": "next", "href": "x"}]`...)
	}
	return append(page, '}')
}
