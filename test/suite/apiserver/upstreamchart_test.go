//go:build apiserver

package apiserver

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// The Helm lines of the page, and its other steps with the names that the workloads have in the chart of upstream.
// --take-ownership is for bundles whose classes have the names of the old ones; here no object is in both.
func TestTheChartOfUpstreamIsReplacedByTheStepsOfTheHowTo(t *testing.T) {
	dir := upstream(t)
	s := startServer(t)
	text := testfile.Read(t, filepath.Join(s.Repo, "docs/how-to/replace-upstream.md"))
	g := guide{s, string(text)}
	s.run(t, "helm", "install", "upstream", filepath.Join(dir, "charts/cinder-csi-plugin"), "--namespace", "kube-system", "--set", "clusterID=prod-1,csi.plugin.nodePlugin.kubeletDir=/var/lib/k0s/kubelet")
	before := s.objects(t)

	s.shell(t, strings.NewReplacer("RELEASE", "upstream", "bin/cinder-csi-generator", "cinder-csi-generator").Replace(g.blockWith(t, "The configuration", "helm get values")))
	config := testfile.Read(t, s.Path("distribution.yaml"))
	for _, want := range []string{"prod-1", "/var/lib/k0s/kubelet"} {
		if !strings.Contains(string(config), want) {
			t.Errorf("import drops %s of the values:\n%s", want, config)
		}
	}
	names := []string{"csi-cinder-controllerplugin", "openstack-cinder-csi-controllerplugin", "csi-cinder-nodeplugin", "openstack-cinder-csi-nodeplugin"}
	for _, name := range []string{names[1], names[3]} {
		if !strings.Contains(g.text, name) {
			t.Errorf("the page does not name %s", name)
		}
	}
	g.mustBlock(t, "Before anything stops", "upstream-controller.json", names...)
	s.run(t, "cinder-csi-generator", "generate", "--simulated", "--config", "distribution.yaml", "--target", "vanilla", "--format", "helm", "--output-dir", "deploy/cinder-csi")
	bundle := testfile.Text(t, s.Path("deploy/cinder-csi/README.md"))
	i := installation{server: s, dir: s.Path("deploy/cinder-csi"), readme: bundle}
	i.follow(t, "The credentials")
	g.mustBlock(t, "Before anything stops", "delete secret", "RELEASE", "upstream")
	g.mustBlock(t, "The swap", "delete deployment", names...)
	s.shell(t, "helm upgrade --install cinder-csi charts/cinder-csi --namespace cinder-csi -f deploy/cinder-csi/values.yaml --take-ownership")
	g.mustBlock(t, "The swap", "get csinode")

	after := s.objects(t)
	checkSwapped(t, before, after, "openstack-cinder-csi-controllerplugin", "openstack-cinder-csi-nodeplugin")
	for _, name := range []string{"StorageClass /csi-cinder-sc-delete", "StorageClass /csi-cinder-sc-retain"} {
		if diff := cmp.Diff(before[name], after[name]); before[name] == nil || diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", name, diff)
		}
	}
}
