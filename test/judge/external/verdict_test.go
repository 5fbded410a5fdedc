package external

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const (
	provisioning = Family + " [Driver: cinder] [Testpattern: Dynamic PV (ext4)] provisioning should provision storage"
	slow         = Family + " [Driver: cinder] [Testpattern: Dynamic PV (xfs)] [Slow] volumeIO should write files"
	disruptive   = Family + " [Driver: cinder] [Testpattern: Dynamic PV (xfs)] [Slow] disruptive [Disruptive] Should restart kubelet"
)

func mustParse(t *testing.T, text string) []Skip {
	t.Helper()
	skips, err := ParseSkips(text)
	if err != nil {
		t.Fatal(err)
	}
	return skips
}

func TestAReportGivesTheStorageTests(t *testing.T) {
	t.Parallel()
	got, err := ParseReport([]byte(`[{"SpecReports": [
		{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
		{"LeafNodeType": "SynchronizedAfterSuite", "State": "failed", "Failure": {"Message": "no nodes"}},
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "run", "State": "skipped"},
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["External Storage [Driver: cinder]", "[Testpattern: Dynamic PV (ext4)] provisioning"],
		 "LeafNodeText": "should provision storage", "State": "passed", "RunTime": 2000000000}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Test{
		{Name: "SynchronizedAfterSuite", State: "failed", Message: "no nodes"},
		{Name: provisioning, State: "passed", Time: 2 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if tests, err := ParseReport([]byte(`{"SpecReports": []}`)); err == nil {
		t.Errorf("no report: got %v, want an error", tests)
	}
}

func TestTheSuiteIsReadFromTheName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{provisioning: "provisioning", slow: "volumeIO", disruptive: "disruptive", "AfterSuite": "other"} {
		if got := (Test{Name: name}).Suite(); got != want {
			t.Errorf("suite of %q: %q, want %q", name, got, want)
		}
	}
}

func TestOnlyListedTestsMayBeSkipped(t *testing.T) {
	t.Parallel()
	passed := Test{Name: provisioning, State: "passed", Time: time.Minute}
	const list = `disruptive	needs ssh`
	for _, c := range []struct {
		name  string
		tests []Test
		skips string
		want  string // in the error; empty for none
	}{
		{"all pass", []Test{passed, {Name: disruptive, State: "skipped"}}, list, ""},
		{"another test was not selected", []Test{passed, {Name: slow, State: "skipped"}}, "", ""},
		{"a test failed", []Test{passed, {Name: slow, State: "failed", Time: 1}}, "", "1 tests failed"},
		{"a test hung", []Test{passed, {Name: slow, State: "timedout", Time: 1}}, "", "1 tests failed"},
		{"a test skipped itself", []Test{passed, {Name: slow, State: "skipped", Message: "no such capability", Time: 1}}, "", "1 tests failed"},
		{"a line is for no test", []Test{passed}, list, "no test: disruptive"},
		{"one of two lines with the same reason is for no test", []Test{passed, {Name: disruptive, State: "skipped"}}, list + "\nnfs\tneeds ssh", "no test: nfs"},
		{"nothing ran", []Test{{Name: provisioning, State: "skipped"}}, "", "no test ran"},
		{"it failed before it passed", []Test{{Name: provisioning, State: "failed", Time: 1}, passed}, "", ""},
		{"it passed before it failed", []Test{passed, {Name: provisioning, State: "failed", Time: 1}}, "", "1 tests failed"},
		{"a later run left out what passed", []Test{passed, {Name: provisioning, State: "skipped"}}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := Judge(c.tests, mustParse(t, c.skips)).Err()
			if c.want == "" && err != nil {
				t.Errorf("error %v, want none", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTheSummaryCountsBySuite(t *testing.T) {
	t.Parallel()
	got := Judge([]Test{
		{Name: provisioning, State: "passed", Time: 90 * time.Second},
		{Name: slow, State: "failed", Message: "expected true\nstack", Time: time.Minute},
		{Name: disruptive, State: "skipped"},
	}, mustParse(t, "# comment\n\ndisruptive\tneeds ssh\n")).String()
	want := `| suite | passed | failed | not run | minutes |
| --- | --- | --- | --- | --- |
| all | 1 | 1 | 1 | 2.5 |
| disruptive | 0 | 0 | 1 | 0.0 |
| provisioning | 1 | 0 | 0 | 1.5 |
| volumeIO | 0 | 1 | 0 | 1.0 |
failed: External Storage [Testpattern: Dynamic PV (xfs)] [Slow] volumeIO should write files: expected true

| not run | because |
| --- | --- |
| 1 | needs ssh |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheCommandLineLeavesOutEveryLine(t *testing.T) {
	t.Parallel()
	if got, want := Flag(mustParse(t, "a b\tr\nc.d|e\tr\n")), "(a b)|(c.d|e)"; got != want {
		t.Errorf("flag %q, want %q", got, want)
	}
	if got := Flag(nil); got != "" {
		t.Errorf("flag %q for no lines, want none", got)
	}
}

func TestALineOfSkipsNeedsARegexpAndAReason(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"disruptive", "disruptive\t", "\treason", "(\treason"} {
		if skips, err := ParseSkips(text); err == nil {
			t.Errorf("%q gives %v, want an error", text, skips)
		}
	}
}

func TestTheCommittedSkipsCanBeRead(t *testing.T) {
	t.Parallel()
	text := testfile.Text(t, "skips.txt")
	if len(mustParse(t, text)) == 0 {
		t.Error("skips.txt has no line")
	}
}
