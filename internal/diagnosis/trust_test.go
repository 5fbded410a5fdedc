package diagnosis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const controllerPods = "pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dcontroller%2Capp.kubernetes.io%2Fname%3Dcinder-csi&limit=500"

const bindingsPath = "GET /apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector=app.kubernetes.io%2Fname%3Dcinder-csi&limit=500"

// withImpostor is a recorded cluster in which another tenant has a pod with the labels of the controller, and an expired lease. The pod of the driver is the recorded one; the binding has the form of manifests/base/rbac.
func withImpostor(t *testing.T, r *diagnosistest.Recording, bindings string) diagnosistest.Replay {
	t.Helper()
	world := diagnosistest.Replay(maps.Clone(r.Cluster))
	var pods struct{ Items []json.RawMessage }
	recorded := world["GET /api/v1/namespaces/"+r.Namespace+"/"+controllerPods]
	if err := json.Unmarshal(recorded.Body, &pods); err != nil || len(pods.Items) != 1 {
		t.Fatalf("want one controller pod in the recording: %v", err)
	}
	impostor := `{"metadata": {"name": "web", "namespace": "team-evil", "labels": {"app.kubernetes.io/name": "cinder-csi", "app.kubernetes.io/component": "controller"}},
"spec": {"serviceAccountName": "default", "containers": [{"name": "driver", "image": "x", "args": ["--http-endpoint=:1"]}]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`
	list, err := json.Marshal(map[string]any{"items": append(pods.Items, json.RawMessage(impostor))})
	if err != nil {
		t.Fatal(err)
	}
	world["GET /api/v1/"+controllerPods] = diagnosistest.Answer{Status: http.StatusOK, Body: list}
	world["GET /apis/coordination.k8s.io/v1/namespaces/team-evil/leases?limit=500"] = diagnosistest.Answer{Status: http.StatusOK, Body: json.RawMessage(
		`{"items": [{"metadata": {"name": "cinder-csi-openstack-org", "namespace": "team-evil"}, "spec": {"holderIdentity": "web", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}}]}`)}
	world[bindingsPath] = diagnosistest.Answer{Status: http.StatusOK, Body: json.RawMessage(bindings)}
	if bindings == "" {
		world[bindingsPath] = diagnosistest.Answer{Status: http.StatusForbidden, Body: json.RawMessage(`{"message": "forbidden"}`)}
	}
	return world
}

func TestLabelsDoNotMakeAPodTheController(t *testing.T) {
	r := recordings(t)["create-slow"]
	for _, test := range []struct{ name, bindings, cause string }{
		{"bound", `{"items": [{"subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "` + r.Namespace + `"}]}]}`, "create.waiting"},
		{"bound to nobody", `{"items": []}`, "driver.unseen"},
		{"bindings that may not be read", "", "driver.unseen"},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := sources(t, r, withImpostor(t, r, test.bindings))
			from.Namespace = ""
			var asked []string
			page := from.Page
			from.Page = func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error) {
				asked = append(asked, namespace)
				return page(ctx, namespace, pod, port, path)
			}
			report := diagnose(t, r, from)
			if report.Cause != test.cause {
				t.Errorf("want %s, got %s", test.cause, report.Cause)
			}
			text, _ := json.Marshal(report.Steps)
			if slices.Contains(asked, "team-evil") || strings.Contains(string(text), "team-evil") {
				t.Errorf("the impostor is believed: asked %q, %s", asked, text)
			}
		})
	}
}

// A kubelet may make a mirror pod in each namespace, with any labels, and answers for its page. Such a pod has no account.
func TestAMirrorPodIsNeverTheController(t *testing.T) {
	denied := diagnosistest.Answer{Status: http.StatusForbidden, Body: json.RawMessage(`{"message": "forbidden"}`)}
	pods := ok(`{"items": [{"metadata": {"namespace": "cinder-csi", "name": "mirror", "annotations": {"kubernetes.io/config.mirror": ""}}},
		{"metadata": {"namespace": "cinder-csi", "name": "c-0"}, "spec": {"serviceAccountName": "c"}}]}`)
	bindings := ok(`{"items": [{"subjects": [{"kind": "ServiceAccount", "namespace": "cinder-csi", "name": "c"}]}]}`)
	for _, test := range []struct {
		name, namespace string
		all, bindings   diagnosistest.Answer
		want            int
	}{
		{"with --driver-namespace", "cinder-csi", pods, bindings, 1},
		{"without the right to list all pods", "", denied, bindings, 1},
		{"without the right to read bindings", "", pods, denied, 1},
		{"with all rights", "", pods, bindings, 1},
		{"with no binding", "", pods, ok(`{"items": []}`), 0}, // then a gap names the pod that may be the driver
	} {
		t.Run(test.name, func(t *testing.T) {
			from := nodeSources(diagnosistest.Replay{
				"GET /api/v1/" + controllerPods: test.all, "GET /api/v1/namespaces/cinder-csi/" + controllerPods: pods, bindingsPath: test.bindings,
			})
			from.Namespace = test.namespace
			got := diagnosis.ReadDriverPods(t.Context(), from, "")
			if text := fmt.Sprint(got); len(got.Pods) != test.want || strings.Contains(text, "mirror") || !strings.Contains(text, "cinder-csi/c-0") {
				t.Errorf("want the pod of the driver alone, got %s", text)
			}
		})
	}
}

// A tenant writes names into a claim, a pod and a snapshot. The object of that name counts only if it names the claim too. The world of this test has
// nothing of the cloud, and VolumeAttachments only where they may be read.
func TestWhatATenantNamesIsHisOnlyIfItAgrees(t *testing.T) {
	const volume = `{"metadata": {"name": "pv"}, "spec": {"persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "11111111-2222-3333-4444-555555555555"}%s}, "status": {"phase": "%s"}}`
	const claim = `{"metadata": {"namespace": "evil", "name": "mine", "uid": "a"%s}, "spec": {"volumeName": "pv"}, "status": {"phase": "%s"}}`
	const deleted = `, "deletionTimestamp": "2026-01-02T03:00:00Z", "finalizers": ["x/y"]`
	denied := diagnosistest.Answer{Status: http.StatusForbidden, Body: json.RawMessage(`{"message": "forbidden"}`)}
	attachments := ok(`{"items": [{"metadata": {"name": "csi-1"}, "spec": {"nodeName": "victims-node", "attacher": "cinder.csi.openstack.org", "source": {"persistentVolumeName": "pv"}}, "status": {"attached": true}}]}`)
	none := ok(`{"items": []}`)
	for _, test := range []struct {
		name          string
		claim, volume diagnosistest.Answer
		of            diagnosis.Subject
		other         bool // the cause
		seen          bool // the attachment
	}{
		{"another namespace", ok(claim, "", "Pending"), ok(volume, `, "claimRef": {"namespace": "victim", "name": "mine", "uid": "a"}`, "Bound"), diagnosis.Subject{}, true, false},
		{"another name", ok(claim, "", "Pending"), ok(volume, `, "claimRef": {"namespace": "evil", "name": "data"}`, "Bound"), diagnosis.Subject{}, true, false},
		{"an earlier claim", ok(claim, "", "Pending"), ok(volume, `, "claimRef": {"namespace": "evil", "name": "mine", "uid": "b"}`, "Released"), diagnosis.Subject{}, true, false},
		{"another, of a deleted claim", ok(claim, deleted, "Pending"), ok(volume, `, "claimRef": {"namespace": "victim", "name": "data"}`, "Bound"), diagnosis.Subject{}, true, false},
		{"another, of a lost claim", ok(claim, "", "Lost"), ok(volume, `, "claimRef": {"namespace": "victim", "name": "data"}`, "Bound"), diagnosis.Subject{}, true, false},
		{"another, by a pod", ok(claim, "", "Pending"), ok(volume, `, "claimRef": {"namespace": "victim", "name": "data"}`, "Bound"), diagnosis.Subject{Kind: diagnosis.Pod, Namespace: "evil", Name: "p"}, true, false},
		{"another, by a snapshot", ok(claim, "", "Pending"), ok(volume, `, "claimRef": {"namespace": "victim", "name": "data"}`, "Bound"), diagnosis.Subject{Kind: diagnosis.SnapshotOf, Namespace: "evil", Name: "s"}, true, false},
		{"one that may not be read", ok(claim, "", "Pending"), denied, diagnosis.Subject{}, false, false},
		{"the claim's own that may not be read", ok(claim, "", "Bound"), denied, diagnosis.Subject{}, false, true},
		{"the claim's own", ok(claim, "", "Bound"), ok(volume, `, "claimRef": {"namespace": "evil", "name": "mine", "uid": "a"}`, "Bound"), diagnosis.Subject{}, false, true},
		{"one that waits for the claim", ok(claim, "", "Pending"), ok(volume, `, "claimRef": {"namespace": "evil", "name": "mine"}`, "Available"), diagnosis.Subject{}, false, true},
		{"one without a claim", ok(claim, "", "Pending"), ok(volume, "", "Available"), diagnosis.Subject{}, false, true},
		{"the PersistentVolume of another, by its name", ok(claim, "", "Pending"), ok(volume, `, "claimRef": {"namespace": "evil", "name": "mine", "uid": "b"}`, "Bound"), diagnosis.Subject{Kind: diagnosis.Volume, Name: "pv"}, false, true},
	} {
		from := nodeSources(diagnosistest.Replay{
			"GET /api/v1/namespaces/evil/persistentvolumeclaims/mine": test.claim, "GET /api/v1/persistentvolumes/pv": test.volume,
			"GET /apis/storage.k8s.io/v1/volumeattachments?limit=500":                attachments,
			"GET /api/v1/namespaces/evil/pods?limit=500":                             none,
			"GET /api/v1/namespaces/evil/pods/p":                                     ok(`{"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "mine"}}]}}`),
			"GET /apis/snapshot.storage.k8s.io/v1/namespaces/evil/volumesnapshots/s": ok(`{"spec": {"source": {"persistentVolumeClaimName": "mine"}}}`),
		})
		of := test.of
		if of.Kind == "" {
			of = diagnosis.Subject{Kind: diagnosis.Claim, Namespace: "evil", Name: "mine"}
		}
		found, err := diagnosis.Find(t.Context(), from.Cluster, of, diagnosis.Given{})
		if err != nil || len(found) != 1 {
			t.Fatal(test.name, found, err)
		}
		readings, err := diagnosis.ReadSubject(t.Context(), from, found[0])
		if err != nil {
			t.Fatal(test.name, err)
		}
		report := diagnosis.Diagnose(readings)
		if got := report.Cause == "bind.other-claim"; got != test.other {
			t.Errorf("%s: got the cause %s", test.name, report.Cause)
		}
		text, _ := json.Marshal([]any{report, readings.Attachments})
		if got := strings.Contains(string(text), "victims-node"); got != test.seen || test.other && strings.Contains(string(text), "11111111") {
			t.Errorf("%s: got %s", test.name, text)
		}
	}
}

// evil runs a program where it is not quoted.
const evil = "$(touch /tmp/owned);`id`#'\" x"

func TestNoPrintedCommandHasAWordOfOthersUnquoted(t *testing.T) {
	for name, r := range recordings(t) {
		f := readingsOf(t, r)
		for _, n := range f.Nodes {
			if n.Driver != nil {
				n.Driver.NodeID = evil
			}
			for i := range n.Plugins {
				n.Plugins[i].Name, n.Plugins[i].Namespace = evil, evil
			}
		}
		nodes := map[string]*diagnosis.Node{}
		for _, n := range f.Nodes {
			nodes[evil] = n
		}
		f.Nodes = nodes
		for i := range f.Pods {
			f.Pods[i].Name, f.Pods[i].Namespace, f.Pods[i].Spec.NodeName = evil, evil, evil
		}
		for i := range f.Attachments {
			f.Attachments[i].Name, f.Attachments[i].Spec.NodeName = evil, evil
		}
		for i := range f.Controllers {
			f.Controllers[i].Name, f.Controllers[i].Namespace = evil, evil
		}
		if f.Volume != nil {
			f.Volume.Spec.CSI.VolumeHandle = evil
		}
		if c := f.Cloud; c != nil {
			servers := map[string]*diagnosis.CloudServer{}
			for _, s := range c.Servers {
				s.ID = evil
				servers[evil] = s
			}
			c.Servers = servers
			if c.Volume != nil {
				c.Volume.ID = evil
			}
			for i := range c.Attachments {
				c.Attachments[i].ID, c.Attachments[i].Server = evil, evil
			}
		}
		f.Namespace, f.Name = evil, evil
		for _, s := range diagnosis.Diagnose(f).Steps {
			for _, do := range s.Do {
				if strings.HasPrefix(do, "$ ") && strings.Contains(do, "touch") {
					t.Errorf("%s: %s", name, do)
				}
			}
		}
	}
}

// The node of a kubelet that an attacker holds names its server in CSINode.
func TestAServerIDThatIsNoneBecomesAPlaceholder(t *testing.T) {
	f := readingsOf(t, recordings(t)["node-lost"])
	for _, n := range f.Nodes {
		if n.Driver != nil {
			n.Driver.NodeID = "$(touch x)"
		}
	}
	report := diagnosis.Diagnose(f)
	if do := report.Steps[len(report.Steps)-1].Do; !slices.Contains(do, "$ openstack server stop SERVER") {
		t.Errorf("want the placeholder, got %q", do)
	}
}

// A kubelet that an attacker holds names the server of somebody else in its CSINode. It can also set a provider ID that is empty, and chooses
// one when it registers.
func TestNoCommandChangesAServerThatANodeAloneNames(t *testing.T) {
	const victim = "99999999-0000-4000-8000-000000000001"
	for _, name := range []string{"node-lost", "server-locked", "server-in-error", "server-deleted"} {
		for says, test := range map[string]struct {
			conflict bool
			provider func(own string) string
			rival    string
		}{
			"CSINode alone":                    {false, func(string) string { return "" }, ""},
			"CSINode, against the provider ID": {true, func(own string) string { return own }, ""},
			"CSINode and the provider ID":      {false, func(string) string { return victim }, ""},
			"both, and it is another node":     {true, func(string) string { return victim }, "master-0"},
			"CSINode, and it is another node":  {true, func(string) string { return "" }, "master-0"},
		} {
			f := readingsOf(t, recordings(t)[name])
			for _, n := range f.Nodes {
				if n.Driver == nil {
					continue
				}
				if server := f.Cloud.Servers[n.Driver.NodeID]; server != nil {
					f.Cloud.Servers[victim] = &diagnosis.CloudServer{ID: victim, Name: "master-0", Status: server.Status, Locked: server.Locked, Missing: server.Missing}
				}
				n.Provider, n.Rival, n.Alone = test.provider(n.Driver.NodeID), test.rival, test.rival == ""
				n.Driver.NodeID = victim
			}
			r := diagnosis.Diagnose(f)
			last := r.Steps[len(r.Steps)-1]
			text, commands := strings.Join(append(last.Do, last.What), "\n"), slices.DeleteFunc(slices.Clone(last.Do), func(do string) bool { return !strings.HasPrefix(do, "$ ") })
			switch {
			case test.conflict && (r.Cause != "server.conflict" || strings.Contains(strings.Join(commands, "\n"), victim)):
				t.Errorf("%s, %s: want a cause of its own, and no command for the server of others; got %s: %s", name, says, r.Cause, text)
			case test.conflict && test.rival == "" && !strings.Contains(last.What, victim), test.rival != "" && (!strings.Contains(last.What, test.rival) || len(commands) > 0):
				t.Errorf("%s, %s: want what contradicts; got %s", name, says, text)
			case !test.conflict && name != "server-deleted" && (!strings.Contains(text, "master-0 "+victim) || !strings.HasPrefix(commands[0], "$ openstack server show ")):
				t.Errorf("%s, %s: want the name of the server, and a command that shows it first; got %s", name, says, text)
			}
		}
	}
}

// Two nodes cannot be one server. A node that a command would change is compared with all others.
func TestAServerThatTwoNodesNameIsAConflict(t *testing.T) {
	for _, name := range []string{"node-lost", "server-locked", "server-deleted"} {
		own := name + "-a"
		for says, test := range map[string]struct {
			csiNode, provider string // of the other node; empty: it names another server
			want              bool
		}{
			"another server":     {"", "", false},
			"in its CSINode":     {"own", "", true},
			"by its provider ID": {"", "own", true},
		} {
			r := recordings(t)[name]
			server := readingsOf(t, r).Nodes[own].Driver.NodeID
			word := func(which, prefix string) string {
				if which == "own" {
					return prefix + strings.ToUpper(server)
				}
				return prefix + otherServer
			}
			world := diagnosistest.Replay(maps.Clone(r.Cluster))
			for path, item := range map[string]string{
				csiNodesPath: `{"metadata": {"name": "other"}, "spec": {"drivers": [{"name": "cinder.csi.openstack.org", "nodeID": "` + word(test.csiNode, "") + `"}]}}`,
				nodesPath:    `{"metadata": {"name": "other"}, "spec": {"providerID": "` + word(test.provider, "openstack:///") + `"}}`,
			} {
				a := world[path]
				a.Body = []byte(strings.Replace(string(a.Body), `"items": [`, `"items": [`+item+`,`, 1))
				world[path] = a
			}
			if report := diagnose(t, r, sources(t, r, world)); (report.Cause == "server.conflict") != test.want {
				t.Errorf("%s, %s: got %s", name, says, report.Cause)
			}
		}
	}
}

// A kubelet may make one in any namespace.
func TestAMirrorPodUsesNoClaim(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	world := diagnosistest.Replay(maps.Clone(r.Cluster))
	want := diagnose(t, r, sources(t, r, world))
	path := "GET /api/v1/namespaces/nothing-hangs/pods?limit=500"
	a := world[path]
	a.Body = []byte(strings.Replace(string(a.Body), `"items": [`, `"items": [{"metadata": {"name": "p", "namespace": "nothing-hangs", "annotations": {"kubernetes.io/config.mirror": ""}}, "spec": {
		"nodeName": "evil", "containers": [{"name": "c", "image": "c"}], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}, "status": {"phase": "Pending"}},`, 1))
	world[path] = a
	if got := diagnose(t, r, sources(t, r, world)); got.Cause != want.Cause || len(got.Steps) != len(want.Steps) {
		t.Errorf("got %s: %+v", got.Cause, got.Steps)
	}
}

// A list that fails, also for want of time, compares nothing. A node can hold the pages that are read of its pods, and a CSINode can outlive its node.
func TestWithoutAComparisonNoCommandChangesAServer(t *testing.T) {
	denied := diagnosistest.Answer{Status: http.StatusForbidden, Body: json.RawMessage(`{"message": "forbidden"}`)}
	// A node writes its own CSINode, also between two readings.
	changed := func(node string) diagnosistest.Answer {
		return ok(`{"items": [{"metadata": {"name": "%s"}, "spec": {"drivers": [{"name": "cinder.csi.openstack.org", "nodeID": "%s"}]}}]}`, node, id(99))
	}
	for _, test := range []struct {
		recording, path string
		answer          diagnosistest.Answer
		commands        bool
	}{
		{recording: "node-lost", commands: true},
		{"node-lost", nodesPath, denied, false},
		{"node-lost", csiNodesPath, denied, false},
		{"node-lost", csiNodesPath, changed("node-lost-a"), false},
		{"server-locked", csiNodesPath, changed("server-locked-a"), false},
		{recording: "server-locked", commands: true},
		{"server-locked", nodesPath, denied, false},
		{"server-locked", csiNodesPath, denied, false},
		{"server-locked", "GET /api/v1/nodes/server-locked-a", diagnosistest.Answer{Status: http.StatusNotFound, Body: json.RawMessage(`{"message": "not found"}`)}, true},
		{"node-lost", "GET /apis/storage.k8s.io/v1/csinodes/node-lost-a", denied, true}, // no server is known: the command has a placeholder
	} {
		r := recordings(t)[test.recording]
		world := diagnosistest.Replay(maps.Clone(r.Cluster))
		if test.path != "" {
			world[test.path] = test.answer
		}
		report := diagnose(t, r, sources(t, r, world))
		text := strings.Join(report.Steps[len(report.Steps)-1].Do, "\n")
		if got := strings.Contains(text, "$ openstack server stop ") || strings.Contains(text, "$ openstack server unlock ") || strings.Contains(text, "$ kubectl taint"); got != test.commands {
			t.Errorf("%s without %s: want commands %t, got %s: %s", test.recording, test.path, test.commands, report.Cause, text)
		}
		if !test.commands && !strings.Contains(text, "find out whether another node names the same server") {
			t.Errorf("%s without %s: got %s", test.recording, test.path, text)
		}
	}
}

func TestEveryCommandIsMadeByTheFunctionThatQuotes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := testfile.Text(t, file)
		if strings.HasSuffix(file, "_test.go") || file == "advice.go" {
			continue
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, `"$ `) && !strings.Contains(line, "HasPrefix") && !strings.Contains(line, "TrimPrefix") && !strings.Contains(line, "// ") {
				t.Errorf("%s: use run: %s", file, line)
			}
			if strings.Contains(line, "docs/") && !strings.Contains(line, "// ") {
				t.Errorf("%s: use page, readers have no repository: %s", file, line)
			}
		}
	}
}
