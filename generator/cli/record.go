package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// ofRecord is whether a change is none of a decision: the cloud changed what plan.yaml and README.md hold beside the decisions. That is the
// value of a fact, the reason that names it, or a warning.
func ofRecord(c v1alpha1.Change) bool {
	return c.Class == v1alpha1.CloudChange && slices.Contains([]string{"facts", "reason", "warnings"}, c.Field)
}

// ofRecordAlone is whether there are changes, and none of a decision, a setting or a file.
func ofRecordAlone(changes []v1alpha1.Change) bool {
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c v1alpha1.Change) bool { return !ofRecord(c) })
}

// unrecorded are the files that differ for another reason than changes of the record. It renders the plan in the directory again, with the
// facts that it holds, and compares.
func (g *generate) unrecorded(dir *worktree.Dir) ([]worktree.FileChange, error) {
	r, err := plan.FromDocument(*dir.Plan)
	if err != nil {
		return nil, err
	}
	tree, _, err := g.render(r)
	if err != nil {
		return nil, err
	}
	return dir.Changes(tree)
}

// recordNote says what a check found that is no drift.
func recordNote(where string, changes []v1alpha1.Change) string {
	lines := []string{printable.Line(where) + ": the cloud changed, and no decision did. That is no difference; the next generate records it:"}
	for _, c := range changes {
		lines = append(lines, "  "+printable.Line(c.Message))
	}
	return strings.Join(lines, "\n")
}

// recorded is what this version decides for the facts that a plan holds. Without a decision for them it is empty.
func (g *generate) recorded(old, next v1alpha1.Plan) v1alpha1.Plan {
	r, err := plan.Again(&old, plan.Recorded(old, g.inventory), g.from.distribution, next.Target, next.Format, next.Generator)
	if err != nil {
		return v1alpha1.Plan{}
	}
	return r.Document(nil)
}

// unmade is a sentence of plan.yaml that this version writes neither for this cloud nor for the facts in it; "" if there is none. People follow what
// README.md says, and the author of plan.yaml chooses that.
func unmade(old, next, recorded v1alpha1.Plan) string {
	for _, w := range old.Warnings {
		if !slices.Contains(next.Warnings, w) && !slices.Contains(recorded.Warnings, w) {
			return w
		}
	}
	for _, was := range old.Decisions {
		now, _ := plan.DecisionOf(next, was.ID)
		then, _ := plan.DecisionOf(recorded, was.ID)
		if sentence := unlikeNames(was.Facts, now.Facts); sentence != "" {
			return sentence
		}
		if !sameGrounds(was, now) && !sameGrounds(was, then) {
			return strings.Join(append([]string{was.Reason}, v1alpha1.FactTexts(was.Facts)...), "; ")
		}
	}
	return ""
}

func sameGrounds(a, b v1alpha1.Decision) bool {
	return a.Reason == b.Reason && a.Source == b.Source && slices.Equal(a.Facts, b.Facts)
}

// unlikeNames is a fact with a value that this cloud does not have, and that reads like a sentence or an address.
func unlikeNames(was, now []v1alpha1.NamedFact) string {
	for _, f := range was {
		i := slices.IndexFunc(now, func(n v1alpha1.NamedFact) bool { return n.Name == f.Name })
		if i < 0 {
			return f.String()
		}
		known := strings.Split(now[i].Value, ", ")
		for _, name := range strings.Split(f.Value, ", ") {
			if !slices.Contains(known, name) && !plan.PlainName(name) {
				return f.String()
			}
		}
	}
	return ""
}

// invented is the change that a check reports for a sentence that nothing makes.
func invented(sentence string) v1alpha1.Change {
	return v1alpha1.Change{
		Class: v1alpha1.CloudChange, Field: worktree.PlanFile,
		Message: fmt.Sprintf("cloud: %s has a sentence that this version would not write, or the cloud no longer gives: %.200q. generate replaces it, in README.md too", worktree.PlanFile, sentence),
	}
}
