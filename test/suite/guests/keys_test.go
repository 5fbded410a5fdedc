//go:build openstack

package guests

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// Cinder asks Barbican for a key with the token of the driver. Without the right there, CreateVolume says which volume failed, why, and by which
// request an administrator finds it. A plain type needs no key.
func TestACredentialWithoutARightToKeysIsRefusedWithAReason(t *testing.T) {
	for name, test := range map[string]struct {
		options map[string]any
		want    []string
	}{
		"a role that may not create keys": {map[string]any{"roles": roles("member")}, []string{"HTTP 400: Key manager error", `"creator"`}},
		// Barbican refuses the request as Nova and Cinder do, with HTTP 401. Cinder fails on that answer.
		"the access rules of the driver alone": {
			map[string]any{"roles": roles("member", "creator"), "access_rules": openstack.AccessRules()}, []string{"HTTP 500", "outcome unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, near := withCredential(t, test.options)
			plain := r.create(t, near, claim{}, 1)
			r.wantEncrypted(t, plain, false)
			request := near.request(plain, 1, ofType(encryptedType))
			made, err := r.CreateVolume(within(t, patience), request)
			if err == nil {
				_, _ = r.DeleteVolume(within(t, patience), &csi.DeleteVolumeRequest{VolumeId: made.GetVolume().GetVolumeId()})
				t.Fatal("want CreateVolume to be refused, the volume was created")
			}
			t.Logf("CreateVolume: %v", err)
			if code := status.Code(err); code != codes.Unavailable {
				t.Errorf("want an error that Kubernetes retries, got %s", code)
			}
			for _, part := range append(test.want, request.GetName(), "req-") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("want %q in the error, got %v", part, err)
				}
			}
		})
	}
}

// The access rules of the page allow everything that Cinder and Nova ask Barbican for.
func TestTheAccessRulesOfThePageAreEnoughForEncryptedVolumes(t *testing.T) {
	rules := slices.Clone(openstack.AccessRules())
	rules = append(rules, keyRules(t)...)
	r, _ := withCredential(t, map[string]any{"roles": roles("member", "creator"), "access_rules": rules})
	n := r.node(t, r.serverNamed(t, "node-az1"))
	c := r.create(t, n, claim{fsType: "ext4"}, 1, ofType(encryptedType))
	n.use(t, c)
	sum := n.write(t, c, "kept")
	n.leave(t, c)
	restored := r.create(t, n, claim{fsType: "ext4"}, 1, ofType(encryptedType), csitest.FromSnapshot(r.snapshot(t, c)))
	n.use(t, restored)
	n.wantData(t, restored, "kept", sum)
	n.leave(t, restored)
}

// Cinder deletes the key before the volume. If it may not, the volume ends in a status that only an administrator resets, and the driver says so.
func TestAVolumeWhoseKeyMayNotBeDeletedNeedsAnAdministrator(t *testing.T) {
	r := newRegion(t)
	limited, near := withCredential(t, map[string]any{"roles": roles("member")})
	c := r.create(t, near, claim{}, 1, ofType(encryptedType))
	t.Cleanup(func() {
		send(t, r.adminDisk, http.MethodPost, "volumes/"+c.id+"/action", map[string]any{"os-reset_status": map[string]any{"status": "error"}}, nil)
	})
	for _, want := range []string{`mostly "creator"`, "until an administrator resets the status"} {
		_, err := limited.DeleteVolume(within(t, patience), &csi.DeleteVolumeRequest{VolumeId: c.id})
		t.Logf("DeleteVolume: %v; the volume is %s", err, r.status(t, c.id))
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), c.id) {
			t.Errorf("want FailedPrecondition and %q, got %v", want, err)
		}
	}
}

// withCredential is the cloud with a controller that logs in by an application credential of the test user.
func withCredential(t *testing.T, options map[string]any) (*region, *node) {
	t.Helper()
	r := newCloud(t)
	r.ControllerClient = startController(t, r.credential(t, options))
	return r, &node{r: r, info: &csi.NodeGetInfoResponse{AccessibleTopology: &csi.Topology{Segments: map[string]string{contract.TopologyKey: "az1"}}}}
}

func roles(names ...string) []map[string]string {
	var list []map[string]string
	for _, name := range names {
		list = append(list, map[string]string{"name": name})
	}
	return list
}

// keyRules are those of docs/reference/access-rules.md for encrypted types.
func keyRules(t *testing.T) []openstack.AccessRule {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "access-rules.md"))
	must(t, "read the page", err)
	_, block, _ := strings.Cut(string(page), "<!-- key-rules -->\n```json\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the page has no block <!-- key-rules -->")
	}
	var rules []openstack.AccessRule
	must(t, "read the rules", json.Unmarshal([]byte(block), &rules))
	return rules
}

// credential is a cloud.conf with an application credential of the test user, which lives until the test ends.
func (r *region) credential(t *testing.T, options map[string]any) string {
	t.Helper()
	login, ok := r.keystone.GetAuthResult().(tokens.CreateResult)
	if !ok {
		t.Fatalf("the login gave %T", r.keystone.GetAuthResult())
	}
	user, err := login.ExtractUser()
	must(t, "read the login", err)
	wanted := maps.Clone(options)
	wanted["name"] = "guests-" + rand.Text()
	var made struct {
		Credential struct{ ID, Secret string } `json:"application_credential"`
	}
	path := "users/" + user.ID + "/application_credentials"
	send(t, r.keystone, http.MethodPost, path, map[string]any{"application_credential": wanted}, &made)
	t.Cleanup(func() { send(t, r.keystone, http.MethodDelete, path+"/"+made.Credential.ID, nil, nil) })
	conf := filepath.Join(t.TempDir(), "cloud.conf")
	must(t, "write cloud.conf", os.WriteFile(conf, fmt.Appendf(nil, "[Global]\nauth-url = %s\nregion = RegionOne\napplication-credential-id = %s\napplication-credential-secret = %s\n",
		r.keystone.IdentityEndpoint, made.Credential.ID, made.Credential.Secret), 0o600))
	return conf
}
