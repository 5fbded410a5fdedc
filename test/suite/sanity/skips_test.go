package sanity

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// skip is a line of skips.txt.
type skip struct{ spec, condition, reason string }

// The conditions of skips. Without root, volumes have no disk, so the test filters those specs out. All other specs skip themselves.
var conditions = []string{"always", "not-root", "guest", "unlimited"}

// readSkips reads the skips that apply under any of the conditions.
func readSkips(path string, holding []string) ([]skip, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var skips []skip
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[0] == "" || fields[2] == "" {
			return nil, fmt.Errorf("%s:%d: want SPEC, CONDITION and REASON separated by tabs", path, n+1)
		}
		if !slices.Contains(conditions, fields[1]) {
			return nil, fmt.Errorf("%s:%d: the condition is %q; it can be %s", path, n+1, fields[1], strings.Join(conditions, " or "))
		}
		if slices.Contains(holding, fields[1]) {
			skips = append(skips, skip{fields[0], fields[1], fields[2]})
		}
	}
	return skips, nil
}

// filters are the patterns of the specs that need a disk.
func filters(skips []skip) []string {
	var patterns []string
	for _, s := range skips {
		if s.condition == "not-root" {
			// Ginkgo matches the pattern with the name of the suite followed by the text of the spec.
			patterns = append(patterns, "^"+regexp.QuoteMeta("CSI sanity "+s.spec)+"$")
		}
	}
	return patterns
}

// outcome is the result of the specs.
type outcome struct {
	passed          int
	failed, skipped []string
	why             map[string]string // of the failed ones, in one line
}

// print ends with the counts, which the callers of this suite read.
func (o outcome) print() {
	for _, spec := range o.failed {
		fmt.Printf("failed spec: %s\nbecause: %s\n", spec, o.why[spec])
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", o.passed, len(o.failed), len(o.skipped))
}

func judge(specs []ginkgo.SpecReport) outcome {
	o := outcome{why: map[string]string{}}
	for _, s := range specs {
		switch {
		case s.LeafNodeType != types.NodeTypeIt:
		case s.State.Is(types.SpecStatePassed):
			o.passed++
		case s.State.Is(types.SpecStateSkipped | types.SpecStatePending):
			o.skipped = append(o.skipped, s.FullText())
		default:
			o.failed = append(o.failed, s.FullText())
			o.why[s.FullText()] = oneLine(s.Failure.Message)
		}
	}
	return o
}

// oneLine is a message of Gomega, which has a paragraph for each part of a comparison. Of an error of gRPC it is the description.
func oneLine(message string) string {
	words := strings.Join(strings.Fields(message), " ")
	if _, description, found := strings.Cut(words, " desc = "); found {
		words = description
	}
	const most = 300
	if len(words) > most {
		return strings.ToValidUTF8(words[:most], "") + "…"
	}
	return words
}

// compare returns the differences between the skipped specs and the listed ones.
func compare(listed []skip, skipped []string) []string {
	var differences []string
	for _, s := range listed {
		if !slices.Contains(skipped, s.spec) {
			differences = append(differences, fmt.Sprintf("%q was not skipped: remove it from skips.txt, or correct its name", s.spec))
		}
	}
	for _, spec := range skipped {
		if !slices.ContainsFunc(listed, func(s skip) bool { return s.spec == spec }) {
			differences = append(differences, fmt.Sprintf("%q was skipped, and skips.txt does not say why", spec))
		}
	}
	return differences
}

func TestMissingAndUnlistedSkipsAreReported(t *testing.T) {
	listed := []skip{{"a works", "always", "why"}, {"b works", "not-root", "why"}}
	for _, c := range []struct {
		name    string
		skipped []string
		want    int
	}{
		{"the same", []string{"b works", "a works"}, 0},
		{"one less", []string{"a works"}, 1},
		{"one more", []string{"a works", "b works", "c works"}, 1},
		{"another", []string{"a works", "c works"}, 2},
	} {
		if got := compare(listed, c.skipped); len(got) != c.want {
			t.Errorf("%s: want %d differences, got %q", c.name, c.want, got)
		}
	}
}

func TestAMalformedSkipIsRefused(t *testing.T) {
	for _, line := range []string{"spec", "spec\talways", "spec\talways\t", "spec\tsometimes\twhy", "\talways\twhy", "a\talways\tb\tc"} {
		path := filepath.Join(t.TempDir(), "skips.txt")
		if err := os.WriteFile(path, []byte("# comment\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if skips, err := readSkips(path, conditions); err == nil {
			t.Errorf("%q: want an error, got %v", line, skips)
		}
	}
}

func TestAFailedSpecHasItsReasonInOneLine(t *testing.T) {
	spec := ginkgo.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: "works", State: types.SpecStateFailed}
	spec.Failure.Message = "Expected\n    <int>: 1\nto equal\n    <int>: 2\n"
	o := judge([]ginkgo.SpecReport{spec})
	if got, want := o.why["works"], "Expected <int>: 1 to equal <int>: 2"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if got, want := oneLine("Unexpected error:\n    <*status.Error>: rpc error: code = Internal desc = no room"), "no room"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if long := oneLine(strings.Repeat("ä", 400)); len(long) > 310 || strings.ContainsRune(long, '\uFFFD') {
		t.Errorf("want a short line of whole letters, got %q", long)
	}
}
