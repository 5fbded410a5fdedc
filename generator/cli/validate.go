package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
)

func newValidateCommand(w *World) *cobra.Command {
	return &cobra.Command{
		Use:   "validate DIR",
		Short: "Build the bundle in DIR and check every object",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, tree, err := readBundle(w, args[0])
			if err != nil {
				return err
			}
			objects, err := verified(dir.Path, tree, dir.Plan.Target, dir.Plan.Format)
			if err != nil {
				return err
			}
			count := map[string]int{}
			for _, o := range objects {
				count[o.Plane]++
			}
			for _, plane := range slices.Compact(planes(objects)) {
				fmt.Fprintf(w.Stdout, "%s: %d objects verified\n", plane, count[plane])
			}
			return nil
		},
	}
}

func planes(objects []verify.Object) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.Plane)
	}
	return names
}

// openBundle opens a directory that must hold a bundle.
func openBundle(name string) (*worktree.Dir, error) {
	dir, err := worktree.Open(name)
	if broken := (*worktree.NotOurs)(nil); errors.As(err, &broken) {
		return nil, &exit{Failure, err} // nothing is refused here, it cannot be read
	} else if err != nil {
		return nil, err
	}
	if dir.Plan == nil {
		return nil, usage("%s holds no bundle: it has no %s", name, worktree.PlanFile)
	}
	return dir, nil
}

// readBundle reads the files of a directory that must hold a bundle, and warns of those that were edited.
func readBundle(w *World, name string) (*worktree.Dir, map[string][]byte, error) {
	dir, err := openBundle(name)
	if err != nil {
		return nil, nil, err
	}
	tree, err := dir.Read()
	if err != nil {
		return nil, nil, err
	}
	edited, err := dir.Edited()
	for _, name := range edited {
		fmt.Fprintf(w.Stderr, "Warning: %s is not as it was generated\n", name)
	}
	return dir, tree, err
}

// verified builds a bundle in process, at its directory, and gives its objects, or everything that is wrong with them as one error.
func verified(dir string, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]verify.Object, error) {
	objects, findings, err := verify.BundleAt(dir, tree, target, format)
	if err != nil {
		return nil, err
	}
	if len(findings) == 0 {
		return objects, nil
	}
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.String()
	}
	return nil, errors.New(strings.Join(lines, "\n"))
}
