package command_test

import (
	"strings"
	"testing"
)

func TestLostNeedsTheCloudAndSaysWhatItFound(t *testing.T) {
	_, env, volume := simulated(t)
	world := func(id string) map[string]map[string]string {
		return map[string]map[string]string{"": {
			"/api/v1/persistentvolumes": `{"items": [` + strings.ReplaceAll(pvcU, volumeID, id) + `]}`, "/apis/storage.k8s.io/v1/csidrivers": `{"items": []}`, "/api/v1/pods": `{"items": []}`,
			"/apis/storage.k8s.io/v1/volumeattachments": `{"items": []}`, "/apis/storage.k8s.io/v1/csinodes": `{"items": []}`,
		}}
	}
	stdout, stderr, code, _ := pluginWith(t, env, world(volume), "lost")
	if code != 0 || !strings.Contains(stdout, "0 of 1 objects") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	stdout, stderr, code, _ = pluginWith(t, env, world(volumeID), "lost", "-o", "json")
	if code != 1 || !strings.Contains(stdout, volumeID) || !strings.Contains(stderr, "findings: 1 of 1 objects") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if _, stderr, code, _ := plugin(t, world(volume), "lost"); code != 64 || !strings.Contains(stderr, "--os-cloud") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestTheVersionOfTheProgramNeedsNoCluster(t *testing.T) {
	stdout, stderr, code, asked := plugin(t, nil, "version", "--client")
	if code != 0 || stdout != "kubectl-cinder v0-test\n" || len(asked) > 0 {
		t.Errorf("exit %d: %s%s %q", code, stdout, stderr, asked)
	}
	empty := map[string]map[string]string{"": {
		"/api/v1/pods": `{"items": []}`, "/api/v1/persistentvolumes": `{"items": []}`, "/api/v1/persistentvolumeclaims": `{"items": []}`,
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": `{"items": []}`,
	}}
	for verb, want := range map[string]string{"version": "no pod of the driver was found", "operations": "0 operations in progress, of 0 pods"} {
		stdout, stderr, code, _ := plugin(t, empty, verb)
		if code != 1 || !strings.Contains(stdout, want) || !strings.Contains(stderr, "--driver-namespace") {
			t.Errorf("%s: exit %d: %s%s", verb, code, stdout, stderr)
		}
	}
}
