package cloud

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzProfiles reads any clouds.yaml with any clouds-public.yaml. Nothing panics, and an error is one line. Only clouds.yaml sets
// credentials, TLS checks and endpoint overrides, whatever the profiles have.
func FuzzProfiles(f *testing.F) {
	const public = "public-clouds: {vendor: {region_name: V1, regions: [{name: V1, values: {auth: {auth_url: 'https://v1/v3'}}}, V2], auth: {auth_url: 'https://vendor/v3'}}}"
	f.Add(cloudsFile, public, "profiled", "")
	f.Add(cloudsFile, public, "appcred", "South")
	f.Add(cloudsFile, "public-clouds: {vendor: {verify: false, volume_endpoint_override: 'http://x'}}", "profiled", "V2")
	f.Add("clouds: {a: {profile: vendor, auth: &a {token: t, auth_url: 'http://k'}, x: *a}}", "public-clouds: {vendor: {regions: [{name: R, values: 1}]}}", "a", "R")
	f.Add("clouds:\n  a:\n    <<: {profile: vendor}\n    auth: {auth_url: 'http://[::1]:5000'}\n", "public-clouds: 3", "", "")
	f.Fuzz(func(t *testing.T, clouds, public, name, region string) {
		if len(clouds)+len(public) > 1<<16 {
			return
		}
		var own, profiles cloudsYAML
		if decodeYAML("clouds.yaml", []byte(clouds), &own) != nil || decodeYAML("clouds-public.yaml", []byte(public), &profiles) != nil {
			return
		}
		with := &cloudsFiles{path: "clouds.yaml", clouds: own.Clouds, public: profiles.PublicClouds}
		got, err := with.settings(name, region)
		if err != nil {
			if strings.Contains(err.Error(), "\n") && !strings.ContainsAny(name+region+clouds+public, "\n") {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		_ = got.validate()
		// The same entry with a profile that only says where the cloud is.
		plain := map[string]cloudEntry{}
		for title := range profiles.PublicClouds {
			plain[title] = cloudEntry{Auth: authEntry{AuthURL: "https://elsewhere"}}
		}
		without := &cloudsFiles{path: "clouds.yaml", clouds: own.Clouds, public: plain}
		want, err := without.settings(name, "")
		if err != nil {
			return
		}
		where := cmpopts.IgnoreFields(Settings{}, "AuthURL", "Region", "Interface", "UserDomainID", "UserDomainName", "ProjectDomainID", "ProjectDomainName", "DefaultDomainID")
		if len(own.Clouds[name].Regions) == 0 && region == "" {
			if diff := cmp.Diff(want, got, plainSecrets, where); diff != "" {
				t.Errorf("a profile changed more than where the cloud is (-entry alone +with profile):\n%s", diff)
			}
		}
	})
}
