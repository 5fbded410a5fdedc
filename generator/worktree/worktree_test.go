package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// tree is what a run wants, with its plan.yaml.
func tree(t *testing.T, files map[string]string) map[string][]byte {
	t.Helper()
	want := map[string][]byte{}
	for p, content := range files {
		want[p] = []byte(content)
	}
	text, err := PlanText(v1alpha1.Plan{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindPlan,
		Target: v1alpha1.Vanilla, Format: v1alpha1.Helm, Files: Files(want),
	})
	if err != nil {
		t.Fatal(err)
	}
	want[PlanFile] = text
	return want
}

// run writes a tree as the command does: open, compare, refuse, write.
func run(t *testing.T, dir string, want map[string][]byte, force bool) error {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		return err
	}
	changes, err := d.Changes(want)
	if err != nil {
		return err
	}
	if err := Foreign(d, changes); err != nil {
		return err
	}
	for _, c := range changes {
		if c.HandEdited && c.Old != nil && !force {
			return errors.New(c.Path + ": was edited by hand")
		}
	}
	return d.Write(changes)
}

func onDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(p)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func text(want map[string][]byte) map[string]string {
	files := map[string]string{}
	for p, content := range want {
		files[p] = string(content)
	}
	return files
}

func write(t *testing.T, name, content string) {
	t.Helper()
	testfile.Write(t, name, content, 0o644)
}

func TestADirectoryIsMadeReplacedAndPruned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	first := tree(t, map[string]string{"values.yaml": "1", "sub/deep/x.yaml": "x", "README.md": "r"})
	if err := run(t, dir, first, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(first), onDisk(t, dir)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	second := tree(t, map[string]string{"values.yaml": "2", "README.md": "r", "new/y.yaml": "y"})
	if err := run(t, dir, second, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(second), onDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "sub")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want the emptied directory gone, got %v", err)
	}
}

func TestAnUnchangedTreeHasNoChanges(t *testing.T) {
	dir := t.TempDir()
	want := tree(t, map[string]string{"values.yaml": "1"})
	if err := run(t, dir, want, false); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := d.Changes(want); err != nil || len(changes) != 0 {
		t.Errorf("want no change, got %+v, %v", changes, err)
	}
}

func TestAHandEditedFileIsRefusedUnlessForced(t *testing.T) {
	for name, next := range map[string]map[string]string{
		"replaced": {"values.yaml": "2"},
		"restored": {"values.yaml": "1"},
		"pruned":   {"other.yaml": "1"},
	} {
		dir := t.TempDir()
		if err := run(t, dir, tree(t, map[string]string{"values.yaml": "1"}), false); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "values.yaml"), "mine")
		before := onDisk(t, dir)
		want := tree(t, next)
		if err := run(t, dir, want, false); err == nil || !strings.Contains(err.Error(), "values.yaml: was edited by hand") {
			t.Errorf("%s: want a refusal, got %v", name, err)
		}
		if diff := cmp.Diff(before, onDisk(t, dir)); diff != "" {
			t.Errorf("%s: a refused run changed (-before +after):\n%s", name, diff)
		}
		if err := run(t, dir, want, true); err != nil {
			t.Errorf("%s: forced: %v", name, err)
		}
		if diff := cmp.Diff(text(want), onDisk(t, dir)); diff != "" {
			t.Errorf("%s: forced (-want +got):\n%s", name, diff)
		}
	}
}

func TestAHandEditedPlanIsRefusedUnlessForced(t *testing.T) {
	for name, edit := range map[string]func(plan string) string{
		"a value": func(plan string) string {
			return strings.Replace(plan, "target: vanilla\n", "target: vanilla\nsimulated: true\n", 1)
		},
		"a comment":      func(plan string) string { return plan + "# mine\n" },
		"its first line": func(plan string) string { return "# mine\n" + plan },
		"another sum":    func(plan string) string { return strings.Replace(plan, sumPrefix, sumPrefix+"00", 1) },
	} {
		dir := t.TempDir()
		want := tree(t, map[string]string{"values.yaml": "1"})
		if err := run(t, dir, want, false); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, PlanFile), edit(string(want[PlanFile])))
		d, err := Open(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if edited, err := d.Edited(); err != nil || !slices.Equal(edited, []string{PlanFile}) {
			t.Errorf("%s: want %s edited, got %v, %v", name, PlanFile, edited, err)
		}
		if changes, err := d.Changes(want); err != nil || len(changes) != 1 || !changes[0].HandEdited || changes[0].Foreign {
			t.Errorf("%s: want one file edited by hand, got %+v, %v", name, changes, err)
		}
		if err := run(t, dir, want, false); err == nil || !strings.Contains(err.Error(), "plan.yaml: was edited by hand") {
			t.Errorf("%s: want a refusal, got %v", name, err)
		}
		if err := run(t, dir, want, true); err != nil {
			t.Errorf("%s: forced: %v", name, err)
		}
		if diff := cmp.Diff(text(want), onDisk(t, dir)); diff != "" {
			t.Errorf("%s: forced (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPlanWithoutItsSumIsEdited(t *testing.T) {
	dir := t.TempDir()
	want := tree(t, map[string]string{"values.yaml": "1"})
	if err := run(t, dir, want, false); err != nil {
		t.Fatal(err)
	}
	plan, _, _ := strings.Cut(string(want[PlanFile]), sumPrefix)
	write(t, filepath.Join(dir, PlanFile), plan)
	if err := run(t, dir, want, false); err == nil || !strings.Contains(err.Error(), "plan.yaml: was edited by hand") {
		t.Errorf("want a refusal, got %v", err)
	}
}

func TestAFileThatSomebodyRemovedIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	want := tree(t, map[string]string{"values.yaml": "1", "README.md": "r"})
	if err := run(t, dir, want, false); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "values.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := run(t, dir, want, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(want), onDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestForeignFilesAreNeverTouched(t *testing.T) {
	cases := []struct {
		name  string
		place func(t *testing.T, dir string)
	}{
		{"a file", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "values.yaml"), "mine") }},
		{"a directory", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "values.yaml", "x"), "mine") }},
		{"a file where a directory is needed", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "sub"), "mine") }},
		{"a link", func(t *testing.T, dir string) {
			if err := os.Symlink("/etc/hostname", filepath.Join(dir, "values.yaml")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link to a directory outside", func(t *testing.T, dir string) {
			if err := os.Symlink(t.TempDir(), filepath.Join(dir, "sub")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a plan.yaml that is none", func(t *testing.T, dir string) { write(t, filepath.Join(dir, PlanFile), "steps: []\n") }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.place(t, dir)
			write(t, filepath.Join(dir, "notes.txt"), "mine")
			before, _ := os.ReadDir(dir)
			err := run(t, dir, tree(t, map[string]string{"values.yaml": "1", "sub/x": "x"}), true)
			var notOurs *NotOurs
			if !errors.As(err, &notOurs) {
				t.Fatalf("want NotOurs even with force, got %v", err)
			}
			after, _ := os.ReadDir(dir)
			if len(before) != len(after) {
				t.Errorf("want nothing written, got %v", after)
			}
		})
	}
}

// A check compares such a directory too. It must not call the file an edit, because --force replaces edits.
func TestAPlanThatIsNoneIsForeignAndNoEdit(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, PlanFile), "steps: []\n")
	d, err := Open(dir)
	if notOurs := (*NotOurs)(nil); !errors.As(err, &notOurs) || d == nil {
		t.Fatalf("want NotOurs and the directory to compare, got %v, %v", err, d)
	}
	changes, err := d.Changes(tree(t, map[string]string{"values.yaml": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	foreign := map[string]bool{}
	for _, c := range changes {
		if foreign[c.Path] = c.Foreign; c.HandEdited {
			t.Errorf("%s counts as edited by hand; no earlier run wrote it", c.Path)
		}
	}
	if diff := cmp.Diff(map[string]bool{PlanFile: true, "values.yaml": false}, foreign); diff != "" {
		t.Errorf("foreign files (-want +got):\n%s", diff)
	}
}

func TestForeignFilesBesideTheBundleStay(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "notes.txt"), "mine")
	write(t, filepath.Join(dir, "sub", "mine.txt"), "mine")
	if err := run(t, dir, tree(t, map[string]string{"sub/x": "x"}), false); err != nil {
		t.Fatal(err)
	}
	if err := run(t, dir, tree(t, map[string]string{"y": "y"}), false); err != nil {
		t.Fatal(err)
	}
	got := onDisk(t, dir)
	if got["notes.txt"] != "mine" || got["sub/mine.txt"] != "mine" || len(got) != 4 {
		t.Errorf("want the foreign files beside y and plan.yaml, got %v", got)
	}
}

func TestARunThatWasCutOffIsCompletedByTheNext(t *testing.T) {
	dir := t.TempDir()
	if err := run(t, dir, tree(t, map[string]string{"a": "1", "b": "1", "gone": "1"}), false); err != nil {
		t.Fatal(err)
	}
	want := tree(t, map[string]string{"a": "2", "b": "2", "c": "2"})
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil { // pruned, too
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), "2") // renamed into place before the power went
	write(t, filepath.Join(dir, "c"), "2")
	if err := run(t, dir, want, false); err != nil {
		t.Fatalf("want no hand edit or foreign file seen, got %v", err)
	}
	if diff := cmp.Diff(text(want), onDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheOldPlanStaysUntilEverythingElseIsDone(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "full", "of"), "others")
	err := (&Dir{Path: dir}).Write([]FileChange{{Path: "a", Action: Create, New: []byte("1")}, {Path: "full", Action: Remove}, {Path: PlanFile, Action: Create, New: []byte("new")}})
	if err == nil || !strings.Contains(err.Error(), dir+" was written in part") {
		t.Errorf("want an error that names the directory, got %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "full/of": "others"}, onDisk(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := run(t, dir, tree(t, map[string]string{"a": "1"}), false); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "a")+" is missing") {
		t.Errorf("want an error that names the file, got %v", err)
	}
}

func TestAPlanThatPointsOutsideIsRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "precious")
	write(t, outside, "x")
	for _, p := range []string{"../precious", outside, "a/../../precious", ".", "", "plan.yaml", ".git/HEAD", ".env", "base/.hidden/x", "...", "git~1/HEAD"} {
		dir := filepath.Join(filepath.Dir(outside), "dir")
		text, err := PlanText(v1alpha1.Plan{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindPlan, Files: []v1alpha1.File{{Path: p, SHA256: hash([]byte("x"))}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(text), string(text) + "- [\n"} { // also one that nobody can read
			write(t, filepath.Join(dir, PlanFile), text)
			var notOurs *NotOurs
			if d, err := Open(dir); !errors.As(err, &notOurs) || len(d.hashes) > 0 {
				t.Errorf("%q: want NotOurs and no such file, got %v, %v", p, d.hashes, err)
			}
		}
	}
}

func TestNothingIsLeftBehindWhenWritingFails(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Write([]FileChange{{Path: "a", Action: Create, New: []byte("1")}, {Path: "../b", Action: Create, New: []byte("1")}})
	if err == nil {
		t.Fatal("want an error for a path outside")
	}
	if _, err := os.Stat(filepath.Join(parent, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("want nothing outside, got %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".cinder-csi-generator*"))
	if len(left) > 0 {
		t.Errorf("want no staging directory left, got %v", left)
	}
}

// Where case does not count, a directory of a change takes the place of one that leads to the bundle.
func TestADirectoryInAnotherCaseBesideTheWayToABundleIsInTheWay(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"prod/cinder-csi", "Prod/cinder-csi", "prod/Cinder-CSI", "prod/other", "proﬆ"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link, elsewhere := filepath.Join(t.TempDir(), "link"), t.TempDir()
	if err := os.Symlink(top, link); err != nil {
		t.Fatal(err)
	}
	check := func(in, dir string, want map[string]string) {
		t.Helper()
		t.Chdir(in)
		found, err := Unlike(dir, map[string][]byte{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, c := range found {
			got[c.Path] = c.Replaces
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s in %s: %s", dir, in, diff)
		}
	}
	bundle, both := filepath.Join(top, "prod/cinder-csi"), map[string]string{"../Cinder-CSI": "../cinder-csi", "../../Prod": "../../prod"}
	for _, dir := range []string{"prod/cinder-csi", bundle} {
		check(top, dir, both)
		check(link, dir, both)
	}
	check(bundle, ".", map[string]string{})
	check(elsewhere, bundle, map[string]string{})
	if err := os.Mkdir(filepath.Join(top, ".git"), 0o755); err != nil { // a work tree is known from everywhere
		t.Fatal(err)
	}
	check(bundle, ".", both)
	check(filepath.Join(top, "prod"), "cinder-csi", both)
	check(elsewhere, bundle, both)
	check(elsewhere, filepath.Join(link, "prod/cinder-csi"), both)
}
