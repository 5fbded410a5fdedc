package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/guard"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
)

// check compares the decisions of a saved plan with those of now: exit 2 where one is different. It looks at no file, so that it can run
// where the bundle is not. Another version of the generator, a setting and a warning are no decisions; they are shown beside one. A new warning that something fails is
// a difference of its own. The status
// gets what was read and found.
func (d *decision) check(ctx context.Context, w *World, file, form string, status *driftStatus) error {
	if form == asTable { // the default of plan's other output
		form = asText
	}
	if err := oneOf("--output", form, changeForms); err != nil {
		return err
	}
	if file == "-" && (d.from.config == "-" || d.from.inventory == "-") {
		return usage("--check and --config or --inventory cannot both be stdin")
	}
	content, err := readFile(w, file)
	if errors.Is(err, errDirectory) {
		return usage("--check %s is a directory: name %s", file, filepath.Join(file, worktree.PlanFile))
	}
	if err != nil {
		return fmt.Errorf("--check: %w", err)
	}
	status.plan = content
	old, merged, err := worktree.DecodePlan(file, content)
	if conflict := (*worktree.Conflict)(nil); errors.As(err, &conflict) {
		changes := []v1alpha1.Change{{Class: v1alpha1.HandEdit, Field: file, Message: string(v1alpha1.HandEdit) + ": " + worktree.HasConflict}}
		status.changes = changes
		return errors.Join(printChanges(w, form, guard.Report(changes, nil, nil)),
			&exit{Different, fmt.Errorf("%w. Settle the conflict, or take the file of one branch, and run generate again", err)})
	}
	if merged {
		w.warn(file + ": a merge left its conflict markers among the sums; the decisions are compared")
	}
	if why := notAPlan(file, content); err != nil && why != "" {
		return usage("%s", why)
	}
	if err != nil {
		return err
	}
	status.decoded = &old
	if err := checkAge(file, &old, w.Version); err != nil {
		return err
	}
	if d.target == "" {
		d.target = string(old.Target)
	}
	if d.from.config == "" {
		d.from.distribution = old.Configured(plan.UnnamedCluster)
		fmt.Fprintf(w.Stderr, "Without --config, the configuration is that in %s\n", file)
	}
	d.last = &old
	r, err := d.decide(ctx, w, old.Format)
	if err != nil {
		return err
	}
	changes := stopAtTheRun(d.compare(old, r.Document(nil)), nil, false)
	if !slices.ContainsFunc(old.Decisions, func(d v1alpha1.Decision) bool { return d.Source != "" }) { // the plan of a drift check; other warnings are on stderr
		changes = slices.DeleteFunc(changes, func(c v1alpha1.Change) bool { return c.Field == "warnings" })
	}
	if !slices.ContainsFunc(changes, ofDecision) {
		if recorded := slices.DeleteFunc(changes, func(c v1alpha1.Change) bool { return c.Field != "facts" }); len(recorded) > 0 {
			fmt.Fprintln(w.Stderr, recordNote(file, recorded))
		}
		changes = nil
	}
	status.changes = changes
	report := guard.Report(changes, guard.Refused(changes, nil, false), nil)
	report.Kept = d.kept
	if err := printChanges(w, form, report); err != nil {
		return err
	}
	if len(changes) == 0 {
		fmt.Fprintf(w.Stderr, "the decisions are those of %s\n", file)
		return nil
	}
	return &exit{Different, fmt.Errorf("the decisions are not those of %s; run generate, and save the plan again", file)}
}

// ofDecision says whether a change is one of the cloud, the target or a decision, or something fails now.
func ofDecision(c v1alpha1.Change) bool {
	return c.Decision != "" && !ofRecord(c) || c.Field == guard.Failure || c.Field == "--target" || strings.HasPrefix(c.Field, "cloud")
}
