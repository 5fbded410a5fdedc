package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/migrate"
)

// vanillaBundle is the directory of a bundle for upstream's driver name.
func vanillaBundle(t *testing.T, b *bed, format string) string {
	t.Helper()
	dir := filepath.Join(b.dir, "bundle-"+format)
	b.ok(t, "generate", "--simulated", "--target", "vanilla", "--format", format, "--output-dir", dir, "--config", b.file(t, "adopt.yaml", ownImage))
	return dir
}

// commands are the indented lines of a text, without comments, each on one line.
func commands(text, indent string) []string {
	var all []string
	for line := range strings.Lines(text) {
		command, found := strings.CutPrefix(strings.TrimRight(line, "\n"), indent)
		if !found {
			continue
		}
		command, _, _ = strings.Cut(command, "   #")
		if strings.HasPrefix(command, " ") && len(all) > 0 {
			all[len(all)-1] += " " + strings.TrimSpace(command)
			continue
		}
		all = append(all, strings.TrimSpace(command))
	}
	return all
}

// section is the text below a heading, up to the next of the same level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no %s", heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	rest, _, _ = strings.Cut(rest, "\n"+level+" ")
	return rest
}

func TestTheHowToAndAdoptGiveTheSameCommands(t *testing.T) {
	b := newBed(t)
	dir := vanillaBundle(t, b, "kustomize")
	printed := strings.ReplaceAll(b.ok(t, "adopt", dir), filepath.ToSlash(dir), "deploy/cinder-csi")
	var got []string
	for _, c := range commands(printed, "       ") {
		got = append(got, strings.TrimPrefix(c, " "))
	}
	page, err := os.ReadFile("../../docs/how-to/replace-upstream.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, heading := range []string{"## Check first", "## Before anything stops", "## The swap", "## The way back"} {
		text := regexp.MustCompile(`(?m)^   `+"(    )").ReplaceAllString(section(t, string(page), heading), "$1") // below a numbered step
		for _, c := range commands(text, "    ") {
			c = strings.ReplaceAll(strings.TrimPrefix(c, "bin/"), "mycloud", "CLOUD")
			if !strings.HasPrefix(c, "cinder-csi-generator generate") { // adopt has the bundle already
				want = append(want, c)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-how-to +adopt):\n%s", diff)
	}
	if len(want) < 15 {
		t.Errorf("want the commands of the page, got %q", want)
	}
}

func TestAdoptOfHelmTakesOwnership(t *testing.T) {
	b := newBed(t)
	got := b.ok(t, "adopt", vanillaBundle(t, b, "helm"))
	if !strings.Contains(got, "helm upgrade --install cinder-csi charts/cinder-csi --namespace cinder-csi -f "+b.dir) || !strings.Contains(got, "--take-ownership") || strings.Contains(got, "apply --server-side") {
		t.Errorf("want helm, got %s", got)
	}
}

// otherWorkloads are the lists that upstream's chart of today leaves empty.
var otherWorkloads = []string{"/apis/apps/v1/statefulsets", "/apis/apps/v1/replicasets", "/api/v1/pods"}

// installed is an API server of a cluster with upstream's chart and volumes that need attention.
func installed(w http.ResponseWriter, r *http.Request) {
	answers := map[string]string{
		"/apis/apps/v1/deployments": `{"items": [{"metadata": {"namespace": "storage", "name": "cinder-controllerplugin", "annotations": {"meta.helm.sh/release-name": "cinder"}},
			"spec": {"template": {"spec": {"containers": [{"name": "p", "image": "registry.k8s.io/provider-os/cinder-csi-plugin:v1.36.0", "args": ["--cluster=$(CLUSTER_NAME)"],
			"env": [{"name": "CLUSTER_NAME", "value": "blue"}]}]}}}}, {"metadata": {"namespace": "storage", "name": "other"}}]}`,
		"/apis/apps/v1/daemonsets": `{"items": [{"metadata": {"namespace": "storage", "name": "cinder-nodeplugin-a"}, "spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/var/lib/kubelet/plugins/cinder.csi.openstack.org"}}]}}}},
			{"metadata": {"namespace": "storage", "name": "cinder-nodeplugin-b"}, "spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/var/lib/kubelet/plugins/cinder.csi.openstack.org"}}]}}}}]}`,
		"/api/v1/persistentvolumes": `{"items": [
			{"metadata": {"name": "pv-shared"}, "spec": {"accessModes": ["ReadWriteMany"], "csi": {"driver": "cinder.csi.openstack.org"}}},
			{"metadata": {"name": "pv-raw"}, "spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "csi": {"driver": "cinder.csi.openstack.org"}}},
			{"metadata": {"name": "pv-secret"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org", "nodeStageSecretRef": {"name": "x"}}}},
			{"metadata": {"name": "pv-zoned"}, "spec": {"csi": {"driver": "cinder.csi.openstack.org"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.cinder.csi.openstack.org/zone", "operator": "In", "values": ["az1"]}]}]}}}},
			{"metadata": {"name": "pv-in-tree", "labels": {"failure-domain.beta.kubernetes.io/zone": "az2"}}, "spec": {"cinder": {"volumeID": "x"}}},
			{"metadata": {"name": "pv-nfs"}, "spec": {"accessModes": ["ReadWriteMany"], "csi": {"driver": "nfs.csi.k8s.io"}}}]}`,
		"/apis/storage.k8s.io/v1/storageclasses": `{"items": [{"metadata": {"name": "old"}, "provisioner": "kubernetes.io/cinder"}, {"metadata": {"name": "nfs"}, "provisioner": "nfs.csi.k8s.io"}]}`,
	}
	body, found := answers[r.URL.Path]
	if !found && r.Method == http.MethodGet && slices.Contains(otherWorkloads, r.URL.Path) {
		body, found = `{"items": []}`, true
	}
	if !found || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(body))
}

func TestAdoptNamesWhatTheClusterHas(t *testing.T) {
	b := newBed(t)
	b.sim.SetVolumeZones("nova") // the bundle uses no zones
	dir := vanillaBundle(t, b, "kustomize")
	b.api = http.HandlerFunc(installed)
	got := b.ok(t, "adopt", dir, "--context", "prod")
	for _, want := range []string{
		"DaemonSet storage/cinder-nodeplugin-a, DaemonSet storage/cinder-nodeplugin-b, Deployment storage/cinder-controllerplugin; 5 PersistentVolumes, of which 1 are in-tree (spec.cinder); 1 StorageClasses of kubernetes.io/cinder.",
		"Move the data of these PersistentVolumes first: pv-shared.",
		"These PersistentVolumes name Secrets; if these are for several clouds, replace only the image (page \"Replace upstream's cinder-csi-plugin\"): pv-secret.",
		"these PersistentVolumes need one. Set spec.topology.mode to enabled, with a zoneMap: pv-zoned, pv-in-tree.",
		"set spec.clusterID to it: blue.",
		"kubectl --namespace storage get daemonset cinder-nodeplugin-b -o json | jq \"$clean\" > upstream-node-2.json",
		"kubectl --namespace storage delete deployment cinder-controllerplugin --cascade=foreground",
		"kubectl --namespace cinder-csi-node delete daemonset cinder-csi-node --cascade=foreground",
		"kubectl --namespace storage delete secret -l owner=helm,name=cinder",
		"kubectl create -f upstream-csidriver.json -f upstream-controller.json -f upstream-node.json -f upstream-node-2.json",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "kube-system") || strings.Contains(got, "RELEASE") {
		t.Errorf("want the names of the cluster only, got:\n%s", got)
	}
}

// twice is the installed cluster in which a tenant has a Deployment that looks like the driver. The release of its annotation is a command.
func twice(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis/apps/v1/deployments" {
		installed(w, r)
		return
	}
	pod := func(cluster string) string {
		return `"spec": {"template": {"spec": {"containers": [{"name": "p", "image": "x/cinder-csi-plugin:v1", "args": ["--cluster=` + cluster + `"]}]}}}`
	}
	_, _ = w.Write([]byte(`{"items": [{"metadata": {"namespace": "storage", "name": "cinder-controllerplugin"}, ` + pod("blue") + `},
{"metadata": {"namespace": "team-evil", "name": "web", "annotations": {"meta.helm.sh/release-name": "x;touch /tmp/PWNED-adopt;#"}}, ` + pod("team-evil-owns-this") + `}]}`))
}

func TestAdoptAsksWhichInstallationItReplaces(t *testing.T) {
	b := newBed(t)
	dir := vanillaBundle(t, b, "kustomize")
	b.api = http.HandlerFunc(twice)
	stdout, stderr, code := b.run(t, "adopt", dir)
	if code != Failure || stdout != "" || !strings.Contains(stderr, `in the namespaces "storage", "team-evil"`) || !strings.Contains(stderr, "--old-namespace") {
		t.Errorf("want a question, got exit %d: %s%s", code, stdout, stderr)
	}
	if got := b.ok(t, "adopt", dir, "--old-namespace", "storage"); strings.Contains(got, "team-evil") {
		t.Errorf("want only the named installation, got:\n%s", got)
	}
	stdout, stderr, code = b.run(t, "adopt", dir, "--old-namespace", "storage", "--old-namespace", "team-evil")
	if code != Failure || stdout != "" || !strings.Contains(stderr, "no name of a release") {
		t.Errorf("want the name refused, got exit %d: %s%s", code, stdout, stderr)
	}
	if stdout, stderr, code = b.run(t, "adopt", dir, "--old-namespace", "nowhere"); code != Failure || !strings.Contains(stderr, `namespace "nowhere" has no workload`) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// apart is a cluster whose driver has its node workloads in another namespace than the controller.
func apart(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis/apps/v1/deployments" {
		installed(w, r)
		return
	}
	_, _ = w.Write([]byte(`{"items": [{"metadata": {"namespace": "control", "name": "cinder-controllerplugin"}, "spec": {"template": {"spec": {"containers": [{"name": "p", "image": "x/cinder-csi-plugin:v1"}]}}}}]}`))
}

func TestAdoptTakesTheTwoNamespacesOfOneInstallation(t *testing.T) {
	b := newBed(t)
	dir := vanillaBundle(t, b, "kustomize")
	if stdout, stderr, code := b.run(t, "adopt", dir, "--old-namespace", "storage"); code != Usage || stdout != "" || !strings.Contains(stderr, "--old-namespace needs a cluster") {
		t.Errorf("want wrong usage without a cluster, got exit %d: %s%s", code, stdout, stderr)
	}
	b.api = http.HandlerFunc(apart)
	if _, stderr, code := b.run(t, "adopt", dir); code != Failure || !strings.Contains(stderr, `"control", "storage"`) {
		t.Errorf("want a question, got exit %d: %s", code, stderr)
	}
	for namespace, kind := range map[string]string{"control": "Deployment", "storage": "DaemonSet"} {
		if stdout, stderr, code := b.run(t, "adopt", dir, "--old-namespace", namespace); code != Failure || stdout != "" || !strings.Contains(stderr, "have only a "+kind) {
			t.Errorf("%s: want half of an installation refused, got exit %d: %s%s", namespace, code, stdout, stderr)
		}
	}
	got := b.ok(t, "adopt", dir, "--old-namespace", "control", "--old-namespace", "storage")
	for _, want := range []string{"kubectl --namespace control delete deployment cinder-controllerplugin", "kubectl --namespace storage delete daemonset cinder-nodeplugin-a"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
}

// A pull request changes the namespace of the node pods to a command.
func TestAdoptRefusesAnEditedBundle(t *testing.T) {
	b := newBed(t)
	dir := vanillaBundle(t, b, "kustomize")
	for _, edit := range []struct{ file, from, to string }{
		{"base/node.yaml", `namespace: "cinder-csi-node"`, `namespace: "cinder-csi-node;touch PWNED;#"`},
		{"base/node.yaml", "maxUnavailable: 10%", "maxUnavailable: 20%"},
	} {
		file := filepath.Join(dir, edit.file)
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(before), edit.from, edit.to, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := b.run(t, "adopt", dir)
		if code != Failure || stdout != "" || !strings.Contains(stderr, "differs from what generate wrote") {
			t.Errorf("want a refusal, got exit %d: %s%s", code, stdout, stderr)
		}
		if err := os.WriteFile(file, before, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAdoptOfABundleThatTakesNothingOverIsRefused(t *testing.T) {
	b := newBed(t)
	for target, want := range map[string]string{"standalone": "under another name, so it takes nothing over", "hypershift": "sets the state of its built-in driver back"} {
		dir := filepath.Join(b.dir, target)
		b.ok(t, "generate", "--simulated", "--target", target, "--format", "helm", "--output-dir", dir)
		if stdout, stderr, code := b.run(t, "adopt", dir); code != Usage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: want exit 64, got %d: %s", target, code, stderr)
		}
	}
	if _, _, code := b.run(t, "adopt", b.dir); code != Usage {
		t.Error("want exit 64 for a directory without a bundle")
	}
}

func TestTheCommandOfImportIsThatOfTheBundle(t *testing.T) {
	b := newBed(t)
	readme, err := os.ReadFile(filepath.Join(vanillaBundle(t, b, "kustomize"), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, _ := b.run(t, "import", b.file(t, "cloud.conf", "[Global]\npassword=x\n"))
	_, command, _ := strings.Cut(strings.TrimSpace(stderr), "create the Secret: ")
	if command == "" || !slices.Contains(strings.Split(string(readme), "\n"), command) {
		t.Errorf("want the command of the README.md, got %q", command)
	}
}

func TestAdoptOfAStandaloneBundleEndsTheBuiltInDriver(t *testing.T) {
	b := newBed(t)
	config := b.file(t, "openshift.yaml", "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: prod}\nspec: {openshift: {coexistence: adopt}}\n")
	for _, format := range []string{"kustomize", "helm"} {
		dir := filepath.Join(b.dir, "adopted-"+format)
		b.ok(t, "generate", "--simulated", "--target", "standalone", "--format", format, "--output-dir", dir, "--config", config)
		got := b.ok(t, "adopt", dir)
		at := 0
		for _, want := range []string{
			`"managementState":"Unmanaged","storageClassState":"Unmanaged"`,
			"delete daemonset openstack-cinder-csi-driver-node",
			"delete csidriver cinder.csi.openstack.org",
			map[string]string{"kustomize": "apply --server-side", "helm": "--take-ownership"}[format],
			"kubectl --namespace cinder-csi-node delete daemonset cinder-csi-node",
			`"managementState":"Managed","storageClassState":"Managed"`,
			"Not proven",
		} {
			next := strings.Index(got[at:], want)
			if next < 0 {
				t.Fatalf("%s: want %q after the steps before it in:\n%s", format, want, got)
			}
			at += next
		}
	}
}

// Each kind of object that may run the controller of a driver. What makes it again must be named, or two controllers run after the swap.
func TestAdoptEndsEveryControllerThatRuns(t *testing.T) {
	const pod = `{"containers": [{"name": "p", "image": "x/cinder-csi-plugin:v1", "args": ["--cluster=blue"]}]}`
	meta := func(more string) string { return `"metadata": {"namespace": "storage", "name": "c"` + more + `}` }
	for name, c := range map[string]struct{ path, object, want string }{
		"Deployment":          {"/apis/apps/v1/deployments", meta("") + `, "spec": {"template": {"spec": ` + pod + `}}`, "delete deployment c --cascade=foreground"},
		"StatefulSet":         {"/apis/apps/v1/statefulsets", meta("") + `, "spec": {"template": {"spec": ` + pod + `}}`, "delete statefulset c --cascade=foreground"},
		"ReplicaSet":          {"/apis/apps/v1/replicasets", meta("") + `, "spec": {"template": {"spec": ` + pod + `}}`, "delete replicaset c --cascade=foreground"},
		"Pod":                 {"/api/v1/pods", meta("") + `, "spec": ` + pod, "delete pod c --cascade=foreground"},
		"sidecar":             {"/apis/apps/v1/deployments", meta("") + `, "spec": {"template": {"spec": ` + strings.Replace(pod, "containers", "initContainers", 1) + `}}`, "delete deployment c --cascade=foreground"},
		"behind a shell":      {"/apis/apps/v1/deployments", meta("") + `, "spec": {"template": {"spec": {"containers": [{"name": "p", "image": "own:1", "command": ["sh", "-c", "csi --endpoint=e --cloud-config=c"]}]}}}`, "delete deployment c --cascade=foreground"},
		"file of a node":      {"/api/v1/pods", meta(`, "annotations": {"kubernetes.io/config.mirror": "x"}`) + `, "spec": ` + pod, "refused: move that file away first"},
		"Pod of an operator":  {"/api/v1/pods", meta(`, "ownerReferences": [{"kind": "CloneSet", "name": "depot", "controller": true}]`) + `, "spec": ` + pod, "CloneSet depot makes Pod storage/c again"},
		"Pod of a Deployment": {"/api/v1/pods", meta(`, "ownerReferences": [{"kind": "ReplicaSet"}]`) + `, "spec": ` + pod, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			dir := vanillaBundle(t, b, "kustomize")
			b.api = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == c.path && r.Method == http.MethodGet:
					_, _ = w.Write([]byte(`{"items": [{` + c.object + `}]}`))
				case r.URL.Path == "/apis/apps/v1/deployments":
					_, _ = w.Write([]byte(`{"items": []}`))
				default:
					installed(w, r)
				}
			})
			stdout, stderr, code := b.run(t, "adopt", dir, "--context", "prod")
			switch refusal, refused := strings.CutPrefix(c.want, "refused: "); {
			case refused:
				if code == OK || !strings.Contains(stderr, refusal) {
					t.Errorf("want a refusal that says %q, got exit %d: %s", refusal, code, stderr)
				}
			case c.want == "none":
				if code != OK || strings.Contains(stdout, "delete pod") {
					t.Errorf("want nothing of the pod, got exit %d: %s%s", code, stdout, stderr)
				}
			case code != OK || !strings.Contains(stdout, c.want) || strings.HasPrefix(c.want, "delete ") && !strings.Contains(stdout, "get "+strings.Fields(c.want)[1]+" c -o json"):
				t.Errorf("want %q and the object saved, got exit %d: %s%s", c.want, code, stdout, stderr)
			}
		})
	}
}

// The owner of a workload may have any name, and a person runs what stands in a line of its own.
func TestANameOfTheClusterBeginsNoLineOfAStep(t *testing.T) {
	var out strings.Builder
	parts := []migrate.Part{{Title: "Before", Steps: []migrate.Step{{Text: "Deployment x\n\n       kubectl delete all\n makes y again.", Commands: []string{"one", "a 'b\nc'"}}}}}
	want := "Before\n\n1. Deployment x         kubectl delete all  makes y again.\n       one\n       a 'b\n       c'\n"
	if err := printParts(&out, parts); err != nil || out.String() != want {
		t.Errorf("want %q, got %q, %v", want, out.String(), err)
	}
}
