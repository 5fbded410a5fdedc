package cloud

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A key in the wrong place must not end as an unknown certificate authority, or as the public endpoint, without a word.
func TestEachKeyThatDoesNotCountIsNamedWithoutItsValue(t *testing.T) {
	const login = "auth_url: https://keystone.example/v3, username: u, password: geheim, user_domain_name: d, project_id: p"
	for entry, want := range map[string][]string{
		"auth: {" + login + "}, identity_api_version: 3, volume_api_version: \"3\", interface: internal, block_storage_endpoint_override: https://a": nil,
		"auth: {" + login + ", verify: false, cacert: geheim, region_name: geheim, interface: internal, tenant: geheim}": {
			"auth.cacert is misplaced", "auth.interface is misplaced", "auth.region_name is misplaced", "auth.tenant is not read", "auth.verify is misplaced",
		},
		"auth: {" + login + "}, username: geheim":                                                        {"username is misplaced and not read; it belongs below auth"},
		"auth: {" + login + "}, volume_interface: geheim, compute_region_name: x, volume_api_version: 2": {"compute_region_name is not read", "volume_api_version is not read", "volume_interface is not read"},
		"auth: {" + login + "}, block_storage_endpoint_override: [geheim]":                               {"block_storage_endpoint_override is not read, because it is no text"},
	} {
		path := filepath.Join(t.TempDir(), "clouds.yaml")
		if err := os.WriteFile(path, []byte("clouds: {depot: {"+entry+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := FromSource(Source{CloudName: "depot", Env: func(key string) string { return map[string]string{"OS_CLIENT_CONFIG_FILE": path}[key] }})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(s.Unread)
		if len(got) != len(want) || strings.Contains(strings.Join(got, ""), "geheim") {
			t.Errorf("%s: want %q, got %q", entry, want, got)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], "cloud depot: clouds.yaml: "+want[i]) {
				t.Errorf("%s: want %q, got %q", entry, want[i], got[i])
			}
		}
	}
}
