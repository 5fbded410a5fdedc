package command_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// simulated is a simulated cloud, the environment of its user, and a volume there with the mark of cluster blue. The lists of the cloud have
// one object on each page, and the volume is on the second of three.
func simulated(t *testing.T) (sim *openstacksim.Sim, env func(string) string, volume string) {
	t.Helper()
	config := openstacksim.Default()
	config.PageSize = 1
	sim = openstacksim.New(config)
	sim.SetAllLatency(0)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	testfile.Write(t, file, sim.CloudsYAML(server.URL), 0o600)
	names := map[string]string{"OS_CLOUD": "sim-demo", "OS_CLIENT_CONFIG_FILE": file}
	env = func(name string) string { return names[name] }
	settings, err := cloud.FromSource(cloud.Source{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client, err := c.ClientContext(t.Context(), "block-storage", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"green", "blue", "red"} {
		var answer struct{ Volume struct{ ID string } }
		body := map[string]any{"volume": map[string]any{"size": 1, "metadata": map[string]string{"cinder.csi.openstack.org/cluster": mark}}}
		response, err := client.Post(t.Context(), client.Endpoint+"volumes", body, &answer, &gophercloud.RequestOpts{OkCodes: []int{http.StatusAccepted}})
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if mark == "blue" {
			volume = answer.Volume.ID
		}
	}
	return sim, env, volume
}

func TestTheExitCodeOfOrphansSaysWhetherThereAreSome(t *testing.T) {
	sim, env, volume := simulated(t)
	naming := func(id string) map[string]string {
		return map[string]string{
			"/api/v1/persistentvolumes":          `{"items": [` + strings.ReplaceAll(pvcU, volumeID, id) + `]}`,
			"/api/v1/namespaces/hosted/pods":     `{"items": [{"metadata": {"namespace": "hosted", "name": "c-0"}, "spec": {"volumes": [{"name": "hosted-kubeconfig"}], "containers": [{"name": "driver", "image": "cinder-csi-driver", "args": ["--cluster=blue"]}]}}]}`,
			"/api/v1/namespaces/cinder-csi/pods": `{"items": [{"metadata": {"namespace": "cinder-csi", "name": "c-0"}, "spec": {"containers": [{"name": "driver", "image": "cinder-csi-driver", "args": ["--cluster=blue"]}]}}]}`,
			"/api/v1/namespaces/elsewhere/pods":  `{"items": []}`,
			"/api/v1/namespaces/unreadable/pods": `no JSON`,
		}
	}
	list := openstacksim.Fault{Path: "/volume/v3/*/volumes/detail", Status: http.StatusForbidden}
	keystone := openstacksim.Fault{Path: "/identity/**", Status: http.StatusServiceUnavailable}
	for _, test := range []struct {
		name  string
		args  []string
		named string
		fault *openstacksim.Fault
		code  int
		says  string
	}{
		{"none", []string{"--cluster-id", "blue"}, volume, nil, 0, ""},
		{"none, with the ID of the driver", []string{"--driver-namespace", "cinder-csi"}, volume, nil, 0, ""},
		{"one", []string{"--cluster-id", "blue"}, volumeID, nil, 1, "findings: 1 orphans"},
		{"volumes unseen", []string{"--cluster-id", "blue"}, volume, &list, 1, "there may be more than 0 orphans"},
		{"Keystone is down", []string{"--cluster-id", "blue"}, volume, &keystone, 1, "orphans are in the cloud"},
		{"no such cloud", []string{"--cluster-id", "blue", "--os-cloud", "other"}, volume, nil, 64, `"other"`},
		{"no controller", []string{"--driver-namespace", "elsewhere"}, volume, nil, 64, "--cluster-id"},
		{"controller that cannot be read", []string{"--driver-namespace", "unreadable"}, volume, nil, 1, "the controller pods of the driver in namespace unreadable"},
		{"hosted", []string{"--driver-namespace", "hosted"}, volume, nil, 64, "--controller-kubeconfig"},
		{"hosted, with both clusters", []string{"--controller-kubeconfig", "management", "--driver-namespace", "hosted"}, volume, nil, 0, ""},
		{"hosted, without a namespace", []string{"--controller-kubeconfig", "management"}, volume, nil, 64, "needs --driver-namespace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.fault != nil {
				defer sim.SetFault(*test.fault)()
			}
			servers := map[string]map[string]string{"": naming(test.named), "management": naming(volumeID)}
			stdout, stderr, code, _ := pluginWith(t, env, servers, append([]string{"orphans", "-o", "json"}, test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.says) || code == 0 && stderr != "" {
				t.Fatalf("want exit %d with %q, got %d: %s%s", test.code, test.says, code, stdout, stderr)
			}
			if code == 64 || stdout == "" {
				return
			}
			var o diagnosis.Orphans
			if err := json.Unmarshal([]byte(stdout), &o); err != nil || len(o.Unseen) > 0 != (test.fault == &list) {
				t.Errorf("%v: %s", err, stdout)
			}
		})
	}
}

func TestAListThatDidNotReadCinderIsNoGoodNews(t *testing.T) {
	sim, env, volume := simulated(t)
	servers := map[string]map[string]string{"": {
		"/api/v1/persistentvolumes": `{"items": [` + strings.ReplaceAll(pvcU, volumeID, volume) + `]}`, "/apis/storage.k8s.io/v1/csidrivers": `{"items": []}`, "/api/v1/pods": `{"items": []}`,
		"/apis/storage.k8s.io/v1/volumeattachments": `{"items": []}`, "/apis/storage.k8s.io/v1/csinodes": `{"items": []}`,
	}}
	if stdout, stderr, code, _ := pluginWith(t, env, servers, "list"); code != 0 || !strings.Contains(stdout, "1 volume, 0 with a finding") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/volumes/detail", Status: http.StatusForbidden})
	for name, env := range map[string]func(string) string{"a list that is denied": env, "no credentials": func(string) string { return "" }} {
		if stdout, stderr, code, _ := pluginWith(t, env, servers, "list"); code != 1 || !strings.Contains(stderr, "the volumes in Cinder were not compared") || !strings.Contains(stdout, "Not seen:") {
			t.Errorf("%s: exit %d: %s%s", name, code, stdout, stderr)
		}
	}
}
