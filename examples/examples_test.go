// Package examples holds files to start from. Every one of them is checked here.
package examples

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// kinds are what a workload example may hold.
var kinds = map[string]func() any{
	"PersistentVolumeClaim": func() any { return &corev1.PersistentVolumeClaim{} },
	"Pod":                   func() any { return &corev1.Pod{} },
	"StatefulSet":           func() any { return &appsv1.StatefulSet{} },
}

// targetOf says what each configuration is an example for.
var targetOf = map[string]v1alpha1.Target{
	"drift-check.yaml": v1alpha1.Vanilla,
	"minimal.yaml":     v1alpha1.Vanilla,
	"production.yaml":  v1alpha1.Vanilla,
	"zones.yaml":       v1alpha1.Vanilla,
	"openshift.yaml":   v1alpha1.Standalone,
	"hypershift.yaml":  v1alpha1.HostedControlPlane,
}

// elsewhere are the files that test/suite/examples checks, and the tutorial for the script.
var elsewhere = map[string]bool{
	"gitops/argocd/application.yaml": true, "gitops/argocd/drift-health.yaml": true, "gitops/argocd/applicationset.yaml": true, "gitops/argocd/hypershift.yaml": true, "gitops/flux/cinder-csi.yaml": true,
	"gitops/pipelines/drift.sh": true, "gitops/pipelines/github-actions.yaml": true, "gitops/pipelines/gitlab-ci.yml": true,
	"terraform/application-credentials.tf": true,
}

func TestEveryFileIsChecked(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || filepath.Ext(path) == ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch dir := filepath.Dir(path); dir {
		case "distribution":
			checkDistribution(t, path, text)
		case "workloads":
			checkWorkload(t, path, text)
		case "clouds", "inventories": // TestEveryInventoryMakesABundle reads them
			if _, ok := inventories[strings.TrimSuffix(entry.Name(), ".yaml")]; !ok && entry.Name() != "README.md" {
				t.Errorf("%s: add it to the inventories in this package", path)
			}
		case "gitops/argocd", "gitops/flux", "gitops/pipelines", "terraform":
			// test/suite/examples has the linters and schemas of these formats, and the tutorial runs the script. Here only: a file that nobody knows.
			if !elsewhere[filepath.ToSlash(path)] {
				t.Errorf("%s: add it to test/suite/examples, and to the list in this test", path)
			}
		default:
			t.Errorf("%s: nothing here checks files of %s", path, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkDistribution(t *testing.T, path string, text []byte) {
	config, err := v1alpha1.DecodeDistribution(path, text)
	if err != nil {
		t.Error(err)
		return
	}
	target, ok := targetOf[filepath.Base(path)]
	if !ok {
		t.Errorf("%s: say in this test which target it is for", path)
		return
	}
	if _, err := plan.Decide(inventory(), config, target, v1alpha1.Kustomize, "test"); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// inventory is of a cloud with the types and zones the examples speak of.
func inventory() v1alpha1.Inventory {
	zones := v1alpha1.Fact[[]v1alpha1.Zone]{State: v1alpha1.Known, Value: []v1alpha1.Zone{{Name: "az1", Available: true}}}
	known := func(name string) v1alpha1.VolumeType {
		return v1alpha1.VolumeType{ID: "id-" + name, Name: name, Public: true}
	}
	return v1alpha1.Inventory{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindInventory,
		Zones:             v1alpha1.Zones{Compute: zones, Volume: zones},
		VolumeTypes:       v1alpha1.Fact[[]v1alpha1.VolumeType]{State: v1alpha1.Known, Value: []v1alpha1.VolumeType{known("fast"), known("multiattach"), known("standard")}},
		DefaultVolumeType: v1alpha1.Fact[string]{State: v1alpha1.Known, Value: "standard"},
		Services: v1alpha1.Fact[map[string]v1alpha1.Service]{State: v1alpha1.Known, Value: map[string]v1alpha1.Service{
			"block-storage": {Present: true, MinMicroversion: "3.0", MaxMicroversion: "3.70"},
			"compute":       {Present: true, MinMicroversion: "2.1", MaxMicroversion: "2.93"},
		}},
	}
}

func checkWorkload(t *testing.T, path string, text []byte) {
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		object, ok := kinds[head.Kind]
		if !ok {
			t.Errorf("%s: nothing here checks a %s", path, head.Kind)
			continue
		}
		if err := yaml.UnmarshalStrict(document, object()); err != nil {
			t.Errorf("%s: %s: %v", path, head.Kind, err)
		}
	}
}
