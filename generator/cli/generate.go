package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	semver "k8s.io/apimachinery/pkg/util/version"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/guard"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/report"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/printable"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// generate is one run of the command.
type generate struct {
	decision
	format, dir, base  string
	check, diff, force bool
	accept             []string
	output             string
	unbuilt            bool   // base is that of plan.yaml
	unproven           string // why nothing proves the bundle; empty: it is proven
}

func newGenerateCommand(w *World, shared *common) *cobra.Command {
	g := generate{decision: decision{from: source{common: shared}}}
	c := &cobra.Command{
		Use:   "generate --target T --format F --output-dir DIR",
		Short: "Write the bundle: a Kustomize overlay or Helm values",
		Long: `Inspects the cloud, decides, renders, verifies, and writes DIR. DIR is machine-owned: files of an earlier run are replaced or removed,
files of others are never touched. What would strand volumes is refused until it is accepted by name. --target and --format are those of DIR
where they are not given; so is the configuration of --check and --diff.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				if hint := valueApart(args); hint != "" {
					return fmt.Errorf("generate takes no argument, got %s%s", args[0], hint)
				}
				return fmt.Errorf("generate takes no argument; name the directory as --output-dir %s", shell.Word(args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context(), w) },
	}
	g.flags(c)
	f := c.Flags()
	f.StringVar(&g.format, "format", "", "the bundle's form: "+strings.Join(formats, ", "))
	f.StringVarP(&g.output, "output", "o", asText, "with --check or --diff, the form of the changes: "+strings.Join(changeForms, ", "))
	f.StringVar(&g.dir, "output-dir", "", "the directory to write; one for each cluster and cloud project")
	f.StringVar(&g.base, "base", "", "refer to manifests/ of a checkout, by its path from DIR, in place of a base in the bundle (kustomize; default namespaces and driver name)")
	f.BoolVar(&g.check, "check", false, "write nothing; exit 2 if DIR differs from what generate would write")
	f.BoolVar(&g.diff, "diff", false, "show the differences; implies --check")
	f.BoolVar(&g.force, "force", false, "replace files that were edited by hand, or a bundle of another target, format or cloud")
	f.StringSliceVar(&g.accept, "accept", nil, "allow what is refused otherwise: "+strings.Join(guard.Accepts, ", "))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(changeForms, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("accept", cobra.FixedCompletions(guard.Accepts, cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagDirname("output-dir")
	return c
}

// checkUsage finds what is wrong with the command line before the cloud is asked.
func (g *generate) checkUsage() error {
	if g.dir == "" && !slices.Contains(changeForms, g.output) {
		return usage("-o %s: -o is the form of the changes (%s); name the directory as --output-dir %s", g.output, strings.Join(changeForms, ", "), shell.Word(g.output))
	}
	if g.dir == "" {
		return usage("--output-dir is missing: the directory to write. A new one needs --target (%s) and --format (%s) too", strings.Join(targets, ", "), strings.Join(formats, ", "))
	}
	if g.target != "" { // else it may be in the directory
		if err := oneOf("--target", g.target, targets); err != nil {
			return err
		}
	}
	if g.format != "" {
		if err := oneOf("--format", g.format, formats); err != nil {
			return err
		}
	}
	if g.base != "" && g.format != "" && g.format != string(v1alpha1.Kustomize) {
		return usage("--base is for --format %s: Helm values refer to nothing", v1alpha1.Kustomize)
	}
	if err := oneOf("--output", g.output, changeForms); err != nil {
		return err
	}
	if g.output != asText && !g.check && !g.diff {
		return usage("--output is for --check and --diff: without them, generate prints nothing on stdout")
	}
	for _, a := range g.accept {
		if !slices.Contains(guard.Accepts, a) {
			return usage("--accept %q: want one of %s%s", a, strings.Join(guard.Accepts, ", "), meaning("--accept", a, guard.Accepts))
		}
	}
	return nil
}

// remember takes the target and the format from the bundle that is in the directory, where the command line has none.
func (g *generate) remember(dir *worktree.Dir) error {
	g.target, g.format = cmp.Or(g.target, dir.Target), cmp.Or(g.format, dir.Format)
	for _, err := range []error{oneOf("--target", g.target, targets), oneOf("--format", g.format, formats)} {
		if err != nil {
			return g.unknownForm(dir, err)
		}
	}
	if g.base != "" && g.format != string(v1alpha1.Kustomize) {
		return usage("--base is for --format %s: Helm values refer to nothing", v1alpha1.Kustomize)
	}
	return nil
}

// unknownForm says why the directory does not say what the command line does not.
func (g *generate) unknownForm(dir *worktree.Dir, missing error) error {
	if dir.Plan != nil {
		return missing // --help is of more use than a guess: a plan has both
	}
	if dir.Damaged != "" {
		return &exit{Refused, fmt.Errorf("%s was not changed: nobody can read its target and format in %s. Restore that file as the warning says. "+
			"Or build the bundle again with --target, --format and --force; then nothing compares it with what is installed", g.dir, worktree.PlanFile)}
	}
	if _, err := os.Stat(g.dir); errors.Is(err, os.ErrNotExist) && (g.check || g.diff) {
		return usage("%s does not exist, so there is no bundle to check", g.dir)
	}
	return usage("%s holds no bundle (no %s), and a new one needs --target (%s) and --format (%s)", g.dir, worktree.PlanFile, strings.Join(targets, ", "), strings.Join(formats, ", "))
}

// rememberBase takes the --base of the bundle for a comparison. Only the command line may name what is read outside of the bundle, so
// nothing is built with a base from plan.yaml.
func (g *generate) rememberBase(dir *worktree.Dir) {
	same := dir.Plan != nil && g.base == "" && g.format == string(dir.Plan.Format)
	if same && (g.check || g.diff) && dir.Plan.Base != "" {
		g.base, g.unbuilt = dir.Plan.Base, true
	}
}

// checkAge refuses a bundle of a newer generator: this one does not know all of its decisions, and would undo what the newer one decided.
func checkAge(dir string, p *v1alpha1.Plan, own string) error {
	if p == nil {
		return nil
	}
	theirs, err := semver.ParseSemantic(p.Generator)
	mine, dev := semver.ParseSemantic(own)
	if err != nil || dev != nil || !mine.LessThan(theirs) { // a version of a developer has no order
		return nil
	}
	return fmt.Errorf("%s: generator %s made this bundle, and this is %s, which may not know all of its decisions. Use %s or newer", dir, p.Generator, own, p.Generator)
}

// noImage is the refusal of a bundle whose pods cannot start. The project has no registry. The name of one that nobody owns would
// be dangerous: a stranger who registers it runs code as root on every node.
func noImage(names []string) error {
	keys, lines := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		keys[i] = "spec.images." + name
		lines[i] = fmt.Sprintf("    %s: {registry: registry.example.com, repository: cinder-csi/cinder-csi-%s, tag: v0.1.0}", name, name)
	}
	return usage("%s: no registry has this image by default. Build it, or copy that of a release ("+pages.BuildTheImage.String()+"), push it where the nodes pull from, "+
		"and say so in the configuration (--config), for example:%w", strings.Join(keys, ", "), printable.Rows("\nspec:\n  images:\n"+strings.Join(lines, "\n")))
}

func (g *generate) run(ctx context.Context, w *World) error {
	if err := g.checkUsage(); err != nil {
		return err
	}
	dir, err := worktree.Open(g.dir)
	if errors.Is(err, worktree.ErrNotADirectory) {
		return usage("--output-dir: %w; name a directory", err)
	}
	if broken := (*worktree.NotOurs)(nil); errors.As(err, &broken) && dir != nil && (g.check || g.diff || dir.Damaged != "") {
		fmt.Fprintln(w.Stderr, "Warning: "+printable.Message(err)) // a check never refuses: the broken plan.yaml is a difference
	} else if err != nil {
		return err
	}
	if dir.Damaged != "" && g.from.config == "" && (g.check || g.diff) {
		return g.reportDamage(w, dir) // nobody knows what the configuration was
	}
	if err := errors.Join(g.remember(dir), checkAge(g.dir, dir.Plan, w.Version)); err != nil {
		return err
	}
	if dir.Plan != nil && !dir.PlanEdited() && g.from.config == "" && (g.check || g.diff) {
		g.from.distribution = dir.Plan.Configured(plan.UnnamedCluster)
		fmt.Fprintf(w.Stderr, "Without --config, the configuration is that in %s\n", filepath.Join(g.dir, worktree.PlanFile))
	}
	g.rememberBase(dir)
	if dir.Plan != nil && (!dir.PlanEdited() || g.check || g.diff) { // a check refuses nothing because of it
		g.last = dir.Plan
	}
	r, err := g.decide(ctx, w, v1alpha1.Format(g.format))
	if err != nil {
		return err
	}
	if missing := r.Unpublished(); len(missing) > 0 && !r.Simulated && !w.ReadOnly {
		return noImage(missing)
	}
	tree, document, err := g.render(r)
	if err != nil {
		return err
	}
	files, err := dir.Changes(tree)
	if err != nil {
		return err
	}
	// The same version has proven these very bytes before it wrote them, but a base outside of them may be another since then. With 2,000 classes, kustomize needs many seconds for that.
	if unchanged := len(files) == 0 && dir.Plan.Generator == w.Version && g.base == ""; !unchanged || !g.check && !g.diff {
		if err := g.prove(w, r, tree); err != nil {
			return err
		}
	}
	if dir.CRLF {
		w.warn(crlf(g.dir))
	}
	changes := g.changes(dir, document, files)
	refusals := guard.Refused(changes, g.accept, g.force)
	if g.check || g.diff {
		return g.report(w, files, changes, refusals)
	}
	g.warnOfAccepts(w, changes)
	if err := worktree.Foreign(dir, files); err != nil {
		return err // no flag allows that
	}
	if len(refusals) > 0 {
		return refused("%s was not changed:%w", g.dir, printable.Rows("\n"+explainRefusals(refusals)))
	}
	if len(files) == 0 {
		fmt.Fprintf(w.Stderr, "%s is up to date: %d files\n", g.dir, len(tree))
		return nil
	}
	if err := dir.Write(files); err != nil {
		return err
	}
	if dir.Plan != nil || dir.Damaged != "" { // the first time, nothing changes
		for _, c := range changes {
			fmt.Fprintln(w.Stderr, report.Accepted(c))
		}
	}
	fmt.Fprintf(w.Stderr, "%s: %s\n", g.dir, summary(files, len(tree)))
	return nil
}

// reportDamage is the check of a bundle whose plan.yaml nobody can read, without a configuration to compare with.
func (g *generate) reportDamage(w *World, dir *worktree.Dir) error {
	files := []worktree.FileChange{{Path: worktree.PlanFile, Action: worktree.Update, HandEdited: true, Old: []byte{}, New: []byte{}}}
	changes := handEdits(dir, files)
	return g.report(w, files, changes, guard.Refused(changes, nil, g.force))
}

// warnOfAccepts names each --accept without a change that needs it: a typing error would go unnoticed until the change comes.
func (g *generate) warnOfAccepts(w *World, changes []v1alpha1.Change) {
	for _, a := range g.accept {
		if !slices.ContainsFunc(changes, func(c v1alpha1.Change) bool { return c.Accept == a }) {
			w.warn("--accept " + a + ": no change of this run needs it")
		}
	}
}

// render makes the whole tree, plan.yaml included.
func (g *generate) render(r plan.Result) (map[string][]byte, v1alpha1.Plan, error) {
	return render(r, filepath.ToSlash(g.base))
}

func render(r plan.Result, base string) (map[string][]byte, v1alpha1.Plan, error) {
	tree, err := bundle.Render(r, verify.Chart, bundle.Options{Base: base})
	if err != nil {
		return nil, v1alpha1.Plan{}, usage("the bundle cannot be rendered: %w", err)
	}
	document := r.Document(worktree.Files(tree))
	document.Base = base
	text, err := worktree.PlanText(document)
	if err == nil {
		_, err = v1alpha1.DecodePlan(worktree.PlanFile, text)
	}
	if err != nil {
		return nil, v1alpha1.Plan{}, usage("no later run could read the bundle: %w", err)
	}
	tree[worktree.PlanFile] = text
	return tree, document, nil
}

// prove builds a bundle before anybody sees it, and checks every object.
func (g *generate) prove(w *World, r plan.Result, tree map[string][]byte) error {
	if g.unbuilt && !isHere(g.dir, g.base) {
		fmt.Fprintf(w.Stderr, "Without --base, the comparison takes %s from %s, and does not build the bundle\n", printable.Line(g.base), filepath.Join(g.dir, worktree.PlanFile))
		g.unproven = fmt.Sprintf("give --base %s if you trust that directory, which the author of plan.yaml chose", shell.Word(g.base))
		return nil
	}
	base, err := w.base(g.dir, g.base, r.Target, r.Format)
	if errors.Is(err, errNoBase) { // people may write the bundle before they make the checkout
		w.warn(err.Error() + ". Nothing verifies the bundle; it builds once the checkout is there")
		g.unproven = err.Error()
		return nil
	}
	bundled := maps.Clone(tree)
	delete(bundled, worktree.PlanFile)
	if err == nil {
		_, err = w.verified(g.dir, base, bundled, r.Target, r.Format)
	}
	if err != nil {
		return fmt.Errorf("nothing was written, because the bundle does not stand its own verification: %w", err)
	}
	return nil
}

// report says whether DIR is what would be written: one line for each change, then the difference of the files where it is asked for.
func (g *generate) report(w *World, files []worktree.FileChange, changes, refusals []v1alpha1.Change) error {
	drift := files
	if ofRecordAlone(changes) {
		fmt.Fprintln(w.Stderr, recordNote(g.dir, changes))
		changes, drift = nil, nil
	}
	if g.unproven != "" && len(drift) == 0 {
		return fmt.Errorf("%s has the base %s. Nothing proved the bundle: %s", g.dir, shell.Word(g.base), g.unproven)
	}
	r := reportOf(changes, refusals, drift)
	r.UpToDate, r.Kept = len(drift) == 0, g.kept
	if err := printChanges(w, g.output, r); err != nil {
		return err
	}
	if g.diff && g.output == asText {
		for _, c := range files {
			fmt.Fprint(w.Stdout, c.Diff())
		}
	}
	if r.UpToDate {
		fmt.Fprintf(w.Stderr, "%s is up to date\n", g.dir)
		return nil
	}
	if len(refusals) > 0 {
		fmt.Fprintln(w.Stderr, wouldRefuse(refusals))
	}
	return &exit{Different, fmt.Errorf("%s differs from what generate would write: %s", g.dir, summary(files, 0))}
}

func summary(changes []worktree.FileChange, total int) string {
	count := map[worktree.Action]int{}
	inTheWay := 0
	for _, c := range changes {
		if c.Foreign { // which no run removes or replaces
			inTheWay++
		} else {
			count[c.Action]++
		}
	}
	var parts []string
	for _, a := range []worktree.Action{worktree.Create, worktree.Update, worktree.Remove} {
		if n := count[a]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, a))
		}
	}
	if inTheWay > 0 {
		parts = append(parts, fmt.Sprintf("%d in the way", inTheWay))
	}
	text := strings.Join(parts, ", ")
	if total > 0 {
		return strings.NewReplacer("to create", "created", "to update", "updated", "to remove", "removed").Replace(text) + fmt.Sprintf("; %d files in all", total)
	}
	return text
}
