package worktree

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffIsUnified(t *testing.T) {
	lines := func(s string) []byte { return []byte(strings.ReplaceAll(s, " ", "\n") + "\n") }
	cases := []struct {
		name string
		old  []byte
		new  []byte
		want string
	}{
		{"created", nil, lines("a b"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"removed", lines("a"), nil, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"},
		{"changed in the middle", lines("1 2 3 4 5 6 7 8 9"), lines("1 2 3 4 x 6 7 8 9"), "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		{"two hunks", lines("a 2 3 4 5 6 7 8 b"), lines("x 2 3 4 5 6 7 8 y"), "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-a\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-b\n+y\n"},
		{"no newline at the end", []byte("a"), []byte("a\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
	}
	for _, c := range cases {
		got := FileChange{Path: "f", Old: c.old, New: c.new}.Diff()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// plan.yaml may be another person's, and it can name any file of the directory, such as one with credentials that git ignores.
func TestADiffShowsOnlyWhatARunWroteOrReplaces(t *testing.T) {
	const secret = "password: hunter2\n"
	wrote := func(content string) string { return string(tree(t, map[string]string{"a.yaml": content})[PlanFile]) }
	both := mergedPlan(t, tree(t, map[string]string{"a.yaml": secret}), tree(t, map[string]string{"a.yaml": "theirs\n"}), "a.yaml")
	for _, c := range []struct {
		name, plan, content string
		wanted, shown       bool
	}{
		{name: "an earlier run wrote it", plan: wrote(secret), content: secret, shown: true},
		{name: "one branch wrote it", plan: both, content: secret, shown: true},
		{name: "both branches wrote it", plan: both, content: conflict(secret, "theirs\n"), shown: true},
		{name: "this run replaces it", plan: wrote("1"), content: secret, wanted: true, shown: true},
		{name: "no run wrote it", plan: wrote("1"), content: secret},
		{name: "neither branch wrote it", plan: both, content: secret + "mine\n"},
		{name: "no sum can be read", plan: wrote(secret) + "- [\n", content: secret},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, PlanFile), c.plan)
		write(t, filepath.Join(dir, "a.yaml"), c.content)
		want := map[string]string{"b.yaml": "1"}
		if c.wanted {
			want["a.yaml"] = "2\n"
		}
		d, _ := Open(dir)
		changes, err := d.Changes(tree(t, want))
		if err != nil || len(changes) != 3 {
			t.Fatalf("%s: want three changes, got %+v, %v", c.name, changes, err)
		}
		diff := changes[0].Diff()
		if changes[0].Path != "a.yaml" || !strings.Contains(diff, "a/a.yaml") || strings.Contains(diff, "hunter2") != c.shown {
			t.Errorf("%s: want its content shown %t, got %s", c.name, c.shown, diff)
		}
	}
}

func FuzzADiffTurnsTheOldFileIntoTheNew(f *testing.F) {
	f.Add("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nx\nc\nd\ne\nf\ng\ny\n")
	f.Add("a", "b")
	f.Add("a\na\na\nb\n", "a\nb\na\n")
	f.Add("", "a\n\nb")
	f.Fuzz(func(t *testing.T, before, after string) {
		diff := FileChange{Path: "f", Old: []byte(before), New: []byte(after)}.Diff()
		if got := patch(t, before, diff); got != after {
			t.Errorf("want %q, got %q from\n%s", after, got, diff)
		}
	})
}

// patch applies a unified diff as patch(1) does, by its line numbers, and fails where a line is not the one it names.
func patch(t *testing.T, before, diff string) string {
	t.Helper()
	old := strings.SplitAfter(before, "\n")
	var out strings.Builder
	at := 0 // lines of old that are used up
	if diff == "" {
		return before
	}
	steps := strings.SplitAfter(diff, "\n")[2:]
	for i, step := range steps {
		if step == "" || step[0] == '\\' {
			continue
		}
		text := step[1:]
		if i+1 < len(steps) && strings.HasPrefix(steps[i+1], "\\") {
			text = strings.TrimSuffix(text, "\n")
		}
		switch step[0] {
		case '@':
			var first, count int
			if n, _ := fmt.Sscanf(step, "@@ -%d,%d", &first, &count); n == 2 && count == 0 {
				first++
			}
			for ; at < first-1; at++ {
				out.WriteString(old[at])
			}
		case '+':
			out.WriteString(text)
		case ' ', '-':
			if old[at] != text {
				t.Fatalf("line %d is %q, the diff says %q", at+1, old[at], text)
			}
			if step[0] == ' ' {
				out.WriteString(text)
			}
			at++
		default:
			t.Fatalf("no line of a diff: %q", step)
		}
	}
	return out.String() + strings.Join(old[at:], "")
}
