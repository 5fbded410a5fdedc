package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// segmented is a topology with a zone and a region.
func segmented(zone, region string) *csi.Topology {
	return &csi.Topology{Segments: map[string]string{zoneKey: zone, "topology.kubernetes.io/region": region}}
}

// Two clouds may have a zone of the same name. The region in the request keeps the volume on the nodes of its own cloud.
func TestTheTopologyOfAVolumeKeepsTheOtherSegmentsThatTheRequestRequired(t *testing.T) {
	for name, test := range map[string]struct {
		requisite []*csi.Topology
		zones     contract.ZoneMap
		zone      string
		want      []string
	}{
		"the zone of the request":              {requisite: []*csi.Topology{segmented("nova", "north")}, zone: "nova", want: []string{"nova/north"}},
		"several regions have it":              {requisite: []*csi.Topology{segmented("nova", "north"), segmented("nova", "south"), segmented("az2", "north")}, zone: "nova", want: []string{"nova/north", "nova/south"}},
		"one topology twice":                   {requisite: []*csi.Topology{segmented("nova", "north"), segmented("nova", "north")}, zone: "nova", want: []string{"nova/north"}},
		"a zone that the request did not name": {requisite: []*csi.Topology{segmented("az1", "north"), segmented("az2", "north")}, zone: "nova", want: []string{"nova/north"}},
		"that one in several regions":          {requisite: []*csi.Topology{segmented("az1", "north"), segmented("az2", "south")}, zone: "nova", want: []string{"nova/"}},
		"a zone map": {
			requisite: []*csi.Topology{segmented("az1", "north")}, zones: contract.ZoneMap{"az1": "nova", "az2": "nova"}, zone: "nova",
			want: []string{"az1/north", "az2/north", "nova/north"},
		},
		"no requirement": {zone: "nova", want: []string{"nova/"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(&fake{volume: volume.Volume{ID: first, Zone: test.zone}}, func(o *Options) {
				o.ZoneMap = func() contract.ZoneMap { return test.zones }
			})
			got, err := s.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
				Name: "a", VolumeCapabilities: oneWriter, AccessibilityRequirements: &csi.TopologyRequirement{Requisite: test.requisite},
			})
			if err != nil {
				t.Fatal(err)
			}
			var reported []string
			for _, topology := range got.GetVolume().GetAccessibleTopology() {
				segments := topology.GetSegments()
				reported = append(reported, fmt.Sprintf("%s/%s", segments[zoneKey], segments["topology.kubernetes.io/region"]))
			}
			if !slices.Equal(reported, test.want) {
				t.Errorf("want %s, got %s", strings.Join(test.want, " "), strings.Join(reported, " "))
			}
		})
	}
}
