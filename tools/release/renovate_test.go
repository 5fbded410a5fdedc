package release

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestRenovateFindsTheDayOfTheDebianPackages(t *testing.T) {
	t.Parallel()
	var renovate struct {
		EnabledManagers []string
		CustomManagers  []struct{ ManagerFilePatterns, MatchStrings []string }
	}
	content, err := os.ReadFile("../../renovate.json")
	if err == nil {
		err = json.Unmarshal(content, &renovate)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, manager := range []string{"gomod", "kustomize", "custom.regex"} {
		if !slices.Contains(renovate.EnabledManagers, manager) {
			t.Errorf("renovate.json does not enable %s", manager)
		}
	}
	const name = "tools/release/debian.sources"
	if pattern := renovate.CustomManagers[0].ManagerFilePatterns[0]; !regexp.MustCompile(pattern[1 : len(pattern)-1]).MatchString(name) {
		t.Errorf("%s does not match %s", pattern, name)
	}
	sources := testfile.Read(t, "debian.sources")
	days := regexp.MustCompile(renovate.CustomManagers[0].MatchStrings[0]).FindAllSubmatch(sources, -1)
	if len(days) != 2 || string(days[0][1]) != string(days[1][1]) {
		t.Errorf("want one day for both archives, got %q", days)
	}
}

// A rule that switches a package off also switches its security updates off.
func TestRenovateMayFixAVulnerabilityOfEveryModule(t *testing.T) {
	t.Parallel()
	var renovate struct {
		OSV                 bool `json:"osvVulnerabilityAlerts"`
		VulnerabilityAlerts struct{ Enabled bool }
		PackageRules        []struct {
			MatchManagers, MatchPackageNames []string
			Enabled                          *bool
		}
	}
	content, err := os.ReadFile("../../renovate.json")
	if err == nil {
		err = json.Unmarshal(content, &renovate)
	}
	if err != nil || !renovate.OSV || !renovate.VulnerabilityAlerts.Enabled {
		t.Fatalf("vulnerabilities are not looked for: %v", err)
	}
	for _, rule := range renovate.PackageRules {
		if rule.Enabled != nil && !*rule.Enabled && slices.Contains(rule.MatchManagers, "gomod") {
			t.Errorf("the modules %q are switched off", rule.MatchPackageNames)
		}
	}
}
