package driver_test

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestGetCapacityNeedsItsFlag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		if can(t, d, csi.ControllerServiceCapability_RPC_GET_CAPACITY) {
			t.Error("advertised without the flag")
		}
		_, err := d.GetCapacity(asSidecar(t), &csi.GetCapacityRequest{})
		wantCode(t, err, codes.Unimplemented, "--with-capacity")
	})
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated(), "--with-capacity"), asSidecar(t)
		if !can(t, d, csi.ControllerServiceCapability_RPC_GET_CAPACITY) {
			t.Error("not advertised")
		}
		for name, want := range map[string]int64{"": 20000 << 30, "fast": 1000 << 30, "standard": 20000 << 30} {
			got := must[*csi.GetCapacityResponse](t)(d.GetCapacity(ctx, &csi.GetCapacityRequest{Parameters: map[string]string{"type": name}}))
			if got.GetAvailableCapacity() != want || got.GetMaximumVolumeSize() != nil {
				t.Errorf("type %q: want %d, got %v", name, want, got)
			}
		}
		_, err := d.GetCapacity(ctx, &csi.GetCapacityRequest{Parameters: map[string]string{"type": "nowhere"}})
		wantCode(t, err, codes.InvalidArgument, "nowhere")
	})
}

// The reference of metrics shows the table of package telemetry. So a family that is not in the table has no documentation.
func TestEveryMetricOfTheDriverIsInTheTableOfFamilies(t *testing.T) {
	known := map[string]string{}
	for _, f := range telemetry.Families() {
		known["# HELP "+f.Name+" "+f.Help] = "# TYPE " + f.Name + " " + string(f.Kind)
	}
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated(), "--with-capacity", "--sys-root="+t.TempDir(), "--dev-root="+t.TempDir())
		made(t, d)
		must[*csi.GetCapacityResponse](t)(d.GetCapacity(asSidecar(t), &csi.GetCapacityRequest{}))
		page, _ := d.Get(t, "/metrics")
		families := regexp.MustCompile(`(?m)^(# HELP (?:cinder_csi|openstack)_.*)\n(# TYPE .*)$`).FindAllStringSubmatch(string(page), -1)
		for _, found := range families {
			if known[found[1]] != found[2] {
				t.Errorf("driver/telemetry/families.go lacks this family, or describes it otherwise:\n%s\n%s", found[1], found[2])
			}
		}
		if len(families) < len(known)*2/3 { // some have no values yet
			t.Errorf("the page has %d of %d families", len(families), len(known))
		}
	})
}

func TestTheProjectsQuotasAreMetricsOnceTheyWereRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim, "--with-capacity")
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		if page, _ := d.Get(t, "/metrics"); regexp.MustCompile(`cinder_csi_quota`).Match(page) {
			t.Error("quotas are shown that nobody has read")
		}
		must[*csi.GetCapacityResponse](t)(d.GetCapacity(asSidecar(t), &csi.GetCapacityRequest{}))
		time.Sleep(time.Second) // the age of a page
		before := sim.RequestCount()
		if limit, used := d.Metric(t, `cinder_csi_quota_limit_bytes{resource="volumes",type="fast"}`), d.Metric(t, `cinder_csi_quota_used_objects{resource="volumes",type=""}`); limit != 1000<<30 || used != 1 {
			t.Errorf("limit %v, used %v", limit, used)
		}
		if sim.RequestCount() != before {
			t.Error("a scrape asked the cloud")
		}
	})
}

func TestVolumeHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, ctx := startWith(t, sim), asSidecar(t)
		az1, _ := servers()
		well := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("well"))).GetVolume().GetVolumeId()
		ill := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("ill"))).GetVolume().GetVolumeId()
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: well, NodeId: az1, VolumeCapability: writer}))
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.ExtendVolume})
		_, err := d.ControllerExpandVolume(ctx, larger(ill, 2<<30, 0))
		wantCode(t, err, codes.Aborted, "")
		listed := must[*csi.ControllerListVolumeHealthResponse](t)(d.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{}))
		if len(listed.GetEntries()) != 1 || listed.GetEntries()[0].GetVolumeId() != ill || listed.GetEntries()[0].GetHealthStatuses()[0].GetReason() != "ErrorExtending" {
			t.Errorf("got %v", listed)
		}
		got := must[*csi.ControllerGetVolumeHealthResponse](t)(d.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: ill}))
		if s := got.GetVolumeHealth().GetHealthStatuses(); len(s) != 1 || s[0].GetStatus() != csi.VolumeHealthErrorType_INACCESSIBLE {
			t.Errorf("got %v", got)
		}
		got = must[*csi.ControllerGetVolumeHealthResponse](t)(d.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: well}))
		if got.GetVolumeHealth().GetVolumeId() != well || len(got.GetVolumeHealth().GetHealthStatuses()) != 0 {
			t.Errorf("got %v", got)
		}
		_, err = d.ControllerGetVolumeHealth(ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: az1})
		wantCode(t, err, codes.NotFound, az1)
	})
}
