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
	ours := tree(t, map[string]string{"README.md": "ours\n", "a.yaml": "a2", "b.yaml": "b1", "gone.yaml": "g"})
	theirs := tree(t, map[string]string{"README.md": "theirs\n", "a.yaml": "a1", "b.yaml": "b2", "gone.yaml": "g"})
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

// Both branches wrote the file, and it has the content of neither.
func TestAnEditInsideOfTheConflictIsStillAnEdit(t *testing.T) {
	ours, theirs := tree(t, map[string]string{"a.yaml": "ours\n", "b.yaml": "1"}), tree(t, map[string]string{"a.yaml": "theirs\n", "b.yaml": "1"})
	for content, edited := range map[string]bool{
		"ours\n": false, "theirs\n": false, conflict("ours\n", "theirs\n"): false,
		"mine\n": true, conflict("ours\n", "mine\n"): true, conflict("mine\n", "theirs\n"): true, "mine\n" + conflict("ours\n", "theirs\n"): true,
	} {
		dir := t.TempDir()
		if err := run(t, dir, ours, false); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, PlanFile), mergedPlan(t, ours, theirs, "a.yaml"))
		write(t, filepath.Join(dir, "a.yaml"), content)
		next := tree(t, map[string]string{"a.yaml": "next\n", "b.yaml": "1"})
		err := run(t, dir, next, false)
		if edited != (err != nil && strings.Contains(err.Error(), "a.yaml: was edited by hand")) {
			t.Errorf("%q: want it refused %t, got %v", content, edited, err)
		}
		want := "next\n"
		if edited {
			want = content
		}
		if got := onDisk(t, dir)["a.yaml"]; got != want {
			t.Errorf("want a.yaml %q, got %q", want, got)
		}
	}
}

// One conflict may go over the sums of several files, and begin or end between a path and its sum.
func TestEachSumOfAConflictBelongsToItsFile(t *testing.T) {
	const header = "kind: Plan\nfiles:\n"
	for _, test := range []struct{ list, want string }{
		{"  - path: a\n" + conflict("    sha256: 1\n  - path: b\n    sha256: 2\n", "    sha256: 3\n  - path: b\n    sha256: 4\n"), "a1 b2 a3 b4"},
		{"  - path: a\n    sha256: 1\n" + conflict("  - path: b\n", "  - path: c\n") + "    sha256: 2\n", "a1 b2 c2"},
		{"  - path: a\n<<<<<<< HEAD\n    sha256: 1\n||||||| base\n    sha256: 2\n=======\n    sha256: 3\n>>>>>>> b\n", "a1 a2 a3"},
	} {
		_, files, ok := resolveSums([]byte(header + test.list))
		var got []string
		for _, f := range files {
			got = append(got, f.Path+f.SHA256)
		}
		if !ok || strings.Join(got, " ") != test.want {
			t.Errorf("%s: want %s, got %v, %t", test.list, test.want, got, ok)
		}
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
	if d.Target != "" || d.Format != "helm" || !strings.Contains(err.Error(), "both branches changed the same lines") {
		t.Errorf("want what stands outside of the conflict alone, got target %q, format %q, %v", d.Target, d.Format, err)
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
