package contract

import (
	"slices"
	"strings"
	"testing"
)

func TestAZonesLabelIsUpstreamsWhereThatLeavesAnything(t *testing.T) {
	for zone, want := range map[string]string{
		"": "", "  ": "", "az1": "az1", "zone 1": "zone-1", "東京-1": "1", "東京": "zone-130016b2599bf7e5", "...": "zone-ab5df625bc76dbd4",
	} {
		if got := ZoneLabel(zone); got != want {
			t.Errorf("%q: want %q, got %q", zone, want, got)
		}
	}
}

func TestZonesAreFoundByTheirLabels(t *testing.T) {
	zones := []string{"zone: 2", "zone 1", "zone-1", "zone 2", "東京", "nova"}
	for label, want := range map[string][]string{
		"nova": {"nova"}, "zone-1": {"zone-1"}, "zone-2": {"zone 2", "zone: 2"}, "zone 1": {"zone 1"}, ZoneLabel("東京"): {"東京"}, "": nil, "az9": nil,
	} {
		if got := ZonesLabelled(label, zones); !slices.Equal(got, want) {
			t.Errorf("%q: want %q, got %q", label, want, got)
		}
	}
}

func TestAZoneMapGoesBothWays(t *testing.T) {
	m := ZoneMap{"az 1": "cinder 1", "az2": "cinder 1", "az3": "az4", "az4": "az3"}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{"az-1": "cinder 1", "az2": "cinder 1", "az3": "az4", "az4": "az3", "az5": "az5", "": ""} {
		if got := m.Volume(label); got != want {
			t.Errorf("%q is served by %q, want %q", label, got, want)
		}
	}
	for zone, want := range map[string][]string{"cinder 1": {"az-1", "az2", "cinder-1"}, "az4": {"az3"}, "az3": {"az4"}, "az2": nil, "az5": {"az5"}} {
		if got := m.Labels(zone); !slices.Equal(got, want) {
			t.Errorf("%q serves %q, want %q", zone, got, want)
		}
	}
	if got := ZoneMap(nil).Labels("zone 1"); !slices.Equal(got, []string{"zone-1"}) {
		t.Errorf("without a map: %q", got)
	}
}

func TestZoneMapsThatCannotBe(t *testing.T) {
	for problem, m := range map[string]ZoneMap{
		"no name":               {" ": "a"},
		"no volume zone":        {"az1": " "},
		"different volume zone": {"az 1": "a", "az-1": "b"},
	} {
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("want an error with %q, got %v", problem, err)
		}
	}
	if err := (ZoneMap{"az 1": "a", "az-1": "a"}).Check(); err != nil {
		t.Error(err)
	}
}

// For any zones, a label is valid and leads back to its zone. A label leads to several zones only if upstream's rule gives them one label.
func FuzzZoneLabel(f *testing.F) {
	for _, seed := range [][2]string{{"az1", "az2"}, {"zone 1", "zone-1"}, {"zone 1", "zone:1"}, {"東京", "大阪"}, {"", " "}, {strings.Repeat("a", 80), strings.Repeat("a", 63)}, {"zone-130016b2599bf7e5", "東京"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, zone, other string) {
		label := ZoneLabel(zone)
		if len(label) > 63 || notLabel.MatchString(label) || strings.Trim(label, "-_.") != label || (label == "") != (strings.TrimSpace(zone) == "") {
			t.Errorf("%q gives %q, which is no label value", zone, label)
		}
		if label == "" {
			return
		}
		if upstream := sanitizeZone(zone); upstream != "" && label != upstream {
			t.Errorf("%q: upstream labels nodes %q, not %q", zone, upstream, label)
		}
		found := ZonesLabelled(label, []string{other, zone})
		if !slices.Contains(found, zone) && !(label == other && other != zone) {
			t.Errorf("%q among %q: found %q by label %q", zone, other, found, label)
		}
		if slices.Contains(found, other) && ZoneLabel(other) != label {
			t.Errorf("%q found by the label of %q", other, zone)
		}
		m := ZoneMap{zone: other}
		if m.Check() == nil && (m.Volume(label) != other || !slices.Contains(m.Labels(other), label)) {
			t.Errorf("%v: %q is served by %q, which serves %q", m, label, m.Volume(label), m.Labels(other))
		}
	})
}
