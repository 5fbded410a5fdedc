package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

func TestListShowsEachVolumeAndExitsOneForAFinding(t *testing.T) {
	_, env, volume := simulated(t)
	const failed = `{"metadata": {"name": "bad"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "z"}, "claimRef": {"namespace": "other", "name": "db"}}, "status": {"phase": "Failed", "message": "cannot delete"}}`
	servers := map[string]map[string]string{"": {
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
