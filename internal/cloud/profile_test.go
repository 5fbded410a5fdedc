package cloud

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A pull request controls the working directory of the pipeline that checks it. The pipeline's clouds.yaml, which holds the token, is elsewhere.
func TestAProfileOfTheWorkingDirectoryDoesNotRedirectAnotherCloudsYAML(t *testing.T) {
	home, _ := write(t, map[string]string{
		"clouds.yaml": "clouds: {prod: {profile: vendor, auth: {token: s3cret, project_id: p}}}",
	})
	checkout, _ := write(t, map[string]string{
		"clouds-public.yaml": "public-clouds: {vendor: {auth: {auth_url: 'https://attacker.example/v3'}}}",
	})
	t.Chdir(checkout)
	got, err := FromSource(Source{CloudName: "prod", Env: environment(map[string]string{"OS_CLIENT_CONFIG_FILE": filepath.Join(home, "clouds.yaml")})})
	if !errors.Is(err, ErrMisconfigured) || !strings.Contains(err.Error(), filepath.Join(home, "clouds-public.yaml")) {
		t.Errorf("want an error that names the one place where the profile may be, got %v and auth URL %q", err, got.AuthURL)
	}
}

// A link in a checkout puts no credential of one file together with the address of another.
func TestALinkInTheWorkingDirectoryMixesNoFiles(t *testing.T) {
	const entry = "clouds: {prod: {region_name: R, auth: {auth_url: 'https://own/v3', token: s3cret, project_id: p}}}"
	const redirects = "clouds: {prod: {region_name: R, regions: [{name: R, values: {auth: {auth_url: 'https://attacker.example/v3'}}}]}}"
	home, _ := write(t, map[string]string{"clouds.yaml": entry})
	for name, tc := range map[string]struct {
		files    map[string]string
		link, to string
		named    bool   // by its name alone, or by its whole path
		want     string // the auth URL; empty: refused
	}{
		"a secure.yaml that leads out":                   {files: map[string]string{"clouds.yaml": redirects}, link: "secure.yaml", to: filepath.Join(home, "clouds.yaml")},
		"the same beside a file that somebody named":     {files: map[string]string{"clouds.yaml": redirects}, link: "secure.yaml", to: filepath.Join(home, "clouds.yaml"), named: true},
		"a clouds.yaml that leads out":                   {files: map[string]string{"secure.yaml": redirects}, link: "clouds.yaml", to: filepath.Join(home, "clouds.yaml")},
		"a clouds-public.yaml that leads out":            {files: map[string]string{"clouds.yaml": entry}, link: "clouds-public.yaml", to: filepath.Join(home, "clouds.yaml")},
		"a link within":                                  {files: map[string]string{"a.yaml": entry}, link: "clouds.yaml", to: "a.yaml", want: "https://own/v3"},
		"a file that somebody named, and that leads out": {link: "clouds.yaml", to: filepath.Join(home, "clouds.yaml"), named: true, want: "https://own/v3"},
		"a secure.yaml with another address":             {files: map[string]string{"clouds.yaml": entry, "secure.yaml": "clouds: {prod: {auth: {auth_url: 'https://attacker.example/v3'}}}"}},
		"a secure.yaml with another address of a region": {files: map[string]string{"clouds.yaml": entry, "secure.yaml": redirects}},
		"a secure.yaml that turns checks off":            {files: map[string]string{"clouds.yaml": entry, "secure.yaml": "clouds: {prod: {verify: false}}"}},
		"the same of a file that somebody named":         {files: map[string]string{"clouds.yaml": entry, "secure.yaml": redirects}, named: true},
		"a secure.yaml with credentials":                 {files: map[string]string{"clouds.yaml": entry, "secure.yaml": "clouds: {prod: {auth: {auth_url: 'https://own/v3', token: other}}}"}, want: "https://own/v3"},
		"no link":                                        {files: map[string]string{"clouds.yaml": entry}, want: "https://own/v3"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := write(t, tc.files)
			if tc.link != "" {
				if err := os.Symlink(tc.to, filepath.Join(dir, tc.link)); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			variables := map[string]string{"OS_CLOUD": "prod"}
			for _, file := range []string{"", "clouds.yaml", filepath.Join(dir, "clouds.yaml")} {
				if (file != "") != tc.named {
					continue
				}
				variables["OS_CLIENT_CONFIG_FILE"] = file
				got, err := FromSource(Source{Env: environment(variables)})
				if tc.want == "" && (!errors.Is(err, ErrBadFile) || !strings.Contains(err.Error(), tc.link)) || tc.want != "" && (err != nil || got.AuthURL != tc.want) {
					t.Errorf("%s: want %q, got %q, %v", file, tc.want, got.AuthURL, err)
				}
			}
		})
	}
}

// The checkout is that of the file, from wherever and by whatever name somebody works in it.
func TestACheckoutIsKnownFromEverywhere(t *testing.T) {
	repository, _ := write(t, map[string]string{
		"clouds.yaml": "clouds: {prod: {region_name: R, auth: {auth_url: 'https://own/v3', token: s3cret, project_id: p}}}",
		"secure.yaml": "clouds: {prod: {auth: {auth_url: 'https://attacker.example/v3'}}}",
	})
	link, elsewhere := filepath.Join(t.TempDir(), "link"), t.TempDir()
	if err := os.Symlink(repository, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(repository, "prod"), 0o755); err != nil {
		t.Fatal(err)
	}
	try := func(dir, file, want string) {
		t.Helper()
		t.Chdir(dir)
		got, err := FromSource(Source{Env: environment(map[string]string{"OS_CLOUD": "prod", "OS_CLIENT_CONFIG_FILE": file})})
		if got.AuthURL != want || (want == "") != errors.Is(err, ErrBadFile) {
			t.Errorf("%s in %s: want %q, got %q, %v", file, dir, want, got.AuthURL, err)
		}
	}
	there, byLink := filepath.Join(repository, "clouds.yaml"), filepath.Join(link, "clouds.yaml")
	try(repository, byLink, "")
	try(link, there, "")
	try(elsewhere, there, "https://attacker.example/v3") // where nothing says that it is a checkout
	if err := os.Mkdir(filepath.Join(repository, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(repository, "prod"), filepath.Join(link, "prod"), elsewhere, "/"} {
		try(dir, there, "")
		try(dir, byLink, "")
	}
}

// A home is no checkout, also where it is the working directory. Its files may be links, and its secure.yaml may say everything.
func TestTheFilesOfAHomeMayBeLinks(t *testing.T) {
	elsewhere, _ := write(t, map[string]string{
		"clouds.yaml": "clouds: {prod: {region_name: R, auth: {token: s3cret, project_id: p}}}",
		"secure.yaml": "clouds: {prod: {auth: {auth_url: 'https://own/v3'}, verify: false}}",
	})
	home := t.TempDir()
	config := filepath.Join(home, ".config", "openstack")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clouds.yaml", "secure.yaml"} {
		if err := os.Symlink(filepath.Join(elsewhere, name), filepath.Join(config, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(home)
	for _, named := range []string{"", filepath.Join(config, "clouds.yaml")} {
		got, err := FromSource(Source{Env: environment(map[string]string{"OS_CLOUD": "prod", "HOME": home, "OS_CLIENT_CONFIG_FILE": named})})
		if err != nil || got.AuthURL != "https://own/v3" || !got.Insecure {
			t.Errorf("%q: got %q, %v", named, got.AuthURL, err)
		}
	}
}

func TestAnEntrysOwnKeysWinOverItsProfile(t *testing.T) {
	t.Parallel()
	dir, env := write(t, map[string]string{
		"clouds.yaml": `clouds:
  own-url: {profile: vendor, auth: {auth_url: "https://own/v3", username: u, password: x, user_domain_id: d, project_id: p}}
  own-region: {profile: vendor, region_name: R2, auth: {username: u, password: x, user_domain_id: d, project_id: p}}
  own-regions: {profile: vendor, regions: [R9], auth: {username: u, password: x, user_domain_id: d, project_id: p}}
`,
		"clouds-public.yaml": `public-clouds:
  vendor:
    verify: true
    interface: internal
    auth: {auth_url: "https://vendor/v3", project_domain_name: Default}
    regions:
    - {name: R1, values: {auth: {auth_url: "https://vendor-r1/v3"}}}
    - {name: R2, values: {auth: {auth_url: "https://vendor-r2/v3"}}}
    - R3
`,
	})
	for name, tc := range map[string]struct{ cloud, region, wantURL, wantRegion string }{
		"a region's values do not replace the entry's URL": {"own-url", "", "https://own/v3", "R1"},
		"the entry's region chooses among the profile's":   {"own-region", "", "https://vendor-r2/v3", "R2"},
		"the flag's region chooses among the profile's":    {"own-region", "R1", "https://vendor-r1/v3", "R1"},
		"a region without values has the profile's URL":    {"own-region", "R3", "https://vendor/v3", "R3"},
		"the entry's regions replace the profile's":        {"own-regions", "", "https://vendor/v3", "R9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := FromSource(Source{CloudsFile: filepath.Join(dir, "clouds.yaml"), CloudName: tc.cloud, Region: tc.region, Env: env})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.wantURL, tc.wantRegion, "internal"}, []string{got.AuthURL, got.Region, got.Interface}); diff != "" {
				t.Errorf("auth URL, region, interface (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := FromSource(Source{CloudsFile: filepath.Join(dir, "clouds.yaml"), CloudName: "own-region", Region: "R8", Env: env}); !errors.Is(err, ErrMisconfigured) {
		t.Errorf("want a region that the profile does not have refused, got %v", err)
	}
}

// What redirects requests, weakens TLS or says who logs in is the entry's own to say.
func TestAProfileSuppliesNothingThatRedirectsOrWeakensALogin(t *testing.T) {
	t.Parallel()
	for key, profile := range map[string]string{
		"volume_endpoint_override":             "{volume_endpoint_override: 'https://attacker/v3'}",
		"block_storage_endpoint_override":      "{block_storage_endpoint_override: 'https://attacker/v3'}",
		"verify":                               "{verify: false}",
		"insecure":                             "{insecure: true}",
		"cacert":                               "{cacert: attacker.pem}",
		"cert":                                 "{cert: c.pem}",
		"key":                                  "{key: k.pem}",
		"auth_type":                            "{auth_type: v3token}",
		"auth.token":                           "{auth: {token: s3cret}}",
		"auth.username":                        "{auth: {username: attacker}}",
		"auth.password":                        "{auth: {password: s3cret}}",
		"auth.project_id":                      "{auth: {project_id: attackers}}",
		"auth.trust_id":                        "{auth: {trust_id: attackers}}",
		"regions[R].verify":                    "{regions: [{name: R, values: {verify: false}}]}",
		"regions[R].auth.username":             "{regions: [{name: R, values: {auth: {username: attacker}}}]}",
		"regions[R].compute_endpoint_override": "{regions: [{name: R, values: {compute_endpoint_override: 'https://attacker/v3'}}]}",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			dir, env := write(t, map[string]string{
				"clouds.yaml":        "clouds: {prod: {profile: vendor, auth: {auth_url: 'https://own/v3', username: u, password: x, user_domain_id: d, project_id: p}}}",
				"clouds-public.yaml": "public-clouds: {vendor: " + profile + "}",
			})
			_, err := FromSource(Source{CloudsFile: filepath.Join(dir, "clouds.yaml"), CloudName: "prod", Env: env})
			if !errors.Is(err, ErrMisconfigured) || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("want the profile refused for its %s, got %v", key, err)
			}
		})
	}
}

// Aliases of aliases make a short document long, and a checkout may hold a link to a file without end.
func TestACloudsYAMLThatExplodesIsRefused(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [*" + p + strings.Repeat(",*"+p, 9) + "]\n"
	}
	dir, env := write(t, map[string]string{
		"clouds.yaml": bomb + "clouds: {prod: {extra: *k, auth: {auth_url: 'https://own/v3'}}}",
		"large.yaml":  "clouds: {}\n" + strings.Repeat("#", 1<<20),
	})
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "endless.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clouds.yaml", "large.yaml", "endless.yaml"} {
		if _, err := FromSource(Source{CloudsFile: filepath.Join(dir, name), CloudName: "prod", Env: env}); !errors.Is(err, ErrBadFile) {
			t.Errorf("%s: want it refused, got %v", name, err)
		}
	}
}
