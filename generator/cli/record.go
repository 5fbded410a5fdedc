package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
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
	lines := []string{where + ": the cloud changed, and no decision did. That is no difference; the next generate records it:"}
	for _, c := range changes {
		lines = append(lines, "  "+c.Message)
	}
	return strings.Join(lines, "\n")
}

// unmade is a sentence of plan.yaml that this version would not write for any values of its facts; "" if there is none. People follow what
// README.md says, and the author of plan.yaml chooses that.
func unmade(old, next v1alpha1.Plan) string {
	was, is := frameOf(old), frameOf(next)
	made := map[string]bool{}
	for _, w := range next.Warnings {
		made[w], made[is.of(w)] = true, true
	}
	for _, w := range old.Warnings {
		if !made[w] && !made[was.of(w)] {
			return w
		}
	}
	for _, before := range old.Decisions {
		after, found := plan.DecisionOf(next, before.ID)
		if found && before.Reason != after.Reason && was.of(before.Reason) != is.of(after.Reason) {
			return before.Reason
		}
		for _, f := range before.Facts {
			i := slices.IndexFunc(after.Facts, func(a v1alpha1.NamedFact) bool { return a.Name == f.Name })
			if found && (i < 0 || f.Value != after.Facts[i].Value && !listOfNames.MatchString(f.Value)) {
				return f.String()
			}
		}
	}
	return ""
}

var (
	nameInFact  = regexp.MustCompile(`[\pL\pN][\pL\pN._:/-]*`)
	listOfNames = regexp.MustCompile(`^(` + nameInFact.String() + `(, ` + nameInFact.String() + `)*)?$`)
	manyValues  = regexp.MustCompile(`"?#"?((, | and )"?#"?)*`)
)

// frame makes the same text of two sentences that differ in numbers and in names from the facts.
type frame map[string]bool

func frameOf(p v1alpha1.Plan) frame {
	names := frame{}
	for _, d := range p.Decisions {
		for _, f := range d.Facts {
			for _, n := range nameInFact.FindAllString(f.Value, -1) {
				names[n] = true
			}
		}
	}
	return names
}

func (f frame) of(sentence string) string {
	framed := nameInFact.ReplaceAllStringFunc(sentence, func(word string) string {
		if f[strings.TrimRight(word, ".:")] || strings.Trim(word, "0123456789.") == "" {
			return "#"
		}
		return word
	})
	return manyValues.ReplaceAllString(framed, "#")
}

// invented is the change that a check reports for a sentence that nothing makes.
func invented(sentence string) v1alpha1.Change {
	return v1alpha1.Change{
		Class: v1alpha1.CloudChange, Field: worktree.PlanFile,
		Message: fmt.Sprintf("cloud: %s has a sentence that this version would not write, whatever the values of its facts: %.200q. generate replaces it, in README.md too", worktree.PlanFile, sentence),
	}
}
