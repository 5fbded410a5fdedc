package verify

import (
	"fmt"
	"path"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// BundleAt builds and checks a bundle as Bundle does, at the directory where it is or is to be. So a bundle is verified where it
// stands before it is written. base has the files outside of it to which a Kustomize bundle may refer, by their path from the directory;
// empty for none. Nothing but the tree and these files is ever read.
func BundleAt(dir string, base, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	root, files, err := placeOf(dir, base)
	if err != nil {
		return nil, nil, err
	}
	return bundle(root, files, tree, target, format)
}

// ObjectsAt builds a bundle as BundleAt does, and checks no object.
func ObjectsAt(dir string, base, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, error) {
	root, files, err := placeOf(dir, base)
	if err != nil {
		return nil, err
	}
	if files, err = load(root, files, tree); err != nil {
		return nil, err
	}
	return build(files, root, tree, target, format)
}

// placeOf is where a bundle is built, and what is outside of it, by absolute path.
func placeOf(dir string, base map[string][]byte) (root string, outside map[string][]byte, err error) {
	if len(base) == 0 {
		return anywhere, nil, nil
	}
	root, err = RealPath(dir)
	root, outside = filepath.ToSlash(root), map[string][]byte{}
	for name, text := range base {
		outside[path.Join(root, name)] = text
	}
	return root, outside, err
}

// RealPath is a directory's own path: absolute, and with every link followed as far as it exists. From there kustomize goes to what
// a relative path means.
func RealPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	for at, below := abs, ""; ; at, below = filepath.Dir(at), filepath.Join(filepath.Base(at), below) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, below), nil
		}
		if at == filepath.Dir(at) {
			return abs, nil
		}
	}
}
