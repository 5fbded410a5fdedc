package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/guard"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
)

// generate is one run of the command.
type generate struct {
	decision
	format, dir, base  string
	check, diff, force bool
	accept             []string
}

func newGenerateCommand(w *World, shared *common) *cobra.Command {
	g := generate{decision: decision{from: source{common: shared}}}
	c := &cobra.Command{
		Use:   "generate --target T --format F --output-dir DIR",
		Short: "Write the bundle: a Kustomize overlay or Helm values",
		Long: `Inspects the cloud, decides, renders, verifies, and writes DIR. DIR is machine-owned: files of an earlier run are replaced or removed,
files of others are never touched. What would strand volumes is refused until it is accepted by name.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context(), w) },
	}
	g.flags(c)
	f := c.Flags()
	f.StringVar(&g.format, "format", "", "the bundle's form: "+strings.Join(formats, ", "))
	f.StringVar(&g.dir, "output-dir", "", "the directory to write; one for each cluster and cloud project")
	f.StringVar(&g.base, "base", "", "refer to a checkout of manifests/, by its path from DIR, instead of copying it into the bundle (kustomize)")
	f.BoolVar(&g.check, "check", false, "write nothing; exit 2 when DIR is not what would be written")
	f.BoolVar(&g.diff, "diff", false, "show the differences; implies --check")
	f.BoolVar(&g.force, "force", false, "replace files that were edited by hand, or a bundle of another target, format or cloud")
	f.StringSliceVar(&g.accept, "accept", nil, "allow what is refused otherwise: "+strings.Join(guard.Accepts, ", "))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("accept", cobra.FixedCompletions(guard.Accepts, cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagDirname("output-dir")
	return c
}

// checkUsage finds what is wrong with the command line before the cloud is asked.
func (g *generate) checkUsage() error {
	if err := oneOf("--target", g.target, targets); err != nil {
		return err
	}
	if err := oneOf("--format", g.format, formats); err != nil {
		return err
	}
	if g.dir == "" {
		return usage("--output-dir is missing: the directory to write")
	}
	if g.base != "" && g.format != string(v1alpha1.Kustomize) {
		return usage("--base is for --format %s: Helm values refer to nothing", v1alpha1.Kustomize)
	}
	for _, a := range g.accept {
		if !slices.Contains(guard.Accepts, a) {
			return usage("--accept %q: want one of %s", a, strings.Join(guard.Accepts, ", "))
		}
	}
	return nil
}

// checkBase is whether the bundle can be built: it warns of a base that is not there. That may come to be: the bundle may be written
// before the checkout is made.
func (g *generate) checkBase(w *World) (bool, error) {
	if g.base == "" {
		return true, nil
	}
	place, err := verify.Place(g.dir)
	if err != nil {
		return false, err
	}
	base := filepath.Join(place, filepath.FromSlash(g.base))
	if _, err := os.Stat(filepath.Join(base, "base", "kustomization.yaml")); err != nil {
		fmt.Fprintf(w.Stderr, "Warning: --base: %s is no checkout of manifests/ (the path starts in the bundle's directory); the bundle is not verified, and does not build without it\n", base)
		return false, nil
	}
	return true, nil
}

func (g *generate) run(ctx context.Context, w *World) error {
	if err := g.checkUsage(); err != nil {
		return err
	}
	dir, err := worktree.Open(g.dir)
	if broken := (*worktree.NotOurs)(nil); errors.As(err, &broken) && dir != nil && (g.check || g.diff) {
		fmt.Fprintln(w.Stderr, "Warning: "+err.Error()) // a check never refuses: the broken plan.yaml is a difference
	} else if err != nil {
		return err
	}
	r, err := g.decide(ctx, w, v1alpha1.Format(g.format))
	if err != nil {
		return err
	}
	tree, document, err := g.render(w, r)
	if err != nil {
		return err
	}
	changes, err := dir.Changes(tree)
	if err != nil {
		return err
	}
	var refusals []guard.Refusal
	if dir.Plan != nil {
		refusals = guard.Accepted(guard.Compare(*dir.Plan, document), g.accepted())
	}
	if g.check || g.diff {
		return g.compare(w, dir, document, changes, refusals)
	}
	if err := g.refuse(dir, r, changes, refusals); err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(w.Stderr, "%s is up to date: %d files\n", g.dir, len(tree))
		return nil
	}
	if err := dir.Write(changes); err != nil {
		return err
	}
	fmt.Fprintf(w.Stderr, "%s: %s\n", g.dir, summary(changes, len(tree)))
	return nil
}

// accepted: force gives up a bundle of another cloud too.
func (g *generate) accepted() []string {
	if g.force {
		return append(slices.Clone(g.accept), guard.Cloud)
	}
	return g.accept
}

// render makes the whole tree, plan.yaml included, and proves that it builds before anybody sees it.
func (g *generate) render(w *World, r plan.Result) (map[string][]byte, v1alpha1.Plan, error) {
	tree, err := bundle.Render(r, bundle.Options{Base: filepath.ToSlash(g.base)})
	if err != nil {
		return nil, v1alpha1.Plan{}, usage("the bundle cannot be rendered: %w", err)
	}
	complete, err := g.checkBase(w)
	if err != nil {
		return nil, v1alpha1.Plan{}, err
	}
	if complete {
		if _, err := verified(g.dir, g.base, tree, r.Target, r.Format); err != nil {
			return nil, v1alpha1.Plan{}, fmt.Errorf("nothing was written, because the bundle does not stand its own verification: %w", err)
		}
	}
	document := r.Document(worktree.Files(tree))
	tree[worktree.PlanFile], err = worktree.PlanText(document)
	return tree, document, err
}

// refuse says everything that stands against writing, at once.
func (g *generate) refuse(dir *worktree.Dir, r plan.Result, changes []worktree.Change, refusals []guard.Refusal) error {
	forceable, err := dir.Refusals(changes, r.Target, r.Format)
	if err != nil {
		return err // foreign files: no flag allows that
	}
	var lines []string
	if !g.force {
		for _, f := range forceable {
			lines = append(lines, f+" (--force allows it)")
		}
	}
	for _, refusal := range refusals {
		lines = append(lines, explainRefusal(refusal))
	}
	if lines == nil {
		return nil
	}
	return refused("%s was not changed:\n%s", g.dir, strings.Join(lines, "\n"))
}

func explainRefusal(r guard.Refusal) string {
	line := fmt.Sprintf("%s (--accept %s allows it)", r.What, r.Accept)
	if r.Pin == nil {
		return line
	}
	pin, err := v1alpha1.YAML(map[string]any{"spec": r.Pin})
	if err != nil {
		return line
	}
	return line + "; to keep it as it is, put into the configuration:\n    " + strings.ReplaceAll(strings.TrimSpace(string(pin)), "\n", "\n    ")
}

// compare says whether DIR is what would be written. Each difference is one line: its class, what would be done, the file.
func (g *generate) compare(w *World, dir *worktree.Dir, document v1alpha1.Plan, changes []worktree.Change, refusals []guard.Refusal) error {
	if len(changes) == 0 {
		fmt.Fprintf(w.Stderr, "%s is up to date\n", g.dir)
		return nil
	}
	causes := guard.CauseConfig // a bundle that was never written
	if dir.Plan != nil {
		causes = strings.Join(guard.Causes(*dir.Plan, document), ",")
	}
	for _, c := range changes {
		cause := causes
		if c.HandEdited || c.Foreign {
			cause = guard.CauseHandEdit
		}
		fmt.Fprintf(w.Stdout, "%s\t%s\t%s\n", cause, c.Action, c.Path)
	}
	if g.diff {
		for _, c := range changes {
			fmt.Fprint(w.Stdout, c.Diff())
		}
	}
	for _, r := range refusals {
		fmt.Fprintf(w.Stderr, "generate would refuse: %s\n", explainRefusal(r))
	}
	return &exit{Different, fmt.Errorf("%s is not what would be written: %s", g.dir, summary(changes, 0))}
}

func summary(changes []worktree.Change, total int) string {
	count := map[worktree.Action]int{}
	for _, c := range changes {
		count[c.Action]++
	}
	var parts []string
	for _, a := range []worktree.Action{worktree.Create, worktree.Update, worktree.Remove} {
		if n := count[a]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, a))
		}
	}
	text := strings.Join(parts, ", ")
	if total > 0 {
		return strings.NewReplacer("to create", "created", "to update", "updated", "to remove", "removed").Replace(text) + fmt.Sprintf("; %d files in all", total)
	}
	return text
}
