//go:build render

package charts_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// valuesFiles are the values of the examples, and one file with every value.
func valuesFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../overlays/*/helm/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	planes, err := filepath.Glob("../overlays/*/helm/*/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, planes...)
	if want := 4; len(files) != want {
		t.Fatalf("want %d values files in overlays/, found %q", want, files)
	}
	file := filepath.Join(t.TempDir(), "every-value.yaml")
	text, err := yaml.Marshal(everyValue(t))
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, file, text, 0o644)
	least := filepath.Join(t.TempDir(), "least.yaml")
	testfile.Write(t, least, ownImages, 0o644)
	return append(files, least, file)
}

// tool runs a program of `make tools`, offline and without the settings of a user. Its error holds what the program printed.
func tool(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../bin/tools/"+name, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/dev/null", "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1"}
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), messages.String())
	}
	return out.String(), err
}

func TestToolsFindNoProblemInTheChart(t *testing.T) {
	for _, helm := range []string{"helm", "helm4"} {
		for _, file := range valuesFiles(t) {
			if _, err := tool(t, helm, "lint", "--strict", "cinder-csi", "-f", file); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestToolsHelm3AndHelm4WriteTheSameObjects(t *testing.T) {
	for _, file := range valuesFiles(t) {
		byVersion := map[string][]verify.Object{}
		for _, helm := range []string{"helm", "helm4"} {
			text, err := tool(t, helm, "template", "any", "cinder-csi", "-n", "any-namespace", "-f", file)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := verify.Decode([]byte(text), "")
			if err != nil {
				t.Fatal(err)
			}
			byVersion[helm] = decoded
		}
		if len(byVersion["helm"]) < 5 {
			t.Errorf("%s: want at least 5 objects, got %d", file, len(byVersion["helm"]))
		}
		if diff := cmp.Diff(byVersion["helm"], byVersion["helm4"]); diff != "" {
			t.Errorf("%s: helm 3 (-) and helm 4 (+):\n%s", file, diff)
		}
	}
}

func TestToolsRefuseAnOlderKubernetes(t *testing.T) {
	for _, helm := range []string{"helm", "helm4"} {
		if _, err := tool(t, helm, "template", "any", "cinder-csi", "--kube-version", "1.27.0", "--set", "images.registry=mirror.example"); err != nil {
			t.Errorf("want Kubernetes 1.27 accepted, got %v", err)
		}
		_, err := tool(t, helm, "template", "any", "cinder-csi", "--kube-version", "1.26.9", "--set", "images.registry=mirror.example")
		if err == nil || !strings.Contains(err.Error(), "chart requires kubeVersion: >= 1.27.0-0") || !strings.Contains(err.Error(), "1.26.9") {
			t.Errorf("%s: want Kubernetes 1.26.9 refused for its version, got %v", helm, err)
		}
	}
}

func TestToolsReadmeHasTheCommentsOfTheValues(t *testing.T) {
	want, err := tool(t, "helm-docs", "--chart-search-root", ".", "--sort-values-order", "file", "--badge-style", "flat", "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	got := testfile.Text(t, "cinder-csi/README.md")
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
		t.Errorf("README.md is not current; run `make chart-docs`:\n%s", diff)
	}
}
