package docs

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
)

const simulated = "http://openstack.simulated"

// requestRules keeps the requests to a simulated cloud.
type requestRules struct {
	next  http.RoundTripper
	lock  sync.Mutex
	rules []openstack.AccessRule
}

// identifier is what stands in a path for one object: a UUID, with or without hyphens.
var identifier = regexp.MustCompile(`/[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}`)

func (r *requestRules) RoundTrip(req *http.Request) (*http.Response, error) {
	for service, root := range map[string]string{"volumev3": "/volume/v3/", "compute": "/compute/v2.1/"} {
		path, found := strings.CutPrefix(req.URL.Path, root)
		if !found {
			continue
		}
		_, version, _ := strings.Cut(strings.Trim(root, "/"), "/")
		path = "/" + version + identifier.ReplaceAllString("/"+path, "/*")
		r.lock.Lock()
		r.rules = append(r.rules, openstack.AccessRule{Service: service, Method: req.Method, Path: path})
		r.lock.Unlock()
	}
	return r.next.RoundTrip(req)
}

// inspectAs reads a simulated cloud with the credential that settings name, and gives the requests to Cinder and Nova as access rules.
func inspectAs(t *testing.T, config openstacksim.Config, settings cloud.Settings) (v1alpha1.Inventory, []openstack.AccessRule) {
	t.Helper()
	r := &requestRules{next: memnet.Transport(openstacksim.New(config).Handler())}
	settings.AuthURL, settings.Region = simulated+"/identity/v3", config.Region
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{Transport: r})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	inv, err := inspect.Inspect(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(r.rules, func(a, b openstack.AccessRule) int {
		return strings.Compare(a.Service+a.Path+a.Method, b.Service+b.Path+b.Method)
	})
	return inv, slices.Compact(r.rules)
}

// inspectWith reads a simulated cloud with an application credential of the role reader. No rule at all is no restriction.
func inspectWith(t *testing.T, rules []openstack.AccessRule) (v1alpha1.Inventory, []openstack.AccessRule) {
	t.Helper()
	config := openstacksim.Default()
	credential := openstacksim.ApplicationCredential{ID: "0123456789abcdef0123456789abcdef", Name: "drift", Secret: "secret", User: "demo-reader", Project: "demo", Roles: []string{"reader"}}
	for _, rule := range rules {
		credential.AccessRules = append(credential.AccessRules, openstacksim.AccessRule{Service: rule.Service, Method: rule.Method, Path: rule.Path})
	}
	config.ApplicationCredentials = append(config.ApplicationCredentials, credential)
	return inspectAs(t, config, cloud.Settings{Name: "drift", ApplicationCredentialID: credential.ID, ApplicationCredentialSecret: cloud.Secret(credential.Secret)})
}

// states is what is known of a cloud, without the words that say why something is not.
func states(t *testing.T, inv v1alpha1.Inventory) string {
	t.Helper()
	text, err := json.Marshal(inv)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`,"reason":"(\\.|[^"\\])*"`).ReplaceAllString(string(text), "")
}

// generatorRules are the requests of inspect without which a reader knows less.
func generatorRules(t *testing.T) []openstack.AccessRule {
	t.Helper()
	inv, all := inspectWith(t, nil)
	want := states(t, inv)
	var needed []openstack.AccessRule
	for i, rule := range all {
		without := slices.Delete(slices.Clone(all), i, i+1)
		if inv, _ := inspectWith(t, without); states(t, inv) != want {
			needed = append(needed, rule)
		}
	}
	if inv, _ := inspectWith(t, needed); states(t, inv) != want {
		t.Errorf("with the rules %v less is known than without rules:\n%s", needed, cmp.Diff(want, states(t, inv)))
	}
	return needed
}

func TestTheReferenceListsTheAccessRulesOfTheGenerator(t *testing.T) {
	page.Hold(t, "reference/access-rules.md", map[string]string{"generator-rules": rulesBlock(generatorRules(t))}, *update, "go test ./docs -update")
}
