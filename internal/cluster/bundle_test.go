package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// bundleOf reads a bundle from YAML, one object each.
func bundleOf(t *testing.T, texts ...string) Bundle {
	t.Helper()
	var objects []map[string]any
	for _, text := range texts {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	b, err := ReadBundle(objects)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A pod does not start without a Secret unless its volume says optional: true. Kubernetes takes optional: false as it takes nothing.
func TestABundleNeedsEverySecretThatIsNotOptional(t *testing.T) {
	b := bundleOf(t, `
kind: Deployment
metadata: {name: controller, namespace: ns}
spec:
  template:
    spec:
      volumes:
      - {name: a, secret: {secretName: unsaid}}
      - {name: b, secret: {secretName: needed, optional: false, items: [{key: clouds.yaml, path: clouds.yaml}, {key: ca.crt, path: ca.crt}]}}
      - {name: c, secret: {secretName: optional, optional: true}}
      - {name: d, configMap: {name: no-secret}}
      - name: e
        projected:
          sources:
          - secret: {name: projected, items: [{key: clouds.yaml, path: clouds.yaml}]}
          - secret: {name: projected, items: [{key: cacert, path: cacert}], optional: true}
`, `
kind: CronJob
metadata: {name: check, namespace: ns}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: checker}], volumes: [{name: a, secret: {secretName: reader}}]}}}}}
`)
	if diff := cmp.Diff([]string{"checker"}, b.Images()); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	want := []SecretRef{
		{Namespace: "ns", Name: "unsaid"},
		{Namespace: "ns", Name: "needed", Keys: []string{"clouds.yaml", "ca.crt"}},
		{Namespace: "ns", Name: "projected", Keys: []string{"clouds.yaml"}},
		{Namespace: "ns", Name: "reader"},
	}
	if diff := cmp.Diff(want, b.Secrets()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Only the value "true" of the annotation makes a class the default (Kubernetes, "Changing the default StorageClass").
func TestTheDefaultClassesOfABundleAreThoseThatSayTrue(t *testing.T) {
	class := func(name, annotations string) string {
		return "{kind: StorageClass, provisioner: p, metadata: {name: " + name + ", annotations: " + annotations + "}}"
	}
	b := bundleOf(t,
		class("one", `{storageclass.kubernetes.io/is-default-class: "true"}`), class("off", `{storageclass.kubernetes.io/is-default-class: "false"}`),
		class("none", "{}"), class("two", `{storageclass.kubernetes.io/is-default-class: "true"}`))
	if diff := cmp.Diff([]string{"one", "two"}, b.DefaultClasses()); diff != "" || len(b.StorageClasses) != 4 {
		t.Errorf("of %d classes (-want +got):\n%s", len(b.StorageClasses), diff)
	}
}

func TestTheDirectoryOfKubeletIsThatOfTheWorkloadThatMountsItsRegistry(t *testing.T) {
	workload := func(kind, path string) string {
		return "{kind: " + kind + ", metadata: {name: w, namespace: ns}, spec: {template: {spec: {volumes: [{name: a, hostPath: {path: " + path + "}}]}}}}"
	}
	for name, test := range map[string]struct {
		objects []string
		want    string
	}{
		"a controller and a node": {[]string{workload("Deployment", "/etc/ssl"), workload("DaemonSet", "/var/snap/kubelet/plugins_registry/")}, "/var/snap/kubelet"},
		"a controller alone":      {[]string{workload("Deployment", "/etc/ssl")}, ""},
		"no workload":             {nil, ""},
	} {
		if got := bundleOf(t, test.objects...).KubeletDir(); got != test.want {
			t.Errorf("%s: want %q, got %q", name, test.want, got)
		}
	}
}
