package verify_test

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

func TestAPatchThatMatchedNothingIsFound(t *testing.T) {
	for _, c := range []struct{ name, file, old, replacement, want string }{
		{
			"a misspelt name in the bundle", "driver/kustomization.yaml", "name: cinder-csi-controller\n", "name: cinder-csi-controler\n",
			"driver/kustomization.yaml: patches: patches/controller.yaml matches no object: its target is Deployment cinder-csi-controler; correct the target",
		},
		{
			"another kind", "driver/kustomization.yaml", "kind: DaemonSet", "kind: StatefulSet",
			"patches/node.yaml matches no object: its target is StatefulSet cinder-csi-node",
		},
		{
			"in a component", "driver/components/snapshots-controller/kustomization.yaml", "name: cinder-csi-controller", "name: controller",
			"driver/components/snapshots-controller/kustomization.yaml: patches: snapshotter.yaml matches no object",
		},
		{
			"a misspelt name of an object that the patch renames", "driver/kustomization.yaml", "name: cinder-csi-attacher\n", "name: cinder-csi-attach\n",
			"patches/name-clusterrole-attacher.yaml matches no object: its target is ClusterRole cinder-csi-attach;",
		},
		{
			"a label that no object has", "driver/kustomization.yaml", "app.kubernetes.io/component=controller", "app.kubernetes.io/component=controllers",
			"with labels app.kubernetes.io/component=controllers",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := v1alpha1.Spec{Namespaces: v1alpha1.Namespaces{Controller: "storage"}, Driver: v1alpha1.Driver{Name: "west.example.com"}}
			r := decide(t, spec, inventory("nova"), v1alpha1.Vanilla)
			tree := render(t, r, v1alpha1.Kustomize)
			before := string(tree[c.file])
			tree[c.file] = []byte(strings.Replace(before, c.old, c.replacement, 1))
			if string(tree[c.file]) == before {
				t.Fatalf("%s does not contain %q:\n%s", c.file, c.old, before)
			}
			_, findings, err := verify.Bundle(tree, r.Target, v1alpha1.Kustomize)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, f := range findings {
				said = append(said, f.String())
			}
			if !strings.Contains(strings.Join(said, "\n"), c.want) {
				t.Errorf("want a finding with %q, got:\n%s", c.want, strings.Join(said, "\n"))
			}
		})
	}
}
