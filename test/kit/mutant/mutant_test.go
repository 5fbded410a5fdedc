package mutant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/cinder-csi/cinder-csi/test/kit/testlog"
)

func TestAnEditAppliesToATextThatOccursOnce(t *testing.T) {
	root := testfile.Tree(t, map[string]string{"p/a.go": "one two\n", "p/b.go": "two\n", "p/a_test.go": "one three\n"})
	apply := func(edits ...Edit) (map[string]string, error) {
		return Mutant{Name: "name", Rule: "the rule", Edits: edits}.Changed(root)
	}
	got, err := apply(Edit{"p", "one", "1"}, Edit{"p", "1 two", "1 2"})
	if err != nil || cmp.Diff(map[string]string{filepath.Join(root, "p/a.go"): "1 2\n"}, got) != "" {
		t.Errorf("two edits of one file: got %v, %v", got, err)
	}
	for what, edit := range map[string]Edit{
		"twice":           {"p", "two", "2"},
		"nowhere":         {"p", "four", "4"},
		"in a test":       {"p", "three", "3"},
		"changes nothing": {"p", "one", "one"},
	} {
		if _, err := apply(edit); err == nil || !strings.Contains(err.Error(), "mutant name no longer applies") || !strings.Contains(err.Error(), "the rule") {
			t.Errorf("a text %s: got %v", what, err)
		}
	}
}

func TestARunHasOneVerdict(t *testing.T) {
	const began = `{"Action":"run","Package":"p","Test":"TestA"}` + "\n"
	for _, c := range []struct {
		name, in string
		failed   bool
		want     Verdict
		by       string
	}{
		{"a test fails", `{"Action":"fail","Package":"p","Test":"TestA"}`, true, Caught, "TestA"},
		{"a test panics", began + `{"Action":"output","Package":"p","Output":"panic: deadlock\n"}` + "\n" + `{"Action":"fail","Package":"p"}`, true, Caught, "TestA"},
		{"all pass", `{"Action":"pass","Package":"p","Test":"TestA"}`, false, Survived, ""},
		{"none runs", `{"Action":"pass","Package":"p"}`, false, Survived, ""},
		{"no compiler takes it", `{"Action":"fail","Package":"p"}`, true, DoesNotBuild, ""},
		{"time runs out", began + `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out after 1m0s\n"}`, true, TimedOut, "TestA"},
	} {
		tests, err := testlog.Reader{}.Read(strings.NewReader(c.in))
		if err != nil {
			t.Fatal(err)
		}
		if got := judge(tests, c.failed); got.Verdict != c.want || got.By != c.by {
			t.Errorf("%s: want %s by %q, got %s by %q", c.name, c.want, c.by, got.Verdict, got.By)
		}
	}
}

func TestADrawChangesOneLineThatTestsRun(t *testing.T) {
	root := testfile.Tree(t, map[string]string{"p/a.go": `package p

const most = 3

func f(n int) (int, error) {
	mu.Lock()
	defer mu.Unlock()
	if n < most && ok {
		log.Info("small", "n", 5)
		return 0, fmt.Errorf("%d is less than %d", n, 7)
	}
	if err := g(); err != nil {
		return 0, err
	}
	return 9, nil // not run
}
`})
	changes, err := Changes(root, "p", func(file string, line int) bool { return file == "p/a.go" && line != 15 })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.Rule+": "+strings.TrimSpace(c.After))
		if n := strings.Count(cmp.Diff(strings.Split(c.Before, "\n"), strings.Split(c.After, "\n")), "\n"); n == 0 || c.text == "" {
			t.Errorf("no change: %+v", c)
		}
	}
	want := []string{
		"off by one: const most = 4",
		"a call is left out: _ = mu.Lock",
		"a defer is dropped: _ = mu.Unlock",
		"a condition is negated: if !(n < most && ok) {",
		"an operator is another: if n < most || ok {",
		"an operator is another: if n <= most && ok {",
		"an error is swallowed: return 0, nil",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "p/a.go:3 (off by one)\n-const most = 3\n+const most = 4\n"; changes[0].Diff(root) != want {
		t.Errorf("want the diff %q, got %q", want, changes[0].Diff(root))
	}
	if _, err := os.Stat(filepath.Join(root, "p/a.go")); err != nil {
		t.Error(err)
	}
}
