package test_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// listed are the directories that a variable of make names.
func listed(t *testing.T, variable string) []string {
	t.Helper()
	text, err := database()
	list := regexp.MustCompile(`(?m)^` + variable + ` :?= (.*)$`).FindStringSubmatch(text)
	if err != nil || list == nil {
		t.Fatalf("make has no variable %s (%v)", variable, err)
	}
	return strings.Fields(list[1])
}

// tagged is a file that only tests with a build tag have.
var tagged = regexp.MustCompile(`(?m)^//go:build (?:[a-km-z]|linux.)`)

// callers are the directories whose tests call one of the functions, those behind a build tag apart.
func callers(t *testing.T, functions string) []string {
	t.Helper()
	var dirs []string
	calls := regexp.MustCompile(`\btestenv\.(` + functions + `)\(`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{"bin", ".git", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text := testfile.Text(t, path)
		if dir, _ := filepath.Rel("..", filepath.Dir(path)); calls.MatchString(text) && !tagged.MatchString(text) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// The gate runs all tests as an ordinary user, and as root those of ROOT alone.
func TestRootRunsEveryPackageThatNeedsRoot(t *testing.T) {
	want := slices.DeleteFunc(callers(t, "NeedRoot|Loop"), func(dir string) bool { return dir == "test" || dir == "test/kit/testenv" })
	got := slices.Sorted(slices.Values(listed(t, "ROOT")))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the packages whose tests need root and ROOT in the Makefile differ (-packages +ROOT):\n%s", diff)
	}
}

func TestRootRunsTheTestsOfTheDriverThatHaveDisks(t *testing.T) {
	files, err := filepath.Glob("suite/driver/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	needs, name := regexp.MustCompile(`\b(withDisks|NeedRoot|Loop)\(t, `), regexp.MustCompile(`^Test\w+`)
	var want []string
	for _, file := range files {
		for _, function := range strings.Split(testfile.Text(t, file), "\nfunc ")[1:] {
			if test := name.FindString(function); test != "" && needs.MatchString(function) {
				want = append(want, test)
			}
		}
	}
	got := strings.Split(listed(t, "ROOT_DRIVER")[0], "|")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tests of test/suite/driver with disks and ROOT_DRIVER in the Makefile differ (-tests +ROOT_DRIVER):\n%s", diff)
	}
}

// As root a missing program fails a test, so `make test-tools` installs what Debian does not have on every machine.
func TestThePackagesOfTestsAreInstalled(t *testing.T) {
	have := append(listed(t, "TEST_TOOLS"), "coreutils", "dash", "mount") // which every Debian has
	calls, pairs := regexp.MustCompile(`\btestenv\.NeedTools\(.*\)`), regexp.MustCompile(`"[^"]+", "([^"]+)"`)
	needed := 0
	for _, dir := range callers(t, "NeedTools") {
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text := testfile.Text(t, file)
			if tagged.MatchString(text) {
				continue
			}
			for _, pair := range pairs.FindAllStringSubmatch(strings.Join(calls.FindAllString(text, -1), "\n"), -1) {
				if needed++; !slices.Contains(have, pair[1]) {
					t.Errorf("%s needs %s; name it in TEST_TOOLS of test/kit/kit.mk", file, pair[1])
				}
			}
		}
	}
	if needed < 10 {
		t.Errorf("found %d programs that tests need, want at least 10", needed)
	}
}

// A short size that no target plays in full is a proof that nobody has.
func TestEverySizeIsPlayedInFull(t *testing.T) {
	suites := strings.Join(makeFiles(t), "\n")
	for _, dir := range callers(t, "Full|NeedFull") {
		if dir == "test" || slices.Contains(listed(t, "SIZES"), dir) {
			continue
		}
		direct := regexp.MustCompile(`(?m)^\t.*\./` + regexp.QuoteMeta(dir) + ` .*-full\b`)
		inside := regexp.MustCompile(`(?m)^\tcd ` + regexp.QuoteMeta(dir) + ` && go test .*-full\b`)
		if !direct.MatchString(suites) && !inside.MatchString(suites) {
			t.Errorf("the tests of %s have two sizes, and no recipe runs them with -full; add it to SIZES in test/suite/suite.mk", dir)
		}
	}
}

// The corpus of every fuzz target runs with its package's tests; the inputs beyond it only where the list names the target.
func TestEveryFuzzTargetIsListed(t *testing.T) {
	all := strings.Join(listed(t, "TARGETS"), " ")
	for _, list := range []string{"FUZZ_DRIVER", "FUZZ_GENERATOR", "FUZZ_OTHERS"} {
		all += " " + strings.Join(listed(t, list), " ")
	}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir, _ := filepath.Rel("..", filepath.Dir(path))
		for _, f := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllStringSubmatch(testfile.Text(t, path), -1) {
			if !strings.Contains(all, dir+":"+f[1]+"=") {
				t.Errorf("%s: %s is in no list of fuzz targets of the Makefile", dir, f[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
