// Package verify builds a bundle as kubectl and helm do, and checks every object before anybody applies it. It decodes objects
// strictly into the Kubernetes types. The parsers of the driver check each class and flag. It also checks the flags and ports of
// each sidecar, and every reference from one object to another.
//
// It is the only package that knows kustomize and Helm. It builds in memory and needs no cluster, no network and no other program.
// It reads no files, and refuses a bundle that refers to others than it is given.
package verify

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// Finding is one thing that is wrong with a bundle.
type Finding struct {
	Object  string // as Object.String gives it; empty for the bundle as a whole
	Problem string // what is wrong with it, and what would be right
}

// String is one line: objects of a forged bundle have names and values of any text.
func (f Finding) String() string {
	if f.Object == "" {
		return printable.Line(f.Problem)
	}
	return printable.Line(f.Object + ": " + f.Problem)
}

// Bundle builds a bundle and checks it; it must refer to nothing outside of itself. The error says that it does not build, or is
// not to be built; then there is nothing to check.
func Bundle(tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	return bundle(anywhere, nil, tree, target, format)
}

// anywhere is where a bundle is built in memory that refers to nothing outside of itself.
const anywhere = "/bundle"

// bundle builds and checks a tree at root, in memory, with the files outside of it that it may refer to, by absolute path.
func bundle(root string, outside, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	files, err := load(root, outside, tree)
	if err != nil {
		return nil, nil, err
	}
	objects, err := build(files, root, tree, target, format)
	if err != nil {
		return nil, nil, err
	}
	findings := Check(objects, string(tree["README.md"]))
	if format == v1alpha1.Kustomize {
		findings = append(findings, besideValues(objects, tree, target)...)
	}
	return objects, findings, nil
}

// load is a tree at root and the files outside of it, by absolute path, once nothing in them can do harm.
func load(root string, outside, tree map[string][]byte) (map[string][]byte, error) {
	files := maps.Clone(outside)
	if files == nil {
		files = map[string][]byte{}
	}
	for name, text := range tree {
		if !fs.ValidPath(name) {
			return nil, fmt.Errorf("%q is not a path below the bundle's directory", name)
		}
		files[path.Join(root, name)] = text
	}
	return files, local(root, files)
}

func inMemory(files map[string][]byte) (filesys.FileSystem, error) {
	fsys := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := fsys.WriteFile(name, text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return fsys, nil
}

// Check checks built objects. Objects may need others that are not in the bundle, above all Secrets. The README of the bundle must
// name these, because people look there for what they must create.
func Check(objects []Object, readme string) []Finding {
	var findings []Finding
	for _, name := range PlaneNames(objects) {
		c := &checker{plane: name, readme: readme, objects: sorted(OfPlane(objects, name)), hostPorts: newPorts()}
		c.run()
		findings = append(findings, c.findings...)
	}
	return findings
}

// OfPlane are the objects of a plane.
func OfPlane(objects []Object, name string) []Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return o.Plane != name })
}

// PlaneNames are the planes of objects, in their order.
func PlaneNames(objects []Object) []string {
	var names []string
	for _, o := range objects {
		if !slices.Contains(names, o.Plane) {
			names = append(names, o.Plane)
		}
	}
	return names
}
