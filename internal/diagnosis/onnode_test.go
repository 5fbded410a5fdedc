package diagnosis_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

const upstreamDriver = "cinder.csi.openstack.org"

// nodeWorld is a cluster with node n1: the objects have the fields that the report reads, as the recordings in testdata have them.
func nodeWorld() diagnosistest.Replay {
	pv := func(name, handle, uid string) string {
		return `{"metadata": {"name": "pv-` + name + `"}, "spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "shop", "name": "` + name + `", "uid": "` + uid + `"}, "csi": {"driver": "` + upstreamDriver + `", "volumeHandle": "` + handle + `"}}, "status": {"phase": "Bound"}}`
	}
	va := func(name, status string) string {
		return `{"metadata": {"name": "va-` + name + `", "creationTimestamp": "2026-01-02T02:00:00Z"}, "spec": {"attacher": "` + upstreamDriver + `", "nodeName": "n1", "source": {"persistentVolumeName": "pv-` + name + `"}}, "status": ` + status + `}`
	}
	claim := func(name, uid string) string {
		return `{"metadata": {"namespace": "shop", "name": "` + name + `", "uid": "` + uid + `"}, "spec": {"volumeName": "pv-` + name + `"}, "status": {"phase": "Bound"}}`
	}
	pod := func(name, claim, ready string) string {
		return `{"metadata": {"namespace": "shop", "name": "` + name + `", "creationTimestamp": "2026-01-02T02:00:00Z"}, "spec": {"nodeName": "n1", "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "` + claim + `"}}]}, "status": {"conditions": [{"type": "Ready", "status": "` + ready + `"}]}}`
	}
	const plugin = `{"metadata": {"namespace": "cinder-csi-node", "name": "node-x"}, "spec": {"nodeName": "n1", "volumes": [{"name": "s", "hostPath": {"path": "/var/lib/kubelet/plugins/` + upstreamDriver + `"}}],
		"containers": [{"name": "driver", "image": "cinder-csi-driver", "ports": [{"name": "metrics", "containerPort": 9280}]}]},
		"status": {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "driver", "restartCount": 2, "state": {"running": {}}}]}}`
	const csiNode = `{"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "` + upstreamDriver + `", "nodeID": "00000000-0000-4000-8000-000000000090", "allocatable": {"count": 2}}]}}`
	failed := `{"attached": false, "attachError": {"time": "2026-01-02T03:00:00Z", "message": "rpc error: code = Internal desc = Nova says no"}}`
	world := diagnosistest.Replay{
		"GET /api/v1/persistentvolumes?limit=500":                 ok(`{"items": [%s, %s, %s]}`, pv("data", id(1), "u1"), pv("stuck", id(2), "u2"), pv("far", id(3), "u3")),
		"GET /api/v1/persistentvolumeclaims?limit=500":            ok(`{"items": [%s, %s, %s]}`, claim("data", "u1"), claim("stuck", "u2"), claim("far", "u3")),
		"GET /apis/storage.k8s.io/v1/volumeattachments?limit=500": ok(`{"items": [%s, %s]}`, va("data", `{"attached": true}`), va("stuck", failed)),
		"GET /apis/storage.k8s.io/v1/csinodes?limit=500":          ok(`{"items": [%s]}`, csiNode),
		nodesPath: ok(`{"items": [{"metadata": {"name": "n1"}}]}`),
		"GET /apis/storage.k8s.io/v1/csinodes/n1": ok("%s", csiNode),
		"GET /api/v1/nodes/n1":                    ok(`{"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "volumesInUse": ["kubernetes.io/csi/%s^%s"]}}`, upstreamDriver, id(1)),
		"GET /api/v1/pods?limit=500":              ok(`{"items": [%s, %s]}`, pod("app", "data", "True"), pod("waits", "stuck", "False")),
		"GET /apis/storage.k8s.io/v1/csidrivers?labelSelector=app.kubernetes.io%2Fname%3Dcinder-csi&limit=500":                                                   ok(`{"items": [{"metadata": {"name": "%s"}}]}`, upstreamDriver),
		"GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1&labelSelector=app.kubernetes.io%2Fcomponent%3Dnode%2Capp.kubernetes.io%2Fname%3Dcinder-csi&limit=500": ok(`{"items": [%s]}`, plugin),
		"GET /api/v1/persistentvolumes/pv-stuck":                   ok("%s", pv("stuck", id(2), "u2")),
		"GET /api/v1/namespaces/shop/persistentvolumeclaims/stuck": ok("%s", claim("stuck", "u2")),
		"GET /api/v1/namespaces/shop/pods?limit=500":               ok(`{"items": [%s]}`, pod("waits", "stuck", "False")),
		"GET /api/v1/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dcontroller%2Capp.kubernetes.io%2Fname%3Dcinder-csi&limit=500": ok(`{"items": [{"metadata": {"namespace": "cinder-csi", "name": "c-0"}, "spec": {"serviceAccountName": "c"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`),
		bindingsPath: ok(`{"items": [{"subjects": [{"kind": "ServiceAccount", "namespace": "cinder-csi", "name": "c"}]}]}`),
		"GET /apis/coordination.k8s.io/v1/namespaces/cinder-csi/leases?limit=500": ok(`{"items": []}`),
	}
	for _, name := range []string{"stuck", "waits"} {
		world["GET /api/v1/namespaces/shop/events?fieldSelector=involvedObject.name%3D"+name+"&limit=500"] = ok(`{"items": []}`)
	}
	world["GET /api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dpv-stuck&limit=500"] = ok(`{"items": []}`)
	return world
}

// readingsOfNode reads node n1. Cinder's list is given: the cloud itself is not asked.
func readingsOfNode(t *testing.T, world diagnosistest.Replay) diagnosis.NodeReadings {
	t.Helper()
	f, err := diagnosis.ReadNode(t.Context(), nodeSources(world), "n1")
	if err != nil {
		t.Fatal(err)
	}
	f.CinderRead = true
	for n, server := range map[int]string{1: id(90), 2: "", 3: id(91)} {
		v := diagnosis.ListedVolume{CloudVolume: diagnosis.CloudVolume{ID: id(n), Status: "available", Size: 1}}
		if server != "" {
			v.Status, v.Attachments = "in-use", append(v.Attachments, struct {
				Server string `json:"server_id"`
			}{server})
		}
		f.Cinder[v.ID] = v
	}
	return f
}

func nodeSources(world diagnosistest.Replay) diagnosis.Clients {
	return diagnosis.Clients{Cluster: cluster.New("test", &url.URL{Scheme: "https", Host: "cluster.example"}, &http.Client{Transport: world}), Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), NoCloud: diagnosis.Gap{What: "Cinder", Why: "not asked"}}
}

func TestANodeHasItsLimitItsVolumesAndWhatWaitsThere(t *testing.T) {
	f := readingsOfNode(t, nodeWorld())
	r := diagnosis.OnNode(f)
	if len(r.Drivers) != 1 || !r.Drivers[0].Registered || *r.Drivers[0].Limit != 2 || r.Drivers[0].Attached != 2 || len(r.Drivers[0].Pods) != 1 || r.Drivers[0].Pods[0].Restarts != 2 {
		t.Errorf("got drivers %+v", r.Drivers)
	}
	var text strings.Builder
	if err := diagnosis.PrintNode(&text, r, 100); err != nil {
		t.Fatal(err)
	}
	golden(t, "node.txt", text.String())
	if len(r.Waiting) != 1 || r.Waiting[0].Claim != "shop/stuck" || r.Waiting[0].Cause != "attach.error" {
		t.Errorf("want that shop/stuck waits, got %+v", r.Waiting)
	}
}

// The CSIDriver of another installation has no label of ours, so the cluster is asked for it by its name.
func TestANodeAsksForTheCSIDriverOfEachDriverThatItRegistered(t *testing.T) {
	const labelled = "GET /apis/storage.k8s.io/v1/csidrivers?labelSelector=app.kubernetes.io%2Fname%3Dcinder-csi&limit=500"
	const byName = "GET /apis/storage.k8s.io/v1/csidrivers/" + upstreamDriver
	for name, c := range map[string]struct {
		answer diagnosistest.Answer
		want   int
	}{
		"that of another installation": {ok(`{}`), 0},
		"none":                         {diagnosistest.Answer{Status: http.StatusNotFound, Body: []byte(`{}`)}, 1},
		"nobody may read it":           {diagnosistest.Answer{Status: http.StatusForbidden, Body: []byte(`{}`)}, 0},
	} {
		world := nodeWorld()
		world[labelled], world[byName] = ok(`{"items": []}`), c.answer
		if f := readingsOfNode(t, world); len(f.Undeclared) != c.want {
			t.Errorf("%s: want %d, got %q", name, c.want, f.Undeclared)
		}
	}
}

func TestANodeNamesWhatIsWrongWithIt(t *testing.T) {
	old := metav1.NewTime(time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC))
	condition := func(f *diagnosis.NodeReadings, status corev1.ConditionStatus) {
		f.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: old}}
	}
	server := func(s diagnosis.CloudServer) func(*diagnosis.NodeReadings) {
		s.ID = id(90)
		return func(f *diagnosis.NodeReadings) { f.CloudServers[s.ID] = &s }
	}
	for _, test := range []struct {
		name, want string // empty: no finding
		change     func(*diagnosis.NodeReadings)
	}{
		{"as it should be", "", func(*diagnosis.NodeReadings) {}},
		{"a server that runs", "", server(diagnosis.CloudServer{Status: "ACTIVE"})},
		{"not ready", "the node has not been ready for 1h0m", func(f *diagnosis.NodeReadings) { condition(f, corev1.ConditionUnknown) }},
		{"gone", "node n1 does not exist in Kubernetes", func(f *diagnosis.NodeReadings) { f.Node, f.NoNode = nil, true }},
		{"full", "no room for one more volume: 1 are attached, and the limit is 1", func(f *diagnosis.NodeReadings) {
			*f.CSINode.Spec.Drivers[0].Allocatable.Count = 1
		}},
		{"not registered", "is not registered: CSINode n1 does not list it", func(f *diagnosis.NodeReadings) { f.CSINode.Spec.Drivers = nil }},
		{"a CSIDriver of another name", "there is prod-cinder.csi.openstack.org: a namePrefix or nameSuffix above the bundle", func(f *diagnosis.NodeReadings) {
			f.Undeclared, f.Declared = []string{upstreamDriver}, []string{"prod-" + upstreamDriver}
		}},
		{"no CSINode", "is not registered", func(f *diagnosis.NodeReadings) { f.CSINode, f.NoCSINode = nil, true }},
		{"CSINode unread", "", func(f *diagnosis.NodeReadings) { f.CSINode = nil }},
		{"no pod of the driver", "no pod of driver cinder.csi.openstack.org runs on the node", func(f *diagnosis.NodeReadings) { f.Plugins = nil }},
		{"pods unread", "", func(f *diagnosis.NodeReadings) {
			f.Plugins, f.Gaps = nil, []diagnosis.Gap{{What: "the pods of the driver on node n1"}}
		}},
		{"pod not ready", "pod cinder-csi-node/node-x of the driver is not ready; container driver: CrashLoopBackOff", func(f *diagnosis.NodeReadings) {
			f.Plugins[0].Status.Conditions = nil
			f.Plugins[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}},
		{"start-up taint", "start-up taint cinder.csi.openstack.org/agent-not-ready keeps pods off the node, for 1h0m now", func(f *diagnosis.NodeReadings) {
			f.Node.Spec.Taints = []corev1.Taint{{Key: "cinder.csi.openstack.org/agent-not-ready", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &old}}
		}},
		{"another taint", "", func(f *diagnosis.NodeReadings) {
			f.Node.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{"no server", "Nova has no server", server(diagnosis.CloudServer{Missing: true})},
		{"locked", "is locked", server(diagnosis.CloudServer{Status: "ACTIVE", Locked: true})},
		{"stopped", "is in status SHUTOFF", server(diagnosis.CloudServer{Status: "SHUTOFF"})},
		{"read-only", "the driver of the node found: FileSystemReadOnly", func(f *diagnosis.NodeReadings) { f.Unhealthy[id(1)] = "FileSystemReadOnly" }},
		{"mounted without an attachment", "kubelet still uses it here", func(f *diagnosis.NodeReadings) { f.Attachments = nil }},
		{"gone from Cinder", "not in this project", func(f *diagnosis.NodeReadings) { delete(f.Cinder, id(1)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := readingsOfNode(t, nodeWorld())
			f.Attachments = slices.DeleteFunc(f.Attachments, func(a storagev1.VolumeAttachment) bool { return a.Name == "va-stuck" })
			f.Volumes = slices.DeleteFunc(f.Volumes, func(v corev1.PersistentVolume) bool { return v.Name == "pv-far" })
			delete(f.Cinder, id(3))
			test.change(&f)
			got := strings.Join(diagnosis.OnNode(f).Findings, "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestAVolumeOfAnotherNodeIsNotShownAndOneOfNoPersistentVolumeIs(t *testing.T) {
	f := readingsOfNode(t, nodeWorld())
	boot := f.Cinder[id(1)]
	boot.ID = id(4)
	f.Cinder[id(4)] = boot
	r := diagnosis.OnNode(f)
	if len(r.Volumes) != 2 || slices.ContainsFunc(r.Volumes, func(v diagnosis.VolumeOnNode) bool { return v.ID == id(3) }) {
		t.Errorf("want the two volumes of the node, got %+v", r.Volumes)
	}
	if want := []string{id(4)}; !slices.Equal(want, r.Others) {
		t.Errorf("want %q, got %q", want, r.Others)
	}
}

func TestAPodThatUsesAClaimTwiceIsNamedOnce(t *testing.T) {
	f := readingsOfNode(t, nodeWorld())
	f.Pods[0].Spec.Volumes = append(f.Pods[0].Spec.Volumes, f.Pods[0].Spec.Volumes...)
	if got := diagnosis.OnNode(f).Volumes[0].Pods; !slices.Equal(got, []string{"app"}) {
		t.Errorf("want the pod once, got %q", got)
	}
}

func TestTheDriverOfTheNodeIsAskedWhatItFound(t *testing.T) {
	from := nodeSources(nodeWorld())
	page := `cinder_csi_node_volume_unhealthy{reason="DiskNotAccessible",volume="` + id(1) + `"} 1` + "\n"
	from.NodePage = func(_ context.Context, namespace, pod string, port int, path string) ([]byte, error) {
		if namespace+"/"+pod != "cinder-csi-node/node-x" || port != 9280 || path != "/metrics" {
			return nil, errors.New("another page")
		}
		return []byte(page), nil
	}
	f, err := diagnosis.ReadNode(t.Context(), from, "n1")
	if err != nil || f.Unhealthy[id(1)] != "DiskNotAccessible" {
		t.Errorf("%v: %+v", err, f.Unhealthy)
	}
	from.NodePage = func(context.Context, string, string, int, string) ([]byte, error) { return nil, errors.New("no port") }
	f, err = diagnosis.ReadNode(t.Context(), from, "n1")
	if err != nil || !slices.ContainsFunc(f.Gaps, func(g diagnosis.Gap) bool { return g.Why == "no port" }) {
		t.Errorf("want a gap, got %v: %+v", err, f.Gaps)
	}
}

func TestANodeThatNothingNamesIsNotFound(t *testing.T) {
	world := nodeWorld()
	for _, path := range []string{"/api/v1/nodes/n2", "/apis/storage.k8s.io/v1/csinodes/n2"} {
		world["GET "+path] = diagnosistest.Answer{Status: 404}
	}
	if _, err := diagnosis.ReadNode(t.Context(), nodeSources(world), "n2"); !errors.Is(err, cluster.ErrNotFound) || !strings.Contains(err.Error(), "kubectl get nodes") {
		t.Errorf("want ErrNotFound, got %v", err)
	}
}

// What was read about the node must not be lost with one of its volumes.
func TestAVolumeThatCannotBeReadDoesNotHideTheNode(t *testing.T) {
	for _, test := range []struct {
		name         string
		status       int
		notDiagnosed []string
		gaps         int
	}{
		{"gone since it was listed", http.StatusNotFound, nil, 0},
		{"no answer in time", http.StatusGatewayTimeout, []string{"pv-stuck"}, 1},
		{"denied", http.StatusForbidden, []string{"pv-stuck"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			world := nodeWorld()
			world["GET /api/v1/persistentvolumes/pv-stuck"] = diagnosistest.Answer{Status: test.status}
			f, err := diagnosis.ReadNode(t.Context(), nodeSources(world), "n1")
			if err != nil {
				t.Fatal(err)
			}
			gaps := 0
			for _, g := range f.Gaps {
				if g.What == "the diagnosis of PersistentVolume pv-stuck" {
					gaps++
				}
			}
			if f.Node == nil || len(f.Waiting) != 0 || !slices.Equal(f.NotDiagnosed, test.notDiagnosed) || gaps != test.gaps {
				t.Errorf("got node %v, %d waiting, %q not diagnosed, gaps %+v", f.Node, len(f.Waiting), f.NotDiagnosed, f.Gaps)
			}
		})
	}
}

// Somebody who may list pods in the default namespace alone does not see whether the driver runs in another.
func TestPodsOfADeniedClusterAreNotMissing(t *testing.T) {
	const plugins = "fieldSelector=spec.nodeName%3Dn1&labelSelector=app.kubernetes.io%2Fcomponent%3Dnode%2Capp.kubernetes.io%2Fname%3Dcinder-csi&limit=500"
	everywhere := nodeWorld()["GET /api/v1/pods?"+plugins]
	for _, test := range []struct {
		name      string
		byDefault diagnosistest.Answer
		unseen    bool
	}{
		{"no pod there", ok(`{"items": []}`), true},
		{"a pod there", everywhere, false},
		{"no such namespace", diagnosistest.Answer{Status: http.StatusNotFound}, true},
		{"denied there too", diagnosistest.Answer{Status: http.StatusForbidden}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			world := nodeWorld()
			world["GET /api/v1/pods?"+plugins] = diagnosistest.Answer{Status: http.StatusForbidden}
			world["GET /api/v1/namespaces/cinder-csi-node/pods?"+plugins] = test.byDefault
			f := readingsOfNode(t, world)
			gaps := 0
			for _, g := range f.Gaps {
				if g.What == "the pods of the driver on node n1" {
					gaps++
				}
			}
			if want := map[bool]int{true: 1}[test.unseen]; gaps != want {
				t.Errorf("want %d gaps, got %+v", want, f.Gaps)
			}
			if findings := strings.Join(diagnosis.OnNode(f).Findings, "\n"); strings.Contains(findings, "no pod of driver") {
				t.Errorf("got %s", findings)
			}
		})
	}
}

// A node with a hundred volumes that wait must not take a thousand requests.
func TestOnlyTheFirstVolumesThatWaitAreDiagnosed(t *testing.T) {
	world := nodeWorld()
	list := "GET /apis/storage.k8s.io/v1/volumeattachments?limit=500"
	one := `{"metadata": {"name": "va-%d"}, "spec": {"attacher": "` + upstreamDriver + `", "nodeName": "n1", "source": {"persistentVolumeName": "pv-%d"}}}`
	pv := `{"metadata": {"name": "pv-%d"}, "spec": {"csi": {"driver": "` + upstreamDriver + `", "volumeHandle": "v-%d"}}}`
	var attachments, volumes []string
	for n := range 13 {
		number := string(rune('a' + n))
		attachments = append(attachments, strings.ReplaceAll(one, "%d", number))
		v := strings.ReplaceAll(pv, "%d", number)
		volumes = append(volumes, v)
		world["GET /api/v1/persistentvolumes/pv-"+number] = ok("%s", v)
	}
	world[list] = ok("%s", `{"items": [`+strings.Join(attachments, ",")+`]}`)
	world["GET /api/v1/persistentvolumes?limit=500"] = ok("%s", `{"items": [`+strings.Join(volumes, ",")+`]}`)
	f, err := diagnosis.ReadNode(t.Context(), nodeSources(world), "n1")
	if err != nil || len(f.Waiting) != 10 || len(f.NotDiagnosed) != 3 {
		t.Errorf("want 10 diagnosed and 3 named, got %v: %d, %q", err, len(f.Waiting), f.NotDiagnosed)
	}
}

// A tenant may give a pod the labels, the image and the name of the driver. What it cannot have is the driver's directory of the node.
func TestAPodWithoutTheDirectoryOfTheDriverIsNoneOfItsPods(t *testing.T) {
	world, changed := nodeWorld(), false
	for path, answer := range world {
		if strings.Contains(path, "component%3Dnode") {
			evil := `{"items": [{"metadata": {"namespace": "evil", "name": "evil-pod"}, "spec": {"nodeName": "n1", "containers": [{"name": "driver", "image": "evil.example/cinder-csi-driver", "args": ["--driver-name=` + upstreamDriver + `"]}]}}, `
			answer.Body = []byte(strings.Replace(string(answer.Body), `{"items": [`, evil, 1))
			world[path], changed = answer, true
		}
	}
	text := &strings.Builder{}
	if err := diagnosis.PrintNode(text, diagnosis.OnNode(readingsOfNode(t, world)), 100); err != nil || !changed {
		t.Fatal(err, changed)
	}
	if got := text.String(); strings.Contains(got, "evil") || !strings.Contains(got, "node-x") {
		t.Errorf("want the pod of the driver alone, got %s", got)
	}
}
