package controller

import (
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func ignored() bool { return true }

// The rules of upstream for --with-topology, --additional-topology, ignore-volume-az and the parameter availability. Beyond them
// the driver also reports later choices, and supports zone maps.
func TestCreateVolumeTopology(t *testing.T) {
	requirement := func(preferred, requisite []string) *csi.TopologyRequirement {
		return &csi.TopologyRequirement{Preferred: zone(preferred...), Requisite: zone(requisite...)}
	}
	both := requirement([]string{"az2"}, []string{"az1", "az2"})
	mapped := func() contract.ZoneMap { return contract.ZoneMap{"az1": "cinder 1", "az 2": "cinder 1", "az3": "az4"} }
	for name, test := range map[string]struct {
		class      string // its parameter availability
		wanted     *csi.TopologyRequirement
		change     func(*Options)
		zone       string // the volume's; "real" when empty
		want       []string
		wantZone   string
		reported   []string
		otherwise  string // the whole reported topology, where it is not the zone alone
		allowOther bool
	}{
		"nobody says":                        {reported: []string{"real"}},
		"the preferred come first":           {wanted: both, want: []string{"az2", "az1"}, reported: []string{"real"}},
		"requisite alone":                    {wanted: requirement(nil, []string{"az1", "az2"}), want: []string{"az1", "az2"}, reported: []string{"real"}},
		"the class's zone stands as it is":   {class: "zone 1", wanted: both, want: []string{"az2", "az1"}, wantZone: "zone 1", reported: []string{"real"}},
		"topologies without a zone":          {wanted: &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{"topology.kubernetes.io/region": "R"}}}}, reported: []string{"real"}},
		"a real zone becomes a label":        {wanted: both, zone: "zone 1", want: []string{"az2", "az1"}, reported: []string{"zone-1"}},
		"Cinder tells no zone":               {zone: " ", reported: nil},
		"topology off: nothing is honoured":  {wanted: both, change: func(o *Options) { o.WithTopology = false }},
		"topology off: but for the class":    {class: "az3", wanted: both, change: func(o *Options) { o.WithTopology = false }, wantZone: "az3"},
		"ignore-volume-az: all preferred":    {wanted: requirement([]string{"az2", "az1"}, []string{"az3"}), change: func(o *Options) { o.IgnoreZone = ignored }, want: []string{"az2", "az1", "az3"}, reported: []string{"az2", "az1"}, allowOther: true},
		"ignore-volume-az: nothing wanted":   {change: func(o *Options) { o.IgnoreZone = ignored }, allowOther: true},
		"ignore-volume-az and a class":       {class: "nova", wanted: both, change: func(o *Options) { o.IgnoreZone = ignored }, want: []string{"az2", "az1"}, wantZone: "nova", reported: []string{"az2"}, allowOther: true},
		"ignore-volume-az with topology off": {wanted: both, change: func(o *Options) { o.IgnoreZone, o.WithTopology = ignored, false }, allowOther: true},
		"a zone map":                         {wanted: requirement([]string{"az-2", "az9"}, []string{"az1", "az3"}), change: func(o *Options) { o.ZoneMap = mapped }, zone: "cinder 1", want: []string{"cinder 1", "az9", "az4"}, reported: []string{"az-2", "az1", "cinder-1"}},
		"a zone map: back to one's own name": {change: func(o *Options) { o.ZoneMap = mapped }, zone: "az9", reported: []string{"az9"}},
		"a zone map: mapped away":            {change: func(o *Options) { o.ZoneMap = mapped }, zone: "az3"},
	} {
		t.Run(name, func(t *testing.T) {
			at := test.zone
			if at == "" {
				at = "real"
			}
			f := &fake{volume: volume.Volume{ID: first, Zone: at}}
			s := server(f, func(o *Options) {
				if test.change != nil {
					test.change(o)
				}
			})
			req := &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter, AccessibilityRequirements: test.wanted}
			if test.class != "" {
				req.Parameters = map[string]string{"availability": test.class}
			}
			got, err := s.CreateVolume(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			var reported []string
			for _, topology := range got.GetVolume().GetAccessibleTopology() {
				reported = append(reported, topology.GetSegments()[zoneKey])
			}
			if !slices.Equal(f.spec.Zones, test.want) || f.spec.Zone != test.wantZone || f.spec.AnyZone != test.allowOther {
				t.Errorf("want %v, %q, %v asked for, got %+v", test.want, test.wantZone, test.allowOther, f.spec)
			}
			if !slices.Equal(reported, test.reported) {
				t.Errorf("want %v reported, got %v", test.reported, reported)
			}
		})
	}
}

// As upstream does: with ignore-volume-az the request's preferred topologies come back whole.
func TestIgnoreVolumeAZReturnsThePreferredTopologies(t *testing.T) {
	s := server(&fake{volume: volume.Volume{ID: first, Zone: "real"}}, func(o *Options) { o.IgnoreZone = ignored })
	got, err := s.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "a", VolumeCapabilities: oneWriter, AccessibilityRequirements: &csi.TopologyRequirement{Preferred: zone("az1")},
	})
	if err != nil || got.GetVolume().GetAccessibleTopology()[0].GetSegments()["topology.kubernetes.io/region"] != "R" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestCreateVolumeReadsMetadataAndHintsOfTheClass(t *testing.T) {
	f := &fake{volume: volume.Volume{ID: first}}
	request := func(parameters map[string]string) *csi.CreateVolumeRequest {
		return &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter, Parameters: parameters}
	}
	parameters := map[string]string{
		"metadata.claim": "${pvc.namespace}/${pvc.name}", "csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "shop",
		"scheduler-hints": `{"different_host": "db"}`,
	}
	if _, err := server(f).CreateVolume(t.Context(), request(parameters)); err != nil {
		t.Fatal(err)
	}
	if f.spec.Metadata["claim"] != "shop/data" || !slices.Equal(f.spec.Hints.DifferentHost, []string{"db"}) {
		t.Errorf("got %+v", f.spec)
	}
	delete(parameters, "csi.storage.k8s.io/pvc/name")
	_, err := server(f).CreateVolume(t.Context(), request(parameters))
	kindIs(t, err, volume.InvalidArgument, "--extra-create-metadata")
	_, err = server(f).CreateVolume(t.Context(), request(map[string]string{"scheduler-hints": "same_host=a"}))
	kindIs(t, err, volume.InvalidArgument, "scheduler-hints")
}
