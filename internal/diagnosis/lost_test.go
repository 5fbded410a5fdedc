package diagnosis_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

func ok(format string, args ...any) diagnosistest.Answer {
	return diagnosistest.Answer{Status: http.StatusOK, Body: fmt.Appendf(nil, format, args...)}
}

const (
	attachmentsPath = "GET /apis/storage.k8s.io/v1/volumeattachments"
	contentsPath    = "GET /apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents?limit=500"
)

// restored is a cluster of an older etcd: kept is a volume of Cinder, snapshot a snapshot. Node n1 is a server that has nothing.
func restored(kept, snapshot string) diagnosistest.Replay {
	volume := func(name, handle string) string {
		return `{"metadata": {"name": "` + name + `"}, "spec": {"claimRef": {"namespace": "shop", "name": "` + name + `"}, "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "` + handle + `"}}}`
	}
	attachment := func(name, volume string) string {
		return `{"metadata": {"name": "` + name + `", "uid": "` + name + `"}, "spec": {"attacher": "cinder.csi.openstack.org", "nodeName": "n1", "source": {"persistentVolumeName": "` + volume + `"}}, "status": {"attached": true}}`
	}
	content := func(name, handle string) string {
		return `{"metadata": {"name": "` + name + `"}, "spec": {"driver": "cinder.csi.openstack.org", "source": {"snapshotHandle": "` + handle + `"}, "volumeSnapshotRef": {"namespace": "shop", "name": "` + name + `"}}}`
	}
	world := diagnosistest.Replay{
		"GET /api/v1/persistentvolumes?limit=500":        ok(`{"items": [%s, %s, {"metadata": {"name": "other"}, "spec": {"csi": {"driver": "other.example", "volumeHandle": "x"}}}]}`, volume("kept", kept), volume("gone", id(1))),
		attachmentsPath + "?limit=500":                   ok(`{"items": [%s, %s, %s]}`, attachment("a-kept", "kept"), attachment("a-gone", "gone"), attachment("a-nothing", "nothing")),
		contentsPath:                                     ok(`{"items": [%s, %s]}`, content("s-kept", snapshot), content("s-gone", id(2))),
		"GET /apis/storage.k8s.io/v1/csinodes?limit=500": ok(`{"items": [{"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "cinder.csi.openstack.org", "nodeID": "%s"}]}}]}`, id(3)),
		nodesPath:                    ok(`{"items": []}`),
		"GET /api/v1/pods?limit=500": ok(`{"items": []}`),
		"GET /api/v1/persistentvolumeclaims?limit=500":                                                         ok(`{"items": []}`),
		"GET /apis/storage.k8s.io/v1/csidrivers?labelSelector=app.kubernetes.io%2Fname%3Dcinder-csi&limit=500": ok(`{"items": []}`),
	}
	for _, name := range []string{"a-kept", "a-gone", "a-nothing"} {
		world[attachmentsPath+"/"+name] = ok("%s", attachment(name, strings.TrimPrefix(name, "a-")))
	}
	return world
}

func missingIn(t *testing.T, world diagnosistest.Replay, from diagnosis.Clients) diagnosis.MissingObjects {
	t.Helper()
	from.Cluster = cluster.New("test", &url.URL{Scheme: "https", Host: "cluster.example"}, &http.Client{Transport: world})
	from.Now = time.Now()
	m, err := diagnosis.FindMissing(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func names(m diagnosis.MissingObjects) []string {
	all := []string{}
	for _, one := range m.Missing {
		all = append(all, one.Name)
	}
	return all
}

func TestWhatCinderDoesNotHaveIsListed(t *testing.T) {
	c, create := project(t)
	kept := create("volume", map[string]any{"size": 1})
	snapshot := create("snapshot", map[string]any{"volume_id": kept})
	m := missingIn(t, restored(kept, snapshot), diagnosis.Clients{Cloud: c})
	if diff := cmp.Diff([]string{"gone", "a-kept", "a-gone", "a-nothing", "s-gone"}, names(m)); diff != "" || len(m.Unseen) > 0 || m.Doubt != "" || m.Checked != 7 {
		t.Errorf("%s%+v", diff, m)
	}
	var text strings.Builder
	if err := diagnosis.PrintMissing(&text, m, 100); err != nil || !strings.Contains(text.String(), "shop/gone") || !strings.Contains(text.String(), "5 of 7 objects") {
		t.Errorf("%v: %s", err, text.String())
	}
}

func TestAnAttachmentThatChangesWhileItIsReadIsNotLost(t *testing.T) {
	c, create := project(t)
	kept := create("volume", map[string]any{"size": 1})
	world := restored(kept, create("snapshot", map[string]any{"volume_id": kept}))
	delete(world, attachmentsPath+"/a-kept") // the pod has ended
	if m := missingIn(t, world, diagnosis.Clients{Cloud: c}); strings.Contains(fmt.Sprint(names(m)), "a-kept") {
		t.Errorf("got %+v", m)
	}
}

func TestNothingIsLostBecauseAListCouldNotBeRead(t *testing.T) {
	c, create := project(t)
	kept := create("volume", map[string]any{"size": 1})
	world := restored(kept, create("snapshot", map[string]any{"volume_id": kept}))
	denied := diagnosistest.Answer{Status: http.StatusForbidden, Body: []byte(`{}`)}
	for path, lost := range map[string][]string{contentsPath: {"gone", "a-kept", "a-gone", "a-nothing"}, attachmentsPath + "?limit=500": {"gone", "s-gone"}} {
		before := world[path]
		world[path] = denied
		m := missingIn(t, world, diagnosis.Clients{Cloud: c})
		world[path] = before
		if diff := cmp.Diff(lost, names(m)); diff != "" || len(m.Unseen) == 0 {
			t.Errorf("%s: %s%+v", path, diff, m.Unseen)
		}
	}
	if m := missingIn(t, world, diagnosis.Clients{NoCloud: diagnosis.Gap{What: "Cinder", Why: "no login"}}); len(m.Missing) > 0 || len(m.Unseen) == 0 {
		t.Errorf("without a cloud: %+v", m)
	}
	world["GET /api/v1/persistentvolumes?limit=500"] = denied
	from := diagnosis.Clients{Cloud: c, Cluster: cluster.New("test", &url.URL{Scheme: "https", Host: "cluster.example"}, &http.Client{Transport: world})}
	if _, err := diagnosis.FindMissing(t.Context(), from); !errors.Is(err, cluster.ErrDenied) {
		t.Errorf("want ErrDenied, got %v", err)
	}
}

func TestCredentialsOfAnotherProjectAreADoubt(t *testing.T) {
	c, _ := project(t)
	if m := missingIn(t, restored(id(8), id(9)), diagnosis.Clients{Cloud: c}); !strings.Contains(m.Doubt, "another project") {
		t.Errorf("got %+v", m)
	}
}

// driverCluster has a controller pod, a node pod and the pod of a tenant with the labels of a node pod.
func driverCluster() diagnosistest.Replay {
	pod := func(namespace, name, spec, status string) string {
		return `{"metadata": {"namespace": "` + namespace + `", "name": "` + name + `"}, "spec": {"nodeName": "n1", "serviceAccountName": "driver", ` + spec + `}, "status": {"conditions": [{"type": "Ready", "status": "` + status + `"}]}}`
	}
	controller := `"containers": [{"name": "driver", "image": "registry.example/cinder-csi-driver:v1", "args": ["--http-endpoint=:8080"]}]`
	node := `"volumes": [{"name": "p", "hostPath": {"path": "/var/lib/kubelet/plugins/cinder.csi.openstack.org"}}],
"containers": [{"name": "driver", "image": "registry.example/cinder-csi-driver:v1", "args": ["--http-endpoint=$(METRICS_ADDRESS)"], "envFrom": [{"configMapRef": {"name": "settings"}}]}]`
	return diagnosistest.Replay{
		"GET /api/v1/namespaces/cinder-csi/" + controllerPods: ok(`{"items": [%s, %s]}`, pod("cinder-csi", "c-0", controller, "True"), pod("cinder-csi", "c-1", controller, "False")),
		"GET /api/v1/" + strings.Replace(controllerPods, "controller", "node", 1): ok(`{"items": [%s, %s]}`,
			pod("cinder-csi-node", "n-0", node, "True"), pod("team-evil", "web", `"containers": [{"name": "driver", "image": "cinder-csi-driver"}]`, "True")),
		"GET /api/v1/namespaces/cinder-csi-node/configmaps/settings": ok(`{"data": {"METRICS_ADDRESS": "127.0.0.1:29603"}}`),
		"GET /api/v1/persistentvolumes?limit=500":                    ok(`{"items": [{"metadata": {"name": "pvc-u"}, "spec": {"claimRef": {"namespace": "shop", "name": "data"}, "csi": {"volumeHandle": "%s"}}}]}`, id(1)),
		"GET /api/v1/persistentvolumeclaims?limit=500":               ok(`{"items": [{"metadata": {"namespace": "shop", "name": "new", "uid": "w"}}]}`),
	}
}

// pages are what the pods serve, and note of which pod they were asked.
func pages(asked *[]string, path, controller, node string) (of, ofNode func(context.Context, string, string, int, string) ([]byte, error)) {
	var mutex sync.Mutex // pages are read at once
	page := func(text string) func(context.Context, string, string, int, string) ([]byte, error) {
		return func(_ context.Context, namespace, pod string, port int, got string) ([]byte, error) {
			mutex.Lock()
			defer mutex.Unlock()
			*asked = append(*asked, fmt.Sprintf("%s/%s:%d", namespace, pod, port))
			if got != path || text == "" {
				return nil, errors.New("no such page")
			}
			return []byte(text), nil
		}
	}
	return page(controller), page(node)
}

func driverSources(asked *[]string, path, controller, node string) diagnosis.Clients {
	from := diagnosis.Clients{
		Cluster:   cluster.New("test", &url.URL{Scheme: "https", Host: "cluster.example"}, &http.Client{Transport: driverCluster()}),
		Namespace: "cinder-csi", Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	from.Page, from.NodePage = pages(asked, path, controller, node)
	return from
}

// Only a refusal is about rights. A pod whose Node was deleted is not reachable, and the API server answers 404.
func TestTheAdviceAboutAPageThatIsNotReadFitsTheError(t *testing.T) {
	for kind, want := range map[error]string{
		cluster.ErrDenied: "this needs the right to get pods/portforward", cluster.ErrNotFound: "the pod or its Node is gone", cluster.ErrUnreachable: "run: kubectl --namespace ",
	} {
		page := func(context.Context, string, string, int, string) ([]byte, error) {
			return nil, fmt.Errorf("no page: %w", kind)
		}
		var asked []string
		from := driverSources(&asked, "", "", "")
		from.Page, from.NodePage = page, page
		gaps := diagnosis.ReadAllOperations(t.Context(), from).Unseen
		r := recordings(t)["attaching-stuck"]
		from = sources(t, r, diagnosistest.Replay(r.Cluster))
		from.Page = page
		gaps = append(gaps, diagnose(t, r, from).Unseen...)
		read := 0
		for _, g := range gaps {
			if strings.Contains(g.Why, "no page") {
				read++
				if !strings.HasPrefix(g.Do, want) {
					t.Errorf("%v: want %q, got %+v", kind, want, g)
				}
			}
		}
		if read < 3 {
			t.Errorf("%v: want the gaps of three pods, got %+v", kind, gaps)
		}
	}
}

func TestTheOperationsOfEachPodAreListedWithTheirClaims(t *testing.T) {
	var asked []string
	from := driverSources(&asked, "/debug/operations",
		`{"operations": [{"method": "ControllerPublishVolume", "object": "volume `+id(1)+` server s", "since": "2026-01-02T03:04:00Z", "rpcs": 2, "running": true, "step": "wait"},
			{"method": "CreateVolume", "object": "volume pvc-w", "since": "2026-01-02T03:00:00Z", "rpcs": 1, "lastCode": "Aborted", "lastError": "x\u001b[2J"}]}`,
		`{"operations": [{"method": "NodeStageVolume", "object": "volume `+id(1)+`", "since": "2026-01-02T03:03:00Z", "rpcs": 1}]}`)
	all := diagnosis.ReadAllOperations(t.Context(), from)
	var got []string
	for _, o := range all.Operations {
		got = append(got, o.Pod+" "+o.Method+" "+o.Claim)
	}
	want := []string{"cinder-csi/c-0 CreateVolume shop/new", "cinder-csi-node/n-0 NodeStageVolume shop/data", "cinder-csi/c-0 ControllerPublishVolume shop/data"}
	if diff := cmp.Diff(want, got); diff != "" || all.Pods != 2 || len(all.Unseen) != 1 || !strings.Contains(all.Unseen[0].What, "c-1") {
		t.Errorf("%s%+v", diff, all)
	}
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"cinder-csi-node/n-0:29603", "cinder-csi/c-0:8080"}, asked); diff != "" {
		t.Errorf("want only pods of the driver asked: %s", diff)
	}
	var text strings.Builder
	if err := diagnosis.PrintOperations(&text, all, 100); err != nil || strings.Contains(text.String(), "\x1b") || !strings.Contains(text.String(), "3 operations in progress, of 2 pods") {
		t.Errorf("%v: %q", err, text.String())
	}
}

func TestTheVersionSaysWhichDriverRuns(t *testing.T) {
	var asked []string
	from := driverSources(&asked, "/metrics", "# HELP\ncinder_csi_build_info{go_version=\"go1.26\",version=\"v1.2.3\"} 1\n", "")
	d := diagnosis.ReadDriverPods(t.Context(), from, "v9")
	if len(d.Pods) != 3 || d.Pods[0].Version != "v1.2.3" || d.Pods[0].Image != "registry.example/cinder-csi-driver:v1" || d.Pods[2].Role != "node" || len(d.Unseen) != 2 {
		t.Errorf("got %+v", d)
	}
	var text strings.Builder
	if err := diagnosis.PrintDriverPods(&text, d, 100); err != nil || !strings.Contains(text.String(), "kubectl-cinder v9") || !strings.Contains(text.String(), "v1.2.3") {
		t.Errorf("%v: %s", err, text.String())
	}
}
