package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/printable"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// baseFlag is for commands that read a bundle; who wrote it must not choose what else is read.
func baseFlag(c *cobra.Command, base *string) {
	c.Flags().StringVar(base, "base", "", "the --base that the bundle was made with, by its path from DIR; nothing else outside of DIR is read")
}

// checkGivenBase says what a bundle needs to be built that its command line does not have.
func checkGivenBase(dir *worktree.Dir, base string) error {
	if dir.Plan.Base == "" || base != "" {
		return nil
	}
	return fmt.Errorf("%s was made with --base %s, and nothing outside of the directory is read unless the command line names it: give --base %[2]s too", dir.Path, shell.Word(printable.Line(dir.Plan.Base)))
}

// errNoBase says that nothing is where the base of a bundle should be.
var errNoBase = errors.New("no checkout of manifests/ (the path is relative to the bundle directory)")

// base are the files of manifests/ that a bundle may refer to, by their path from its directory. The disk must have them as this version makes them,
// and the build does not read it again. By rules of their own kubectl, Argo CD and Flux follow links, choose among names and leave files out.
func (w *World) base(dir, base string, target v1alpha1.Target, format v1alpha1.Format) (map[string][]byte, error) {
	if base == "" || format != v1alpha1.Kustomize {
		return nil, nil
	}
	want, err := bundle.Base(verify.Chart, target)
	if err != nil {
		return nil, err
	}
	place, err := verify.RealPath(dir)
	if err != nil {
		return nil, err
	}
	at := filepath.Join(place, filepath.FromSlash(base), string(target))
	if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--base: %s is %w", at, errNoBase)
	}
	// /proc/self/cwd/x is another place for each process.
	if real, err := verify.RealPath(at); err != nil || real != at {
		return nil, fmt.Errorf("--base: a symbolic link leads from %s to %s; name the place without the link", at, real)
	}
	changes, err := worktree.Unlike(at, want)
	if err != nil {
		return nil, fmt.Errorf("--base: %w", err)
	}
	if len(changes) > 0 {
		return nil, fmt.Errorf("--base: %s is not manifests/%s of %s: %s. Restore it, or check out that version. Without --base, the bundle has a base of its own", at, target, w.Version, fromBase(changes))
	}
	return want.At(path.Join(filepath.ToSlash(base), string(target))), nil
}

// fromBase says how a base is another.
func fromBase(changes []worktree.FileChange) string {
	var texts []string
	for i, c := range changes {
		if i == mostFindings {
			texts = append(texts, fmt.Sprintf("and %d more", len(changes)-i))
			break
		}
		switch {
		case c.Misleads:
			texts = append(texts, fmt.Sprintf("%q is in the way", c.Path))
		case c.Action == worktree.Create:
			texts = append(texts, c.Path+" is missing")
		case c.Old == nil:
			texts = append(texts, c.Path+" is no regular file")
		default:
			texts = append(texts, c.Path+" differs")
		}
	}
	return strings.Join(texts, ", ")
}

// isHere is whether a base of plan.yaml is in the working directory. The author of plan.yaml then is that of the base too, so that nothing else is read.
func isHere(dir, base string) bool {
	here, err := verify.RealPath(".")
	place, other := verify.RealPath(dir)
	at, third := verify.RealPath(filepath.Join(place, filepath.FromSlash(base)))
	below, fourth := filepath.Rel(here, at)
	return errors.Join(err, other, third, fourth) == nil && filepath.IsLocal(below)
}
