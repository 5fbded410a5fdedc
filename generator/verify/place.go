package verify

import (
	"fmt"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// BundleAt builds and checks a bundle as Bundle does, at the directory where it is or is to be: what a Kustomize bundle refers to
// outside of the tree is read from the disk, the tree itself is not. So a bundle is verified where it stands before it is written.
func BundleAt(dir string, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	root, err := Place(dir)
	if err != nil {
		return nil, nil, err
	}
	return bundle(newOverlay(root, tree), root, tree, target, format)
}

// Place is a directory's own path: absolute, and with every link followed as far as it exists. From there kustomize goes to what
// a relative path means.
func Place(dir string) (string, error) {
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

// overlay is a tree of files over the disk. It has what kustomize reads with; everything else is the disk's.
type overlay struct {
	filesys.FileSystem
	files map[string][]byte // by absolute path
	dirs  map[string]bool
}

func newOverlay(root string, tree map[string][]byte) overlay {
	o := overlay{FileSystem: filesys.MakeFsOnDisk(), files: map[string][]byte{}, dirs: map[string]bool{root: true}}
	for name, content := range tree {
		at := filepath.Join(root, filepath.FromSlash(name))
		o.files[at] = content
		for dir := filepath.Dir(at); len(dir) > len(root); dir = filepath.Dir(dir) {
			o.dirs[dir] = true
		}
	}
	return o
}

func (o overlay) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = filepath.Clean(name)
	if o.dirs[name] {
		return filesys.ConfirmedDir(name), "", nil
	}
	if _, found := o.files[name]; found {
		return filesys.ConfirmedDir(filepath.Dir(name)), filepath.Base(name), nil
	}
	return o.FileSystem.CleanedAbs(name)
}

func (o overlay) ReadFile(name string) ([]byte, error) {
	if content, found := o.files[filepath.Clean(name)]; found {
		return content, nil
	}
	return o.FileSystem.ReadFile(name)
}

func (o overlay) Exists(name string) bool {
	_, found := o.files[filepath.Clean(name)]
	return found || o.dirs[filepath.Clean(name)] || o.FileSystem.Exists(name)
}

func (o overlay) IsDir(name string) bool {
	return o.dirs[filepath.Clean(name)] || o.FileSystem.IsDir(name)
}
