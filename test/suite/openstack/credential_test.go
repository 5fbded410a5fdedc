//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// keystone calls the Keystone of the bed as one of its users.
type keystone struct {
	client  *gophercloud.ServiceClient
	user    string // id
	authURL string
}

func newKeystone(t *testing.T, bed, name string) keystone {
	t.Helper()
	settings := testenv.Value(cloud.FromSource(cloud.Source{CloudName: name, CloudsFile: filepath.Join(bed, "clouds.yaml"), Env: func(string) string { return "" }}))(t)
	c := testenv.Value(cloud.Connect(t.Context(), settings, cloud.Options{}))(t)
	t.Cleanup(c.Close)
	client := testenv.Value(c.Client("identity", ""))(t)
	result, ok := client.GetAuthResult().(tokens.CreateResult)
	if !ok {
		t.Fatalf("the login gave %T", client.GetAuthResult())
	}
	user := testenv.Value(result.ExtractUser())(t)
	return keystone{client: client, user: user.ID, authURL: settings.AuthURL}
}

// credential is an application credential.
type credential struct {
	ID, Secret string
	Rules      []struct{ ID string } `json:"access_rules"`
}

// newCredential creates an application credential. The end of the test deletes it. Without rules it has all rights of the user.
func (k keystone) newCredential(t *testing.T, rules []openstack.AccessRule) credential {
	t.Helper()
	wanted := map[string]any{"name": "bed-" + rand.Text(), "roles": []any{map[string]any{"name": "member"}}}
	if len(rules) > 0 {
		wanted["access_rules"] = rules
	}
	var made struct {
		Credential credential `json:"application_credential"`
	}
	url := k.client.ServiceURL("users", k.user, "application_credentials")
	ask := func() error {
		return csitest.Outcome(k.client.Post(t.Context(), url, map[string]any{"application_credential": wanted}, &made, nil))
	}
	err := ask()
	if gophercloud.ResponseCodeIs(err, http.StatusConflict) { // another run created the same access rules at the same time; now they exist
		err = ask()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		k.delete(t, ctx, made.Credential)
	})
	for _, rule := range made.Credential.Rules {
		leftOver[k.client.ServiceURL("users", k.user, "access_rules", rule.ID)] = k.client
	}
	return made.Credential
}

// leftOver are the URLs of access rules. Access rules outlive their credentials, and several credentials share them.
var leftOver = map[string]*gophercloud.ServiceClient{}

func TestMain(m *testing.M) {
	code := m.Run()
	for url, client := range leftOver {
		_, _ = client.Delete(context.Background(), url, nil) // Keystone refuses this for a rule that another credential uses
	}
	os.Exit(code)
}

// leastRights is a cloud.conf with a credential that has only the access rules of the driver.
func leastRights(t *testing.T, bed string) string {
	t.Helper()
	owner := newKeystone(t, bed, "lab-demo")
	path := filepath.Join(t.TempDir(), "cloud.conf")
	testfile.Write(t, path, owner.conf(owner.newCredential(t, openstack.AccessRules())), 0o600)
	return path
}

// delete deletes a credential. It accepts that the credential does not exist.
func (k keystone) delete(t *testing.T, ctx context.Context, c credential) {
	t.Helper()
	_, err := k.client.Delete(ctx, k.client.ServiceURL("users", k.user, "application_credentials", c.ID), nil)
	if err != nil && !gophercloud.ResponseCodeIs(err, 404) {
		t.Errorf("application credential %s stays: %v", c.ID, err)
	}
}

// conf is a cloud.conf with a credential.
func (k keystone) conf(c credential) []byte {
	return fmt.Appendf(nil, "[Global]\nauth-url = %s\nregion = RegionOne\napplication-credential-id = %s\napplication-credential-secret = %s\n", k.authURL, c.ID, c.Secret)
}

// project replaces a file as kubelet does in a mounted Secret: it writes a new directory and moves the link ..data to it.
func project(t *testing.T, path string, content []byte) {
	t.Helper()
	dir, name := filepath.Dir(path), filepath.Base(path)
	fresh := testenv.Value(os.MkdirTemp(dir, "..2026_"))(t)
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	steps := []error{
		os.WriteFile(filepath.Join(fresh, name), content, 0o600),
		os.Symlink(filepath.Base(fresh), filepath.Join(dir, "..data_tmp")),
		os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")),
	}
	if old == "" {
		steps = append(steps, os.Symlink(filepath.Join("..data", name), path))
	} else {
		steps = append(steps, os.RemoveAll(filepath.Join(dir, old)))
	}
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
}
