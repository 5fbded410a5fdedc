package driver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

// annotated starts a driver in a cluster whose claims all have this annotation.
func annotated(t *testing.T, sim *openstacksim.Sim, hint func() string, flags ...string) *instance {
	t.Helper()
	return start(t, sim.CloudConf(inprocess.URL), besides(sim, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"metadata": {"annotations": {"cinder.csi.openstack.org/anti-affinity": %q}}}`, hint())
	}), append(flags, "--pvc-annotations", "--master="+kubeURL)...)
}

// Upstream accepts any volume of the project in an annotation. A claim that was written for it gets its volume, without the hint.
func TestALenientDriverDropsHintsThatNameNoVolumeOfTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, hint := simulated(), ""
		d := annotated(t, sim, func() string { return hint })
		byHand := made(t, d, func(r *csi.CreateVolumeRequest) { r.Name = "by-hand" })
		mine := made(t, d, func(r *csi.CreateVolumeRequest) { r.Name = "pvc-mine"; ofClaim("shop", "mine")(r) })
		made(t, d, func(r *csi.CreateVolumeRequest) { r.Name = "pvc-theirs"; ofClaim("bank", "theirs")(r) })
		for i, foreign := range []string{"by-hand", byHand, "pvc-theirs", "pvc-none", "11111111-2222-4333-8444-555555555555"} {
			hint = "pvc-mine," + foreign
			name := fmt.Sprint("pvc-new-", i)
			must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim(name, ofClaim("shop", "new"))))
			requests := sim.Requests()
			n := slices.IndexFunc(requests, func(r openstacksim.Request) bool { return strings.Contains(r.Body, `"`+name+`"`) })
			if want := `"OS-SCH-HNT:scheduler_hints":{"different_host":["` + mine + `"]}`; n < 0 || !strings.Contains(requests[n].Body, want) {
				t.Errorf("%s: want a create with %s", foreign, want)
			}
		}
		if n := strings.Count(d.Log.String(), "without that scheduler hint"); n != 1 {
			t.Errorf("%d warnings for one claim\n%s", n, d.Log)
		}
	})
}

// A claim may name up to 64 volumes, and external-provisioner retries a refused claim for ever.
func TestTheHintsOfAClaimCostOneRequest(t *testing.T) {
	for _, last := range []string{"pvc-0", "pvc-none"} {
		story(t, last, func(t *testing.T) {
			sim := simulated()
			var names []string
			for n := range 5 {
				names = append(names, fmt.Sprint("pvc-", n))
			}
			d := annotated(t, sim, func() string { return strings.Join(append(names, last), " ") }, "--strict")
			unannotated := startWith(t, sim)
			for _, name := range names {
				must[*csi.CreateVolumeResponse](t)(unannotated.CreateVolume(asSidecar(t), claim(name, ofClaim("shop", name))))
			}
			sim.ResetRequests()
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-new", ofClaim("shop", "new")))
			if (err == nil) != (last == "pvc-0") {
				t.Fatal(err)
			}
			lookups := 0
			for _, r := range sim.Requests() {
				if r.Method == http.MethodGet && !strings.Contains(r.Query, "name=pvc-new") && !strings.Contains(r.Query, "created_at") && strings.Contains(r.Path, "/volumes/detail") {
					lookups++
				}
			}
			if lookups != 1 {
				t.Errorf("%d lookups", lookups)
			}
		})
	}
}

// An administrator of Cinder can switch filters off. The list without the filter has the volumes too.
func TestHintsOfAClaimWithoutTheMetadataFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, hint := simulated(), ""
		d := annotated(t, sim, func() string { return hint }, "--strict")
		made(t, d, ofClaim("shop", "data"))
		sim.SetFault(openstacksim.Fault{Method: http.MethodGet, Path: "/volume/v3/*/volumes/detail", Contains: "metadata", Status: http.StatusBadRequest, Message: "Invalid filters metadata are found in query options."})
		hint = "pvc-1"
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2", ofClaim("shop", "copy"))))
	})
}
