package diagnosis_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

const (
	nodesPath    = "GET /api/v1/nodes?limit=500"
	csiNodesPath = "GET /apis/storage.k8s.io/v1/csinodes?limit=500"
)

// A node that was deleted or replaced has no CSINode, and that is when a person reads these lists.
func TestAListSaysWhichServersItDoesNotKnow(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	denied := diagnosistest.Answer{Status: http.StatusForbidden, Body: []byte(`{}`)}
	none := answerOf(t, map[string]any{"items": []any{}})
	server := ""
	for _, id := range listOf(t, r).Servers {
		server = id
	}
	nodes := func(provider string) diagnosistest.Answer {
		return answerOf(t, map[string]any{"items": []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "nothing-hangs-a"}, Spec: corev1.NodeSpec{ProviderID: provider}}}})
	}
	csiNodes := func(names ...string) diagnosistest.Answer { // each names the server
		var items []storagev1.CSINode
		for _, name := range names {
			items = append(items, storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: upstreamDriver, NodeID: server}}}})
		}
		return answerOf(t, map[string]any{"items": items})
	}
	for _, test := range []struct {
		name            string
		csiNodes, nodes diagnosistest.Answer
		attachedAt      string   // in Cinder; empty: nowhere
		finds           []string // parts of the findings
		gaps            []string // parts of the gaps
	}{
		{"provider ID", none, nodes("openstack:///" + server), server, nil, nil},
		{"provider ID with a region", none, nodes("openstack://RegionOne/" + strings.ToUpper(server)), server, nil, nil},
		{"provider ID, and attached to another server", none, nodes("openstack:///" + server), otherServer, []string{"Cinder does not", otherServer}, nil},
		{"provider ID of another cloud", none, nodes("aws:///zone/i-" + server), server, nil, []string{"the server of node nothing-hangs-a"}},
		{"provider ID that is no UUID", none, nodes("openstack:///x"), server, nil, []string{"the server of node nothing-hangs-a"}},
		{"no node", none, none, otherServer, nil, []string{"the server of node nothing-hangs-a"}},
		{"no node, and attached nowhere", none, none, "", []string{"Cinder does not"}, []string{"the server of node nothing-hangs-a"}},
		{"no right for either", denied, denied, server, nil, []string{"the CSINodes", "the nodes", "the server of node nothing-hangs-a"}},
		{"both, and they agree", csiNodes("nothing-hangs-a"), nodes("openstack:///" + server), server, nil, nil},
		{"a CSINode against the provider ID", csiNodes("nothing-hangs-a"), nodes("openstack:///" + otherServer), otherServer, nil, []string{"the server of node nothing-hangs-a"}},
		{"a CSINode against the provider ID, and attached nowhere", csiNodes("nothing-hangs-a"), nodes("openstack:///" + otherServer), "", []string{"Cinder does not"}, []string{"the server of node nothing-hangs-a"}},
		{"another node with the same server", csiNodes("nothing-hangs-a", "evil"), none, otherServer, nil, []string{"the server of node nothing-hangs-a"}},
		{"another node with the same provider ID", csiNodes("evil"), nodes("openstack:///" + server), otherServer, nil, []string{"the server of node nothing-hangs-a"}},
		{"no right for CSINodes", denied, nodes("openstack:///" + server), server, nil, []string{"the CSINodes"}},
	} {
		f := listIn(t, r, func(world diagnosistest.Replay) { world[csiNodesPath], world[nodesPath] = test.csiNodes, test.nodes })
		for id, v := range f.Cinder {
			v.Attachments = slices.Clone(v.Attachments)
			if test.attachedAt == "" {
				v.Attachments = nil
			} else {
				v.Attachments[0].Server = test.attachedAt
			}
			f.Cinder[id] = v
		}
		l := diagnosis.List(f)
		wantParts(t, test.name+": findings", l.Volumes[0].Findings, test.finds)
		var gaps []string
		for _, g := range l.Unseen {
			gaps = append(gaps, g.What)
		}
		wantParts(t, test.name+": gaps", gaps, test.gaps)
	}
}

func wantParts(t *testing.T, name string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %q, want %q", name, got, want)
		return
	}
	for i, part := range want {
		if !strings.Contains(got[i], part) {
			t.Errorf("%s: got %q, want %q", name, got[i], part)
		}
	}
}

func TestWhatIsLostIsFoundWithoutACSINode(t *testing.T) {
	c, create := project(t)
	kept := create("volume", map[string]any{"size": 1})
	world := restored(kept, create("snapshot", map[string]any{"volume_id": kept}))
	world[csiNodesPath] = ok(`{"items": []}`)
	for name, test := range map[string]struct {
		nodes string
		blind bool
	}{
		"no node":         {`{"items": []}`, true},
		"a conflict":      {`{"items": [{"metadata": {"name": "n1"}, "spec": {"providerID": "openstack:///` + id(3) + `"}}, {"metadata": {"name": "n2"}, "spec": {"providerID": "openstack:///` + id(3) + `"}}]}`, true},
		"a provider ID":   {`{"items": [{"metadata": {"name": "n1"}, "spec": {"providerID": "openstack:///` + id(3) + `"}}]}`, false},
		"no provider ID":  {`{"items": [{"metadata": {"name": "n1"}}]}`, true},
		"a replaced node": {`{"items": [{"metadata": {"name": "n2"}, "spec": {"providerID": "openstack:///` + id(3) + `"}}]}`, true},
	} {
		world[nodesPath] = ok("%s", test.nodes)
		m := missingIn(t, world, diagnosis.Clients{Cloud: c})
		if !slices.Contains(names(m), "a-kept") || (diagnosis.Blind(m.Unseen) != "") != test.blind { // Cinder attaches the volume nowhere
			t.Errorf("%s: %v, %+v", name, names(m), m.Unseen)
		}
	}
}

func TestTheStoryOfAVolumeSaysWhichServerItDoesNotKnow(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	without := func(f *diagnosis.Readings) {
		for _, n := range f.Nodes {
			n.Driver, n.Seen = nil, false
		}
	}
	for name, test := range map[string]struct {
		cause  string
		blind  bool
		change func(f *diagnosis.Readings)
	}{
		"registered": {"none", false, func(*diagnosis.Readings) {}},
		"no CSINode": {"none", true, without},
		"no CSINode, and attached nowhere": {"attach.lost", false, func(f *diagnosis.Readings) {
			without(f)
			f.Cloud.Attachments = nil
		}},
		"no CSINode, and detached": {"attach.lost", false, func(f *diagnosis.Readings) {
			without(f)
			f.Cloud.Volume.Status, f.Cloud.Attachments = "available", nil
		}},
		"no CSINode, no pod, and another attachment": {"none", true, func(f *diagnosis.Readings) {
			without(f)
			f.Pods = nil
		}},
		"no right for the VolumeAttachments": {"none", true, func(f *diagnosis.Readings) {
			f.Attachments, f.Gaps = nil, append(f.Gaps, diagnosis.Gap{What: "the VolumeAttachments"})
		}},
		"a provider ID": {"none", false, func(f *diagnosis.Readings) {
			for _, n := range f.Nodes {
				n.Provider = n.Driver.NodeID
			}
			without(f)
		}},
		"a provider ID, and attached to another server": {"attach.lost", false, func(f *diagnosis.Readings) {
			for _, n := range f.Nodes {
				n.Provider = n.Driver.NodeID
			}
			without(f)
			f.Cloud.Attachments[0].Server = otherServer
		}},
	} {
		f := readingsOf(t, r)
		test.change(&f)
		if report := diagnosis.Diagnose(f); report.Cause != test.cause || (diagnosis.Blind(report.Unseen) != "") != test.blind {
			t.Errorf("%s: cause %s, not seen %+v", name, report.Cause, report.Unseen)
		}
	}
}

func TestTheProviderIDOfANodeWinsOverItsCSINode(t *testing.T) {
	f := readingsOfNode(t, nodeWorld())
	f.Node.Spec.ProviderID = "openstack:///" + otherServer
	r := diagnosis.OnNode(f)
	if r.Drivers[0].Server != otherServer || !strings.Contains(strings.Join(r.Findings, "\n"), "CSINode n1 names server "+id(90)+", and the provider ID of the node names "+otherServer) {
		t.Errorf("got %+v, %q", r.Drivers, r.Findings)
	}
}

func TestANodeWithoutACSINodeHasTheServerOfItsProviderID(t *testing.T) {
	world := nodeWorld()
	f := readingsOfNode(t, world)
	f.CSINode, f.NoCSINode = nil, true
	f.Node.Spec.ProviderID = "openstack:///" + id(90)
	f.CloudServers[id(90)] = &diagnosis.CloudServer{ID: id(90), Missing: true}
	if r := diagnosis.OnNode(f); r.Drivers[0].Server != id(90) || r.Drivers[0].Status != "missing" {
		t.Errorf("got %+v", r.Drivers)
	}
	delete(world, "GET /apis/storage.k8s.io/v1/csinodes/n1")
	if f := readingsOfNode(t, world); diagnosis.Blind(f.Gaps) == "" {
		t.Errorf("no CSINode and no provider ID: %+v", f.Gaps)
	}
}

func TestANodeWithTheServerOfAnotherHasAFinding(t *testing.T) {
	world := nodeWorld()
	world[nodesPath] = ok(`{"items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}, "spec": {"providerID": "openstack:///%s"}}]}`, id(90))
	f := readingsOfNode(t, world)
	if r := diagnosis.OnNode(f); !strings.Contains(strings.Join(r.Findings, "\n"), "node n1 and node n2 name the same server: find out") || diagnosis.Blind(r.Unseen) != "the server of node n1" {
		t.Errorf("got %q, not seen %+v", r.Findings, r.Unseen)
	}
}
