package driver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const kubeURL = "http://kube.test"

// besides gives the requests to a cluster's API to kube and all others to the cloud.
func besides(sim *openstacksim.Sim, kube http.HandlerFunc) http.RoundTripper {
	return memnet.Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "kube.test" {
			kube(w, r)
			return
		}
		sim.Handler().ServeHTTP(w, r)
	}))
}

func ofClaim(namespace, name string) func(*csi.CreateVolumeRequest) {
	return func(r *csi.CreateVolumeRequest) {
		of("csi.storage.k8s.io/pvc/namespace", namespace)(r)
		of("csi.storage.k8s.io/pvc/name", name)(r)
	}
}

func TestHintsInAClaimsAnnotationsReachTheCloudOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		var asked atomic.Int32
		d := start(t, sim.CloudConf(inprocess.URL), besides(sim, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/namespaces/shop/persistentvolumeclaims/copy" {
				_, _ = w.Write([]byte(`{"metadata": {}}`))
				return
			}
			asked.Add(1)
			_, _ = w.Write([]byte(`{"metadata": {"annotations": {"cinder.csi.openstack.org/anti-affinity": "pvc-1, pvc-3"}}}`))
		}), "--pvc-annotations", "--master="+kubeURL, "--strict")
		first := made(t, d, ofClaim("shop", "data"))
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-2", ofClaim("shop", "copy")))
		wantCode(t, err, codes.InvalidArgument, `names volume "pvc-3"`)
		third := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-3", ofClaim("shop", "data")))).GetVolume().GetVolumeId()
		for range 3 {
			must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2", ofClaim("shop", "copy"))))
		}
		requests := sim.Requests()
		i := slices.IndexFunc(requests, func(r openstacksim.Request) bool { return strings.Contains(r.Body, `"pvc-2"`) })
		if want := `"OS-SCH-HNT:scheduler_hints":{"different_host":["` + first + `","` + third + `"]}`; i < 0 || !strings.Contains(requests[i].Body, want) {
			t.Errorf("want a create with %s, got %v", want, requests)
		}
		if asked.Load() != 2 {
			t.Errorf("the claim was read %d times, not once for each time that there was no volume", asked.Load())
		}
	})
}

func TestAHintInAnAnnotationDoesNotRevealOtherVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, hint := simulated(), ""
		d := start(t, sim.CloudConf(inprocess.URL), besides(sim, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"metadata": {"annotations": {"cinder.csi.openstack.org/affinity": "` + hint + `"}}}`))
		}), "--pvc-annotations", "--master="+kubeURL, "--strict")
		create := func(name, namespace string) (string, error) {
			v, err := d.CreateVolume(asSidecar(t), claim(name, ofClaim(namespace, name)))
			return v.GetVolume().GetVolumeId(), err
		}
		byHand := made(t, startWith(t, sim), func(r *csi.CreateVolumeRequest) { r.Name = "by-hand" }) // of no claim
		theirs := testenv.Value(create("pvc-theirs", "bank"))(t)
		answers := map[string]bool{}
		for _, hint = range []string{"pvc-theirs", theirs, "by-hand", byHand, "pvc-none", "11111111-2222-4333-8444-555555555555", strings.Repeat("x", 2000)} {
			_, err := create("pvc-mine", "shop")
			wantCode(t, err, codes.InvalidArgument, "of a claim in namespace shop")
			text := status.Convert(err).Message()
			answers[strings.ReplaceAll(strings.ReplaceAll(text, strings.Repeat("x", 255), "NAME"), hint, "NAME")] = true
		}
		if len(answers) != 1 {
			t.Errorf("the answers tell volumes that exist from those that do not: %v", answers)
		}
		hint = ""
		mine := testenv.Value(create("pvc-1", "shop"))(t)
		for i, name := range []string{"pvc-1", mine} {
			hint = name
			if _, err := create(fmt.Sprint("pvc-beside-", i), "shop"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestClaimsThatCannotBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		answer          int
		change          func(*csi.CreateVolumeRequest)
		lenient, strict codes.Code
	}{
		"no right":             {http.StatusForbidden, ofClaim("shop", "data"), codes.OK, codes.PermissionDenied},
		"no claim any more":    {http.StatusNotFound, ofClaim("shop", "data"), codes.OK, codes.OK},
		"no answer":            {http.StatusServiceUnavailable, ofClaim("shop", "data"), codes.Unavailable, codes.Unavailable},
		"nobody tells of it":   {http.StatusOK, func(*csi.CreateVolumeRequest) {}, codes.OK, codes.InvalidArgument},
		"nothing that can be":  {http.StatusOK, ofClaim("shop", "../secrets/x"), codes.OK, codes.InvalidArgument},
		"it has no annotation": {http.StatusOK, ofClaim("shop", "data"), codes.OK, codes.OK},
	} {
		for _, strict := range []bool{false, true} {
			story(t, fmt.Sprintf("%s strict %v", name, strict), func(t *testing.T) {
				sim := simulated()
				d := start(t, sim.CloudConf(inprocess.URL), besides(sim, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(test.answer)
					_, _ = w.Write([]byte(`{"metadata": {}}`))
				}), "--pvc-annotations", "--master="+kubeURL, fmt.Sprint("--strict=", strict))
				want := test.lenient
				if strict {
					want = test.strict
				}
				_, err := d.CreateVolume(asSidecar(t), claim("pvc-1", test.change))
				if status.Code(err) != want || (len(listed(t, d)) == 1) != (want == codes.OK) {
					t.Errorf("want %s, got %v; there are %v", want, err, listed(t, d))
				}
				warned := strings.Contains(d.Log.String(), "creates the volume without their scheduler hints")
				if want := test.lenient != test.strict && !strict; warned != want {
					t.Errorf("want a warning: %v\n%s", want, d.Log)
				}
			})
		}
	}
}
