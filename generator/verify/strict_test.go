//go:build strict

package verify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/switches"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// strict runs test/kit/strict, as `make test-strict` built it, on files.
func strict(t *testing.T, files ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../bin/tools/strict", append([]string{"-crds", "../../bin/crds"}, files...)...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		t.Errorf("%v (built by make test-strict)\n%s%s", err, messages.String(), out.String())
	}
	return out.String()
}

// asFile writes objects as a stream of JSON documents.
func asFile(t *testing.T, name string, objects []verify.Object) string {
	t.Helper()
	var text bytes.Buffer
	for _, o := range objects {
		document, err := json.Marshal(o.Fields)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s\n", document)
	}
	file := filepath.Join(t.TempDir(), name+".yaml")
	testfile.Write(t, file, text.Bytes(), 0o644)
	return file
}

func TestTheAPIServerAcceptsEveryObjectOfEverySwitch(t *testing.T) {
	var files []string
	for _, target := range targets {
		for n, r := range switches.Rows() {
			result, _ := configure(t, r, target, map[string]bool{})
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				files = append(files, asFile(t, fmt.Sprintf("%s-%s-%d", target, format, n), build(t, result, format)))
			}
		}
	}
	t.Logf("measured: %d bundles, %s", len(files), strict(t, files...))
}

func TestTheAPIServerAcceptsTheExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/workloads/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	strict(t, append([]string{"-namespace", "default"}, files...)...)
}

// TestTheAPIServerRefusesWhatIsWrong keeps the test above from passing because nothing is checked.
func TestTheAPIServerRefusesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ object, want string }{
		"an unknown field":             {`{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "b"}, "secret": []}`, `unknown field "secret"`},
		"an invalid value":             {`{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "a"}, "provisioner": "x", "reclaimPolicy": "Keep"}`, "reclaimPolicy"},
		"an unknown kind":              {`{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a"}}`, "no kind"},
		"an unknown field of a CRD":    {`{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "a"}, "driver": "x", "deletionPolicy": "Delete", "params": {}}`, "unknown fields: params"},
		"an invalid value of a CRD":    {`{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "a"}, "driver": "x", "deletionPolicy": "Keep"}`, "deletionPolicy"},
		"a missing field of a CRD":     {`{"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": {"name": "a", "namespace": "b"}, "spec": {"podMetricsEndpoints": []}}`, "spec.selector: Required"},
		"a rule of a CRD (CEL)":        {`{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "a", "namespace": "b"}, "spec": {"source": {"persistentVolumeClaimName": "x", "volumeSnapshotContentName": "y"}}}`, "spec.source"},
		"a namespace that is missing":  {`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`, "a namespace is missing"},
		"a namespace that is too much": {`{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "a", "namespace": "b"}, "spec": {}}`, "too much"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "object.yaml")
			testfile.Write(t, file, c.object, 0o644)
			out, err := exec.CommandContext(t.Context(), "../../bin/tools/strict", "-crds", "../../bin/crds", file).CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte(c.want)) {
				t.Errorf("want exit 1 and %q, got %v:\n%s", c.want, err, out)
			}
		})
	}
}
