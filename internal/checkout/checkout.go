// Package checkout keeps what a program reads and writes inside the working directory. A checkout of a repository may bring symbolic links along, and
// what a pipeline writes must not go where their author likes.
package checkout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// ErrLeadsOut says that a symbolic link leads a path out of the working directory.
var ErrLeadsOut = errors.New("a symbolic link leads out of the working directory; name the place that is meant")

const separator = string(filepath.Separator)

// CheckLinks returns ErrLeadsOut for a path below the working directory that a symbolic link leads out of it. The part of the path that exists decides.
// A path that leads elsewhere by itself is its user's choice. In /, the checkout is the first directory of a relative path.
func CheckLinks(path string) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	here, below := split(here, filepath.FromSlash(path))
	if below == "" {
		return nil
	}
	root, err := os.OpenRoot(here)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer root.Close()
	for at := below; ; at = at[:max(0, strings.LastIndex(at, separator))] {
		if at == "" {
			return nil
		}
		if _, err := os.Stat(here + separator + at); err != nil {
			continue
		}
		if _, err := root.Stat(at); err != nil {
			return ErrLeadsOut
		}
		return nil
	}
}

// split is the checkout and a path below it; empty: the path is elsewhere. The system follows a link before it goes up by "..", so no path is cleaned that
// can do without.
func split(here, path string) (checkout, below string) {
	if here == separator {
		first, rest, _ := strings.Cut(strings.TrimPrefix(path, "."+separator), separator)
		if filepath.IsLocal(first) && filepath.IsLocal(rest) {
			return separator + first, rest
		}
		return here, ""
	}
	if filepath.IsLocal(path) {
		return here, path
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(here, path)
	}
	real, _ := filepath.EvalSymlinks(here) // here may be the name of a link
	for _, from := range []string{here, real} {
		for _, p := range []string{path, filepath.Clean(path)} {
			if rest, is := strings.CutPrefix(p, from+separator); is && filepath.IsLocal(rest) {
				return from, rest
			}
		}
	}
	return here, ""
}
