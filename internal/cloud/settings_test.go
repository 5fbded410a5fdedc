package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// write makes files below a new directory, which is HOME of the environment it gives too.
func write(t *testing.T, files map[string]string) (dir string, env func(string) string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, environment(map[string]string{"HOME": dir})
}

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

const cloudsFile = `
clouds:
  password:
    region_name: RegionOne
    interface: internal
    identity_api_version: 3
    verify: false
    cacert: ~/ca.pem
    auth:
      auth_url: http://keystone:5000/v3
      username: demo
      password: 0123
      project_name: demo
      user_domain_name: Default
      project_domain_id: default
    volume_endpoint_override: http://cinder/v3/x
  appcred:
    auth_type: v3applicationcredential
    regions:
      - name: North
        values: {auth: {auth_url: http://north/v3}}
      - South
    auth:
      auth_url: http://keystone/v3
      application_credential_id: acid
      application_credential_secret: hush
      password: ignored-by-auth-type
  profiled:
    profile: vendor
    auth: {username: u, user_domain_id: d, project_id: p}
  unknown-profile:
    profile: nobody
    auth: {username: u, password: x, user_domain_id: d, project_id: p}
  odd:
    auth_type: v3oidcpassword
    auth: {auth_url: http://k/v3}
`

func TestCloudsYAMLIsReadAsPythonOpenstackclientReadsIt(t *testing.T) {
	t.Parallel()
	dir, env := write(t, map[string]string{
		".config/openstack/clouds.yaml":        cloudsFile,
		".config/openstack/secure.yaml":        "clouds: {profiled: {auth: {password: from-secure}}}",
		".config/openstack/clouds-public.yaml": "public-clouds: {vendor: {region_name: V1, auth: {auth_url: 'https://vendor/v3', user_domain_id: overridden}}}",
	})
	for name, tc := range map[string]struct {
		source Source
		want   Settings
	}{
		"password": {Source{CloudName: "password"}, Settings{
			Name: "password", AuthURL: "http://keystone:5000/v3", Username: "demo", Password: "0123", ProjectName: "demo",
			UserDomainName: "Default", ProjectDomainID: "default", Region: "RegionOne", Interface: "internal",
			CACertFile: filepath.Join(dir, "ca.pem"), Insecure: true, Endpoints: map[string]string{"volume": "http://cinder/v3/x"},
		}},
		"flags win": {Source{CloudName: "password", Region: "Two", CACert: "/flag.pem"}, Settings{
			Name: "password", AuthURL: "http://keystone:5000/v3", Username: "demo", Password: "0123", ProjectName: "demo",
			UserDomainName: "Default", ProjectDomainID: "default", Region: "Two", Interface: "internal", CACertFile: "/flag.pem",
			Insecure: true, Endpoints: map[string]string{"volume": "http://cinder/v3/x"},
		}},
		"first region is the default": {Source{CloudName: "appcred"}, Settings{
			Name: "appcred", AuthURL: "http://north/v3", ApplicationCredentialID: "acid", ApplicationCredentialSecret: "hush", Region: "North",
		}},
		"a region without values": {Source{CloudName: "appcred", Region: "South"}, Settings{
			Name: "appcred", AuthURL: "http://keystone/v3", ApplicationCredentialID: "acid", ApplicationCredentialSecret: "hush", Region: "South",
		}},
		"secure and public files": {Source{CloudName: "profiled"}, Settings{
			Name: "profiled", AuthURL: "https://vendor/v3", Username: "u", Password: "from-secure", UserDomainID: "d", ProjectID: "p", Region: "V1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.source.Env = env
			got, err := FromSource(tc.source)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, plainSecrets); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// plainSecrets compares secrets by their content, which their own encoders hide.
var plainSecrets = cmp.Comparer(func(a, b Secret) bool { return string(a) == string(b) })

func TestTheEnvironmentIsACloudOrChoosesOne(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, map[string]string{
		"one.yaml":  "clouds: {only: {auth: {auth_url: 'http://only/v3', application_credential_id: a, application_credential_secret: s}}}",
		"many.yaml": cloudsFile,
	})
	for name, tc := range map[string]struct {
		env  map[string]string
		want Settings
	}{
		"OS_AUTH_URL": {map[string]string{
			"OS_AUTH_URL": "http://k/v3", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_USER_DOMAIN_NAME": "D", "OS_TENANT_NAME": "t",
			"OS_DEFAULT_DOMAIN": "default", "OS_REGION_NAME": "R", "OS_INTERFACE": "admin", "OS_CACERT": "/ca", "OS_INSECURE": "True",
		}, Settings{
			Name: "from the environment", AuthURL: "http://k/v3", Username: "u", Password: "p", UserDomainName: "D", ProjectName: "t",
			DefaultDomainID: "default", Region: "R", Interface: "admin", CACertFile: "/ca", Insecure: true,
		}},
		"OS_CLOUD wins over OS_AUTH_URL": {map[string]string{
			"OS_CLOUD": "only", "OS_AUTH_URL": "http://other/v3", "OS_CLIENT_CONFIG_FILE": filepath.Join(dir, "one.yaml"),
		}, Settings{Name: "only", AuthURL: "http://only/v3", ApplicationCredentialID: "a", ApplicationCredentialSecret: "s"}},
		"a single entry needs no name": {map[string]string{
			"OS_CLIENT_CONFIG_FILE": filepath.Join(dir, "one.yaml"),
		}, Settings{Name: "only", AuthURL: "http://only/v3", ApplicationCredentialID: "a", ApplicationCredentialSecret: "s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := FromSource(Source{Env: environment(tc.env)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, plainSecrets); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadSourcesAreNamedInOneSentenceWithoutSecrets(t *testing.T) {
	t.Parallel()
	dir, env := write(t, map[string]string{
		"clouds.yaml": cloudsFile,
		"broken.yaml": "clouds:\n  a:\n    auth: {password: *s3cret}\n",
		"types.yaml":  "clouds:\n  a:\n    auth: s3cret\n",
		"incomplete.yaml": `clouds:
  no-url: {auth: {username: u, password: s3cret, project_id: p, user_domain_id: d}}
  no-project: {auth: {auth_url: "http://k", username: u, password: s3cret, user_domain_id: d}}
  no-domain: {auth: {auth_url: "http://k", username: u, password: s3cret, project_id: p}}
  nobody: {auth: {auth_url: "http://k"}}
  no-secret: {auth: {auth_url: "http://k", application_credential_id: a}}
  bad-url: {auth: {auth_url: "k:5000", username: u, password: s3cret, project_id: p, user_domain_id: d}}
  bad-interface: {interface: outside, auth: {auth_url: "http://k", user_id: u, password: s3cret, project_id: p}}
  half-cert: {cert: /c, auth: {auth_url: "http://k", user_id: u, password: s3cret, project_id: p}}
  system: {auth: {auth_url: "http://k", user_id: u, password: s3cret, system_scope: all}}
`,
	})
	file := func(name, cloud string) Source {
		return Source{CloudsFile: filepath.Join(dir, name), CloudName: cloud, Env: env}
	}
	for name, tc := range map[string]struct {
		source Source
		is     error
		says   string
	}{
		"unknown name":    {file("clouds.yaml", "lab"), ErrUnknownCloud, `there is no cloud "lab" in `},
		"no name":         {file("clouds.yaml", ""), ErrUnknownCloud, "one of appcred, odd, password, profiled, unknown-profile of "},
		"no file":         {file("missing.yaml", "lab"), ErrBadFile, "missing.yaml"},
		"no place":        {Source{CloudName: "lab", Env: environment(map[string]string{"HOME": "/nonexistent"})}, ErrBadFile, "/etc/openstack/clouds.yaml"},
		"not YAML":        {file("broken.yaml", "a"), ErrBadFile, "it is not valid YAML"},
		"wrong type":      {file("types.yaml", "a"), ErrBadFile, "wrong type at line 3"},
		"auth type":       {file("clouds.yaml", "odd"), ErrMisconfigured, "v3oidcpassword is not supported"},
		"unknown profile": {file("clouds.yaml", "unknown-profile"), ErrMisconfigured, `profile "nobody"`},
		"unknown region":  {Source{CloudsFile: filepath.Join(dir, "clouds.yaml"), CloudName: "appcred", Region: "East", Env: env}, ErrMisconfigured, `no region "East"; it has North, South`},
		"no URL":          {file("incomplete.yaml", "no-url"), ErrMisconfigured, "OS_AUTH_URL"},
		"no project":      {file("incomplete.yaml", "no-project"), ErrMisconfigured, "project_id"},
		"no domain":       {file("incomplete.yaml", "no-domain"), ErrMisconfigured, "user_domain_name"},
		"no credentials":  {file("incomplete.yaml", "nobody"), ErrMisconfigured, "a password, application credential or token is missing"},
		"no secret":       {file("incomplete.yaml", "no-secret"), ErrMisconfigured, "application_credential_secret"},
		"no scheme":       {file("incomplete.yaml", "bad-url"), ErrMisconfigured, "not an http or https URL"},
		"interface":       {file("incomplete.yaml", "bad-interface"), ErrMisconfigured, `"outside"`},
		"half a pair":     {file("incomplete.yaml", "half-cert"), ErrMisconfigured, "set both or neither"},
		"system scope":    {file("incomplete.yaml", "system"), ErrMisconfigured, "system_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := FromSource(tc.source)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q, want %q with %q", err, tc.is, tc.says)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("not one sentence without secrets: %q", err)
			}
		})
	}
}

func TestCloudConf(t *testing.T) {
	t.Parallel()
	dir, env := write(t, map[string]string{
		"a.yaml": "clouds: {x: {region_name: A, auth: {auth_url: 'http://a/v3', application_credential_id: ia, application_credential_secret: sa}}}",
		"b.yaml": "clouds: {x: {region_name: B, auth: {auth_url: 'http://b/v3', application_credential_id: ib, application_credential_secret: sb}}}",
	})
	conf := `[Global]
auth-url = http://k/v3
username = u
password = "p#;\"\\"
user-domain-name = Default
tenant-name = demo
tenant-domain-id = default
region = R
os-endpoint-type = internal
ca-file = /ca
tls-insecure = true
cert-file = /c
key-file = /k
[Global "trust"]
auth-url = http://k/v3
trust-id = T
trustee-id = bob
trustee-password = bp
user-id = alice
password = ap
tls-insecure = yes
[Global "a"]
use-clouds
clouds-file = ` + dir + `/a.yaml
cloud = x
[Global "b"]
use-clouds = true
clouds-file = ` + dir + `/b.yaml
cloud = x
region = Mine
auth-url = http://mine/v3
user-id = ignored
password = ignored
[Global "half"]
use-clouds
clouds-file = ` + dir + `/a.yaml
user-id = me
password = mine
tenant-id = p
`
	f, err := cloudconf.Parse([]byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Settings{
		"": {
			Name: "of cloud.conf", AuthURL: "http://k/v3", Username: "u", Password: `p#;"\`, UserDomainName: "Default", ProjectName: "demo",
			ProjectDomainID: "default", Region: "R", Interface: "internal", CACertFile: "/ca", Insecure: true, CertFile: "/c", KeyFile: "/k",
		},
		"trust": {Name: "trust", AuthURL: "http://k/v3", TrustID: "T", UserID: "bob", Password: "bp"},
		"a":     {Name: "a", AuthURL: "http://a/v3", ApplicationCredentialID: "ia", ApplicationCredentialSecret: "sa", Region: "A"},
		"b":     {Name: "b", AuthURL: "http://mine/v3", ApplicationCredentialID: "ib", ApplicationCredentialSecret: "sb", Region: "Mine"},
		"half":  {Name: "half", AuthURL: "http://a/v3", UserID: "me", Password: "mine", ProjectID: "p", ExpectedProject: "p", Region: "A"},
	} {
		got, err := FromConf(f, name, env)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, plainSecrets); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
	if _, err := FromConf(f, "other", env); !errors.Is(err, ErrUnknownCloud) || !strings.Contains(err.Error(), `[Global "other"]`) {
		t.Errorf("a missing section: %v", err)
	}
	if os.Getenv("OS_CLIENT_CONFIG_FILE") != "" {
		t.Error("the process's environment was changed")
	}
}

func TestConfKeysAreTheKeysThatAreRead(t *testing.T) {
	t.Parallel()
	for _, key := range ConfKeys() {
		var f cloudconf.File
		f.Set("Global", "", "trust-id", "T")
		f.Set("Global", "", "trustee-id", "t")
		before := confSettings(f.Section("Global", ""))
		f.Set("Global", "", key, "true")
		switch key {
		case "use-clouds", "clouds-file", "cloud", "user-id", "password":
			continue // read elsewhere, or stands behind trustee-…
		}
		if cmp.Equal(before, confSettings(f.Section("Global", "")), plainSecrets) {
			t.Errorf("%s is listed but changes nothing", key)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	s := Settings{Name: "n", AuthURL: "http://user:s3cret@k/v3", Username: "u", Password: "s3cret", Token: "s3cret", ApplicationCredentialSecret: "s3cret"}
	quiet := s
	quiet.AuthURL = "http://k/v3"
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "settings", s, "secret", s.Password)
	encoded, err := json.Marshal(quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(quiet), fmt.Sprintf("%+v", quiet), fmt.Sprintf("%#v", quiet), fmt.Sprintf("%s %v %q", s.Password, s.Password, s.Password), log.String(), string(encoded)} {
		if strings.Contains(shown, "s3cret") {
			t.Errorf("a secret shows: %s", shown)
		}
	}
	if !strings.Contains(log.String(), `"user":"`) {
		t.Errorf("the log does not say who: %s", log.String())
	}
}

// FuzzCloudsYAML: no file makes the reader panic or repeat its content.
func FuzzCloudsYAML(f *testing.F) {
	f.Add(cloudsFile)
	f.Add("clouds: {a: {auth: {password: *s3cret}}}")
	f.Add("clouds: [s3cret]")
	f.Fuzz(func(t *testing.T, src string) {
		path := filepath.Join(t.TempDir(), "clouds.yaml")
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		var into cloudsYAML
		if err := readYAML(path, &into); err != nil && strings.Contains(strings.TrimPrefix(err.Error(), "clouds file "+path), "s3cret") {
			t.Fatal(err)
		}
	})
}
