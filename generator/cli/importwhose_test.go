package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// strangers are what a tenant may create in his namespace. Each would change the proposal, and none runs: the Deployment has no replicas.
var strangers = map[string]string{
	"/apis/apps/v1/deployments": `{"metadata": {"namespace": "team-evil", "name": "web"}, "spec": {"replicas": 0, "template": {"spec": {"containers": [
		{"name": "p", "image": "x/cinder-csi-plugin:v1", "env": [{"name": "HTTPS_PROXY", "value": "http://evil.example:3128"}]},
		{"name": "s", "image": "evil.example/x/csi-provisioner:v1"}], "volumes": [{"name": "ca", "configMap": {"name": "evil"}}]}}}}`,
	"/apis/apps/v1/daemonsets": `{"metadata": {"namespace": "team-evil", "name": "web"}, "spec": {"template": {"spec": {"nodeSelector": {"evil": "yes"}, "containers": [
		{"name": "p", "image": "evil.example/cinder-csi-driver:v1"}]}}}}`,
	"/api/v1/pods": `{"metadata": {"namespace": "team-evil", "name": "web"}, "spec": {"priorityClassName": "evil", "containers": [{"name": "p", "image": "x/cinder-csi-plugin:v1"}]}}`,
}

// besides is the API server of running, with one more object.
func besides(path, object string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := &strings.Builder{}
		running(&recorder{w, body}, r)
		text := body.String()
		if r.URL.Path == path {
			text = strings.Replace(strings.Replace(text, `"items": [`, `"items": [`+object+",", 1), ",]", "]", 1)
		}
		_, _ = w.Write([]byte(text))
	}
}

type recorder struct {
	http.ResponseWriter
	body *strings.Builder
}

func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func TestImportAsksWhoseAnInstallationIs(t *testing.T) {
	args := func(more ...string) []string {
		return append([]string{"import", "--context", "prod", "--simulated"}, more...)
	}
	for path, object := range strangers {
		b := newBed(t)
		b.sim.SetVolumeZones("nova")
		b.api = http.HandlerFunc(running)
		want := b.ok(t, args()...)
		b.api = besides(path, object)
		if stdout, stderr, code := b.run(t, args()...); code != Usage || stdout != "" || !strings.Contains(stderr, `in the namespaces "storage", "team-evil"`) || !strings.Contains(stderr, "--old-namespace") {
			t.Errorf("%s: want a question, got exit %d: %s%s", path, code, stdout, stderr)
		}
		stdout, stderr, code := b.run(t, args("--old-namespace", "storage")...)
		if code != OK || stdout != want || !strings.Contains(stderr, "team-evil/web: the object: left out: --old-namespace does not name its namespace\n") {
			t.Errorf("%s: want the proposal without the stranger, got exit %d: %s%s", path, code, stdout, stderr)
		}
		if got, _, _ := b.run(t, args("--old-namespace", "storage", "--old-namespace", "team-evil")...); got == want {
			t.Errorf("%s: the stranger changes nothing, so this test proves nothing", path)
		}
		if _, stderr, code := b.run(t, args("--old-namespace", "nowhere")...); code != Usage || !strings.Contains(stderr, `namespace "nowhere" of --old-namespace has no configuration`) {
			t.Errorf("%s: exit %d: %s", path, code, stderr)
		}
	}
}

// The operator's workloads are not read, so the tenant's would be the only ones.
func TestAWorkloadBesideTheOperatorsIsNotTheInstallation(t *testing.T) {
	const operators = `{"metadata": {"namespace": "openshift-cluster-csi-drivers", "name": "openstack-cinder-csi-driver-controller"}, "spec": {"template": {"spec": {"containers": [{"name": "p", "image": "q/cinder-csi-plugin"}]}}}}`
	b := newBed(t)
	b.api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		items := map[string]string{"/apis/apps/v1/deployments": operators + "," + strangers["/apis/apps/v1/deployments"]}[r.URL.Path]
		_, _ = w.Write([]byte(`{"items": [` + items + `]}`))
	})
	if stdout, stderr, code := b.run(t, "import", "--context", "prod"); code != Usage || stdout != "" || !strings.Contains(stderr, `"openshift-cluster-csi-drivers", "team-evil"`) {
		t.Errorf("want a question, got exit %d: %s%s", code, stdout, stderr)
	}
}

// What a kubelet makes from a file of its node may say that it is in any namespace. Kubernetes asks for the key of the annotation, not for its value.
func TestImportLeavesOutAPodThatAKubeletMade(t *testing.T) {
	b := newBed(t)
	b.sim.SetVolumeZones("nova")
	deployment := "- {apiVersion: apps/v1, kind: Deployment, metadata: {namespace: storage, name: c}, spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=blue]}]}}}}\n"
	dump := func(pod string) []string {
		return []string{"import", b.file(t, "all.yaml", "apiVersion: v1\nkind: List\nitems:\n"+deployment+pod), "--simulated"}
	}
	live := []string{"import", "--context", "prod", "--simulated"}
	b.api = http.HandlerFunc(running)
	want := map[bool]string{true: b.ok(t, live...), false: b.ok(t, dump("")...)}
	for _, value := range []string{"", "x"} {
		pod := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "storage", "name": "p-worker-1", "annotations": {"kubernetes.io/config.mirror": "` + value + `"}, "ownerReferences": [{"kind": "Node", "name": "worker-1"}]},
			"spec": {"nodeName": "worker-1", "nodeSelector": {"kubernetes.io/hostname": "worker-1"}, "containers": [
				{"name": "p", "image": "x/cinder-csi-plugin:v1", "args": ["--provide-node-service=false"]}, {"name": "a", "image": "evil.example/x/csi-attacher:v1"}]}}`
		b.api = besides("/api/v1/pods", pod)
		for isLive, args := range map[bool][]string{true: live, false: dump("- " + strings.ReplaceAll(pod, "\t", " ") + "\n")} {
			stdout, stderr, code := b.run(t, args...)
			if code != OK || stdout != want[isLive] || !strings.Contains(stderr, "storage/p-worker-1: the object: left out: its kubelet makes it from a file of the node; if that is the installation, name the file\n") {
				t.Errorf("live %t, %q: exit %d, %s, %s", isLive, value, code, cmp.Diff(want[isLive], stdout), stderr)
			}
		}
	}
}

// A dump of all namespaces has what strangers made, too.
func TestADumpOfSeveralNamespacesAsksWhoseAnInstallationIs(t *testing.T) {
	b := newBed(t)
	deployment := func(namespace, cluster string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: " + namespace + ", name: c}, spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=" + cluster + "]}]}}}}"
	}
	file := b.file(t, "all.yaml", "apiVersion: v1\nkind: List\nitems:\n- "+deployment("storage", "blue")+"\n- "+deployment("team-evil", "evil")+"\n- {apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-evil, name: x}, data: {cloud.conf: \"[Global]\\nregion=evil\\n\"}}\n")
	if stdout, stderr, code := b.run(t, "import", file); code != Usage || stdout != "" || !strings.Contains(stderr, `"storage", "team-evil"`) {
		t.Errorf("want a question, got exit %d: %s%s", code, stdout, stderr)
	}
	if got := b.ok(t, "import", file, "--old-namespace", "storage"); strings.Contains(got, "evil") || !strings.Contains(got, "clusterID: blue") {
		t.Errorf("got:\n%s", got)
	}
}

func TestImportPrintsNoCredentialOfWhatItLeavesOut(t *testing.T) {
	b := newBed(t)
	file := b.file(t, "app.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: cinder}\nspec: {source: {chart: openstack-cinder-csi, helm: {values: 'clusterID: a', valueFiles: ['https://user:s3cretS3cret@git.example.com/v.yaml', 'https://git.example.com/v.yaml?private_token=glpat-s3cretS3cretS3cret99']}}}\n")
	_, stderr, _ := b.run(t, "import", file)
	if !strings.Contains(stderr, "git.example.com") || strings.Contains(strings.ToLower(stderr), "s3crets3cret") {
		t.Errorf("got:\n%s", stderr)
	}
}
