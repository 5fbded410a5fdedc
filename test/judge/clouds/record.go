package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/judge/page"
)

// Cloud is the cloud of a run, as bed.json describes it.
type Cloud struct {
	Name     string            `json:"cloud"`
	Debian   string            `json:"debian"`
	Backend  string            `json:"backend"`
	Compute  string            `json:"compute"`
	Packages map[string]string `json:"packages"` // versions of keystone, cinder-api, nova-api
}

// Suite is the outcome of one suite on one cloud.
type Suite struct {
	Date    string            `json:"date"`
	Passed  int               `json:"passed"`
	Failed  []string          `json:"failed,omitempty"`  // names of tests
	Skipped map[string]string `json:"skipped,omitempty"` // the reason by the name of the test
	Specs   string            `json:"specs,omitempty"`   // counts that the suite printed itself, of its parts
	Seconds int               `json:"seconds"`

	NotRun      int               `json:"notRun,omitempty"`      // the rest of a run that somebody stopped; written by hand
	FailedSpecs map[string]string `json:"failedSpecs,omitempty"` // of upstream, with their reasons; they fail no test
	PassedTests []string          `json:"-"`                     // of this run
}

// Record is a file of the directory runs.
type Record struct {
	Cloud
	Suites map[string]Suite `json:"suites"`
}

// ran says whether any test of the suite did not skip itself.
func (s Suite) ran() bool { return s.Passed > 0 || len(s.Failed) > 0 }

// failedBefore is added to the reason of a skip, so that the table shows it.
const failedBefore = " (it failed first)"

// with is the outcome of a whole run after some of its failed tests ran again.
func (s Suite) with(again Suite) Suite {
	var failed []string
	s.Skipped = maps.Clone(s.Skipped)
	for _, test := range s.Failed {
		reason, skipped := again.Skipped[test]
		switch {
		case slices.Contains(again.PassedTests, test):
			s.Passed++
		case skipped && s.Skipped == nil:
			s.Skipped = map[string]string{test: reason + failedBefore}
		case skipped:
			s.Skipped[test] = reason + failedBefore
		default:
			failed = append(failed, test)
		}
	}
	s.Failed, s.Date = failed, again.Date
	return s
}

// and is the outcome of a stopped run and of a later run of tests that it did not reach.
func (s Suite) and(rest Suite) (Suite, error) {
	ran := rest.Passed + len(rest.Failed) + len(rest.Skipped)
	if ran > s.NotRun {
		return s, fmt.Errorf("%d tests ran, and the record has %d that were not run; so some ran twice", ran, s.NotRun)
	}
	s.Date, s.Passed, s.Seconds, s.NotRun = rest.Date, s.Passed+rest.Passed, s.Seconds+rest.Seconds, s.NotRun-ran
	s.Failed = append(s.Failed, rest.Failed...)
	if s.Skipped == nil {
		s.Skipped = map[string]string{}
	}
	maps.Copy(s.Skipped, rest.Skipped)
	return s, nil
}

func (c Cloud) file() string {
	return strings.Join([]string{c.Name, c.Backend, c.Compute}, "-") + ".json"
}

func readCloud(path string) (Cloud, error) {
	c, err := page.Record[Cloud](path)
	if err == nil && (c.Name == "" || c.Backend == "" || c.Compute == "") {
		err = fmt.Errorf("%s does not say which cloud this is; start it again with make cloud-up", path)
	}
	return c, err
}

func (r Record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readRecords reads all records, the oldest release first.
func readRecords(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, file := range files {
		r, err := page.Record[Record](file)
		if err != nil {
			return nil, err
		}
		if want := r.file(); filepath.Base(file) != want {
			return nil, fmt.Errorf("%s is the record of %s", file, want)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int {
		return cmp.Or(slices.Index(clouds, a.Name)-slices.Index(clouds, b.Name), strings.Compare(a.file(), b.file()))
	})
	return all, nil
}

// clouds are the clouds of test/bed/clouds, the oldest first.
var clouds = []string{"victoria", "zed", "epoxy", "sid"}
