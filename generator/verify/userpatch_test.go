package verify_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// A person patches a bundle from outside: names are stable, so the patches hold over the next generate.
func TestAPersonPatchesABundleFromOutside(t *testing.T) {
	level := 5
	for _, spec := range []v1alpha1.Spec{{}, {Driver: v1alpha1.Driver{LogLevel: &level}}} {
		tree := render(t, decide(t, spec, clouds["topology on"], v1alpha1.Vanilla), v1alpha1.Kustomize)
		files := filesys.MakeFsInMemory()
		for name, text := range tree {
			if err := files.WriteFile("/bundle/"+name, text); err != nil {
				t.Fatal(err)
			}
		}
		err := files.WriteFile("/mine/kustomization.yaml", []byte(`resources: [../bundle]
replicas: [{name: cinder-csi-controller, count: 3}]
images: [{name: registry.k8s.io/sig-storage/csi-attacher, newName: mirror.example/csi-attacher}]
patches:
- target: {kind: DaemonSet, name: cinder-csi-node}
  patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: cinder-csi-node}
    spec: {template: {spec: {containers: [{name: driver, env: [{name: MINE, value: "yes"}]}]}}}
- target: {kind: StorageClass, name: standard}
  patch: |
    - {op: add, path: /metadata/labels/team, value: storage}
- target: {kind: VolumeSnapshotClass}
  patch: |
    $patch: delete
    apiVersion: snapshot.storage.k8s.io/v1
    kind: VolumeSnapshotClass
    metadata: {name: any}
`))
		if err != nil {
			t.Fatal(err)
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/mine")
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"replicas: 3\n", "image: mirror.example/csi-attacher:v4.13.0", "name: MINE\n", "team: storage\n"} {
			if strings.Count(string(text), want) != 1 {
				t.Errorf("want one %q", want)
			}
		}
		if strings.Contains(string(text), "kind: VolumeSnapshotClass") {
			t.Error("the class was not removed")
		}
	}
}

// The README of a bundle says what Kustomize's transformers make of it. The name of the driver stands in settings and classes, where none of them
// changes it.
func TestTransformersThatRenameObjectsAreNotForABundle(t *testing.T) {
	tree := render(t, decide(t, v1alpha1.Spec{}, clouds["topology on"], v1alpha1.Vanilla), v1alpha1.Kustomize)
	for transformer, works := range map[string]bool{
		"labels: [{pairs: {team: storage}, includeSelectors: true, includeTemplates: true}]": true, "commonAnnotations: {team: storage}": true,
		"namePrefix: prod-": false, "nameSuffix: -prod": false, "namespace: storage": false,
	} {
		files := filesys.MakeFsInMemory()
		for name, text := range tree {
			if err := files.WriteFile("/bundle/"+name, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := files.WriteFile("/mine/kustomization.yaml", []byte("resources: [../bundle]\n"+transformer+"\n")); err != nil {
			t.Fatal(err)
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/mine")
		if err != nil {
			if works {
				t.Errorf("%s: %v", transformer, err)
			}
			continue
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		if keeps := strings.Contains(string(text), "kind: CSIDriver\nmetadata:") && strings.Contains(string(text), "\n  name: cinder.csi.openstack.org\n"); keeps != works {
			t.Errorf("%s: the CSIDriver keeps its name: %v, want %v", transformer, keeps, works)
		}
	}
	if !strings.Contains(string(tree["README.md"]), "`namePrefix`, `nameSuffix` and `namespace` do not") {
		t.Error("the README does not say it")
	}
}
