package worktree

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// conflict is two versions of some lines as git leaves them.
func conflict(ours, theirs string) string {
	return "<<<<<<< HEAD\n" + ours + "=======\n" + theirs + ">>>>>>> theirs\n"
}

// mergedPlan is the plan.yaml of one branch, with conflicts in the sums of these files and in the last line.
func mergedPlan(t *testing.T, ours, theirs map[string][]byte, paths ...string) string {
	t.Helper()
	merged := string(ours[PlanFile])
	for _, prefix := range append(paths, sumPrefix) {
		a, b := lineAfter(t, string(ours[PlanFile]), prefix), lineAfter(t, string(theirs[PlanFile]), prefix)
		merged = strings.Replace(merged, a, conflict(a, b), 1)
	}
	return merged
}

// lineAfter is the line with the sum of a path, or the line that begins with a text.
func lineAfter(t *testing.T, plan, what string) string {
	t.Helper()
	if what != sumPrefix {
		_, plan, _ = strings.Cut(plan, "- path: "+what+"\n")
	} else {
		plan = plan[strings.Index(plan, sumPrefix):]
	}
	line, _, found := strings.Cut(plan, "\n")
	if !found {
		t.Fatalf("no line for %s", what)
	}
	return line + "\n"
}

func TestTheSumOfThePlanStandsBelowEverythingThatMerges(t *testing.T) {
	plan := string(tree(t, map[string]string{"values.yaml": "1"})[PlanFile])
	lines := strings.Split(strings.TrimSuffix(plan, "\n"), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, sumPrefix) {
		t.Errorf("want the sum in the last line, got %q", last)
	}
}

func TestAConflictAmongTheSumsIsSettledByTheNextRun(t *testing.T) {
	ours := tree(t, map[string]string{"README.md": "ours", "a.yaml": "a2", "b.yaml": "b1", "gone.yaml": "g"})
	theirs := tree(t, map[string]string{"README.md": "theirs", "a.yaml": "a1", "b.yaml": "b2", "gone.yaml": "g"})
	both := tree(t, map[string]string{"README.md": "both", "a.yaml": "a2", "b.yaml": "b2"})
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
		dir := t.TempDir()
		if err := run(t, dir, ours, false); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, PlanFile), strings.ReplaceAll(mergedPlan(t, ours, theirs, "README.md", "a.yaml", "b.yaml"), "\n", end))
		write(t, filepath.Join(dir, "README.md"), conflict("ours\n", "theirs\n"))
		write(t, filepath.Join(dir, "b.yaml"), "b2")
		d, err := Open(dir)
		if err != nil || !d.Merged || d.Plan == nil {
			t.Fatalf("%s: want the plan of both branches, got %+v, %v", name, d, err)
		}
		if edited, err := d.Edited(); err != nil || !slices.Equal(edited, []string{PlanFile}) {
			t.Errorf("%s: want %s not as it was written, got %v, %v", name, PlanFile, edited, err)
		}
		if err := run(t, dir, both, false); err != nil {
			t.Errorf("%s: want it settled without force, got %v", name, err)
		}
		if diff := cmp.Diff(text(both), onDisk(t, dir)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

// A file whose sum merged is not in conflict, and an edit of it is an edit as ever.
func TestAnEditOutsideOfTheConflictIsStillAnEdit(t *testing.T) {
	ours, theirs := tree(t, map[string]string{"a.yaml": "1", "b.yaml": "1"}), tree(t, map[string]string{"a.yaml": "2", "b.yaml": "1"})
	dir := t.TempDir()
	if err := run(t, dir, ours, false); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, PlanFile), mergedPlan(t, ours, theirs, "a.yaml"))
	write(t, filepath.Join(dir, "b.yaml"), "mine")
	if err := run(t, dir, theirs, false); err == nil || !strings.Contains(err.Error(), "b.yaml: was edited by hand") || strings.Contains(err.Error(), "a.yaml: was edited") {
		t.Errorf("want b.yaml refused alone, got %v", err)
	}
}

func TestAConflictOfDecisionsIsNamedAndForceMakesThePlanAgain(t *testing.T) {
	want := tree(t, map[string]string{"values.yaml": "1", "old.yaml": "1"})
	next := tree(t, map[string]string{"values.yaml": "2"})
	dir := t.TempDir()
	if err := run(t, dir, want, false); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, PlanFile), strings.Replace(string(want[PlanFile]), "target: vanilla\n", conflict("target: vanilla\n", "target: standalone\n"), 1))
	d, err := Open(dir)
	if broken := (*NotOurs)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), "a merge left its conflict markers") || !strings.Contains(err.Error(), "git restore --source=HEAD") {
		t.Fatalf("want the conflict named and what to do, got %v", err)
	}
	changes, err := d.Changes(next)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Foreign || c.HandEdited != (c.Path == PlanFile) {
			t.Errorf("%s: want only %s edited, and nothing foreign: %+v", c.Path, PlanFile, c)
		}
	}
	if err := d.Write(changes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(next), onDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLineEndingsAreNoContent(t *testing.T) {
	dir := t.TempDir()
	want := tree(t, map[string]string{"values.yaml": "a: 1\nb: 2\n", "sub/x.yaml": "c: 3\n"})
	if err := run(t, dir, want, false); err != nil {
		t.Fatal(err)
	}
	for name, content := range want {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), strings.ReplaceAll(string(content), "\n", "\r\n"))
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	edited, err := d.Edited()
	if err != nil || edited != nil {
		t.Errorf("want nothing edited, got %v, %v", edited, err)
	}
	changes, err := d.Changes(want)
	if err != nil || changes != nil || !d.CRLF {
		t.Errorf("want no change, and the line endings noticed (%v), got %+v, %v", d.CRLF, changes, err)
	}
	read, err := d.Read()
	if err != nil || string(read["values.yaml"]) != "a: 1\nb: 2\n" {
		t.Errorf("want the text as it was written, got %q, %v", read["values.yaml"], err)
	}
	next := tree(t, map[string]string{"values.yaml": "a: 1\nb: 3\n", "sub/x.yaml": "c: 3\n"})
	if changes, err = d.Changes(next); err != nil || len(changes) != 2 || changes[1].HandEdited || strings.Count(changes[1].Diff(), "\n") != 6 {
		t.Errorf("want one changed line in values.yaml and %s, got %+v, %v", PlanFile, changes, err)
	}
}
