// Package checkout keeps what a program reads and writes inside the working directory. A checkout of a repository may bring symbolic links along, and
// what a pipeline writes must not go where their author likes.
package checkout

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrLeadsOut says that a symbolic link leads a path out of the working directory.
var ErrLeadsOut = errors.New("a symbolic link leads out of the working directory; name the place that is meant")

// CheckLinks returns ErrLeadsOut for a path below the working directory that a symbolic link leads out of it. The part of the path that exists decides.
// A path that leads elsewhere by itself is its user's choice.
func CheckLinks(path string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(here, abs)
	if err != nil || !filepath.IsLocal(below) || here == string(filepath.Separator) {
		return nil
	}
	root, err := os.OpenRoot(here)
	if err != nil {
		return err
	}
	defer root.Close()
	for at := below; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(here, at)); err != nil && at != "." {
			continue
		}
		if _, err := root.Stat(at); err != nil {
			return ErrLeadsOut
		}
		return nil
	}
}
