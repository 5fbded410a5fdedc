// Package checkout keeps what a program reads and writes inside a checkout of a repository. A checkout may bring symbolic links along, and what a
// pipeline writes must not go where their author likes.
package checkout

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrLeadsOut says that a symbolic link leads a path out of the checkout that it is in.
var ErrLeadsOut = errors.New("a symbolic link leads out of the checkout; name the place that is meant")

const separator = string(filepath.Separator)

// CheckLinks returns ErrLeadsOut for a path in a checkout that a symbolic link leads out of it. The part of the path that exists decides.
// A path that leads elsewhere by itself is its user's choice.
func CheckLinks(path string) error {
	all, err := around(path)
	for i := 0; i < len(all) && err == nil; i++ {
		err = all[i].checkLinks()
	}
	return err
}

// Top is the outermost checkout that a path is in, and the path below it. Empty: it is in none.
func Top(path string) (top, below string, err error) {
	all, err := around(path)
	for _, p := range all {
		if top == "" || len(p.top) < len(top) {
			top, below = p.top, filepath.Clean(p.below)
		}
	}
	return top, below, err
}

// place is a checkout, and a path below it.
type place struct{ top, below string }

func (p place) checkLinks() error {
	root, err := os.OpenRoot(p.top)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer root.Close()
	for at := p.below; at != ""; at = at[:max(0, strings.LastIndex(at, separator))] {
		if _, err := os.Stat(p.top + separator + at); err != nil {
			continue
		}
		if _, err := root.Stat(at); err != nil {
			return ErrLeadsOut
		}
		return nil
	}
	return nil
}

// around are the checkouts that a path is in: the working directory, and the work trees of Git above that and above the path. Each may be known by
// the name of a link. The system follows a link before it goes up by "..", so the path counts as it is, too. In /, the checkout is the first
// directory of a relative path.
func around(path string) (all []place, err error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if path = filepath.FromSlash(path); here == separator {
		first, rest, _ := strings.Cut(strings.TrimPrefix(path, "."+separator), separator)
		if filepath.IsLocal(first) && filepath.IsLocal(rest) {
			all = append(all, place{separator + first, rest})
		}
	}
	real, names := resolved(here), []string{path, filepath.Clean(path)}
	if !filepath.IsAbs(path) {
		names = []string{here + separator + path, filepath.Join(here, path), filepath.Join(real, path)}
	}
	clean := names[1]
	for at := clean; at != separator; at = filepath.Dir(at) {
		names = append(names, filepath.Join(resolved(at), strings.TrimPrefix(clean, at)))
	}
	ours := slices.Concat([]string{here, real}, workTrees(here), workTrees(real))
	for _, name := range names {
		for _, top := range slices.Concat(ours, workTrees(filepath.Dir(name))) {
			if below, is := strings.CutPrefix(name, top+separator); is && top != separator && filepath.IsLocal(below) {
				all = append(all, place{top, below})
			}
		}
	}
	return all, nil
}

// resolved is a directory without links, as far as it exists.
func resolved(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if up := filepath.Dir(dir); err != nil && up != dir {
		return filepath.Join(resolved(up), filepath.Base(dir))
	}
	return real
}

// workTrees are the work trees of Git that a directory is in, by its name. A link may lead from one into another.
func workTrees(dir string) (all []string) {
	for ; dir != separator && dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			all = append(all, dir)
		}
	}
	return all
}
