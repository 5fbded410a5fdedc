package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

func known[T any](v T) v1alpha1.Fact[T] { return v1alpha1.Fact[T]{State: v1alpha1.Known, Value: v} }

// oddInventory has names and descriptions that are long, wide or without a place to break.
func oddInventory() v1alpha1.Inventory {
	zones := []v1alpha1.Zone{{Name: strings.Repeat("zone", 20), Available: true}, {Name: "北京 一区"}}
	return v1alpha1.Inventory{
		Cloud:    v1alpha1.Cloud{AuthURL: "https://" + strings.Repeat("cloud.", 30) + "example/v3", ProjectID: strings.Repeat("0", 32)},
		Services: known(map[string]v1alpha1.Service{"block-storage": {Present: true, MinMicroversion: "3.0", MaxMicroversion: "3.70", Endpoint: "https://" + strings.Repeat("x", 120)}}),
		Zones:    v1alpha1.Zones{Compute: known(zones), Volume: known(zones)},
		VolumeTypes: known([]v1alpha1.VolumeType{
			{Name: strings.Repeat("磁盘", 60), Multiattach: true, Description: strings.Repeat("many words ", 40), Zones: []string{"北京 一区"}},
			{Name: "e\u0301te\u0301", Public: true, Replication: true},
		}),
		Quota: known(map[string]v1alpha1.Quota{"gigabytes_" + strings.Repeat("x", 90): {Limit: 1 << 40, InUse: 12}, "groups": {Limit: -1}}),
	}
}

func oddPlan() v1alpha1.Plan {
	return v1alpha1.Plan{Decisions: []v1alpha1.Decision{
		{ID: "storageClass." + strings.Repeat("x", 100), Value: map[string]any{"mountOptions": []string{strings.Repeat("y", 200)}}, Reason: strings.Repeat("why ", 50), Facts: []v1alpha1.NamedFact{{Name: strings.Repeat("fact", 80)}}},
		{ID: "cloudConf", Value: "[Global]\ncloud = a\n", Reason: "r"},
	}}
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for columns := narrowest; columns <= 240; columns += 7 {
		var out bytes.Buffer
		if err := Inventory(&out, oddInventory(), columns); err != nil {
			t.Fatal(err)
		}
		if err := Plan(&out, oddPlan(), "", columns); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := printable.Columns(strings.TrimSuffix(line, "\n")); n > columns {
				t.Errorf("at %d columns: %d columns in %q", columns, n, line)
			}
		}
	}
}

func TestNothingIsCutFromALongValue(t *testing.T) {
	for _, columns := range []int{80, 120, 200} {
		var out bytes.Buffer
		if err := Plan(&out, oddPlan(), "", columns); err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(strings.ReplaceAll(out.String(), "why", ""), "\n")
		for letter, want := range map[string]int{"x": 100, "y": 200} {
			if got := strings.Count(text, letter); got != want {
				t.Errorf("at %d columns: want %d of %q, got %d", columns, want, letter, got)
			}
		}
	}
}

func TestAValueIsWrittenForPeople(t *testing.T) {
	for document, want := range map[string]string{
		`{"replicas":2}`:                      "2 replicas",
		`{"replicas":1}`:                      "1 replica",
		`{"enabled":false}`:                   "disabled",
		`{"ports":[443,8776],"enabled":true}`: "enabled; ports 443, 8776",
		`{"allowVolumeExpansion":true,"parameters":{"type":"fast"},"reclaimPolicy":"Delete","volumeBindingMode":"WaitForFirstConsumer"}`: "volumes can grow; parameters type=fast; reclaim policy Delete; binding WaitForFirstConsumer",
		`{"nodeSelector":{"kubernetes.io/os":"linux"},"priorityClass":"p"}`:                                                              "node selector kubernetes.io/os=linux; priority class p",
		`{"allowVolumeExpansion":false,"hostNetwork":true}`:                                                                              "volumes cannot grow; host network",
		`{"resources":{"driver":{"requests":{"cpu":"10m"}}}}`:                                                                            "resources driver (requests (cpu=10m))",
		`{"openstackCIDRs":["192.0.2.0/24"]}`:                                                                                            "openstack CIDRs 192.0.2.0/24",
		`1000000`:                                                                                                                        "1000000", `true`: "yes", `false`: "no", `""`: "none", `null`: "none", `[]`: "none", `{}`: "none", `"auto"`: "auto",
		`"a\nb\n"`: "a\nb",
	} {
		var v any
		if err := json.Unmarshal([]byte(document), &v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, phrase(v)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", document, diff)
		}
	}
}

func TestACloudOfTwoThousandTypesStaysReadable(t *testing.T) {
	inv := v1alpha1.Inventory{DefaultVolumeType: known("type-1500")}
	var plan v1alpha1.Plan
	for i := range 2000 {
		name := fmt.Sprintf("type-%04d", i)
		inv.VolumeTypes.Value = append(inv.VolumeTypes.Value, v1alpha1.VolumeType{Name: name, Public: i%2 == 0, Multiattach: i%4 == 0})
		source := "inferred"
		if i == 1700 {
			source = "config"
		}
		plan.Decisions = append(plan.Decisions, v1alpha1.Decision{ID: classID + name, Value: "x", Source: source})
	}
	plan.Decisions = append(plan.Decisions, v1alpha1.Decision{ID: "defaultClass", Value: "type-1500"})
	var types, decisions bytes.Buffer
	if err := Inventory(&types, inv, Width); err != nil {
		t.Fatal(err)
	}
	if err := Plan(&decisions, plan, "", Width); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{types.String(), "2,000 volume types in all, 1,000 private, 500 multiattach. -o"},
		{types.String(), "type-1500"},
		{decisions.String(), "1,979 more"},
		{decisions.String(), "type-1700"},
		{decisions.String(), "defaultClass"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("want %q in:\n%s", c.want, c.text)
		}
		if lines := strings.Count(c.text, "\n"); lines > 110 {
			t.Errorf("want a text that a person reads, got %d lines", lines)
		}
	}
}
