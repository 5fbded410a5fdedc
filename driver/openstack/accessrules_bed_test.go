//go:build openstack

package openstack

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// owner is a user of the real cloud who makes application credentials.
type owner struct {
	settings cloud.Settings
	identity *gophercloud.ServiceClient
	user     string
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	dir := cmp.Or(os.Getenv("OPENSTACK_BED"), filepath.Join(os.TempDir(), "openstack-bed"))
	settings, err := cloud.FromSource(cloud.Source{CloudName: "lab-demo", CloudsFile: filepath.Join(dir, "clouds.yaml"), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := c.Client("identity", "")
	if err != nil {
		t.Fatal(err)
	}
	result, ok := identity.GetAuthResult().(tokens.CreateResult)
	if !ok {
		t.Fatalf("the login gave %T", identity.GetAuthResult())
	}
	who, err := result.ExtractUser()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &owner{settings: settings, identity: identity, user: who.ID}
}

// restricted gives a cloud seen with a new application credential that has those access rules and goes with the test. The access rules stay, as
// objects of the user. Tests of another package may make a credential at that moment, and Keystone makes it without a rule that is just deleted.
func (o *owner) restricted(t *testing.T, rules []AccessRule) *Cloud {
	t.Helper()
	var made struct {
		Credential struct {
			ID     string
			Secret cloud.Secret
		} `json:"application_credential"`
	}
	wanted := map[string]any{"name": "rights-" + rand.Text(), "roles": []any{map[string]any{"name": "member"}}, "access_rules": rules}
	ask := func() error {
		_, err := o.identity.Post(t.Context(), o.identity.ServiceURL("users", o.user, "application_credentials"), map[string]any{"application_credential": wanted}, &made, nil)
		return err
	}
	err := ask()
	if gophercloud.ResponseCodeIs(err, http.StatusConflict) { // somebody made the same access rules at this moment: now they are there
		err = ask()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		url := o.identity.ServiceURL("users", o.user, "application_credentials", made.Credential.ID)
		if _, err := o.identity.Delete(context.WithoutCancel(t.Context()), url, nil); err != nil {
			t.Errorf("application credential %s stays: %v", made.Credential.ID, err)
		}
	})
	c, err := cloud.Connect(t.Context(), cloud.Settings{
		Name: "restricted", AuthURL: o.settings.AuthURL, Region: o.settings.Region,
		ApplicationCredentialID: made.Credential.ID, ApplicationCredentialSecret: made.Credential.Secret,
	}, cloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return New(c, slog.New(slog.DiscardHandler))
}

// noObject is an id that no object has.
const noObject = "00000000-0000-4000-8000-000000000000"

// try sends one request about objects that do not exist, with a body that every API refuses. Only a request with the right to be sent
// reaches the API, which then answers 400 or 404.
func (c *Cloud) try(ctx context.Context) func(call cloud.Call) error {
	return func(call cloud.Call) error {
		r := request{call: call, verb: "try", object: call.Method + " " + call.Path, ok: http.StatusOK, key: "a"}
		if call.Method != http.MethodGet && call.Method != http.MethodDelete {
			r.body = map[string]any{"nothing": nil}
		}
		for range variable.FindAllString(call.Path, -1) {
			r.ids = append(r.ids, noObject)
		}
		return c.do(ctx, r)
	}
}

// forbids reports whether an error is a missing access rule's.
func forbids(err error) bool {
	return volume.Is(err, volume.PermissionDenied) && strings.Contains(err.Error(), "HTTP 401")
}

func TestOnARealCloudTheAccessRulesAllowEveryCall(t *testing.T) {
	try := newOwner(t).restricted(t, AccessRules()).try(t.Context())
	for _, call := range Calls {
		if err := try(call); forbids(err) {
			t.Errorf("%s %s: %v", call.Method, call.Path, err)
		}
	}
}

func TestOnARealCloudWithoutAnAccessRuleItsCallsAreRefusedAndItIsNamed(t *testing.T) {
	user := newOwner(t)
	for i, rule := range AccessRules() {
		t.Run(strings.NewReplacer("/", "_", "*", "x").Replace(rule.String()), func(t *testing.T) {
			try := user.restricted(t, slices.Delete(AccessRules(), i, i+1)).try(t.Context())
			tried := 0
			for _, call := range Calls {
				if !rule.allows(ruleOf(call)) {
					continue
				}
				tried++
				var failure *volume.Error
				if err := try(call); !forbids(err) || !strings.Contains(err.Error(), rule.String()) || !errors.As(err, &failure) || failure.RequestID == "" || failure.Sent {
					t.Errorf("%s %s: want it refused for lack of %s, got %v", call.Method, call.Path, rule, err)
				}
			}
			if tried == 0 {
				t.Error("no call needs it")
			}
		})
	}
}
