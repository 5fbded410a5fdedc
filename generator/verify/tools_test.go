//go:build render

package verify_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/switches"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// tool runs helm or kubectl as `make tools` built it, offline and without anybody's settings.
func tool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	path, err := filepath.Abs("../../bin/tools/" + name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/dev/null", "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1"}
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v (built by `make tools`)\n%s", name, args, err, messages.String())
	}
	return out.Bytes()
}

// onDisk writes a tree as `generate` does, and gives its directory.
func onDisk(t *testing.T, tree bundle.Tree) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tree {
		file := filepath.Join(dir, filepath.FromSlash(name))
		testfile.Write(t, file, text, 0o644)
	}
	return dir
}

var planes = map[v1alpha1.Target]map[string]string{
	v1alpha1.Vanilla:            {"cluster": "."},
	v1alpha1.Standalone:         {"cluster": "."},
	v1alpha1.HostedControlPlane: {"management": "management", "guest": "guest"},
}

func decode(t *testing.T, text []byte, plane string) []verify.Object {
	t.Helper()
	objects, err := verify.Decode(text, plane)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func kubectlKustomize(t *testing.T, dir string, target v1alpha1.Target) (all []verify.Object) {
	for plane, below := range planes[target] {
		all = append(all, decode(t, tool(t, "kubectl", "kustomize", filepath.Join(dir, below)), plane)...)
	}
	return all
}

func helmTemplate(t *testing.T, helm, dir string, target v1alpha1.Target) (all []verify.Object) {
	for plane, below := range planes[target] {
		values := filepath.Join(dir, below, "values.yaml")
		// Neither the release's name nor its namespace may matter.
		all = append(all, decode(t, tool(t, helm, "template", "some-release", "../../charts/cinder-csi", "-f", values, "-n", "some-namespace", "--skip-tests"), plane)...)
		if text, err := os.ReadFile(filepath.Join(dir, below, "namespace.yaml")); err == nil {
			all = append(all, decode(t, text, plane)...)
		}
	}
	return all
}

// pairwiseTools adds every pair of switches to the specs of the tests: minutes instead of seconds.
var pairwiseTools = flag.Bool("pairwise", false, "compare the tools over every pair of switches too")

func TestToolsGiveTheObjectsThatWereVerifiedInProcess(t *testing.T) {
	for _, target := range targets {
		results := map[string]plan.Result{}
		for name, spec := range specs() {
			results[name] = decide(t, spec, clouds["topology on"], target)
		}
		if *pairwiseTools {
			for n, r := range switches.Rows() {
				results[fmt.Sprint(n)], _ = configure(t, r, target, map[string]bool{})
			}
		}
		for name, r := range results {
			t.Run(fmt.Sprintf("%s/%s", name, target), func(t *testing.T) {
				t.Parallel()
				compareTools(t, r, target)
			})
		}
	}
}

// compareTools compares what was built in process with what kubectl, Helm 3 and Helm 4 make of the bundle on disk.
func compareTools(t *testing.T, r plan.Result, target v1alpha1.Target) {
	t.Helper()
	want := build(t, r, v1alpha1.Kustomize)
	byKubectl := kubectlKustomize(t, onDisk(t, render(t, r, v1alpha1.Kustomize)), target)
	for _, d := range differences(want, byKubectl) {
		t.Errorf("in process (kustomize) and kubectl kustomize (helm): %s", d)
	}
	helmDir := onDisk(t, render(t, r, v1alpha1.Helm))
	for _, helm := range []string{"helm", "helm4"} {
		for _, d := range differences(byKubectl, helmTemplate(t, helm, helmDir, target)) {
			t.Errorf("kubectl kustomize and %s template: %s", helm, d)
		}
	}
}

func TestToolsBuildABundleThatPointsAtACheckout(t *testing.T) {
	checkout, err := filepath.Abs("../../manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		spec := v1alpha1.Spec{Monitoring: v1alpha1.Monitoring{Kind: v1alpha1.PodMonitor}}
		if target == v1alpha1.HostedControlPlane {
			spec.Namespaces.Controller = "clusters-example" // a base has the default names
		}
		r := decide(t, spec, clouds["topology on"], target)
		dir := onDisk(t, render(t, r, v1alpha1.Kustomize))
		relative, err := filepath.Rel(filepath.Join(dir, ".."), checkout)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := bundle.Render(r, verify.Chart, bundle.Options{Base: filepath.ToSlash(filepath.Join("..", relative))})
		if err != nil {
			t.Fatal(err)
		}
		beside := filepath.Join(filepath.Dir(dir), "beside")
		if err := os.CopyFS(beside, os.DirFS(onDisk(t, tree))); err != nil {
			t.Fatal(err)
		}
		for _, d := range differences(build(t, r, v1alpha1.Kustomize), kubectlKustomize(t, beside, target)) {
			t.Errorf("%s: self-contained (kustomize) and with a base (helm): %s", target, d)
		}
		if err := os.RemoveAll(beside); err != nil {
			t.Fatal(err)
		}
	}
}

func TestToolsBuildTheManifestsByHand(t *testing.T) {
	for _, dir := range []string{"vanilla", "standalone", "hypershift/management", "hypershift/guest"} {
		if objects := decode(t, tool(t, "kubectl", "kustomize", "../../manifests/"+dir), dir); len(objects) == 0 {
			t.Errorf("%s: no objects", dir)
		}
	}
}
