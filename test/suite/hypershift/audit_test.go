//go:build hypershift

package hypershift

import (
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/judge/rights"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// calls are those in the audit log of a cluster, by line.
func (c *cluster) calls(t *testing.T) []rights.Call {
	t.Helper()
	all := testenv.Value(rights.Read(c.path("audit.log"), time.Time{}, ""))(t)
	return all
}

// granted are the rights of the controller's account in the guest, from the Roles and ClusterRoles that are bound to it. An administrator's
// kubeconfig has no roles of the bundle. So the test compares what all roles grant with what all sidecars call.
func (c *cluster) granted(t *testing.T) []rights.Grant {
	t.Helper()
	out := c.kubectl(t, "get", "clusterroles,roles,clusterrolebindings,rolebindings", "--all-namespaces", "--selector=app.kubernetes.io/name=cinder-csi,app.kubernetes.io/component=controller", "-o", "json")
	all := testenv.Value(rights.Granted([]byte(out)))(t)
	var merged []rights.Grant
	known := map[rights.Grant]bool{}
	for _, g := range all {
		g.Role = ""
		if !known[g] {
			known[g], merged = true, append(merged, g)
		}
	}
	return merged
}

// unusedFor says why a right that a run of this test need not use is granted.
var unusedFor = map[string]string{
	"patch events":                  "a repeated event is counted, not written again",
	"update persistentvolumeclaims": "the provisioner takes back the choice of a node whose zone has no room",
}

// checkAudit holds the calls of both API servers to what may be called.
func checkAudit(t *testing.T, management, guest *cluster, mode string) {
	t.Helper()
	for _, c := range management.calls(t) {
		if strings.HasPrefix(c.User.Username, "system:serviceaccount:"+hostedNamespace+":cinder-csi") || strings.HasPrefix(c.UserAgent, "csi-") || strings.HasPrefix(c.UserAgent, "cinder-csi") {
			t.Errorf("%s calls the management API: %s %s", c.User.Username, c.Verb, c.RequestURI)
		}
	}
	account := "system:serviceaccount:" + guestNamespace + ":cinder-csi-controller"
	sidecars := account
	if mode == modeAdmin {
		sidecars = hostedAdmin
	}
	var ours []rights.Call
	for _, c := range guest.calls(t) {
		switch {
		case c.User.Username == sidecars:
			ours = append(ours, c)
		case c.User.Username != account && c.User.Username != hostedAdmin || c.ObjectRef.Resource == "": // discovery and health need no right of ours
		default:
			// With a token, only the helper is an administrator, and it does one thing.
			if want, got := (rights.Right{Verb: "create", Resource: "serviceaccounts/token"}), c.Right(); mode == modeToken && got != want {
				t.Errorf("an administrator of the guest calls %s %s; want %s alone", c.Verb, c.RequestURI, want)
			}
		}
	}
	granted := guest.granted(t)
	result := rights.Compare(granted, ours)
	if len(result.Used) == 0 {
		t.Fatalf("no call of %s is in the audit log of the guest", sidecars)
	}
	for _, finding := range append(result.Findings, result.Unused(granted, unusedFor)...) {
		t.Error(finding)
	}
	t.Logf("measured: %s: %d rights granted in the guest, %d of them used, %d explained", mode, len(granted), len(result.Used), len(unusedFor))
}
