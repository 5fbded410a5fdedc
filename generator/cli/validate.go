package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/documents"
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

// mostFindings are the edited files that one message lists, mostProblems what is wrong with their objects, and mostForeign the files to move away.
const mostFindings, mostProblems, mostForeign = 10, 20, 100

// genuine returns the objects of a bundle that is as a generator made it. One error lists every finding.
func (w *World) genuine(dir *worktree.Dir, base string, tree map[string][]byte, edited []string) ([]verify.Object, error) {
	made, err := w.remade(dir)
	if err == nil && len(edited) == 0 {
		edited, err = unlike(dir, made)
	}
	if err != nil && len(edited) == 0 {
		return nil, err
	}
	var findings []error
	for i, name := range edited {
		if i == mostFindings {
			findings = append(findings, fmt.Errorf("and %d more files", len(edited)-i))
			break
		}
		findings = append(findings, errors.New(notAsGenerated(name)+"; restore it, or run generate --force, which drops the edit. Keep your changes in an overlay or a values file outside of the directory"))
	}
	foreign, errForeign := dir.Misleading(tree)
	if errForeign != nil {
		return nil, errForeign
	}
	for i, f := range foreign {
		if i == mostForeign {
			findings = append(findings, fmt.Errorf("and %d more in the way", len(foreign)-i))
			break
		}
		findings = append(findings, fmt.Errorf("%s is in the way: %s; move it out of the directory", f.Path, f.InTheWay()))
	}
	if err == nil {
		err = tooMany(tree, made)
	}
	if err != nil {
		return nil, errors.Join(append(findings, err)...)
	}
	outside, err := w.base(dir.Path, base, dir.Plan.Target, dir.Plan.Format)
	if err != nil {
		return nil, errors.Join(append(findings, err)...)
	}
	objects, err := w.verified(dir.Path, outside, tree, dir.Plan.Target, dir.Plan.Format)
	return objects, errors.Join(append(findings, err)...)
}

// mostAdded are the keys and items that edited files may have beyond those that were generated. Kustomize compares each object with all others.
const mostAdded = 5_000

// tooMany refuses a bundle whose files have far more in them than those that its decisions make.
func tooMany(tree, made map[string][]byte) error {
	left := mostAdded
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if left -= max(0, documents.Nodes(tree[name])-documents.Nodes(made[name])); left < 0 {
			return fmt.Errorf("%s has too much that no decision in plan.yaml makes (more than %d keys and items), so nothing builds the bundle", name, mostAdded)
		}
	}
	return nil
}

// remade are the files that this version makes of the decisions in plan.yaml.
func (w *World) remade(dir *worktree.Dir) (map[string][]byte, error) {
	if dir.Plan.Generator != w.Version {
		return nil, fmt.Errorf("%s: generator %q made the bundle by its plan.yaml, and this is %s, which cannot make the files again to compare them. Use that version, or generate --check",
			dir.Path, dir.Plan.Generator, w.Version)
	}
	r, err := plan.FromDocument(*dir.Plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir.Path, err)
	}
	tree, _, err := render(r, dir.Plan.Base)
	return tree, err
}

// unlike are the files that differ from those that the decisions make. The sums in plan.yaml prove nothing: the author of an edit can correct them.
func unlike(dir *worktree.Dir, made map[string][]byte) ([]string, error) {
	changes, err := dir.Changes(made)
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
	var lines []error
	for i, f := range findings {
		if i == mostProblems {
			lines = append(lines, fmt.Errorf("and %d more findings", len(findings)-i))
			break
		}
		lines = append(lines, errors.New(f.String()))
	}
	return nil, errors.Join(lines...)
}
