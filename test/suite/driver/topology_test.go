package driver_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/inprocess"
)

const zoneKey = "topology.cinder.csi.openstack.org/zone"

func zonesOf(topologies []*csi.Topology) []string {
	var zones []string
	for _, topology := range topologies {
		zones = append(zones, topology.GetSegments()[zoneKey])
	}
	return zones
}

// From the label that a node reports to the zone that Cinder gets, and back to the label that the volume's affinity gets.
func TestZonesRoundTrip(t *testing.T) {
	for name, test := range map[string]struct {
		volumeZones []string
		fallback    bool
		conf        string
		labels      []string
		change      func(*csi.CreateVolumeRequest)
		want        []string // reported
		code        codes.Code
		text        string
	}{
		// Upstream could not use a zone whose name has a blank.
		"zone 1":                                 {volumeZones: []string{"zone 1", "zone 2"}, labels: []string{"zone-2"}, want: []string{"zone-2"}},
		"the next one":                           {volumeZones: []string{"az2"}, labels: []string{"az1", "az2"}, want: []string{"az2"}},
		"none that Cinder has":                   {volumeZones: []string{"nova"}, labels: []string{"az1"}, code: codes.ResourceExhausted, text: "its zones are nova"},
		"none that Cinder has and it falls back": {volumeZones: []string{"nova"}, fallback: true, labels: []string{"az1"}, code: codes.ResourceExhausted, text: "its zones are nova"},
		"mapped": {
			volumeZones: []string{"nova", "cinder 1"}, conf: "\n[Zone \"az1\"]\nvolume-zone = cinder 1\n[Zone \"az 2\"]\nvolume-zone = cinder 1\n",
			labels: []string{"az-2"}, want: []string{"az-2", "az1", "cinder-1"},
		},
		"ignored into the default zone": {
			volumeZones: []string{"nova"}, fallback: true, conf: "\n[BlockStorage]\nignore-volume-az = true\n", labels: []string{"az1", "az2"}, want: []string{"az1", "az2"},
		},
		"a class's zone":              {volumeZones: []string{"nova", "az1"}, labels: []string{"az1"}, change: of("availability", "nova"), want: []string{"nova"}},
		"a mistyped class":            {volumeZones: []string{"nova"}, labels: []string{"nova"}, change: of("availability", "nvoa"), code: codes.InvalidArgument, text: "nvoa"},
		"a class in the default zone": {volumeZones: []string{"nova"}, fallback: true, labels: []string{"az1"}, change: of("availability", "other"), want: []string{"nova"}},
	} {
		story(t, name, func(t *testing.T) {
			sim := simulated()
			sim.SetVolumeZones(test.volumeZones...)
			sim.SetZoneFallback(test.fallback)
			d := start(t, append(sim.CloudConf(inprocess.URL), test.conf...), memnet.Transport(sim.Handler()))
			if test.change == nil {
				test.change = func(*csi.CreateVolumeRequest) {}
			}
			for range 2 { // the retry gets the same answer
				got, err := d.CreateVolume(asSidecar(t), claim("pvc-1", wanted(test.labels...), test.change))
				if test.code != codes.OK {
					wantCode(t, err, test.code, test.text)
				} else if err != nil || !slices.Equal(zonesOf(got.GetVolume().GetAccessibleTopology()), test.want) {
					t.Errorf("want %v, got %v, %v", test.want, got, err)
				}
			}
			if n := len(listed(t, d)); n > 1 || test.code != codes.OK && n > 0 {
				t.Errorf("%d volumes are left", n)
			}
		})
	}
}

// A zone whose backends are full fails after Cinder has accepted the volume.
func TestAFullZoneLeavesNothingAndTheSchedulerChoosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d, ctx := startWith(t, sim), asSidecar(t)
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true, Times: 2})
		_, err := d.CreateVolume(ctx, claim("pvc-1", wanted("az1", "az2")))
		wantCode(t, err, codes.ResourceExhausted, "tried az1, az2")
		if n := len(listed(t, d)); n != 0 {
			t.Errorf("%d volumes are left", n)
		}
		sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true, Times: 1})
		got := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", wanted("az1", "az2"))))
		if zones := zonesOf(got.GetVolume().GetAccessibleTopology()); !slices.Equal(zones, []string{"az2"}) || len(listed(t, d)) != 1 {
			t.Errorf("got %v of %v", zones, listed(t, d))
		}
	})
}

// A cloud that does not let us read its zones, and puts unknown ones into its default.
func TestAVolumeInTheDefaultZoneInsteadOfTheRequestedOneIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetVolumeZones("nova")
		sim.SetZoneFallback(true)
		sim.SetFault(openstacksim.Fault{Method: "GET", Path: "/volume/v3/*/os-availability-zone", Status: 403})
		d := startWith(t, sim)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1", wanted("az1")))
		wantCode(t, err, codes.ResourceExhausted, "in zone nova instead of az1")
		if n := len(listed(t, d)); n != 0 {
			t.Errorf("%d volumes are left", n)
		}
	})
}

// A [Zone] section that is added counts for the next volume.
func TestAChangedZoneMapTakesEffectAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		sim.SetVolumeZones("nova")
		d := startWith(t, sim)
		_, err := d.CreateVolume(asSidecar(t), claim("pvc-1", wanted("az1")))
		wantCode(t, err, codes.ResourceExhausted, "[Zone]")
		project(t, d.CloudConf, append(sim.CloudConf(inprocess.URL), "[Zone \"az1\"]\nvolume-zone = nova\n"...))
		d.Changed <- struct{}{}
		time.Sleep(time.Second)
		got := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1", wanted("az1"))))
		if zones := zonesOf(got.GetVolume().GetAccessibleTopology()); !slices.Equal(zones, []string{"az1", "nova"}) {
			t.Errorf("got %v", zones)
		}
	})
}
