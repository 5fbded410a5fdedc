package imports_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func packageOf(path string, imports ...string) pkg {
	return pkg{path: path, imports: imports, deps: imports}
}

func TestEachFaultOfTheRulesIsReported(t *testing.T) {
	ours := func(path string) string { return module + path }
	for name, tc := range map[string]struct {
		rules    rules
		packages []pkg
		want     []string
	}{
		"all in order": {rules{"a": {"b"}, "b": {}}, []pkg{packageOf("a", "fmt", ours("b")), packageOf("b")}, nil},
		"a package below one with a rule has none": {
			rules{"a": {"b"}, "b": {}},
			[]pkg{packageOf("a", ours("b")), packageOf("a/new", ours("b")), packageOf("b")},
			[]string{"a/new has no import rule; add one to mayImport"},
		},
		"a subtree is a rule for the packages below": {
			rules{"a/...": {"b"}, "b": {}},
			[]pkg{packageOf("a"), packageOf("a/new", ours("b")), packageOf("b")},
			nil,
		},
		"the exact rule counts": {
			rules{"a/...": {"b"}, "a/x": {}, "b": {}},
			[]pkg{packageOf("a", ours("b")), packageOf("a/x", ours("b")), packageOf("b")},
			[]string{`a/x must not import b (its rule "a/x" allows: )`},
		},
		"the longest subtree counts": {
			rules{"a/...": {"b"}, "a/x/...": {}, "b": {}},
			[]pkg{packageOf("a", ours("b")), packageOf("a/x/y", ours("b")), packageOf("b")},
			[]string{`a/x/y must not import b (its rule "a/x/..." allows: )`},
		},
		"a name that begins alike is another package": {
			rules{"a/...": {}, "b": {}},
			[]pkg{packageOf("a"), packageOf("ab"), packageOf("b")},
			[]string{"ab has no import rule; add one to mayImport"},
		},
		"a package of an allowed package's subtree is not allowed": {
			rules{"a": {"b"}, "b/...": {}},
			[]pkg{packageOf("a", ours("b"), ours("b/deep")), packageOf("b"), packageOf("b/deep")},
			[]string{`a must not import b/deep (its rule "a" allows: b)`},
		},
		"an allowance that nobody uses": {
			rules{"a": {"b", "c"}, "b": {}, "c": {}},
			[]pkg{packageOf("a", ours("b")), packageOf("b"), packageOf("c")},
			[]string{"the rule of a allows c, which it does not import; remove it"},
		},
		"a rule for no package": {
			rules{"a": {}, "gone": {"a"}},
			[]pkg{packageOf("a")},
			[]string{"mayImport has a rule for gone, which is no package; remove it"},
		},
		"a subtree whose packages all have rules of their own": {
			rules{"a": {}, "a/...": {}},
			[]pkg{packageOf("a")},
			[]string{"mayImport has a rule for a/..., which is no package; remove it"},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.rules.check(tc.packages)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEachFaultOfTheLibraryRulesIsReported(t *testing.T) {
	rule := []libraryRule{{[]string{"example.com/x/..."}, []string{"a", "b/..."}}}
	for name, tc := range map[string]struct {
		packages []pkg
		want     []string
	}{
		"all in order":        {[]pkg{packageOf("a", "example.com/x"), packageOf("b/c", "example.com/x/y"), packageOf("d", "example.com/xy")}, nil},
		"below test/":         {[]pkg{packageOf("a", "example.com/x"), packageOf("b", "example.com/x"), packageOf("test/kit/c", "example.com/x")}, nil},
		"a package below one": {[]pkg{packageOf("a", "example.com/x"), packageOf("a/z", "example.com/x"), packageOf("b", "example.com/x")}, []string{"a/z imports example.com/x/..., which only a, b/... may import"}},
		"an importer without": {[]pkg{packageOf("a", "example.com/x"), packageOf("b", "fmt")}, []string{"b/... may import example.com/x/... and does not; remove it from libraryImporters"}},
		"an importer is gone": {[]pkg{packageOf("b", "example.com/x")}, []string{"a may import example.com/x/... and does not; remove it from libraryImporters"}},
	} {
		if diff := cmp.Diff(tc.want, checkLibraries(rule, tc.packages)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatIsReachedThroughOthersIsReported(t *testing.T) {
	all := []pkg{{path: "a", deps: []string{"fmt", "net/http"}}, {path: "b", deps: []string{module + "driver/x"}}, {path: "c"}}
	want := []string{"a reaches net/http", "b reaches " + module + "driver/x", "gone is no package; correct the list"}
	if diff := cmp.Diff(want, checkReach([]string{"a", "b", "c", "gone"}, []string{"net/http", "driver/..."}, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
