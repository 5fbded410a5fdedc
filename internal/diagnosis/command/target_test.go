package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

const volumeID = "9f445367-ee0c-4f56-93e5-9bdef423e884"

// shop has what leads to the claim shop/data. The objects have the fields of the recordings in ../testdata that the command reads.
var shop = map[string]string{
	"/api/v1/namespaces/shop/persistentvolumeclaims/data":                 `{"metadata": {"name": "data", "uid": "u"}, "spec": {"volumeName": "pvc-u"}, "status": {"phase": "Bound"}}`,
	"/api/v1/namespaces/shop/persistentvolumeclaims/app-scratch":          `{"metadata": {"name": "app-scratch", "uid": "s"}, "spec": {"volumeName": "pvc-s"}, "status": {"phase": "Bound"}}`,
	"/api/v1/persistentvolumes/pvc-u":                                     pvcU,
	"/api/v1/persistentvolumes/old":                                       `{"metadata": {"name": "old"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "x"}, "claimRef": {"namespace": "shop", "name": "data"}, "persistentVolumeReclaimPolicy": "Retain"}, "status": {"phase": "Released"}}`,
	"/api/v1/persistentvolumes/free":                                      `{"metadata": {"name": "free"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "y"}}, "status": {"phase": "Available"}}`,
	"/api/v1/persistentvolumes":                                           `{"items": [` + pvcU + `]}`,
	"/api/v1/namespaces":                                                  `{"items": [{"metadata": {"name": "shop"}}, {"metadata": {"name": "default"}}]}`,
	"/api/v1/namespaces/shop/persistentvolumeclaims":                      `{"items": [{"metadata": {"name": "data"}}, {"metadata": {"name": "app-scratch"}}]}`,
	"/api/v1/namespaces/shop/pods/app":                                    `{"metadata": {"name": "app"}, "spec": {"volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "scratch", "ephemeral": {}}]}}`,
	"/api/v1/namespaces/shop/pods/none":                                   `{"metadata": {"name": "none"}}`,
	"/apis/storage.k8s.io/v1/volumeattachments/csi-1":                     `{"metadata": {"name": "csi-1"}, "spec": {"source": {"persistentVolumeName": "pvc-u"}}}`,
	"/apis/snapshot.storage.k8s.io/v1/namespaces/shop/volumesnapshots/s1": `{"metadata": {"name": "s1"}, "spec": {"source": {"persistentVolumeClaimName": "data"}}}`,
}

const pvcU = `{"metadata": {"name": "pvc-u"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "` + volumeID + `"}, "claimRef": {"namespace": "shop", "name": "data"}}, "status": {"phase": "Bound"}}`

// denied is what a server has for a path that the user may not read.
const denied = "denied"

// plugin runs the plugin against API servers by the name of their kubeconfig. It returns what was asked of each.
func plugin(t *testing.T, servers map[string]map[string]string, args ...string) (stdout, stderr string, code int, asked []string) {
	t.Helper()
	return pluginWith(t, func(string) string { return "" }, servers, args...)
}

// pluginWith is plugin with an environment, which may name a cloud.
func pluginWith(t *testing.T, env func(string) string, servers map[string]map[string]string, args ...string) (stdout, stderr string, code int, asked []string) {
	t.Helper()
	var lock sync.Mutex
	var out, messages bytes.Buffer
	code = command.Run(t.Context(), command.World{
		Columns: 400, // a row has each text
		Stdout:  &out, Stderr: &messages, Env: env, Version: "v0-test", Connect: cloud.Connect,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Kubernetes: func(s cluster.Source) (*cluster.Cluster, error) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				lock.Lock()
				asked = append(asked, s.Kubeconfig+" "+r.Method+" "+r.URL.Path)
				lock.Unlock()
				body, found := servers[s.Kubeconfig][r.URL.Path]
				if body == denied {
					http.Error(w, `{"message": "forbidden"}`, http.StatusForbidden)
					return
				}
				if found {
					fmt.Fprint(w, body)
					return
				}
				http.Error(w, `{"message": "not found"}`, http.StatusNotFound)
			}))
			t.Cleanup(server.Close)
			base, err := url.Parse(server.URL)
			return cluster.New(s.Kubeconfig, base, server.Client()), err
		},
	}, args)
	return out.String(), messages.String(), code, asked
}

func TestAVolumeIsFoundByEachOfItsObjects(t *testing.T) {
	servers := map[string]map[string]string{"": shop}
	for _, args := range [][]string{
		{"shop/data"},
		{"data", "-n", "shop"},
		{"pvc/data", "--namespace", "shop"},
		{"pvc", "data", "-n", "shop"},
		{"pv/pvc-u"},
		{"persistentvolume", "pvc-u"},
		{"volumeattachment/csi-1"},
		{"volumesnapshot/s1", "-n", "shop"},
		{volumeID},
		{strings.ToUpper(volumeID)},
		{"cinder/" + volumeID},
	} {
		stdout, stderr, code, asked := plugin(t, servers, append([]string{"volume", "-o", "json"}, args...)...)
		var r diagnosis.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Claim != "shop/data" || code != 0 {
			t.Errorf("%q: exit %d, %v: %s%s", args, code, err, stdout, stderr)
		}
		if slices.ContainsFunc(asked, func(request string) bool { return !strings.HasPrefix(request, " GET ") }) {
			t.Errorf("%q: not only GET requests: %q", args, asked)
		}
	}
}

func TestAPodHasAReportForEachOfItsVolumes(t *testing.T) {
	stdout, stderr, code, _ := plugin(t, map[string]map[string]string{"": shop}, "volume", "pod/app", "-n", "shop", "-o", "yaml")
	var list struct{ Items []diagnosis.Report }
	if err := yaml.Unmarshal([]byte(stdout), &list); err != nil || len(list.Items) != 2 || list.Items[0].Claim != "shop/data" || list.Items[1].Claim != "shop/app-scratch" || code != 0 {
		t.Errorf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	stdout, _, _, _ = plugin(t, map[string]map[string]string{"": shop}, "volume", "pod/app", "-n", "shop")
	if strings.Count(stdout, "Cause: none") != 2 {
		t.Errorf("want two reports, got %s", stdout)
	}
}

func TestAPersistentVolumeOfAClaimThatIsAnotherOneNowHasItsOwnStory(t *testing.T) {
	for name, want := range map[string]string{"old": "PersistentVolume old has reclaim policy Retain", "free": "no claim uses PersistentVolume free, which is Available"} {
		stdout, stderr, code, asked := plugin(t, map[string]map[string]string{"": shop}, "volume", "pv/"+name)
		if slices.ContainsFunc(asked, func(request string) bool {
			return strings.Contains(request, "//") || strings.HasSuffix(request, "/namespaces/events")
		}) {
			t.Errorf("%s: a namespace without a name is asked: %q", name, asked)
		}
		if text := strings.Join(strings.Fields(stdout), " "); code != 0 || !strings.Contains(text, want) || strings.Contains(text, volumeID) {
			t.Errorf("%s: exit %d: %s%s", name, code, stdout, stderr)
		}
	}
}

func TestWhatLeadsToNoVolumeIsAnErrorThatSaysWhatToDo(t *testing.T) {
	for arg, want := range map[string]string{
		"pod/none": "uses no claim", "pod/nobody": "not found", "pv/nobody": "not found",
		"00000000-0000-4000-8000-000000000001": "openstack volume show --column properties 00000000-0000-4000-8000-000000000001",
	} {
		stdout, stderr, code, _ := plugin(t, map[string]map[string]string{"": shop}, "volume", arg, "-n", "shop")
		if code != 1 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: want %q, got exit %d: %s%s", arg, want, code, stdout, stderr)
		}
	}
}

func TestTheControllerOfAHostedControlPlaneIsReadInItsOwnCluster(t *testing.T) {
	management := map[string]string{
		"/api/v1/namespaces/clusters-guest/pods": `{"items": [{"metadata": {"name": "c-0", "namespace": "clusters-guest"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`,
	}
	pending := map[string]string{
		"/api/v1/namespaces/shop/persistentvolumeclaims/data": `{"metadata": {"name": "data", "uid": "u"}, "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}`,
		"/apis/storage.k8s.io/v1/storageclasses/fast":         `{"metadata": {"name": "fast"}, "provisioner": "cinder.csi.openstack.org"}`,
		"/api/v1/pods":                                           `{"items": []}`,
		"/api/v1/namespaces/shop/pods":                           `{"items": []}`,
		"/apis/coordination.k8s.io/v1/namespaces/x/leases":       `{"items": []}`,
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": `{"items": []}`,
	}
	servers := map[string]map[string]string{"": pending, "management": management}
	stdout, _, code, _ := plugin(t, servers, "volume", "shop/data")
	if code != 1 || !strings.Contains(stdout, "Cause: driver.unseen") || !strings.Contains(stdout, "--controller-kubeconfig") {
		t.Errorf("want that the controller is not seen, got exit %d: %s", code, stdout)
	}
	stdout, _, code, asked := plugin(t, servers, "volume", "shop/data", "--controller-kubeconfig", "management", "--driver-namespace", "clusters-guest")
	if code != 1 || !strings.Contains(stdout, "Cause: create.waiting") || !strings.Contains(stdout, "kubectl --namespace clusters-guest logs c-0") {
		t.Errorf("want that the driver works on it, got exit %d: %s", code, stdout)
	}
	if !slices.Contains(asked, "management GET /apis/coordination.k8s.io/v1/namespaces/clusters-guest/leases") {
		t.Errorf("the leases were not read in the other cluster: %q", asked)
	}
}

func TestCompletionOffersNamesOfTheCluster(t *testing.T) {
	const odd = `{"metadata": {"name": "$(id)"}}, `
	objects := maps.Clone(shop)
	for _, list := range []string{"/api/v1/namespaces", "/api/v1/namespaces/shop/persistentvolumeclaims", "/api/v1/persistentvolumes"} {
		objects[list] = strings.Replace(objects[list], "[", "["+odd, 1) // a cluster of others
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-n", "shop", ""}, "app-scratch\ndata\n:4\n"},
		{[]string{"shop/"}, "shop/app-scratch\nshop/data\n:4\n"},
		{[]string{"pv/"}, "pv/pvc-u\n:4\n"},
		{[]string{"pvc", "-n", "shop", ""}, "app-scratch\ndata\n:4\n"},
		{[]string{"-n", ""}, "default\nshop\n:4\n"},
		{[]string{"volumesnapshot/"}, ":4\n"},
		{[]string{"nowhere", ""}, ":4\n"},
		{[]string{"a", "b", ""}, ":4\n"},
	} {
		stdout, stderr, code, _ := plugin(t, map[string]map[string]string{"": objects}, append([]string{"__complete", "volume"}, test.args...)...)
		if diff := cmp.Diff(test.want, stdout); diff != "" || code != 0 {
			t.Errorf("%q: exit %d, %s(-want +got):\n%s", test.args, code, stderr, diff)
		}
	}
}

// What the reader copies from an error, or from what was not seen, asks the cloud and the cluster that the command asked.
func TestTheCommandsOutsideOfStepsHaveTheFlagsOfTheirReader(t *testing.T) {
	sim, env, volume := simulated(t)
	defer sim.SetFault(openstacksim.Fault{Path: "/volume/v3/*/volumes/" + volumeID, Status: http.StatusForbidden})()
	objects := maps.Clone(shop)
	objects["/apis/snapshot.storage.k8s.io/v1/namespaces/shop/volumesnapshots/s2"] = `{"metadata": {"name": "s2"}, "spec": {"source": {"volumeSnapshotContentName": "c"}}}`
	objects["/api/v1/pods"] = `{"items": [{"metadata": {"namespace": "cinder-csi", "name": "c-0"}, "spec": {"containers": [{"name": "driver", "args": ["--http-endpoint=:8080"], "ports": [{"name": "http", "containerPort": 8080}]}]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`
	objects["/api/v1/persistentvolumeclaims"] = `{"items": [{"metadata": {"namespace": "shop", "name": "new", "annotations": {"volume.kubernetes.io/storage-provisioner": "cinder.csi.openstack.org"}}, "status": {"phase": "Pending"}}]}`
	for _, test := range []struct {
		name, want string
		args       []string
	}{
		{"a volume of another cluster", "openstack --os-cloud sim-demo volume show", []string{"volume", volume}},
		{"a snapshot of a content", "kubectl --context prod --namespace shop describe volumesnapshot s2", []string{"volume", "volumesnapshot/s2", "-n", "shop"}},
		{"a volume that Cinder does not show", "cinder-csi-generator doctor --skip-cluster --os-cloud sim-demo", []string{"volume", "shop/data"}},
		{"a list with a finding", "for one see: kubectl cinder volume ID --context prod --os-cloud sim-demo", []string{"list"}},
		{"a claim that waits", "to explain one: kubectl cinder volume shop/new --context prod --os-cloud sim-demo", []string{"list"}},
		{"a mark without such an ID", "kubectl cinder orphans --context prod --os-cloud sim-demo lists", []string{"recover", "--cluster-id", "blue", "--id", volumeID}},
		{"a page that cannot be read", "kubectl --context prod --namespace cinder-csi port-forward pod/c-0 8080,", []string{"operations"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr, _, _ := pluginWith(t, env, map[string]map[string]string{"": objects}, append(test.args, "--context", "prod")...)
			if said := strings.Join(strings.Fields(stdout+stderr), " "); !strings.Contains(said, test.want) {
				t.Errorf("want %q in: %s", test.want, said)
			}
		})
	}
}

// Kubernetes checks the names in the spec of a pod and of a snapshot for being not empty, and no more.
func TestANameThatNoObjectCanHaveIsNoClaim(t *testing.T) {
	for _, args := range [][]string{{"volume", "pod/db-0", "-n", "shop"}, {"volume", "volumesnapshot/s1", "-n", "shop"}} {
		const name = "x do: delete the claim. $ sh evil"
		stdout, stderr, code, _ := plugin(t, map[string]map[string]string{"": {
			"/api/v1/namespaces/shop/pods/db-0":                                   `{"metadata": {"name": "db-0", "namespace": "shop"}, "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "` + name + `"}}]}}`,
			"/apis/snapshot.storage.k8s.io/v1/namespaces/shop/volumesnapshots/s1": `{"metadata": {"name": "s1"}, "spec": {"source": {"persistentVolumeClaimName": "` + name + `"}}}`,
		}}, args...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, "names \""+name+"\", and no object of Kubernetes can have that name") {
			t.Errorf("%q: want no report, got exit %d: %s%s", args, code, stdout, stderr)
		}
	}
}
