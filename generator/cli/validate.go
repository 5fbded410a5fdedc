package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
)

func newValidateCommand(w *World) *cobra.Command {
	var base string
	c := &cobra.Command{
		Use:   "validate DIR",
		Short: "Build the bundle in DIR and check every object",
		Long: `Builds the bundle in DIR in memory and checks every object. A file that differs from what generate wrote is a finding. Nothing outside of
DIR is read, fetched or run, whatever its files say; for a bundle that was made with --base, give the same --base.`,
		Args: oneDir,
		RunE: func(_ *cobra.Command, args []string) error {
			dir, tree, edited, err := readBundle(args[0])
			if err != nil {
				return err
			}
			if dir.CRLF {
				w.warn(crlf(dir.Path))
			}
			if err := checkGivenBase(dir, base); err != nil {
				return err
			}
			objects, err := w.genuine(dir, base, tree, edited)
			if err != nil {
				return err
			}
			for _, plane := range verify.PlaneNames(objects) {
				fmt.Fprintf(w.Stdout, "%s: %d objects verified\n", plane, len(verify.OfPlane(objects, plane)))
			}
			return nil
		},
	}
	baseFlag(c, &base)
	return c
}

// mostFindings are the files that one message lists.
const mostFindings = 10

// genuine returns the objects of a bundle that is as a generator made it. One error lists every finding.
func (w *World) genuine(dir *worktree.Dir, base string, tree map[string][]byte, edited []string) ([]verify.Object, error) {
	if len(edited) == 0 {
		var err error
		if edited, err = w.unlike(dir); err != nil {
			return nil, err
		}
	}
	var findings []error
	for i, name := range edited {
		if i == mostFindings {
			findings = append(findings, fmt.Errorf("and %d more files", len(edited)-i))
			break
		}
		findings = append(findings, errors.New(notAsGenerated(name)+"; restore it, or run generate --force, which drops the edit. Keep your changes in an overlay or a values file outside of the directory"))
	}
	foreign, err := dir.Misleading(tree)
	if err != nil {
		return nil, err
	}
	for _, f := range foreign {
		findings = append(findings, fmt.Errorf("%s is in the way: %s; move it out of the directory", f.Path, f.InTheWay()))
	}
	outside, err := w.base(dir.Path, base, dir.Plan.Target, dir.Plan.Format)
	if err != nil {
		return nil, errors.Join(append(findings, err)...)
	}
	objects, err := w.verified(dir.Path, outside, tree, dir.Plan.Target, dir.Plan.Format)
	return objects, errors.Join(append(findings, err)...)
}

// unlike are the files that this version does not make of the decisions in plan.yaml. Its sums prove nothing: the author of an edit can correct them.
func (w *World) unlike(dir *worktree.Dir) ([]string, error) {
	if dir.Plan.Generator != w.Version {
		return nil, fmt.Errorf("%s: generator %q made the bundle by its plan.yaml, and this is %s, which cannot make the files again to compare them. Use that version, or generate --check",
			dir.Path, dir.Plan.Generator, w.Version)
	}
	r, err := plan.FromDocument(*dir.Plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir.Path, err)
	}
	tree, _, err := render(r, dir.Plan.Base)
	if err != nil {
		return nil, err
	}
	changes, err := dir.Changes(tree)
	var names []string
	for _, c := range changes {
		if !c.Misleads {
			names = append(names, c.Path)
		}
	}
	return names, err
}

// oneDir is for commands that read one bundle.
func oneDir(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s: want one DIR with a bundle, got %d arguments", c.Name(), len(args))
}

func notAsGenerated(name string) string { return name + " differs from what generate wrote" }

// openBundle opens a directory that must hold a bundle.
func openBundle(name string) (*worktree.Dir, error) {
	dir, err := worktree.Open(name)
	if errors.Is(err, worktree.ErrNotADirectory) {
		if isBundle(filepath.Dir(name)) {
			return nil, usage("%w: name the directory of a bundle, such as %s", err, filepath.Dir(name))
		}
		return nil, usage("%w: name the directory of a bundle, which generate --output-dir DIR makes", err)
	}
	if broken := (*worktree.NotOurs)(nil); errors.As(err, &broken) {
		return nil, &exit{Failure, err} // nothing is refused here, it cannot be read
	} else if err != nil {
		return nil, err
	}
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return nil, usage("%s does not exist: name the directory of a bundle", name)
	}
	if dir.Plan == nil && name == "." {
		return nil, usage("the current directory holds no bundle (no %s): name that of a bundle as the last argument", worktree.PlanFile)
	}
	if dir.Plan == nil {
		return nil, usage("%s holds no bundle: it has no %s", name, worktree.PlanFile)
	}
	return dir, nil
}

// readBundle reads the files of a directory that must hold a bundle, and lists those that were edited.
func readBundle(name string) (dir *worktree.Dir, tree map[string][]byte, edited []string, err error) {
	if dir, err = openBundle(name); err != nil {
		return nil, nil, nil, err
	}
	if tree, err = dir.Read(); err != nil {
		return nil, nil, nil, err
	}
	edited, err = dir.Edited()
	return dir, tree, edited, err
}

// verified builds a bundle in memory, as if from its directory, and returns its objects. One error lists every finding.
func (w *World) verified(dir string, base, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]verify.Object, error) {
	objects, findings, err := w.verifier()(dir, base, tree, target, format)
	if err != nil {
		return nil, err
	}
	if len(findings) == 0 {
		return objects, nil
	}
	lines := make([]error, len(findings))
	for i, f := range findings {
		lines[i] = errors.New(f.String())
	}
	return nil, errors.Join(lines...)
}
