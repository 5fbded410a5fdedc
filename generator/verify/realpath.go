package verify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// BundleAt builds and checks a bundle as Bundle does, at the directory where it is or is to be. So a bundle is verified where it
// stands before it is written. A Kustomize bundle may refer to one place outside of itself: base, a checkout of manifests/ by its
// path from the directory; empty for none. Nothing but the tree and that checkout is ever read.
func BundleAt(dir, base string, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, []Finding, error) {
	root, files, err := placeOf(dir, base, format)
	if err != nil {
		return nil, nil, err
	}
	return bundle(root, files, tree, target, format)
}

// ObjectsAt builds a bundle as BundleAt does, and checks no object.
func ObjectsAt(dir, base string, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]Object, error) {
	root, files, err := placeOf(dir, base, format)
	if err != nil {
		return nil, err
	}
	if files, err = load(root, files, tree); err != nil {
		return nil, err
	}
	return build(files, root, tree, target, format)
}

// placeOf is where a bundle is built, and what it may read there besides its own tree.
func placeOf(dir, base string, format v1alpha1.Format) (root string, outside map[string][]byte, err error) {
	if base == "" || format != v1alpha1.Kustomize {
		return anywhere, nil, nil
	}
	if root, err = RealPath(dir); err != nil {
		return "", nil, err
	}
	outside, err = readBase(filepath.Join(root, filepath.FromSlash(base)))
	return filepath.ToSlash(root), outside, err
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

// largestBase is the most that a checkout of manifests/ may hold, in bytes; ours is 220 kB.
const largestBase = 4 << 20

// readBase reads a checkout's bases, by absolute path. A link that leads out of the checkout is an error.
func readBase(dir string) (map[string][]byte, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // what refers to it says which file is missing
	} else if err != nil {
		return nil, fmt.Errorf("--base: %w", err)
	}
	defer root.Close()
	files, left := map[string][]byte{}, int64(largestBase)
	for _, part := range []string{"vanilla", "standalone", "hypershift"} {
		err := fs.WalkDir(root.FS(), part, func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && name == part {
				return nil
			}
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".yaml") {
				return err
			}
			f, err := root.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			content, err := io.ReadAll(io.LimitReader(f, left+1))
			if left -= int64(len(content)); err == nil && left < 0 {
				err = fmt.Errorf("%s: the bases hold more than %d bytes", name, largestBase)
			}
			files[path.Join(filepath.ToSlash(dir), name)] = content
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("--base: %s: %w", dir, err)
		}
	}
	return files, nil
}
