package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/guard"
	"github.com/cinder-csi/cinder-csi/generator/report"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/printable"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// The forms of a report of changes.
const (
	asText     = "text"
	asMarkdown = "markdown"
)

var changeForms = []string{asText, asJSON, asMarkdown}

// compare lists what is different between an earlier plan and the new one.
func (d *decision) compare(old, next v1alpha1.Plan) []v1alpha1.Change {
	run := guard.Run{Inventory: d.inventory, Failures: d.failures, OldConfigs: guard.Today(d.inventory, old, next), Objects: governed(old, next)}
	return guard.Compare(old, next, run)
}

// stopAtTheRun leaves nothing but the lines about the run while it is for another target or another cloud than the bundle. The rest only
// follows from that, and what would keep an old value there is no advice for a mistake on the command line.
func stopAtTheRun(changes []v1alpha1.Change, accept []string, force bool) []v1alpha1.Change {
	run := slices.DeleteFunc(slices.Clone(changes), func(c v1alpha1.Change) bool { return c.Field != "--target" && c.Field != "cloud" })
	if len(guard.Refused(run, accept, force)) > 0 {
		return run
	}
	return changes
}

// handEdits are the files that are not as the generator left them. Foreign ones are no generator's at all.
func handEdits(dir *worktree.Dir, files []worktree.FileChange) []v1alpha1.Change {
	var changes []v1alpha1.Change
	for _, f := range files {
		change := v1alpha1.Change{Class: v1alpha1.HandEdit, Field: f.Path}
		switch {
		case f.Foreign:
			change.Refused = "generate never replaces such a file; move it, or choose another directory"
			change.Message = f.Path + " is in the way: " + f.InTheWay()
		case f.HandEdited && f.Old == nil:
			change.Message = f.Path + " was deleted by hand: generate writes it again"
		case dir.Merged && f.Path == worktree.PlanFile:
			change.Message = "a merge left its conflict markers among the sums in " + f.Path + ": generate writes the files of both branches again"
		case dir.Damaged != "" && f.Path == worktree.PlanFile:
			change.Force = true
			change.Refused = "--force makes it again, but then the guard is blind. Nothing compares the classes, the driver name, the cluster ID and the cloud with those in use. " +
				"To keep the guard, restore the bundle as the warning says, and run generate again"
			change.Message = dir.Damaged
		case f.HandEdited && f.Path == worktree.PlanFile:
			change.Force, change.Refused = true, "only it says what may be installed; restore it from version control"
			change.Message = f.Path + " was edited by hand"
		case f.HandEdited && dir.Conflicting(f.Path):
			change.Force, change.Refused = true, "an edit by hand may be in it, and generate would lose it. Take the file of one branch, such as by git restore --source=HEAD -- "+shell.Word(f.Path)+" in the directory, and run generate again"
			change.Message = f.Path + " has the content of neither branch"
		case f.HandEdited:
			change.Force, change.Refused = true, "generate would lose the edit; keep your own changes in an overlay outside of the directory"
			change.Message = f.Path + " was edited by hand"
		default:
			continue
		}
		change.Message = string(change.Class) + ": " + change.Message
		changes = append(changes, change)
	}
	return changes
}

// changes are all changes of a bundle on disk: of its decisions, and of files that somebody edited. If neither explains why bytes
// differ, one change says so.
func (g *generate) changes(dir *worktree.Dir, next v1alpha1.Plan, files []worktree.FileChange) []v1alpha1.Change {
	if len(files) == 0 {
		return nil // plan.yaml is the same, and so is each decision
	}
	var changes []v1alpha1.Change
	if dir.Plan != nil {
		changes = stopAtTheRun(g.compare(*dir.Plan, next), g.accept, g.force)
	}
	edits := handEdits(dir, files)
	if !dir.Merged && slices.ContainsFunc(edits, func(c v1alpha1.Change) bool { return c.Field == worktree.PlanFile }) {
		changes = guard.Refused(changes, nil, false) // the rest may be the edit itself
	}
	if ofRecordAlone(changes) {
		if sentence := unmade(*dir.Plan, next, g.recorded(*dir.Plan, next)); sentence != "" {
			changes = append(changes, invented(sentence))
		}
	}
	explained := len(changes) > 0 && !ofRecordAlone(changes)
	if ofRecordAlone(changes) && !dir.Merged && dir.Damaged == "" {
		if rest, err := g.unrecorded(dir); err == nil {
			files, explained = rest, len(rest) == 0 && reflect.DeepEqual(dir.Plan.Given, next.Given)
		}
	}
	changes = append(changes, edits...)
	written := slices.DeleteFunc(slices.Clone(files), func(f worktree.FileChange) bool { return f.HandEdited || f.Foreign })
	if explained || dir.Merged || dir.Damaged != "" || len(written) == 0 && len(changes) == len(edits) {
		return changes
	}
	return append(changes, unexplained(dir, next, written, len(edits) > 0)...)
}

// unexplained is the change that says why these files differ, where the decisions are the same. plan.yaml follows from a file that was
// edited.
func unexplained(dir *worktree.Dir, next v1alpha1.Plan, written []worktree.FileChange, edited bool) []v1alpha1.Change {
	if dir.Plan == nil {
		return []v1alpha1.Change{{Class: v1alpha1.ConfigChange, Field: "--output-dir", Message: "config: the directory holds no bundle yet, so generate writes every file"}}
	}
	var names []string
	for _, f := range written {
		if f.Path != worktree.PlanFile {
			names = append(names, f.Path)
		}
	}
	switch {
	case len(names) == 0 && edited:
		return nil
	case len(names) == 0 && !reflect.DeepEqual(dir.Plan.Given, next.Given):
		return []v1alpha1.Change{{Class: v1alpha1.ConfigChange, Field: "config", Message: "config: its keys, or its name, are others, and every decision is the same"}}
	case len(names) == 0:
		names = []string{worktree.PlanFile}
	}
	return []v1alpha1.Change{{
		Class: v1alpha1.GeneratorChange, Field: "files",
		Message: "generator: the same decisions are written differently (another --base, or another build of the generator): " + strings.Join(names, ", "),
	}}
}

// crlf is what a command says once of line endings.
func crlf(dir string) string {
	return dir + ": some lines end with CR and LF, as git writes them with core.autocrlf; line endings are not compared"
}

func reportOf(changes, refused []v1alpha1.Change, files []worktree.FileChange) v1alpha1.Changes {
	var list []v1alpha1.FileChange
	for _, f := range files {
		list = append(list, v1alpha1.FileChange{Path: f.Path, Action: string(f.Action)})
	}
	return guard.Report(changes, refused, list)
}

// printChanges writes a report of changes to stdout.
func printChanges(w *World, form string, r v1alpha1.Changes) error {
	switch form {
	case asMarkdown:
		return report.ChangesMarkdown(w.Stdout, r)
	case asText:
		return report.Changes(w.Stdout, r)
	}
	return print(w, form, r, forPeople{})
}

// explainRefusals gives for each change why generate refuses it and what allows it, and then once what keeps all that they would lose.
func explainRefusals(refused []v1alpha1.Change) string {
	var lines []string
	for _, c := range refused {
		lines = append(lines, report.Refusal(c))
	}
	return strings.Join(append(lines, pinText(refused)...), "\n")
}

// pinText are the lines to remove from the configuration, and those to add.
func pinText(refused []v1alpha1.Change) []string {
	var lines []string
	pin, remove := guard.Pin(refused)
	if remove != nil {
		lines = append(lines, "to keep what was, remove these keys from the configuration:\n    "+printable.Lines("\n    ", remove))
	}
	if pin == nil {
		return lines
	}
	text, err := v1alpha1.YAML(map[string]any{"spec": pin})
	if err != nil {
		return lines
	}
	return append(lines, "to keep what was, add this to the configuration:\n    "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    "))
}

// wouldRefuse is what generate --check adds about the changes that generate refuses. The changes themselves are on stdout.
func wouldRefuse(refused []v1alpha1.Change) string {
	lines := []string{fmt.Sprintf("generate would refuse %d of these changes:", len(refused))}
	said := map[string]bool{}
	for _, c := range refused {
		line := "  " + report.Why(c)
		if !said[line] {
			said[line] = true
			lines = append(lines, line)
		}
	}
	return strings.Join(append(lines, pinText(refused)...), "\n")
}
