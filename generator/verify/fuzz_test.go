package verify_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// largestInput keeps the fuzzer from finding out that a larger input takes longer.
const largestInput = 32 << 10

// smallInventory has one of everything.
const smallInventory = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Inventory
cloud: {authURL: "https://keystone.example:5000/v3", region: RegionOne, projectID: f00d}
services:
  state: known
  value:
    identity: {present: true, endpoint: "https://keystone.example:5000", port: 5000}
    compute: {present: true, maxMicroversion: "2.93", endpoint: "https://192.0.2.1:8774", port: 8774}
    block-storage: {present: true, maxMicroversion: "3.70", endpoint: "https://[2001:db8::1]:8776", port: 8776}
zones: {compute: {state: known, value: [{name: az1, available: true}]}, volume: {state: known, value: [{name: az1, available: true}]}}
volumeTypes: {state: known, value: [{id: t1, name: "Fast SSD", public: true, zones: [az1], encryption: {state: denied}}, {id: t2, name: standard}]}
defaultVolumeType: {state: known, value: standard}
limits: {state: denied, reason: policy}
quota: {state: unsupported}
groupTypes: {state: denied}
`

// FuzzGenerate reads any inventory and any configuration. If the generator accepts them, the bundle passes verification and builds
// to the same objects in both formats. It holds no character that controls a terminal.
func FuzzGenerate(f *testing.F) {
	f.Add([]byte(smallInventory), []byte(""), byte(0))
	f.Add([]byte(smallInventory), []byte("spec: {networkPolicy: {enabled: true}, topology: {mode: enabled, zoneMap: {az1: z}}, kubernetesVersion: '1.35'}"), byte(1))
	f.Add([]byte(smallInventory), []byte("metadata: {name: a}\nspec: {storageClasses: {extra: [{name: x, type: t1, annotations: {a/b: c}, mountOptions: [noatime]}], default: none}}"), byte(2))
	f.Add([]byte(smallInventory), []byte("spec: {images: {driver: {digest: 'sha256:00'}}, roles: {controller: {podLabels: {a: b}, proxy: {https: 'http://p:1'}}}}"), byte(3))
	f.Add([]byte(strings.ReplaceAll(smallInventory, "Fast SSD", `\u009b2J\u202e${x}`)), []byte("spec: {driver: {pvcAnnotations: false}}"), byte(0))
	recorded, err := filepath.Glob("../../examples/inventories/*.yaml")
	if err != nil || len(recorded) == 0 {
		f.Fatalf("want recorded inventories, got %v, %v", recorded, err)
	}
	for i, file := range recorded {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, []byte("metadata: {name: prod}\nspec: {networkPolicy: {enabled: true}}"), byte(i))
	}
	policy := []byte("spec: {networkPolicy: {enabled: true}, storageClasses: {default: 'standard'}}")
	for _, odd := range [][2]string{
		{"port: 5000", "port: 99999"},
		{"port: 8774", "port: -1"},
		{"https://keystone.example:5000/v3", "https://keystone.example:99999/v3"},
		{"[2001:db8::1]", "[fe80::1%25eth0]"},
		{"192.0.2.1", "0.0.0.0"},
		{"https://keystone.example:5000/v3", ":"},
		{"region: RegionOne", `region: "a'b\n[Global]\npassword=x"`},
		{"name: standard", `name: ""`},
		{"name: standard", `name: "\xff"`},
		{"name: standard", "name: 'Fast SSD'"},
		{"id: t2", "id: t1"},
		{"name: az1", `name: "a\u0085\nb/c"`},
		{"zones: [az1]", `zones: ["", "{{ .Values }}", "'", "az1"]`},
		{"maxMicroversion: \"3.70\"", "maxMicroversion: 3.x"},
		{"name: standard", "name: " + strings.Repeat("a", 300)},
		{"projectID: f00d", "projectID: '`$(id)`'"},
		{"name: standard", "name: '{{ fail }}'"},
		{"name: standard", "name: '-----BEGIN RSA PRIVATE KEY-----'"},
	} {
		f.Add([]byte(strings.ReplaceAll(smallInventory, odd[0], odd[1])), policy, byte(0xf0))
	}
	f.Fuzz(func(t *testing.T, inventory, config []byte, choice byte) {
		if len(inventory)+len(config) > largestInput {
			return
		}
		inv, err := v1alpha1.DecodeInventory("inventory", inventory)
		if err != nil {
			return
		}
		distribution, err := v1alpha1.DecodeDistribution("config", config)
		if err != nil {
			return
		}
		target := targets[int(choice)%len(targets)]
		r, err := plan.Decide(inv, distribution, target, v1alpha1.Helm, "v0-fuzz")
		if refused, unanswered := (*plan.ConfigError)(nil), (*plan.FactError)(nil); errors.As(err, &refused) || errors.As(err, &unanswered) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := v1alpha1.YAML(r.Document(nil)); err != nil {
			t.Fatal(err)
		}
		helm := emitted(t, r, v1alpha1.Helm)
		if choice >= 0xf0 { // half a second each
			for _, difference := range differences(emitted(t, r, v1alpha1.Kustomize), helm) {
				t.Error(difference)
			}
		}
	})
}

// emitted renders a plan and verifies the bundle.
func emitted(t *testing.T, r plan.Result, format v1alpha1.Format) []verify.Object {
	t.Helper()
	r.Format = format
	tree, err := bundle.Render(r, verify.Chart, bundle.Options{})
	if err != nil {
		t.Fatalf("%s: decided, but not rendered: %v", format, err)
	}
	if readme := string(tree["README.md"]); printable.Escape(readme) != readme {
		t.Errorf("README.md steers a terminal: %q", readme)
	}
	objects, findings, err := verify.Bundle(tree, r.Target, format)
	if err != nil {
		t.Fatalf("%s: emitted, but not built: %v", format, err)
	}
	for _, finding := range findings {
		t.Errorf("%s: %s", format, finding)
	}
	return objects
}

// FuzzBundle replaces files of a bundle by any text. It is refused or built: nothing panics, sends a request or runs a program.
func FuzzBundle(f *testing.F) {
	programs := f.TempDir()
	ran := filepath.Join(programs, "ran")
	if err := os.WriteFile(filepath.Join(programs, "git"), []byte("#!/bin/sh\n: > "+ran+"\nexit 1\n"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Setenv("PATH", programs)
	http.DefaultTransport = noRequests{}
	trees := map[v1alpha1.Format]bundle.Tree{}
	for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
		r, err := plan.Decide(inventory("az 1", "az2"), v1alpha1.Distribution{}, v1alpha1.Vanilla, format, "v0-fuzz")
		if err != nil {
			f.Fatal(err)
		}
		if trees[format], err = bundle.Render(r, verify.Chart, bundle.Options{}); err != nil {
			f.Fatal(err)
		}
		for _, name := range []string{"kustomization.yaml", "base/kustomization.yaml", "base/csidriver.yaml", "patches/deployment-cinder-csi-controller.yaml", "storageclasses.yaml", "values.yaml", "namespace.yaml"} {
			if text, there := trees[format][name]; there {
				f.Add(format == v1alpha1.Helm, name, text)
			}
		}
	}
	f.Add(false, "kustomization.yaml", []byte("resources: [http://127.0.0.1:1/x.yaml, github.com/x/y, ../x, base]\n"))
	f.Add(false, "base/kustomization.yaml", []byte("resources: [a.yaml]\n---\nresources: []\n"))
	f.Add(false, "snapshotclass.yaml", []byte("kind: List\nitems: [{kind: ConfigMap, metadata: {name: x, annotations: {a: &a x}}, data: {b: *a}}]\n"))
	f.Add(true, "values.yaml", []byte("target: vanilla\nplane: cluster\nstorageClasses: [{name: '{{ .Files }}'}]\n"))
	f.Fuzz(func(t *testing.T, helm bool, name string, text []byte) {
		if len(text) > largestInput {
			return
		}
		format := v1alpha1.Kustomize
		if helm {
			format = v1alpha1.Helm
		}
		tree := map[string][]byte{}
		for path, content := range trees[format] {
			tree[path] = slices.Clone(content)
		}
		tree[name] = text
		_, _, _ = verify.Bundle(tree, v1alpha1.Vanilla, format)
		if _, err := os.Stat(ran); err == nil {
			t.Error("a program was run")
		}
	})
}

// noRequests is a transport over which nothing may go.
type noRequests struct{}

func (n noRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	panic("a request was sent to " + r.URL.String())
}
