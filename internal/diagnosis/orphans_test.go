package diagnosis_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// project is a login to a project of the simulated cloud, and a function that creates an object there.
func project(t testing.TB) (c *cloud.Cloud, create func(resource string, body map[string]any) (id string)) {
	t.Helper()
	sim := openstacksim.New(openstacksim.Default())
	sim.SetAllLatency(0)
	sim.SetQuota("demo", "volumes", -1)
	sim.SetQuota("demo", "gigabytes", -1)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	testfile.Write(t, file, sim.CloudsYAML(server.URL), 0o600)
	settings, err := cloud.FromSource(cloud.Source{CloudName: "sim-demo", CloudsFile: file, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if c, err = cloud.Connect(t.Context(), settings, cloud.Options{Transport: cloud.Bound(http.DefaultTransport)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, func(resource string, body map[string]any) string {
		client, err := c.ClientContext(t.Context(), "block-storage", "3.43")
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]struct{ ID string }
		response, err := client.Post(t.Context(), client.Endpoint+resource+"s", map[string]any{resource: body}, &answer, &gophercloud.RequestOpts{OkCodes: []int{http.StatusAccepted}})
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return answer[resource].ID
	}
}

func kubernetes(named ...string) *cluster.Cluster {
	base := &url.URL{Scheme: "https", Host: "cluster.example"}
	items := make([]string, len(named))
	for i, id := range named {
		items[i] = `{"spec": {"csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "` + strings.ToUpper(id) + `"}}}`
	}
	return cluster.New("test", base, &http.Client{Transport: diagnosistest.Replay{
		"GET /api/v1/persistentvolumes?limit=500":                               {Status: http.StatusOK, Body: []byte(`{"items": [` + strings.Join(items, ",") + `]}`)},
		"GET /apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents?limit=500": {Status: http.StatusNotFound, Body: []byte(`{}`)},
		"GET /api/v1/namespaces/cinder-csi/" + controllerPods:                   {Status: http.StatusOK, Body: []byte(`{"items": [{"metadata": {"namespace": "cinder-csi", "name": "c-0"}, "spec": {"containers": [{"name": "driver", "image": "cinder-csi-driver", "args": ["--cluster=$(CLUSTER_ID)"], "envFrom": [{"configMapRef": {"name": "settings"}}]}]}}]}`)},
		"GET /api/v1/namespaces/cinder-csi/configmaps/settings":                 {Status: http.StatusOK, Body: []byte(`{"data": {"CLUSTER_ID": "blue"}}`)},
		"GET /api/v1/namespaces/nowhere/" + controllerPods:                      {Status: http.StatusOK, Body: []byte(`{"items": []}`)},
	}})
}

func TestOrphansAreWhatHasTheMarkAndNoName(t *testing.T) {
	c, create := project(t)
	volume := func(mark string) string {
		return create("volume", map[string]any{"size": 1, "metadata": map[string]string{
			"cinder.csi.openstack.org/cluster": mark, "csi.storage.k8s.io/pvc/namespace": "shop", "csi.storage.k8s.io/pvc/name": "data",
		}})
	}
	kept, orphan := volume("blue"), volume("blue")
	volume("green")
	create("volume", map[string]any{"size": 1})
	snapshot := create("snapshot", map[string]any{"volume_id": kept, "metadata": map[string]string{"cinder.csi.openstack.org/cluster": "blue"}})
	from := diagnosis.Clients{Cluster: kubernetes(kept), Cloud: c, Namespace: "cinder-csi", Now: time.Now().Add(time.Hour)}
	for _, id := range []string{"", "blue"} {
		o, err := diagnosis.FindOrphans(t.Context(), from, id)
		if err != nil || o.ClusterID != "blue" || len(o.Orphans) != 2 || o.Orphans[0].ID != orphan || o.Orphans[1].ID != snapshot {
			t.Fatalf("want volume %s and snapshot %s, got %+v, %v", orphan, snapshot, o, err)
		}
		if got := o.Orphans[0]; got.For != "shop/data" || got.Size != 1 || got.Doubt != "" || got.Kind != "volume" {
			t.Errorf("got %+v", got)
		}
		var text strings.Builder
		if err := diagnosis.PrintOrphans(&text, o, 100); err != nil || !strings.Contains(text.String(), orphan) || !strings.Contains(text.String(), "Before you delete one") {
			t.Errorf("%v: %s", err, text.String())
		}
	}
	for range 60 { // another cluster's, of 220 KB each: more in one page than a reply may have
		metadata := map[string]string{}
		for i := range 800 {
			metadata[strconv.Itoa(i)] = strings.Repeat("x", 255)
		}
		create("volume", map[string]any{"size": 1, "metadata": metadata})
	}
	if o, err := diagnosis.FindOrphans(t.Context(), from, "blue"); err != nil || len(o.Orphans) != 2 {
		t.Errorf("in pages that are too large: %+v, %v", o, err)
	}
	from.Now = time.Now()
	o, err := diagnosis.FindOrphans(t.Context(), from, "blue")
	if err != nil || !strings.Contains(o.Orphans[0].Doubt, "it is new") {
		t.Errorf("want a doubt about a new volume, got %+v, %v", o, err)
	}
	from.Namespace = "nowhere"
	if _, err := diagnosis.FindOrphans(t.Context(), from, ""); !errors.Is(err, diagnosis.ErrClusterID) {
		t.Errorf("want ErrClusterID, got %v", err)
	}
}

// With half of the PersistentVolumes every other volume would look like an orphan.
func TestWhatKubernetesNamesIsReadCompletelyOrThereAreNoOrphans(t *testing.T) {
	c, _ := project(t)
	base := &url.URL{Scheme: "https", Host: "cluster.example"}
	for _, world := range []diagnosistest.Replay{
		{"GET /api/v1/persistentvolumes?limit=500": {Status: http.StatusForbidden, Body: []byte(`{}`)}},
		{
			"GET /api/v1/persistentvolumes?limit=500":                               {Status: http.StatusOK, Body: []byte(`{"items": []}`)},
			"GET /apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents?limit=500": {Status: http.StatusForbidden, Body: []byte(`{}`)},
		},
	} {
		from := diagnosis.Clients{Cluster: cluster.New("test", base, &http.Client{Transport: world}), Cloud: c, Now: time.Now()}
		if _, err := diagnosis.FindOrphans(t.Context(), from, "blue"); !errors.Is(err, cluster.ErrDenied) {
			t.Errorf("want ErrDenied, got %v", err)
		}
	}
}

// controllers is a cluster without PersistentVolumes whose namespace cinder-csi has these controller pods and ConfigMaps.
func controllers(pods, settings, other string) *cluster.Cluster {
	base := &url.URL{Scheme: "https", Host: "management.example"}
	answer := func(body string) diagnosistest.Answer {
		if body == "" {
			return diagnosistest.Answer{Status: http.StatusForbidden, Body: []byte(`{"message": "forbidden"}`)}
		}
		return diagnosistest.Answer{Status: http.StatusOK, Body: []byte(body)}
	}
	return cluster.New("management", base, &http.Client{Transport: diagnosistest.Replay{
		"GET /api/v1/persistentvolumes?limit=500":                               answer(`{"items": []}`),
		"GET /apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents?limit=500": answer(`{"items": []}`),
		"GET /api/v1/namespaces/cinder-csi/" + controllerPods:                   answer(pods),
		"GET /api/v1/namespaces/cinder-csi/configmaps/settings":                 answer(settings),
		"GET /api/v1/namespaces/cinder-csi/configmaps/other":                    answer(other),
	}})
}

func controllerPod(name, settings, volumes string) string {
	return `{"metadata": {"namespace": "cinder-csi", "name": "` + name + `"}, "spec": {"volumes": [` + volumes + `], "containers": [{"name": "driver", "image": "cinder-csi-driver",
		"args": ["--cluster=$(CLUSTER_ID)"], "envFrom": [{"configMapRef": {"name": "` + settings + `"}}]}]}}`
}

// The volumes of the controller are named in another cluster, or it is not known of which controller they are.
func TestTheIDOfAControllerOfAnotherClusterFindsNoOrphans(t *testing.T) {
	c, create := project(t)
	kept := create("volume", map[string]any{"size": 1, "metadata": map[string]string{"cinder.csi.openstack.org/cluster": "blue"}})
	blue, green, hosted := `{"data": {"CLUSTER_ID": "blue"}}`, `{"data": {"CLUSTER_ID": "green"}}`, `{"data": {"CLUSTER_ID": "blue", "SIDECAR_KUBECONFIG": "/etc/hosted-kubernetes/kubeconfig"}}`
	list := func(pods ...string) string { return `{"items": [` + strings.Join(pods, ",") + `]}` }
	for _, test := range []struct {
		name                  string
		pods, settings, other string
		want                  error
		says                  string
	}{
		{"kubeconfig of the sidecars", list(controllerPod("c-0", "settings", "")), hosted, "", diagnosis.ErrHosted, "--controller-kubeconfig"},
		{"volume of the kubeconfig", list(controllerPod("c-0", "settings", `{"name": "hosted-kubeconfig"}`)), "", "", diagnosis.ErrHosted, "pod cinder-csi/c-0"},
		{"two IDs", list(controllerPod("c-0", "settings", ""), controllerPod("c-1", "other", "")), blue, green, diagnosis.ErrClusterID, `["blue" "green"]`},
		{"one of two is hosted", list(controllerPod("c-0", "settings", ""), controllerPod("c-1", "other", "")), blue, hosted, diagnosis.ErrHosted, "pod cinder-csi/c-1"},
		{"pods denied", "", blue, "", diagnosis.ErrUnseen, "the controller pods of the driver in namespace cinder-csi"},
		{"settings denied", list(controllerPod("c-0", "settings", "")), "", "", diagnosis.ErrUnseen, "forbidden"},
		{"settings of one denied", list(controllerPod("c-0", "settings", ""), controllerPod("c-1", "other", "")), blue, "", diagnosis.ErrUnseen, "the cluster ID of the driver"},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := diagnosis.Clients{Cluster: controllers(test.pods, test.settings, test.other), Cloud: c, Namespace: "cinder-csi", Now: time.Now()}
			o, err := diagnosis.FindOrphans(t.Context(), from, "")
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || len(o.Orphans) > 0 {
				t.Errorf("want %v with %q, got %v, %+v", test.want, test.says, err, o.Orphans)
			}
		})
	}
	guest := diagnosis.Clients{Cluster: kubernetes(kept), Controller: controllers(list(controllerPod("c-0", "settings", "")), hosted, ""), Cloud: c, Namespace: "cinder-csi", Now: time.Now()}
	if o, err := diagnosis.FindOrphans(t.Context(), guest, ""); err != nil || o.ClusterID != "blue" || len(o.Orphans) > 0 {
		t.Errorf("want the ID of the other cluster and no orphan, got %+v, %v", o, err)
	}
}
