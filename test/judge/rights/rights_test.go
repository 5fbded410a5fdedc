package rights

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// roles are two roles of one account, and one of another account in a namespace.
const roles = `{"items": [
  {"kind": "ClusterRole", "metadata": {"name": "cinder-csi-provisioner"},
   "rules": [{"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["get", "list", "watch", "create"]},
             {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}]},
  {"kind": "ClusterRoleBinding", "metadata": {"name": "p"}, "roleRef": {"kind": "ClusterRole", "name": "cinder-csi-provisioner"},
   "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": "ns"}]},
  {"kind": "ClusterRole", "metadata": {"name": "cinder-csi-attacher"},
   "rules": [{"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments/status"], "verbs": ["patch"]}]},
  {"kind": "ClusterRoleBinding", "metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "cinder-csi-attacher"},
   "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": "ns"}]},
  {"kind": "Role", "metadata": {"name": "cinder-csi-metrics", "namespace": "ns"}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]},
  {"kind": "RoleBinding", "metadata": {"name": "m", "namespace": "ns"}, "roleRef": {"kind": "Role", "name": "cinder-csi-metrics"},
   "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "ns"}]}
]}`

func granted(t *testing.T) []Grant {
	t.Helper()
	all, err := Granted([]byte(roles))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRolesGrantRightsToTheAccountsTheyAreBoundTo(t *testing.T) {
	var got []string
	for _, g := range granted(t) {
		got = append(got, g.Account+": "+g.String())
	}
	want := []string{
		"ns/controller: cinder-csi-attacher patch volumeattachments.storage.k8s.io/status",
		"ns/controller: cinder-csi-provisioner create events",
		"ns/controller: cinder-csi-provisioner create persistentvolumes",
		"ns/controller: cinder-csi-provisioner get persistentvolumes",
		"ns/controller: cinder-csi-provisioner list persistentvolumes",
		"ns/controller: cinder-csi-provisioner patch events",
		"ns/controller: cinder-csi-provisioner watch persistentvolumes",
		"ns/reader: cinder-csi-metrics get /metrics",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARoleThatNothingIsBoundToIsAnError(t *testing.T) {
	for name, list := range map[string]string{
		"no binding": `{"items": [{"kind": "Role", "metadata": {"name": "r", "namespace": "a"}, "rules": [{"apiGroups": [""], "resources": ["x"], "verbs": ["get"]}]}]}`,
		"a binding in another namespace": `{"items": [{"kind": "Role", "metadata": {"name": "r", "namespace": "a"}},
		  {"kind": "RoleBinding", "metadata": {"name": "r", "namespace": "b"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"name": "s", "namespace": "b"}]}]}`,
		"nothing at all": `{"items": []}`,
	} {
		if all, err := Granted([]byte(list)); err == nil {
			t.Errorf("%s: want an error, got %v", name, all)
		}
	}
}

// made is a call of the account ns/controller.
func made(program, verb, group, resource, subresource string) Call {
	c := Call{Verb: verb, UserAgent: program + "/v1 (linux/amd64)", RequestURI: "/uri"}
	c.User.Username = "system:serviceaccount:ns:controller"
	c.ObjectRef.APIGroup, c.ObjectRef.Resource, c.ObjectRef.Subresource = group, resource, subresource
	c.ResponseStatus.Code = 200
	return c
}

func TestCallsAreComparedWithTheRolesOfTheirProgram(t *testing.T) {
	refused := made("csi-attacher", "list", "", "secrets", "")
	refused.ResponseStatus.Code = 403
	forbidden := made("csi-attacher", "get", "", "", "")
	forbidden.Annotations = map[string]string{"authorization.k8s.io/decision": "forbid"}
	admission := made("csi-provisioner", "create", "", "events", "")
	admission.ResponseStatus.Code, admission.Annotations = 403, map[string]string{"authorization.k8s.io/decision": "allow"}
	other := made("csi-provisioner", "create", "", "events", "")
	other.User.Username = "system:serviceaccount:ns:reader"
	for _, test := range []struct {
		name           string
		call           Call
		used, findings []string
	}{
		{"used", made("csi-attacher", "patch", "storage.k8s.io", "volumeattachments", "status"), []string{"cinder-csi-attacher patch volumeattachments.storage.k8s.io/status"}, nil},
		{"refused by admission, which is no matter of rights", admission, []string{"cinder-csi-provisioner create events"}, nil},
		{"discovery needs no right", made("csi-attacher", "get", "", "", ""), nil, nil},
		{"the driver may use what a sidecar is granted", made("cinder-csi-driver", "get", "", "persistentvolumes", ""), []string{"cinder-csi-provisioner get persistentvolumes"}, nil},
		{"another sidecar may not", made("csi-attacher", "create", "", "events", ""), nil, []string{`csi-attacher calls "create events", which no role of its own grants (1 times)`}},
		{"another account may not", other, nil, []string{`csi-provisioner calls "create events", which no role of its own grants (1 times)`}},
		{"refused", refused, nil, []string{"denied 1 times: system:serviceaccount:ns:controller (csi-attacher): list /uri"}},
		{"refused without a resource", forbidden, nil, []string{"denied 1 times: system:serviceaccount:ns:controller (csi-attacher): get /uri"}},
	} {
		got := Compare(granted(t), []Call{test.call})
		var used []string
		for g := range got.Used {
			used = append(used, g.String())
		}
		if diff := cmp.Diff([][]string{test.used, test.findings}, [][]string{used, got.Findings}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

func TestAGrantThatNothingUsedNeedsAReason(t *testing.T) {
	all := granted(t)
	used := Compare(all, []Call{
		made("csi-provisioner", "watch", "", "persistentvolumes", ""), // and so get and list
		made("csi-provisioner", "create", "", "events", ""),
		made("csi-attacher", "patch", "storage.k8s.io", "volumeattachments", "status"),
	})
	reasons := map[string]string{"cinder-csi-provisioner patch events": "an event is repeated", "cinder-csi-attacher delete nodes": "none"}
	want := []string{
		`ns/controller is granted "cinder-csi-provisioner create persistentvolumes", and nothing used it`,
		`ns/reader is granted "cinder-csi-metrics get /metrics", and nothing used it`,
		`a reason names "cinder-csi-attacher delete nodes", which is not granted`,
	}
	if diff := cmp.Diff(want, used.Unused(all, reasons)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProgramsOfRoles(t *testing.T) {
	for role, want := range map[string]string{
		"cinder-csi-provisioner": "csi-provisioner", "cinder-csi-provisioner-lease": "csi-provisioner", "cinder-csi-provisionerx": "", "west.example.com-attacher": "csi-attacher", "cinder-csi.io-provisioner-snapshots": "csi-provisioner",
		"cinder-csi-snapshotter": "csi-snapshotter", "cinder-csi-metrics": "",
	} {
		if got := (Grant{Role: role}).Program(); got != want {
			t.Errorf("role %s: want %q, got %q", role, want, got)
		}
	}
}

func TestALogIsReadWithItsRotatedFilesFromATimeOn(t *testing.T) {
	const event = `{"verb": "VERB", "requestReceivedTimestamp": "2026-01-02T03:04:0SECOND.000000Z", "user": {"username": "system:serviceaccount:ns:controller"}}` + "\n"
	at := func(verb, second string) string {
		return strings.NewReplacer("VERB", verb, "SECOND", second).Replace(event)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"audit-2026-01-02T03-04-05.000.log": at("before", "1") + at("first", "2"),
		"audit.log":                         at("second", "3") + strings.ReplaceAll(at("other", "3"), "ns:", "elsewhere:") + at("third", "4") + `{"verb": "half ns:`,
	} {
		testfile.Write(t, filepath.Join(dir, name), text, 0o600)
	}
	calls, err := Read(filepath.Join(dir, "audit.log"), time.Date(2026, 1, 2, 3, 4, 2, 0, time.UTC), "ns:")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range calls {
		got = append(got, c.Verb+" by "+c.Account())
	}
	want := []string{"first by ns/controller", "second by ns/controller", "third by ns/controller"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := decode(strings.NewReader("not JSON\n"), nil); err == nil {
		t.Error("a line that is not JSON is no error")
	}
}

func TestReasonsAreParsed(t *testing.T) {
	got, err := ParseReasons("# why\n\ncinder-csi-attacher patch volumeattachments.storage.k8s.io/status: a node is lost: it needs one\n")
	want := map[string]string{"cinder-csi-attacher patch volumeattachments.storage.k8s.io/status": "a node is lost: it needs one"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for _, text := range []string{"a b", "a b: ", "a b: c\na b: d"} {
		if got, err := ParseReasons(text); err == nil {
			t.Errorf("%q: want an error, got %v", text, got)
		}
	}
}
