package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

// worker is node n1 of a cluster, with the volume of shop/data.
func worker(volume, ready string) map[string]string {
	const driver = "cinder.csi.openstack.org"
	attachment := `{"metadata": {"name": "va"}, "spec": {"attacher": "` + driver + `", "nodeName": "n1", "source": {"persistentVolumeName": "pvc-u"}}, "status": {"attached": true}}`
	return map[string]string{
		"/api/v1/persistentvolumes":                 `{"items": [` + strings.ReplaceAll(pvcU, volumeID, volume) + `]}`,
		"/api/v1/persistentvolumeclaims":            `{"items": [{"metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pvc-u"}}]}`,
		"/apis/storage.k8s.io/v1/csidrivers":        `{"items": [{"metadata": {"name": "` + driver + `"}}]}`,
		"/apis/storage.k8s.io/v1/volumeattachments": `{"items": [` + attachment + `]}`,
		"/apis/storage.k8s.io/v1/csinodes":          `{"items": []}`,
		"/apis/storage.k8s.io/v1/csinodes/n1":       `{"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "` + driver + `", "nodeID": "s", "allocatable": {"count": 25}}]}}`,
		"/api/v1/nodes":                             `{"items": [{"metadata": {"name": "n2"}}, {"metadata": {"name": "n1"}}]}`,
		"/api/v1/nodes/n1":                          `{"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "` + ready + `"}]}}`,
		"/api/v1/pods": `{"items": [{"metadata": {"namespace": "x", "name": "node-x"}, "spec": {"nodeName": "n1", "volumes": [{"name": "s", "hostPath": {"path": "/var/lib/kubelet/plugins/` + driver + `"}}]},
			"status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`,
	}
}

func TestTheExitCodeOfNodeSaysWhetherSomethingIsWrong(t *testing.T) {
	_, env, volume := simulated(t)
	none := func(string) string { return "" }
	for _, test := range []struct {
		name string
		args []string
		env  func(string) string
		node string // whether it is ready
		code int
		says string
	}{
		{"a finding", []string{"n1"}, env, "False", 1, "findings:"},
		{"in the form of kubectl", []string{"node/n1"}, env, "False", 1, "findings:"},
		{"without the cloud", []string{"n1"}, none, "True", 1, "not everything could be read: the volumes in Cinder were not compared"},
		{"no such node", []string{"n3"}, env, "True", 1, "kubectl get nodes"},
		{"no name", []string{"N 1"}, env, "True", 64, "no name of a node"},
		{"no node", nil, env, "True", 64, "arg"},
		{"a hosted control plane without a namespace", []string{"n1", "--controller-kubeconfig", "m"}, env, "True", 64, "needs --driver-namespace"},
		{"no form", []string{"n1", "-o", "html"}, env, "True", 64, "table, json, yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			servers := map[string]map[string]string{"": worker(volume, test.node)}
			stdout, stderr, code, asked := pluginWith(t, test.env, servers, append([]string{"node"}, test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.says) {
				t.Errorf("want exit %d with %q, got %d: %s%s", test.code, test.says, code, stdout, stderr)
			}
			for _, request := range asked {
				if !strings.Contains(request, " GET ") {
					t.Errorf("not only GET requests: %s", request)
				}
			}
		})
	}
}

func TestANodeIsAlsoADocument(t *testing.T) {
	_, env, volume := simulated(t)
	stdout, stderr, _, _ := pluginWith(t, env, map[string]map[string]string{"": worker(volume, "True")}, "node", "n1", "-o", "json")
	var r diagnosis.NodeReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if len(r.Drivers) != 1 || *r.Drivers[0].Limit != 25 || len(r.Volumes) != 1 || r.Volumes[0].Claim != "shop/data" || !r.CinderRead {
		t.Errorf("got %+v", r)
	}
}

func TestNodeNamesAreCompleted(t *testing.T) {
	for want, args := range map[string][]string{"n1\nn2\n:4\n": {""}, ":4\n": {"n1", ""}} {
		stdout, _, _, _ := plugin(t, map[string]map[string]string{"": worker(volumeID, "True")}, append([]string{"__complete", "node"}, args...)...)
		if diff := cmp.Diff(want, stdout); diff != "" {
			t.Errorf("%q: %s", args, diff)
		}
	}
}
