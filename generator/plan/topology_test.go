package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestTopologyIsEnabledIfAndOnlyIfEveryComputeZoneIsAVolumeZone(t *testing.T) {
	cases := []struct {
		name            string
		compute, volume []string
		spec            string
		want            bool
	}{
		{"one zone of the same name", []string{"nova"}, []string{"nova"}, "", true},
		{"more volume zones than compute zones", []string{"az0"}, []string{"az0", "az1"}, "", true},
		{"the same zones", []string{"az0", "az1"}, []string{"az1", "az0"}, "", true},
		{"one volume zone for all", []string{"az0", "az1"}, []string{"nova"}, "", false},
		{"other names", []string{"nova"}, []string{"cinder"}, "", false},
		{"one compute zone without a volume zone", []string{"az0", "az1"}, []string{"az0"}, "", false},
		{"no volume zone", []string{"az0"}, nil, "", false},
		{"no compute zone", nil, []string{"az0"}, "", false},
		{"a zone listed twice", []string{"az0", "az0"}, []string{"az0"}, "", true},
		{"names differ in case", []string{"AZ0"}, []string{"az0"}, "", false},
		{"mapped to one volume zone", []string{"az0", "az1"}, []string{"cinder"}, "spec: {topology: {zoneMap: {az0: cinder, az1: cinder}}}", true},
		{"mapped in part", []string{"az0", "az1"}, []string{"cinder"}, "spec: {topology: {zoneMap: {az0: cinder}}}", false},
		{"mapped away from an equal name", []string{"az0"}, []string{"az0"}, "spec: {topology: {zoneMap: {az0: other}}}", false},
		{"enabled by hand", []string{"az0"}, []string{"nova"}, "spec: {topology: {mode: enabled}}", true},
		{"disabled by hand", []string{"az0"}, []string{"az0"}, "spec: {topology: {mode: disabled}}", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inv := cloudOf("standard")
			inv.Zones = v1alpha1.Zones{Compute: zonesNamed(c.compute...), Volume: zonesNamed(c.volume...)}
			got := decide(t, inv, c.spec, v1alpha1.Vanilla).Topology
			if got.Value != c.want {
				t.Errorf("want enabled %t, got %t: %s", c.want, got.Value, got.Reason)
			}
			if got.Reason == "" {
				t.Error("want a reason, got none")
			}
		})
	}
}

func TestAnUnavailableZoneCountsAndIsNoticedOnTheTerminalOnly(t *testing.T) {
	inv := cloudOf("standard")
	all := decide(t, inv, "", v1alpha1.Vanilla)
	inv.Zones.Volume.Value[1].Available = false
	one := decide(t, inv, "", v1alpha1.Vanilla)
	if len(one.Notices) != 1 || !strings.Contains(one.Notices[0], "az2") {
		t.Errorf("want a notice about az2, got %q", one.Notices)
	}
	one.Notices = nil
	if diff := cmp.Diff(all, one); diff != "" {
		t.Errorf("a momentary state changed what is emitted (-available +unavailable):\n%s", diff)
	}
}

// Every member of a project may list zones and types. So a refusal says something about the credential, and nothing about the cloud.
func TestAMissingRightForZonesOrTypesEndsTheRunAndNamesTheAccessRule(t *testing.T) {
	cases := []struct {
		name, fact, rule, spec string
		change                 func(*v1alpha1.Inventory, v1alpha1.State)
	}{
		{
			"compute zones", "zones.compute", "GET /v2.1/os-availability-zone of service compute", "",
			func(inv *v1alpha1.Inventory, s v1alpha1.State) { inv.Zones.Compute = without[[]v1alpha1.Zone](s) },
		},
		{
			"volume zones", "zones.volume", "GET /v3/*/os-availability-zone of service volumev3", "",
			func(inv *v1alpha1.Inventory, s v1alpha1.State) { inv.Zones.Volume = without[[]v1alpha1.Zone](s) },
		},
		{
			"volume zones where the configuration enables topology", "zones.volume", "GET /v3/*/os-availability-zone of service volumev3", "spec: {topology: {mode: enabled}}",
			func(inv *v1alpha1.Inventory, s v1alpha1.State) { inv.Zones.Volume = without[[]v1alpha1.Zone](s) },
		},
		{
			"types", "volumeTypes", "GET /v3/*/types of service volumev3", "",
			func(inv *v1alpha1.Inventory, s v1alpha1.State) {
				inv.VolumeTypes = without[[]v1alpha1.VolumeType](s)
			},
		},
	}
	for _, c := range cases {
		for _, state := range []v1alpha1.State{v1alpha1.Denied, v1alpha1.Unsupported} {
			inv := cloudOf("standard")
			c.change(&inv, state)
			_, err := Decide(inv, configured(t, c.spec), v1alpha1.Vanilla, v1alpha1.Helm, "test")
			var failed *FactError
			if !errors.As(err, &failed) {
				t.Errorf("%s, %s: want a FactError, got %v", c.name, state, err)
				continue
			}
			want := c.fact + " is " + string(state) + " (a reason): the access rule is " + c.rule
			if diff := cmp.Diff([]string{want}, failed.Rights); diff != "" || len(failed.Facts) > 0 {
				t.Errorf("%s, %s: facts %q, rights (-want +got):\n%s", c.name, state, failed.Facts, diff)
			}
			if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "try again") {
				t.Errorf("%s, %s: want the rule and no advice to try again, got %s", c.name, state, text)
			}
		}
	}
	inv := cloudOf("standard")
	inv.Zones.Compute = without[[]v1alpha1.Zone](v1alpha1.Denied)
	if r := decide(t, inv, "spec: {topology: {mode: disabled}}", v1alpha1.Vanilla); r.Topology.Value {
		t.Error("want a right that no decision needs to be no matter")
	}
}

func TestACloudWithoutZonesOrTypesIsWarnedAbout(t *testing.T) {
	inv := cloudOf()
	inv.Zones = v1alpha1.Zones{Compute: zonesNamed(), Volume: zonesNamed()}
	warnings := strings.Join(decide(t, inv, "", v1alpha1.Vanilla).Warnings, "\n")
	for _, want := range []string{"no volume type", "no compute zone"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("want a warning with %q, got %s", want, warnings)
		}
	}
}

func TestAFailedZoneListEndsTheRun(t *testing.T) {
	inv := cloudOf("standard")
	inv.Zones.Volume = without[[]v1alpha1.Zone](v1alpha1.Failed)
	_, err := Decide(inv, v1alpha1.Distribution{}, v1alpha1.Vanilla, v1alpha1.Helm, "test")
	var failed *FactError
	if !errors.As(err, &failed) {
		t.Fatalf("want a FactError, got %v", err)
	}
	if diff := cmp.Diff([]string{"zones.volume: a reason"}, failed.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	r := decide(t, inv, "spec: {topology: {mode: disabled}}", v1alpha1.Vanilla)
	if r.Topology.Value {
		t.Error("want a failed fact that no decision needs to be no matter")
	}
}

func TestAZoneMapThatNamesNoZoneIsWarnedAbout(t *testing.T) {
	r := decide(t, cloudOf("standard"), "{metadata: {name: c}, spec: {topology: {zoneMap: {az3: az9}}}}", v1alpha1.Vanilla)
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], `compute zone "az3"`) || !strings.Contains(r.Warnings[1], `volume zone "az9"`) {
		t.Errorf("want two warnings about az3 and az9, got %q", r.Warnings)
	}
}

func TestTheZoneMapIsDecidedAsItIsConfigured(t *testing.T) {
	inv := cloudOf("standard")
	inv.Zones = v1alpha1.Zones{Compute: zonesNamed("rack 1", "rack 2"), Volume: zonesNamed("ceph#1")}
	inv.VolumeTypes.Value[0].Zones = []string{"ceph#1"}
	const spec = `{metadata: {name: c}, spec: {topology: {zoneMap: {rack 1: "ceph#1", rack 2: "ceph#1"}}}}`
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		r := decide(t, inv, spec, target)
		if diff := cmp.Diff(map[string]string{"rack 1": "ceph#1", "rack 2": "ceph#1"}, r.ZoneMap.Value); diff != "" || strings.Contains(strings.Join(r.Warnings, " "), "zone") {
			t.Errorf("%s: warnings %q, zones (-want +got):\n%s", target, r.Warnings, diff)
		}
		if zones := r.StorageClasses[0].Value.AllowedZones; len(zones) > 0 {
			t.Errorf("%s: the type's zone serves every compute zone, but its class allows only %q", target, zones)
		}
	}
}

func TestAZoneMapThatTheDriverWouldRefuseIsRefused(t *testing.T) {
	for spec, want := range map[string]string{
		`{az 1: a, az-1: b}`: "different volume zones",
		`{az1: ""}`:          "no volume zone",
		`{" ": a}`:           "no name",
		`{"az\n1": a}`:       "control character",
	} {
		config, err := v1alpha1.DecodeDistribution("test", []byte("{apiVersion: generator.cinder-csi.io/v1alpha1, kind: Distribution, spec: {topology: {zoneMap: "+spec+"}}}"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Decide(cloudOf("standard"), config, v1alpha1.Vanilla, v1alpha1.Helm, "test")
		var refused *ConfigError
		if !errors.As(err, &refused) || !strings.Contains(strings.Join(refused.Problems, "; "), want) {
			t.Errorf("%s: want a problem with %q, got %v", spec, want, err)
		}
	}
}

func TestAZoneMapWithoutTopologyIsLeftOutAndWarnedAbout(t *testing.T) {
	r := decide(t, cloudOf("standard"), "{metadata: {name: c}, spec: {topology: {mode: disabled, zoneMap: {az1: az2}}}}", v1alpha1.Vanilla)
	if strings.Contains(r.CloudConf.Value, "Zone") || len(r.ZoneMap.Value) > 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "no effect") {
		t.Errorf("got %q with warnings %q", r.CloudConf.Value, r.Warnings)
	}
}

func TestZonesOfOneLabelAreWarnedAbout(t *testing.T) {
	inv := cloudOf("standard")
	inv.Zones = v1alpha1.Zones{Compute: zonesNamed("zone 1", "zone-1"), Volume: zonesNamed("zone 1", "zone-1")}
	r := decide(t, inv, "{metadata: {name: c}}", v1alpha1.Vanilla)
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], `"zone 1" and "zone-1"`) {
		t.Errorf("got %q", r.Warnings)
	}
}

func TestNoReasonIsAboutZonesWhereTopologyIsOff(t *testing.T) {
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		r := decide(t, cloudOf("fast"), "spec: {topology: {mode: disabled}}", target)
		for _, d := range r.Document(nil).Decisions {
			if strings.Contains(strings.ReplaceAll(d.Reason, "/zone", ""), "zone") {
				t.Errorf("%s: %s: topology is off, and the reason is about zones: %s", target, d.ID, d.Reason)
			}
		}
	}
}
