package command_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

func TestListShowsEachVolumeAndExitsOneForAFinding(t *testing.T) {
	_, env, volume := simulated(t)
	const failed = `{"metadata": {"name": "bad"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "z"}, "claimRef": {"namespace": "other", "name": "db"}}, "status": {"phase": "Failed", "message": "cannot delete"}}`
	claim := func(name, phase, provisioner string) string {
		return fmt.Sprintf(`{"metadata": {"namespace": "shop", "name": %q, "annotations": {"volume.kubernetes.io/storage-provisioner": %q}}, "spec": {"volumeName": "pvc-u"}, "status": {"phase": %q}}`, name, provisioner, phase)
	}
	servers := map[string]map[string]string{"": {
		"/api/v1/persistentvolumeclaims": `{"items": [` + strings.Join([]string{
			claim("waits", "Pending", "cinder.csi.openstack.org"), claim("of-another", "Pending", "nfs"), claim("no-pod", "Pending", ""), claim("data", "Bound", "cinder.csi.openstack.org"),
		}, ", ") + `]}`,
		"/api/v1/persistentvolumes": `{"items": [` + strings.ReplaceAll(pvcU, volumeID, volume) + `, ` + failed + `]}`, "/apis/storage.k8s.io/v1/csidrivers": `{"items": []}`, "/api/v1/pods": `{"items": []}`,
		"/apis/storage.k8s.io/v1/volumeattachments": `{"items": []}`, "/apis/storage.k8s.io/v1/csinodes": `{"items": []}`,
	}}
	for _, test := range []struct {
		args    []string
		volumes []string // claims
		code    int
	}{
		{nil, []string{"other/db", "shop/data"}, 1},
		{[]string{"--wrong"}, []string{"other/db"}, 1},
		{[]string{"-n", "shop"}, []string{"shop/data"}, 0},
	} {
		stdout, stderr, code, _ := pluginWith(t, env, servers, append([]string{"list", "-o", "json"}, test.args...)...)
		var l diagnosis.Listing
		if err := json.Unmarshal([]byte(stdout), &l); err != nil || len(l.Volumes) != len(test.volumes) || code != test.code {
			t.Errorf("%q: exit %d, %v: %s%s", test.args, code, err, stdout, stderr)
			continue
		}
		for i, v := range l.Volumes {
			if v.Claim != test.volumes[i] {
				t.Errorf("%q: want %q, got %+v", test.args, test.volumes, l.Volumes)
			}
		}
	}
	for namespace, want := range map[string]bool{"shop": true, "other": false} {
		stdout, _, _, _ := pluginWith(t, env, servers, "list", "--wrong", "-n", namespace)
		if strings.HasSuffix(stdout, "\n1 claim Pending; to explain one: kubectl cinder volume shop/waits --os-cloud sim-demo\n") != want {
			t.Errorf("namespace %s: want the claim named %t, got %s", namespace, want, stdout)
		}
	}
	stdout, stderr, code, _ := plugin(t, servers, "list")
	if code != 1 || !strings.Contains(stdout, "2 volumes, 1 with a finding") || !strings.Contains(stdout, "no credentials are given") || !strings.Contains(stderr, "kubectl cinder volume") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if _, _, code, _ := plugin(t, servers, "list", "shop/data"); code != 64 {
		t.Errorf("want wrong usage, got exit %d", code)
	}
}

func TestOrphansNeedTheCloud(t *testing.T) {
	stdout, stderr, code, asked := plugin(t, map[string]map[string]string{"": shop}, "orphans", "--cluster-id", "blue")
	if code != 64 || stdout != "" || !strings.Contains(stderr, "no credentials are given") || len(asked) > 0 {
		t.Errorf("exit %d: %s%s, asked %q", code, stdout, stderr, asked)
	}
}

// Each of these lists is read when a node or a right is gone.
func TestAListThatCouldNotSeeSomethingExitsOneAndNamesIt(t *testing.T) {
	_, env, volume := simulated(t)
	const attachments, nodes, csiNodes = "/apis/storage.k8s.io/v1/volumeattachments", "/api/v1/nodes", "/apis/storage.k8s.io/v1/csinodes"
	server := "/api/v1/nodes/n1"
	waiting := `{"items": [{"metadata": {"name": "va", "creationTimestamp": "2026-01-02T03:04:00Z"}, "spec": {"attacher": "cinder.csi.openstack.org", "nodeName": "n1", "source": {"persistentVolumeName": "pvc-u"}}}]}`
	for name, test := range map[string]struct {
		change map[string]string
		unseen string
	}{
		"all is seen":               {map[string]string{csiNodes: `{"items": [{"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "cinder.csi.openstack.org", "nodeID": "s"}]}}]}`}, ""},
		"a provider ID":             {map[string]string{nodes: `{"items": [{"metadata": {"name": "n1"}, "spec": {"providerID": "openstack:///` + volumeID + `"}}]}`}, ""},
		"the CSINode is gone":       {map[string]string{csiNodes + "/n1": "", server: ""}, "the server of node n1"},
		"the node is gone":          {map[string]string{csiNodes + "/n1": "", server: "", nodes: `{"items": []}`}, "the server of node n1"},
		"no right for attachments":  {map[string]string{attachments: denied}, "the VolumeAttachments"},
		"no right for the CSINodes": {map[string]string{csiNodes: denied, csiNodes + "/n1": denied}, "CSINode"},
		"no right for the claims":   {map[string]string{"/api/v1/persistentvolumeclaims": denied}, "the claims"},
		"no right for the pods":     {map[string]string{"/api/v1/pods": denied}, "the pods"},
	} {
		for _, args := range [][]string{{"list"}, {"list", "--wrong"}, {"lost"}, {"node", "n1"}} {
			world := worker(volume, "True")
			world[attachments] = waiting
			for path, body := range test.change {
				if world[path] = body; body == "" {
					delete(world, path)
				}
			}
			stdout, stderr, code, _ := pluginWith(t, env, map[string]map[string]string{"": world}, args...)
			if test.unseen == "" {
				if args[0] != "node" && code != 0 { // a node has more that may be wrong
					t.Errorf("%s: %q exits %d: %s%s", name, args, code, stdout, stderr)
				}
				continue
			}
			if code != 1 || !strings.Contains(stdout, test.unseen) {
				t.Errorf("%s: %q exits %d, and does not name %q: %s%s", name, args, code, test.unseen, stdout, stderr)
			}
		}
	}
}
