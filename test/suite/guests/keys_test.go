//go:build openstack

package guests

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
)

// Cinder asks Barbican for a key with the token of the driver. Without the right there, CreateVolume says which volume failed, why, and by which
// request an administrator finds it. A plain type needs no key.
func TestACredentialWithoutARightToKeysIsRefusedWithAReason(t *testing.T) {
	r := newRegion(t)
	near := &node{r: r, info: &csi.NodeGetInfoResponse{AccessibleTopology: &csi.Topology{Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": "az1"}}}}
	for name, options := range map[string]map[string]any{
		"a role that may not create keys": {"roles": roles("member")},
		"access rules":                    {"roles": roles("member", "creator"), "access_rules": openstack.AccessRules()},
	} {
		t.Run(name, func(t *testing.T) {
			limited := *r
			limited.ControllerClient = startController(t, r.credential(t, options))
			plain := limited.create(t, near, claim{}, 1)
			r.wantEncrypted(t, plain, false)
			request := &csi.CreateVolumeRequest{
				Name: "guests-" + rand.Text(), CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}, VolumeCapabilities: []*csi.VolumeCapability{plain.capability()},
				AccessibilityRequirements: &csi.TopologyRequirement{Preferred: []*csi.Topology{near.info.GetAccessibleTopology()}},
				Parameters:                map[string]string{"type": encryptedType},
			}
			made, err := limited.CreateVolume(within(t, patience), request)
			if err == nil {
				_, _ = r.DeleteVolume(within(t, patience), &csi.DeleteVolumeRequest{VolumeId: made.GetVolume().GetVolumeId()})
				t.Fatal("want CreateVolume to be refused, the volume was created")
			}
			t.Logf("CreateVolume: %v", err)
			for _, part := range []string{request.GetName(), "Key manager error", "req-"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("want %q in the error, got %v", part, err)
				}
			}
		})
	}
}

func roles(names ...string) []map[string]string {
	var list []map[string]string
	for _, name := range names {
		list = append(list, map[string]string{"name": name})
	}
	return list
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
