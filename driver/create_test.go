package driver

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
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
		sim := simulated()
		d := startWith(t, sim)
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
