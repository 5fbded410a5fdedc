package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/google/go-cmp/cmp"
)

var scenarioRow = regexp.MustCompile(`\{"([^"]+)", \w+\}`)

// scenariosOf reads the names in the tables of test/suite/cluster, whose build tag keeps them out of this test.
func scenariosOf(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../suite/cluster/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := testfile.Text(t, file)
		for _, after := range strings.Split(text, "[]scenario{")[1:] {
			table, _, _ := strings.Cut(after, "\n}")
			for _, row := range scenarioRow.FindAllStringSubmatch(table, -1) {
				names = append(names, row[1])
			}
		}
	}
	if len(names) < 29 {
		t.Errorf("found %d scenarios, want at least 29", len(names))
	}
	return names
}

func TestThePageSaysWhatEachScenarioProves(t *testing.T) {
	text := testfile.Text(t, filepath.Join("../..", clusterResults))
	rows, err := page.Part(text, "scenarios")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for row := range strings.Lines(strings.TrimPrefix(rows, tableHead)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		got = append(got, name)
	}
	// The rehearsals are no part of that run. The README of their directory has them.
	readme := testfile.Text(t, "../suite/cluster/README.md")
	for _, name := range scenariosOf(t) {
		if !slices.Contains(got, name) && !strings.Contains(readme, "\n| "+name+" | ") {
			t.Errorf("neither RESULTS.md nor README.md of test/suite/cluster says what %q proves", name)
		}
	}
}

const scenarioLog = `some output
measured: from eviction to Running      8.1 s
measured: eviction command 12.0 s
measured: e2e       a node drained: volumes move                                     44.2 s
measured: e2e       a claim                                                           3.0 s
`

func TestALogGivesEachScenarioItsTimeAndFigures(t *testing.T) {
	got, err := readLog(strings.NewReader(scenarioLog))
	if err != nil {
		t.Fatal(err)
	}
	want := []result{
		{"a node drained: volumes move", 44.2, []string{"From eviction to Running 8.1 s", "Eviction command 12.0 s"}},
		{"a claim", 3, nil},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := readLog(strings.NewReader("ok\n")); err == nil {
		t.Error("a log without a scenario is accepted")
	}
}

func TestAPageKeepsWhatIsProvedAndGetsTheFigures(t *testing.T) {
	results, err := readLog(strings.NewReader(scenarioLog))
	if err != nil {
		t.Fatal(err)
	}
	rows := tableHead + `| a claim | it binds | 9.9 s | failed | an old figure |
| a node drained: volumes move | they move |
| another | it holds | 1.0 s |
`
	got, err := withResults(rows, results)
	if err != nil {
		t.Fatal(err)
	}
	want := tableHead + `| a claim | it binds | 3.0 s | failed | |
| a node drained: volumes move | they move | 44.2 s | | From eviction to Running 8.1 s. Eviction command 12.0 s |
| another | it holds | not run | | |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := withResults(got, results)
	if err != nil || again != got {
		t.Errorf("filled in again it is not the same: %v\n%s", err, cmp.Diff(got, again))
	}
}

func TestUpstreamHasAColumnOfItsOwn(t *testing.T) {
	const upstreamLog = `measured: upstream  a claim                       12.5 s
measured: upstream  a node drained: volumes move      failed
measured: upstream replaced, every node has this driver 15.7 s
measured: upstream  another                           not offered: no such hook
`
	rows := tableHead + "| a claim | it binds | 3.0 s | | a figure |\n| a node drained: volumes move | they move | 4.0 s | 1.0 s | |\n| another | it holds | 1.0 s | | |\n| later | it is new | 1.0 s | an old figure | |\n"
	got, err := withUpstream(rows, strings.NewReader(upstreamLog))
	if err != nil {
		t.Fatal(err)
	}
	want := tableHead + "| a claim | it binds | 3.0 s | 12.5 s | a figure |\n| a node drained: volumes move | they move | 4.0 s | failed | |\n| another | it holds | 1.0 s | not offered: no such hook | |\n| later | it is new | 1.0 s | not run | |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, log := range []string{"ok\n", "measured: upstream  unknown   1.0 s\n"} {
		if _, err := withUpstream(rows, strings.NewReader(log)); err == nil {
			t.Errorf("the log %q is accepted", log)
		}
	}
}

func TestAScenarioThatThePageDoesNotExplainIsAnError(t *testing.T) {
	if _, err := withResults("| a claim | it binds |\n", []result{{name: "a claim"}, {name: "new"}}); err == nil || !strings.Contains(err.Error(), "no row for: new") {
		t.Errorf("got the error %v", err)
	}
	if _, err := withResults("| a claim |\n", nil); err == nil {
		t.Error("a row that does not say what is proved is accepted")
	}
}
