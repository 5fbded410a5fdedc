package mount

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// Resolve returns path as the mount table shows it: it follows links in the parents and leaves the last element as it
// is. A last element that is a link is an error, InvalidArgument: mount(2) would follow it to a path that the caller
// did not name.
func Resolve(path string) (string, error) {
	clean := filepath.Clean(path)
	if !filepath.IsAbs(path) || clean == "/" || strings.ContainsRune(path, 0) {
		return "", volume.Errorf(volume.InvalidArgument, "path %q must be absolute and must not be the root directory", path)
	}
	parent, err := evalExisting(filepath.Dir(clean))
	if err != nil {
		return "", volume.Errorf(volume.Failed, "resolve the path %s: %w", clean, err).Cause(cause.NodeSystem)
	}
	full := filepath.Join(parent, filepath.Base(clean))
	if _, err := os.Readlink(full); err == nil { // unlike lstat(2), it does not ask the file system mounted there, which may be dead
		return "", volume.Errorf(volume.InvalidArgument, "%s is a symbolic link; name the directory or file itself", full)
	}
	return full, nil
}

// evalExisting follows the links in the part of a directory's path that exists. What is made later lies below it.
func evalExisting(dir string) (string, error) {
	full, err := filepath.EvalSymlinks(dir)
	if !os.IsNotExist(err) || dir == "/" {
		return full, err
	}
	if _, err := os.Readlink(dir); err == nil { // it leads to nothing, so nobody can make a directory there
		return dir, nil
	}
	above, err := evalExisting(filepath.Dir(dir))
	return filepath.Join(above, filepath.Base(dir)), err
}

// ResolveVolume is Resolve for a path at which the caller says that a volume is. Nothing is ever mounted at a relative
// path, and the CSI specification requires NotFound if the volume is not there.
func ResolveVolume(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", volume.Errorf(volume.NotFound, "no volume is at %q: the path is not absolute", path)
	}
	return Resolve(path)
}
