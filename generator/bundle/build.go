package bundle

import (
	"fmt"
	"io/fs"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/manifests"
)

// Kustomize builds the kustomization at the root of a tree of files, and returns the fields of each object. verify.Kustomize is the real
// one. It is handed in, because kustomize brings network and programs into what links it, and Render stays a pure function.
type Kustomize func(files map[string][]byte) ([]map[string]any, error)

// build is what kustomize makes of the plane's bases and components.
func (p *plane) build(kustomize Kustomize) (built, error) {
	k := kustomizationText{APIVersion: "kustomize.config.k8s.io/v1beta1", Kind: "Kustomization", Resources: p.bases()}
	for _, c := range p.components() {
		k.Components = append(k.Components, c.dir)
	}
	files, err := manifestFiles()
	if err != nil {
		return nil, err
	}
	pools, err := p.pools()
	if err != nil {
		return nil, err
	}
	for file, pool := range pools {
		if files[file], err = yaml.Marshal(plain(pool)); err != nil {
			return nil, err
		}
		k.Resources = append(k.Resources, file)
	}
	slices.Sort(k.Resources) // the order is of no matter here
	text, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	files["kustomization.yaml"] = text
	objects, err := kustomize(files)
	if err != nil {
		return nil, fmt.Errorf("build manifests/: %w", err)
	}
	for i, o := range objects {
		objects[i] = integers(o).(map[string]any)
	}
	return objects, nil
}

type kustomizationText struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Components []string `json:"components,omitempty"`
}

// manifestFiles are the files of manifests/, which are part of the program.
func manifestFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(manifests.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = manifests.Files.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("copy manifests/: %w", err)
	}
	return files, nil
}
