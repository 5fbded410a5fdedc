package verify

import (
	"maps"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// ObjectsAt builds the part of a bundle that holds the objects with a kind, and checks none. With 2,000 classes, kustomize needs many
// seconds for a whole bundle. Classes stand in files that no patch changes, so they are read as they are, and the rest is built without them.
func ObjectsAt(dir, base string, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format, isKind func(string) bool) ([]Object, error) {
	root, outside, err := placeOf(dir, base, format)
	if err != nil {
		return nil, err
	}
	if _, _, err := load(root, outside, tree); err != nil { // the whole tree must be one that may be built, and that apart understands
		return nil, err
	}
	var classes []Object
	rest := tree
	if format == v1alpha1.Kustomize {
		if classes, rest, err = apart(tree, target); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(classes, func(o Object) bool { return isKind(o.Kind()) }) {
			return classes, nil
		}
	}
	fsys, _, err := load(root, outside, rest)
	if err != nil {
		return nil, err
	}
	objects, err := build(fsys, root, rest, target, format)
	return append(objects, classes...), err
}

// classFile is the file of the classes of a plane, beside its kustomization.
const classFile = "storageclasses.yaml"

// apart takes the classes out of a tree. They stay where a kustomization does more than to list files, because it may change them.
func apart(tree map[string][]byte, target v1alpha1.Target) ([]Object, map[string][]byte, error) {
	planes, err := planesOf(target)
	if err != nil {
		return nil, nil, err
	}
	var classes []Object
	rest := maps.Clone(tree)
	for _, p := range planes {
		list, file := path.Join(p.dir, kustomizationNames[0]), path.Join(p.dir, classFile)
		var k kustomizationFile
		if yaml.Unmarshal(tree[list], &k) != nil || len(k.Patches)+len(k.Components)+len(k.Images) > 0 || !slices.Contains(k.Resources, classFile) {
			continue
		}
		objects, err := Decode(tree[file], p.name)
		if err != nil {
			return nil, nil, err
		}
		k.Resources = slices.DeleteFunc(k.Resources, func(r string) bool { return r == classFile })
		text, err := yaml.Marshal(k)
		if err != nil {
			return nil, nil, err
		}
		rest[list] = text
		delete(rest, file)
		classes = append(classes, objects...)
	}
	return classes, rest, nil
}
