package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testlog"
)

// cloudDir has the records of runs on the clouds of test/bed/clouds: counts of each suite, names of failed tests, and the reason of each skip.
const cloudDir = "test/suite/openstack/records"

// suites are the suites of the table, in its order. A test belongs to the first suite that matches its package and its name.
var suites = []struct {
	name, pkg string
	test      *regexp.Regexp
}{
	{"cloudparity", "test/suite/cloudparity", regexp.MustCompile(`^TestParity$`)},
	{"generator", "test/suite/openstack", regexp.MustCompile(`^Test(Inspect|EveryUser|Kubectl|Check|BadInput)`)},
	{"conformance", "test/suite/openstack", regexp.MustCompile(`^TestTheDriverConforms`)},
	{"csi-sanity", "test/suite/openstack", regexp.MustCompile(`^TestSanity`)},
	{"csi-sanity", "test/suite/guests", regexp.MustCompile(`^TestSanity`)},
	{theirs, "test/suite/openstack", regexp.MustCompile(`^TestUpstream`)},
	{"access rules", "driver/openstack", regexp.MustCompile(`^TestOnARealCloud`)},
	{"partial faults", "test/suite/openstack", regexp.MustCompile(`^TestPartialFaults`)},
	{"driver", "test/suite/openstack", regexp.MustCompile(`^Test`)},
	{"guests", "test/suite/guests", regexp.MustCompile(`^Test`)},
}

// theirs is csi-sanity with upstream's plugin.
const theirs = "upstream's csi-sanity"

// suiteOf is the suite of a test; "" if the table has none for it.
func suiteOf(pkg, test string) string {
	top, _, _ := strings.Cut(test, "/")
	for _, s := range suites {
		if strings.HasSuffix(pkg, s.pkg) && s.test.MatchString(top) {
			return s.name
		}
	}
	return ""
}

// counts is the last line of csi-sanity and of conformance.
var counts = regexp.MustCompile(`(\d+) passed, (\d+) failed, (\d+) skipped`)

// failedSpec is a line of csi-sanity about a spec that upstream fails, and the next line, which has the reason.
var failedSpec = regexp.MustCompile(`failed spec: (.*)(?:\n.*because: (.*))?`)

// readSuites reads the output of go test -json. It prints the output of each failed test. Tests that began and did not end are unfinished: somebody
// stopped the run.
func readSuites(in io.Reader, out io.Writer, date string) (found map[string]suiteRun, unfinished []string, err error) {
	found = map[string]suiteRun{}
	tests, err := testlog.Reader{Out: out}.Read(in)
	for _, t := range tests {
		suite, name := suiteOf(t.Package, t.Name), path.Base(t.Package)+"."+t.Name
		if t.Name == "" || suite == "" {
			if t.Name == "" {
				fmt.Fprint(out, t.Output)
			}
			continue
		}
		if t.Outcome == testlog.Unfinished {
			unfinished = append(unfinished, name)
			continue
		}
		s := found[suite]
		s.Date = date
		if t.Name == t.Top() {
			s.Seconds += int(t.Seconds + 0.5)
		}
		said := strings.TrimSpace(t.Output)
		if c := counts.FindAllString(said, -1); len(c) > 0 && slices.Contains([]string{"csi-sanity", "conformance", theirs}, suite) {
			s.Specs = strings.TrimPrefix(s.Specs+"; "+c[len(c)-1], "; ")
		}
		for _, m := range failedSpec.FindAllStringSubmatch(said, -1) {
			if s.FailedSpecs == nil {
				s.FailedSpecs = map[string]string{}
			}
			s.FailedSpecs[m[1]] = m[2]
		}
		switch {
		case t.Outcome == testlog.Skipped:
			if s.Skipped == nil {
				s.Skipped = map[string]string{}
			}
			s.Skipped[t.Name] = reason(said)
		case t.Outcome == testlog.Failed && !slices.ContainsFunc(s.Failed, func(failed string) bool { return strings.HasPrefix(failed, t.Name+"/") }):
			s.Failed = append(s.Failed, t.Name)
			fmt.Fprintf(out, "FAIL %s\n%s\n", name, said)
		case t.Outcome == testlog.Passed && !t.HasSubtests:
			s.Passed++
		}
		found[suite] = s
	}
	slices.Sort(unfinished)
	return found, unfinished, err
}

// skipLine is the line of testing for the argument of Skip.
var skipLine = regexp.MustCompile(`(?m)^\s*\S+\.go:\d+: (.*)$`)

func reason(said string) string {
	if m := skipLine.FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return said
}

// recordCloud adds the suites of one run to the record of the cloud. What the run did not have, or skipped, stays.
func recordCloud(bed, runs string, in io.Reader, out io.Writer, now time.Time) error {
	c, err := page.Record[cloudBed](filepath.Join(bed, "bed.json"))
	if err != nil {
		return err
	}
	if c.Name == "" || c.Backend == "" || c.Compute == "" {
		return fmt.Errorf("%s/bed.json does not say which cloud this is; start it again with make cloud-up", bed)
	}
	suites, unfinished, err := readSuites(in, out, now.UTC().Format(time.DateOnly))
	if err != nil {
		return err
	}
	if len(unfinished) > 0 {
		return fmt.Errorf("the run was stopped in %s, so it is no record; run it again", unfinished[len(unfinished)-1])
	}
	path := filepath.Join(runs, c.file())
	r, err := page.Record[cloudRecord](path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r.cloudBed = c
	if r.Suites == nil {
		r.Suites = map[string]suiteRun{}
	}
	var failed []string
	for name, s := range suites {
		if s.ran() {
			r.Suites[name] = s
			failed = append(failed, s.Failed...)
		}
	}
	if err := page.Keep(path, r); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d failed; %s has the names", len(failed), path)
	}
	if len(suites) == 0 {
		return errors.New("no test ran")
	}
	return nil
}
