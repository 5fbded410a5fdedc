//go:build apiserver

package apiserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const upstreamRepository = "https://github.com/kubernetes/cloud-provider-openstack"

// upstream gives the directory of a checkout of upstream: UPSTREAM, or a clone for this test.
func upstream(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("UPSTREAM"); dir != "" {
		return dir
	}
	dir := filepath.Join(t.TempDir(), "upstream")
	if out, err := exec.Command("git", "clone", "--quiet", "--depth=1", upstreamRepository, dir).CombinedOutput(); err != nil {
		t.Skipf("upstream cannot be fetched; set UPSTREAM to a checkout of %s: %v\n%s", upstreamRepository, err, out)
	}
	return dir
}

// guide is a how-to whose code blocks are run as they stand.
type guide struct {
	*server
	text string
}

// blockWith is the code block of a section that has a text.
func (g guide) blockWith(t *testing.T, section, has string) string {
	t.Helper()
	block := testenv.Value(readme.BlockWith(g.text, section, has))(t)
	return block
}

// block runs the code block of a section that has a text, with replacements in pairs, and gives the error output.
func (g guide) block(t *testing.T, section, has string, replace ...string) (string, error) {
	t.Helper()
	script := strings.NewReplacer(replace...).Replace(g.blockWith(t, section, has))
	_, messages, err := g.Try("bash", "-eo", "pipefail", "-c", script)
	return messages, err
}

func (g guide) mustBlock(t *testing.T, section, has string, replace ...string) {
	t.Helper()
	if messages, err := g.block(t, section, has, replace...); err != nil {
		t.Fatalf("section %q, the block with %q: %v\n%s", section, has, err, messages)
	}
}

// upstreamClass is a class as users of upstream have it: the default one.
const upstreamClass = `{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "csi-cinder", "annotations":
{"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "cinder.csi.openstack.org", "parameters": {"availability": "nova"}}`

func TestUpstreamIsReplacedByTheStepsOfTheHowToAndBack(t *testing.T) {
	dir := upstream(t)
	s := startServer(t)
	text := testfile.Text(t, filepath.Join(s.Repo, "docs/how-to/replace-upstream.md"))
	g := guide{s, text}
	s.run(t, "kubectl", "create", "-f", filepath.Join(dir, "manifests/cinder-csi-plugin"))
	s.Write(t, "class.json", upstreamClass)
	s.run(t, "kubectl", "create", "-f", "class.json")
	before := s.objects(t)

	// doctor ends with 1 while upstream's plugin is installed, and needs the configuration of the next section.
	g.mustBlock(t, "Check first", "kubectl get pv", "bin/cinder-csi-generator doctor --os-cloud mycloud --config distribution.yaml", "")
	s.Write(t, "distribution.yaml", g.blockWith(t, "The configuration", "kind: Distribution"))
	g.mustBlock(t, "Before anything stops", "upstream-controller.json")
	g.mustBlock(t, "Before anything stops", "generate --os-cloud", "bin/cinder-csi-generator", "cinder-csi-generator", "--os-cloud mycloud", "--simulated")
	bundle := testfile.Text(t, s.Path("deploy/cinder-csi/README.md"))
	i := installation{server: s, dir: s.Path("deploy/cinder-csi"), readme: bundle}
	i.follow(t, "The credentials")
	if messages, err := g.block(t, "Before anything stops", "--dry-run=server"); err != nil && strings.Count(messages, "Error") != strings.Count(messages, "The CSIDriver ") {
		t.Errorf("the dry run refuses more than the CSIDriver:\n%s", messages)
	}
	g.mustBlock(t, "Before anything stops", "delete secret")

	begin := time.Now()
	g.mustBlock(t, "The swap", "delete deployment")
	g.mustBlock(t, "The swap", "kubectl apply")
	swap := time.Since(begin)
	g.mustBlock(t, "The swap", "get csinode")
	after := s.objects(t)
	checkSwapped(t, before, after, "csi-cinder-controllerplugin", "csi-cinder-nodeplugin")
	if diff := cmp.Diff(before["StorageClass /csi-cinder"], after["StorageClass /csi-cinder"]); diff != "" {
		t.Errorf("the class of upstream was changed (-before +after):\n%s", diff)
	}
	if cmp.Equal(before["CSIDriver /cinder.csi.openstack.org"], after["CSIDriver /cinder.csi.openstack.org"]) {
		t.Error("the CSIDriver is still that of upstream")
	}

	begin = time.Now()
	g.mustBlock(t, "The way back", "kubectl create -f")
	back := time.Since(begin)
	restored := s.objects(t)
	for name, want := range before {
		if diff := cmp.Diff(want, restored[name]); diff != "" {
			t.Errorf("%s is not as before the swap (-before +restored):\n%s", name, diff)
		}
	}
	t.Logf("measured: upstream replaced in %.1f s, and back in %.1f s", swap.Seconds(), back.Seconds())
}

// checkSwapped compares the workloads before and after a swap: those of upstream are gone, those of the bundle are there.
func checkSwapped(t *testing.T, before, after map[string]map[string]any, deployment, daemonSet string) {
	t.Helper()
	for _, name := range []string{"Deployment kube-system/" + deployment, "DaemonSet kube-system/" + daemonSet} {
		if before[name] == nil || after[name] != nil {
			t.Errorf("%s: want it before the swap and not after it", name)
		}
	}
	for _, name := range []string{"Deployment cinder-csi/cinder-csi-controller", "DaemonSet cinder-csi-node/cinder-csi-node"} {
		if after[name] == nil {
			t.Errorf("%s: want it after the swap", name)
		}
	}
}

// objects are what the swap is about, without what the API server adds.
func (s *server) objects(t *testing.T) map[string]map[string]any {
	t.Helper()
	var read struct{ Items []map[string]any }
	text := s.run(t, "kubectl", "get", "deployments,statefulsets,daemonsets,csidrivers,storageclasses,clusterroles,clusterrolebindings,serviceaccounts", "--all-namespaces", "-o", "json")
	testenv.Must(t, json.Unmarshal([]byte(text), &read))
	all := map[string]map[string]any{}
	for _, item := range read.Items {
		metadata, _ := item["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
			delete(metadata, key)
		}
		delete(item, "status")
		kind, _ := item["kind"].(string)
		name, _ := metadata["name"].(string)
		all[kind+" "+namespace+"/"+name] = item
	}
	return all
}
