// Package verify builds a bundle as its users' tools would and checks every object it stands for, before anybody applies it: strict
// decoding into Kubernetes' types, each class by the driver's own parser, every reference from one object to another.
//
// It is the only place that knows kustomize and Helm. It needs no cluster and no network, and no files but those that a Kustomize
// bundle refers to outside of itself.
package verify

import (
	"fmt"
	"path"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// Finding is one thing that is wrong with a bundle.
type Finding struct {
	Object  string // as Object.String gives it; empty for the bundle as a whole
	Problem string // what is wrong with it, and what would be right
}

func (f Finding) String() string {
	if f.Object == "" {
		return f.Problem
	}
	return f.Object + ": " + f.Problem
}

// Bundle builds a bundle and checks it; it must refer to nothing outside of itself. The error says that it does not build; then
// there is nothing to check.
func Bundle(tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	const root = "/bundle"
	fsys := filesys.MakeFsInMemory()
	for name, text := range tree {
		if err := fsys.WriteFile(path.Join(root, name), text); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return bundle(fsys, root, tree, target, format)
}

func bundle(fsys filesys.FileSystem, root string, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	objects, err := build(fsys, root, tree, target, format)
	if err != nil {
		return nil, nil, err
	}
	return objects, Check(objects, string(tree["README.md"])), nil
}

// Check checks built objects. What they need and do not bring along, Secrets above all, must be named by the bundle's README: it
// is where a person learns of it.
func Check(objects []Object, readme string) []Finding {
	var findings []Finding
	for _, name := range planeNames(objects) {
		c := &checker{plane: name, readme: readme}
		for _, o := range sorted(objects) {
			if o.Plane == name {
				c.objects = append(c.objects, o)
			}
		}
		c.run()
		findings = append(findings, c.findings...)
	}
	return findings
}

func planeNames(objects []Object) []string {
	var names []string
	seen := map[string]bool{}
	for _, o := range objects {
		if !seen[o.Plane] {
			seen[o.Plane] = true
			names = append(names, o.Plane)
		}
	}
	return names
}
