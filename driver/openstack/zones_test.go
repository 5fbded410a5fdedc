package openstack

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

var zoneOperations = []operation{
	{"volume zones", false, answer{status: 200, body: `{"availabilityZoneInfo": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.VolumeZones(ctx)
		return err
	}},
}

func TestVolumeZonesAreNamedWhetherTheyAreUpOrNot(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 200, body: `{"availabilityZoneInfo": [{"zoneName": "zone 1", "zoneState": {"available": true}},
		{"zoneName": "az2", "zoneState": {"available": false}}, {"zoneName": "az2"}]}`})
	got, err := c.VolumeZones(t.Context())
	if want := []string{"az2", "zone 1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("want %v, got %v, %v", want, got, err)
	}
}

func TestHintsStandBesideTheVolume(t *testing.T) {
	t.Parallel()
	const hinted = `{"same_host":["a"],"different_host":["b","c"],"query":"[\"=\",\"x\",\"y\"]","local_to_instance":"s"}`
	for name, test := range map[string]struct {
		hints contract.Hints
		want  string // of the key's value; empty: the key is missing
	}{
		"none": {},
		"one":  {contract.Hints{SameHost: []string{"a"}}, `{"same_host":["a"]}`},
		"all":  {contract.Hints{SameHost: []string{"a"}, DifferentHost: []string{"b", "c"}, Query: `["=","x","y"]`, LocalToServer: "s"}, hinted},
	} {
		c, f := connect(t, answer{status: 202, body: `{"volume": {"id": "` + volumeID + `"}}`})
		if _, err := c.CreateVolume(t.Context(), volume.CreateOptions{Name: "n", Size: volume.GiB(1), Hints: test.hints}); err != nil {
			t.Fatal(name, err)
		}
		var body map[string]json.RawMessage
		if err := json.Unmarshal([]byte(f.seen[0].Body), &body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, string(body["OS-SCH-HNT:scheduler_hints"])); diff != "" || body["volume"] == nil {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
