// Package verify builds a bundle as its users' tools would and checks every object it stands for, before anybody applies it: strict
// decoding into Kubernetes' types, each class by the driver's own parser, every reference from one object to another.
//
// It is the only place that knows kustomize and Helm. It builds in memory: it needs no cluster, no network, no other program, and no
// files but those of the checkout that a Kustomize bundle was made with. What refers to anything else is not built.
package verify

import (
	"fmt"
	"io/fs"
	"maps"
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

// Bundle builds a bundle and checks it; it must refer to nothing outside of itself. The error says that it does not build, or is
// not to be built; then there is nothing to check.
func Bundle(tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	return bundle("/bundle", nil, tree, target, format)
}

// bundle builds and checks a tree at root, in memory, with the files outside of it that it may refer to, by absolute path.
func bundle(root string, outside, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	files := maps.Clone(outside)
	if files == nil {
		files = map[string][]byte{}
	}
	for name, text := range tree {
		if !fs.ValidPath(name) {
			return nil, nil, fmt.Errorf("%q is not a path below the bundle's directory", name)
		}
		files[path.Join(root, name)] = text
	}
	if err := local(root, files); err != nil {
		return nil, nil, err
	}
	fsys := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := fsys.WriteFile(name, text); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
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
