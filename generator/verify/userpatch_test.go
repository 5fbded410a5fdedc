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

// What people write above a bundle, by the kinds of Kustomize. Each builds and keeps the names that are data elsewhere, or it fails. The README of
// the bundle names those that change such names.
func TestWhatAKustomizationAboveABundleMayDo(t *testing.T) {
	const settings = "cinder-csi-node-settings"
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone} {
		r := decide(t, v1alpha1.Spec{}, clouds["topology on"], target)
		tree := render(t, r, v1alpha1.Kustomize)
		for above, works := range map[string]bool{
			"labels: [{pairs: {team: storage}, includeSelectors: true, includeTemplates: true}]": true,
			"commonLabels: {team: storage}":                                              true,
			"commonAnnotations: {team: storage}":                                         true,
			"images: [{name: registry.k8s.io/sig-storage/csi-attacher, newTag: v9.9.9}]": true,
			"replicas: [{name: cinder-csi-controller, count: 3}]":                        true,
			"patches: [{target: {kind: Deployment}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/labels/a\", \"value\": \"b\"}]'}]":                            true,
			"patches: [{target: {kind: ConfigMap, name: " + settings + "}, patch: '[{\"op\": \"add\", \"path\": \"/data/DRIVER_LOG_LEVEL\", \"value\": \"5\"}]'}]": true,
			"replacements: [{source: {kind: CSIDriver, fieldPath: metadata.name}, targets: [{select: {kind: StorageClass}, fieldPaths: [provisioner]}]}]":          true,
			"buildMetadata: [originAnnotations]": true,
			"namePrefix: prod-":                  false,
			"nameSuffix: -prod":                  false,
			"namespace: storage":                 false,
			"configMapGenerator: [{name: " + settings + ", behavior: merge, literals: [DRIVER_LOG_LEVEL=5]}]": false,
		} {
			files := filesys.MakeFsInMemory()
			for name, text := range tree {
				if err := files.WriteFile("/bundle/"+name, text); err != nil {
					t.Fatal(err)
				}
			}
			if err := files.WriteFile("/mine/kustomization.yaml", []byte("resources: [../bundle]\n"+above+"\n")); err != nil {
				t.Fatal(err)
			}
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/mine")
			if err != nil {
				if works {
					t.Errorf("%s: %s: %v", target, above, err)
				}
				continue
			}
			keeps := true
			for _, o := range built.Resources() {
				keeps = keeps && (o.GetKind() != "CSIDriver" || o.GetName() == r.Driver.Value) && (o.GetKind() != "ConfigMap" || !strings.HasPrefix(o.GetName(), settings+"-"))
			}
			if keeps != works {
				t.Errorf("%s: %s: names are kept: %t, want %t", target, above, keeps, works)
			}
		}
		readme := string(tree["README.md"])
		for _, says := range []string{"`images`, `replicas` and `labels` work", "`namePrefix`, `nameSuffix` and `namespace` do not", "If you patch a ConfigMap"} {
			if !strings.Contains(readme, says) {
				t.Errorf("%s: the README does not say %q", target, says)
			}
		}
	}
}

// The README of a bundle shows a change of one's own: pasted, it adds one toleration and keeps the others, also where there is none.
func TestTheExampleOfTheReadmeAddsOneToleration(t *testing.T) {
	for _, target := range targets {
		addsOneToleration(t, target, v1alpha1.Spec{}, 1)
		addsOneToleration(t, target, v1alpha1.Spec{Roles: v1alpha1.Roles{Controller: v1alpha1.RolePods{Tolerations: []v1alpha1.Toleration{}}}}, 0)
	}
}

func addsOneToleration(t *testing.T, target v1alpha1.Target, spec v1alpha1.Spec, least int) {
	t.Helper()
	tree := render(t, decide(t, spec, clouds["topology on"], target), v1alpha1.Kustomize)
	_, example, _ := strings.Cut(string(tree["README.md"]), "```yaml\nresources:")
	example, _, _ = strings.Cut(example, "\n```\n")
	files := filesys.MakeFsInMemory()
	for name, text := range tree {
		if err := files.WriteFile("/cinder-csi/"+name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.WriteFile("/mine/kustomization.yaml", []byte("resources:"+example)); err != nil {
		t.Fatal(err)
	}
	tolerations := func(dir string) int {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		for _, o := range built.Resources() {
			if o.GetKind() == "Deployment" {
				list, _ := o.GetSlice("spec.template.spec.tolerations") // an error: it has none
				return len(list)
			}
		}
		return -1
	}
	bundle := "/cinder-csi"
	if target == v1alpha1.HostedControlPlane {
		bundle += "/management"
	}
	if before, after := tolerations(bundle), tolerations("/mine"); before < least || after != before+1 {
		t.Errorf("%s: %d tolerations become %d", target, before, after)
	}
}
