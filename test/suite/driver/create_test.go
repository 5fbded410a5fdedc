package driver_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestVolumeLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		az1, az2 := servers()
		v := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) {
			r.Parameters = map[string]string{"type": "fast"}
			r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": "az2"}}}}
		}))).GetVolume()
		if got := v.GetAccessibleTopology()[0].GetSegments()["topology.cinder.csi.openstack.org/zone"]; got != "az2" || v.GetCapacityBytes() != 1<<30 {
			t.Errorf("got %v", v)
		}
		id := v.GetVolumeId()
		publish := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az2, VolumeCapability: writer}
		for range 2 {
			must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(ctx, publish))
		}
		if diff := cmp.Diff(map[string][]string{id: {az2}}, listed(t, d)); diff != "" {
			t.Error("list, -want +got\n", diff)
		}
		_, err := d.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer})
		wantCode(t, err, codes.FailedPrecondition, az2)
		_, err = d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.FailedPrecondition, az2)
		for range 2 {
			must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az2}))
		}
		if diff := cmp.Diff(map[string][]string{id: nil}, listed(t, d)); diff != "" {
			t.Error("list, -want +got\n", diff)
		}
		for range 2 {
			must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}))
		}
		if left := listed(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		_, err = d.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})
		wantCode(t, err, codes.NotFound, id)
	})
}

func TestACloneIsCreatedInTheZoneOfItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWith(t, simulated()), asSidecar(t)
		source := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-1", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"availability": "az2"} }))).GetVolume()
		clone := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(ctx, claim("pvc-2", func(r *csi.CreateVolumeRequest) {
			fromVolume(source.GetVolumeId())(r)
		}))).GetVolume()
		if diff := cmp.Diff(source.GetAccessibleTopology()[0].GetSegments(), clone.GetAccessibleTopology()[0].GetSegments()); diff != "" || clone.GetVolumeContext()["cinder.csi.openstack.org/resizeRequired"] != "true" {
			t.Error(clone, diff)
		}
	})
}

func TestAFailedCreateReturnsTheReasonAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		d := startWith(t, sim)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		if code := status.Code(err); code != codes.ResourceExhausted && code != codes.FailedPrecondition { // final: nothing exists
			t.Errorf("got %v", err)
		}
		wantCode(t, err, status.Code(err), "weighted backend")
		if left := listed(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
	})
}

func TestCreateVolumeRetriedWhileTheFirstVolumeIsInErrorIsNotOK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.CreateVolume(impatient, claim("pvc-1"))
		wantCode(t, err, codes.DeadlineExceeded, "")
		time.Sleep(time.Minute) // virtual: the volume went to error, and nobody looked
		failed := listed(t, d)
		if len(failed) != 1 {
			t.Fatalf("want the failed volume, got %v", failed)
		}
		_, err = d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.FailedPrecondition, "the driver deleted it")
		if left := listed(t, d); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if _, same := failed[made(t, d)]; same {
			t.Error("the failed volume is given out")
		}
	})
}

func TestACreateResumesAfterItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetLatency(openstacksim.CreateVolume, 5*time.Minute)
		d := startWith(t, sim)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1"))
		wantCode(t, err, codes.DeadlineExceeded, "")
		synctest.Wait() // the server's side ends too
		first := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		if all := listed(t, d); len(all) != 1 || all[first] != nil {
			t.Errorf("want %s alone, got %v", first, all)
		}
	})
}

// volumeRequests are those about volumes, without the check each minute whether the cloud answers.
func volumeRequests(sim *openstacksim.Sim) int {
	about := 0
	for _, r := range sim.Requests() {
		if strings.Contains(r.Path, "/volumes") {
			about++
		}
	}
	return about
}

func TestAnExpiredContextStopsPollingWithinATenthOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetAllLatency(time.Hour)
		sim.SetLatency(openstacksim.Answer, 50*time.Millisecond)
		d := startWith(t, sim)
		const patience = 20 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		_, err := d.CreateVolume(ctx, claim("pvc-1"))
		if late := time.Since(began) - patience; status.Code(err) != codes.DeadlineExceeded || late > 100*time.Millisecond {
			t.Errorf("got %v, %v late", err, late)
		}
		time.Sleep(100 * time.Millisecond)
		asked := volumeRequests(sim)
		if time.Sleep(time.Minute); asked == 0 || volumeRequests(sim) != asked {
			t.Errorf("%d requests about volumes, and %d after the call had ended", asked, volumeRequests(sim)-asked)
		}
	})
}

// Sizes that no volume can have, and the limits of Cinder. No volume is left after any of them.
func TestCreateVolumeWithAnImpossibleSizeIsOutOfRange(t *testing.T) {
	sized := func(required, limit int64) func(*csi.CreateVolumeRequest) {
		return func(r *csi.CreateVolumeRequest) {
			r.CapacityRange = &csi.CapacityRange{RequiredBytes: required, LimitBytes: limit}
		}
	}
	const gib = 1 << 30
	for name, test := range map[string]struct {
		change []func(*csi.CreateVolumeRequest)
		text   string // empty: the volume is made
	}{
		"a limit below the rounded size":    {[]func(*csi.CreateVolumeRequest){sized(gib+1, 2*gib-1)}, "Cinder creates volumes of whole GiB"},
		"a limit alone below one GiB":       {[]func(*csi.CreateVolumeRequest){sized(0, gib-1)}, "Cinder creates volumes of whole GiB"},
		"a limit at the rounded size":       {[]func(*csi.CreateVolumeRequest){sized(gib+1, 2*gib), of("type", "two-to-three")}, ""},
		"below the type's least":            {[]func(*csi.CreateVolumeRequest){sized(gib, 0), of("type", "two-to-three")}, "minimum required size of '2'"},
		"above the type's most":             {[]func(*csi.CreateVolumeRequest){sized(4*gib, 0), of("type", "two-to-three")}, "maximum allowable size of '3'"},
		"above the quota for one volume":    {[]func(*csi.CreateVolumeRequest){sized(9*gib, 0)}, "maximum allowed limit 8G"},
		"the largest that the quota allows": {[]func(*csi.CreateVolumeRequest){sized(8*gib, 0)}, ""},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			sim.AddVolumeType(openstacksim.VolumeType{
				Name: "two-to-three", ExtraSpecs: map[string]string{"provisioning:min_vol_size": "2", "provisioning:max_vol_size": "3"},
			})
			sim.SetQuota("demo", "per_volume_gigabytes", 8)
			d := startWith(t, sim)
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-1", test.change...))
			if test.text == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantCode(t, err, codes.OutOfRange, test.text)
			if n := len(listed(t, d)); n != 0 {
				t.Errorf("%d volumes are left", n)
			}
		})
	}
}

func TestInvalidClassesLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		for parameter, value := range map[string]string{
			"scheduler-hints": `{"same_host": "not-there"}`, "metadata.claim": "${pvc.name}", "appendVolumeMetadata": "team=storage", "metadata.${x}": "",
			"blockSize": "8192", "numberOfInodes": "99999999",
		} {
			_, err := d.CreateVolume(asSidecar(t), claim("pvc-1", of(parameter, value)))
			wantCode(t, err, codes.InvalidArgument, "")
		}
		if n := len(listed(t, d)); n != 0 {
			t.Errorf("%d volumes are left", n)
		}
	})
}

func TestHintsAndMetadataReachTheCloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, d := started(t)
		other := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-2",
			of("scheduler-hints", `{"different_host": "pvc-1"}`), of("metadata.claim", "${pvc.namespace}/${pvc.name}"),
			of("csi.storage.k8s.io/pvc/name", "data"), of("csi.storage.k8s.io/pvc/namespace", "shop"),
		)))
		asked := sim.Requests()
		i := slices.IndexFunc(asked, func(r openstacksim.Request) bool { return strings.Contains(r.Body, `"pvc-2"`) })
		for _, text := range []string{`"OS-SCH-HNT:scheduler_hints":{"different_host":["` + other + `"]}`, `"claim":"shop/data"`} {
			if i < 0 || !strings.Contains(asked[i].Body, text) {
				t.Errorf("want a create with %s, got %v", text, asked)
			}
		}
	})
}

// Cinder's database takes a type's name in any case; the volume then tells it as it is.
func TestTypeNamesIgnoreCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		first := made(t, d, of("type", "STANDARD"))
		if again := made(t, d, of("type", "STANDARD")); again != first || len(listed(t, d)) != 1 {
			t.Errorf("made %s and then %s; there are %v", first, again, listed(t, d))
		}
	})
}
