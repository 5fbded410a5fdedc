//go:build hypershift

package hypershift

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// call is what is read of an audit event (audit.k8s.io/v1).
type call struct {
	Verb, UserAgent, RequestURI string
	User                        struct{ Username string }
	ObjectRef                   struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	ResponseStatus              struct{ Code int }
}

// right is a verb on a resource.
type right struct{ verb, group, resource string }

func (r right) String() string {
	if r.group == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + "." + r.group
}

func (c call) right() right {
	resource := c.ObjectRef.Resource
	if c.ObjectRef.Subresource != "" {
		resource += "/" + c.ObjectRef.Subresource
	}
	return right{c.Verb, c.ObjectRef.APIGroup, resource}
}

// calls are those in the audit log of a cluster, by line.
func (c *cluster) calls(t *testing.T) []call {
	t.Helper()
	f, err := os.Open(c.path("audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []call
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e call
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			break // the last line may be half written
		}
		all = append(all, e)
	}
	return all
}

// granted are the rights of the controller's account in the guest, from the Roles and ClusterRoles that are bound to it.
func (c *cluster) granted(t *testing.T) map[right]bool {
	t.Helper()
	var roles struct {
		Items []struct {
			Metadata struct{ Name string }
			Rules    []struct{ APIGroups, Resources, Verbs []string }
		}
	}
	out := c.kubectl(t, "get", "clusterroles,roles", "--all-namespaces", "--selector=app.kubernetes.io/name=cinder-csi,app.kubernetes.io/component=controller", "-o", "json")
	if err := json.Unmarshal([]byte(out), &roles); err != nil {
		t.Fatal(err)
	}
	all := map[right]bool{}
	for _, role := range roles.Items {
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all[right{verb, group, resource}] = true
					}
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("the guest grants the controller nothing")
	}
	return all
}

// unusedFor says why a right that a run of this test need not use is granted.
var unusedFor = map[string]string{
	"patch events":                  "a repeated event is counted, not written again",
	"update persistentvolumeclaims": "the provisioner takes back the choice of a node whose zone has no room",
}

// reading are the verbs that read. They count as one, because the API server decides which of them a client uses. It watches where the API server
// can send the whole list on a watch, and lists where it cannot.
var reading = []string{"get", "list", "watch"}

// isUsed is whether a call has used a right, or another right to read the same.
func isUsed(used map[right]bool, r right) bool {
	if !slices.Contains(reading, r.verb) {
		return used[r]
	}
	return slices.ContainsFunc(reading, func(verb string) bool { return used[right{verb, r.group, r.resource}] })
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
	granted, used := guest.granted(t), map[right]bool{}
	for _, c := range guest.calls(t) {
		r := c.right()
		switch {
		case c.User.Username != account && c.User.Username != hostedAdmin || c.ObjectRef.Resource == "": // discovery and health need no right of ours
		case c.User.Username != sidecars:
			// With a token, only the helper is an administrator, and it does one thing.
			if want := (right{"create", "", "serviceaccounts/token"}); mode == modeToken && r != want {
				t.Errorf("an administrator of the guest calls %s %s; want %s alone", c.Verb, c.RequestURI, want)
			}
		case c.ResponseStatus.Code == http.StatusForbidden:
			t.Errorf("the guest refuses %s (%s %s)", r, c.Verb, c.RequestURI)
		case !granted[r]:
			t.Errorf("a sidecar calls %s (%s), which the guest's roles do not grant", r, c.RequestURI)
		default:
			used[r] = true
		}
	}
	if len(used) == 0 {
		t.Fatalf("no call of %s is in the audit log of the guest", sidecars)
	}
	for _, r := range slices.SortedFunc(maps.Keys(granted), func(a, b right) int { return strings.Compare(a.String(), b.String()) }) {
		if !isUsed(used, r) && unusedFor[r.String()] == "" {
			t.Errorf("the guest grants %q, and nothing uses it", r)
		}
	}
	for name := range unusedFor {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(granted)), func(r right) bool { return r.String() == name }) {
			t.Errorf("unusedFor names %q, which is not granted", name)
		}
	}
	t.Logf("measured: %s: %d rights granted in the guest, %d of them used, %d explained", mode, len(granted), len(used), len(unusedFor))
}
