package openstacksim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestATokenExpires(t *testing.T) {
	bubble(t, nil, func(t *testing.T, sim *openstacksim.Sim, _ *caller) {
		sim.SetTokenLifetime(time.Hour)
		c := login(t, sim, "demo", "demo")
		time.Sleep(time.Hour - time.Second)
		c.want(http.StatusOK, c.do("GET", "/volume/volumes", "", ""))
		time.Sleep(time.Second)
		for _, path := range []string{"/volume/volumes", "/compute/servers", "/identity/v3/auth/catalog"} {
			a := c.want(http.StatusUnauthorized, c.do("GET", path, "", ""))
			if got, want := a.header.Get("Www-Authenticate"), `Keystone uri="http://cloud/identity/v3"`; got != want {
				t.Errorf("%s: want %s, got %s", path, want, got)
			}
		}
	})
}

func TestRevokedTokensAreRefused(t *testing.T) {
	sim := instant()
	c := login(t, sim, "demo", "demo")
	sim.RevokeTokens()
	c.want(http.StatusUnauthorized, c.do("GET", "/volume/volumes", "", ""))
}

func TestADeletedApplicationCredentialTakesItsTokensAlong(t *testing.T) {
	sim := instant()
	a := openstacksim.Default().ApplicationCredentials[0]
	c := loginAppCred(t, sim, a)
	c.want(http.StatusOK, c.do("GET", "/volume/volumes", "", ""))
	sim.DeleteApplicationCredential(a.ID)
	c.want(http.StatusUnauthorized, c.do("GET", "/volume/volumes", "", ""))
	got := anonymous(t, sim).do("POST", "/identity/v3/auth/tokens", "", `{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":"`+a.ID+`","secret":"`+a.Secret+`"}}}}`)
	if got.status != http.StatusNotFound {
		t.Errorf("want 404, got %d: %v", got.status, got.body)
	}
}

func TestAnApplicationCredentialExpires(t *testing.T) {
	bubble(t, nil, func(t *testing.T, sim *openstacksim.Sim, c *caller) {
		a := sim.AddApplicationCredential(openstacksim.ApplicationCredential{Name: "short", User: "demo", Project: "demo", Roles: []string{"member"}, ExpiresAt: time.Now().Add(time.Hour)})
		loginAppCred(t, sim, a)
		time.Sleep(time.Hour)
		got := c.do("POST", "/identity/v3/auth/tokens", "", `{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":"`+a.ID+`","secret":"`+a.Secret+`"}}}}`)
		if got.status != http.StatusUnauthorized {
			t.Errorf("want 401, got %d", got.status)
		}
	})
}

func TestAccessRulesAnswer401ForWhatTheyDoNotName(t *testing.T) {
	rule := func(service, method, path string) openstacksim.AccessRule {
		return openstacksim.AccessRule{Service: service, Method: method, Path: path}
	}
	for _, test := range []struct {
		name  string
		rules []openstacksim.AccessRule
		path  string
		want  int
	}{
		{"no restriction", nil, "/volume/volumes", http.StatusOK},
		{"an empty list is no restriction", []openstacksim.AccessRule{}, "/volume/volumes", http.StatusOK},
		{"one segment", []openstacksim.AccessRule{rule("volumev3", "GET", "/v3/*/volumes")}, "/volume/volumes", http.StatusOK},
		{"one segment is not two", []openstacksim.AccessRule{rule("volumev3", "GET", "/v3/*/volumes")}, "/volume/volumes/detail", http.StatusUnauthorized},
		{"a named segment", []openstacksim.AccessRule{rule("volumev3", "GET", "/v3/{project}/volumes")}, "/volume/volumes", http.StatusOK},
		{"any depth", []openstacksim.AccessRule{rule("volumev3", "GET", "/v3/**")}, "/volume/volumes/detail", http.StatusOK},
		{"another method", []openstacksim.AccessRule{rule("volumev3", "POST", "/v3/**")}, "/volume/volumes", http.StatusUnauthorized},
		{"another service", []openstacksim.AccessRule{rule("compute", "GET", "/v3/**")}, "/volume/volumes", http.StatusUnauthorized},
		{"an alias is another service", []openstacksim.AccessRule{rule("block-storage", "GET", "/v3/**")}, "/volume/volumes", http.StatusUnauthorized},
		{"a version document is a path as well", []openstacksim.AccessRule{rule("volumev3", "GET", "/v3/*/volumes")}, "/volume/v3/", http.StatusUnauthorized},
		{"Nova", []openstacksim.AccessRule{rule("compute", "GET", "/v2.1/servers")}, "/compute/servers", http.StatusOK},
		{"dots are dots", []openstacksim.AccessRule{rule("compute", "GET", "/v2x1/servers")}, "/compute/servers", http.StatusUnauthorized},
	} {
		t.Run(test.name, func(t *testing.T) {
			sim := instant()
			c := loginAppCred(t, sim, sim.AddApplicationCredential(openstacksim.ApplicationCredential{
				Name: "ruled", User: "demo", Project: "demo", Roles: []string{"member"}, AccessRules: test.rules,
			}))
			c.want(test.want, c.do("GET", test.path, "", ""))
		})
	}
}

func TestAServiceThatDoesNotKnowItsTypeRefusesEveryAccessRule(t *testing.T) {
	config := openstacksim.Default()
	config.VolumeServiceType = ""
	sim := openstacksim.New(config)
	c := loginAppCred(t, sim, sim.AddApplicationCredential(openstacksim.ApplicationCredential{
		Name: "ruled", User: "demo", Project: "demo", Roles: []string{"member"}, AccessRules: []openstacksim.AccessRule{{Service: "volumev3", Method: "GET", Path: "/**"}},
	}))
	c.want(http.StatusUnauthorized, c.do("GET", "/volume/volumes", "", ""))
}

func TestTheCatalogFollowsTheHostAndTheConfiguration(t *testing.T) {
	for _, test := range []struct {
		unversioned bool
		want        map[string]string
	}{
		{false, map[string]string{"block-storage": "/volume/v3/PROJECT", "compute": "/compute/v2.1", "identity": "/identity/v3/", "volumev3": "/volume/v3/PROJECT"}},
		{true, map[string]string{"block-storage": "/volume", "compute": "/compute", "identity": "/identity", "volumev3": "/volume"}},
	} {
		config := openstacksim.Default()
		config.UnversionedEndpoints = test.unversioned
		c := login(t, openstacksim.New(config), "demo", "demo")
		a := c.want(http.StatusOK, c.do("GET", "/identity/v3/auth/catalog", "", ""))
		got := map[string]string{}
		for i := range a.at("catalog").([]any) {
			url := a.at("catalog", i, "endpoints", 0, "url").(string)
			got[a.at("catalog", i, "type").(string)] = strings.ReplaceAll(strings.TrimPrefix(url, root), c.ProjectID, "PROJECT")
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("unversioned %v (-want +got):\n%s", test.unversioned, diff)
		}
	}
}

func TestLoginsThatMustFail(t *testing.T) {
	user := func(fields string) string {
		return `{"auth":{"identity":{"methods":["password"],"password":{"user":{` + fields + `}}},"scope":{"project":{"name":"PROJECT","domain":{"id":"default"}}}}}`
	}
	right := `"name":"demo","domain":{"id":"default"},"password":"sim-demo"`
	for _, test := range []struct {
		name, body string
		want       int
	}{
		{"wrong password", strings.Replace(user(`"name":"demo","domain":{"id":"default"},"password":"x"`), "PROJECT", "demo", 1), 401},
		{"unknown user", strings.Replace(user(`"name":"nobody","domain":{"id":"default"},"password":"x"`), "PROJECT", "demo", 1), 401},
		{"unknown domain", strings.Replace(user(`"name":"demo","domain":{"id":"x"},"password":"sim-demo"`), "PROJECT", "demo", 1), 401},
		{"a project without a role", strings.Replace(user(right), "PROJECT", "other", 1), 401},
		{"an unknown project", strings.Replace(user(right), "PROJECT", "x", 1), 401},
		{"no domain", strings.Replace(user(`"name":"demo","password":"sim-demo"`), "PROJECT", "demo", 1), 400},
		{"nothing", `{}`, 400},
		{"no JSON", `{`, 400},
	} {
		if got := anonymous(t, instant()).do("POST", "/identity/v3/auth/tokens", "", test.body); got.status != test.want {
			t.Errorf("%s: want %d, got %d: %v", test.name, test.want, got.status, got.body)
		}
	}
}

func TestCloudsYAMLNamesEveryUserAndLetsThemIn(t *testing.T) {
	sim := instant()
	var clouds struct {
		Clouds map[string]struct {
			RegionName string            `json:"region_name"`
			Auth       map[string]string `json:"auth"`
		} `json:"clouds"`
	}
	if err := yaml.Unmarshal(sim.CloudsYAML(root), &clouds); err != nil {
		t.Fatal(err)
	}
	want := []string{"sim-admin", "sim-demo", "sim-demo-admin", "sim-reader", "sim-other", "sim-appcred"}
	for _, name := range want {
		c, ok := clouds.Clouds[name]
		if !ok || c.RegionName != "RegionOne" || c.Auth["auth_url"] != root+"/identity/v3" {
			t.Errorf("%s: got %+v", name, c)
		}
		if name == "sim-appcred" {
			loginAppCred(t, sim, openstacksim.ApplicationCredential{ID: c.Auth["application_credential_id"], Secret: c.Auth["application_credential_secret"]})
			continue
		}
		got := login(t, sim, c.Auth["username"], c.Auth["project_name"])
		if c.Auth["password"] != "sim-"+c.Auth["username"] || got.ProjectID == "" {
			t.Errorf("%s: got %+v", name, c.Auth)
		}
	}
	if len(clouds.Clouds) != len(want) {
		t.Errorf("want %d clouds, got %d", len(want), len(clouds.Clouds))
	}
	if conf := string(sim.CloudConf(root)); !strings.HasPrefix(conf, "[Global]\nauth-url = "+root+"/identity/v3\nregion = RegionOne\napplication-credential-id = ") {
		t.Errorf("cloud.conf:\n%s", conf)
	}
}
