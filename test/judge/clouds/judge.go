package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// event is one line of `go test -json` (go doc cmd/test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

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

// judge reads the output of go test -json. It prints the output of each failed test. Tests that began and did not end are unfinished: somebody
// stopped the run, and nothing else in the output says so.
func judge(in io.Reader, out io.Writer, date string) (found map[string]Suite, unfinished []string, err error) {
	found = map[string]Suite{}
	running := map[string]bool{}
	output := map[string][]string{}
	parents := map[string]bool{} // tests with subtests: those count, and not the test around them
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		suite := suiteOf(e.Package, e.Test)
		if e.Test == "" || suite == "" {
			if e.Action == "output" && e.Test == "" || e.Action == "build-output" {
				fmt.Fprint(out, e.Output)
			}
			continue
		}
		if before, _, nested := cutLast(e.Test, "/"); nested {
			parents[e.Package+before] = true
		}
		s := found[suite]
		name := path.Base(e.Package) + "." + e.Test
		switch e.Action {
		case "output":
			output[name] = append(output[name], e.Output)
			continue
		case "run":
			running[name] = true
			continue
		case "pass", "fail", "skip":
			delete(running, name)
		default:
			continue
		}
		s.Date = date
		if !strings.Contains(e.Test, "/") {
			s.Seconds += int(e.Elapsed + 0.5)
		}
		said := strings.TrimSpace(strings.Join(output[name], ""))
		delete(output, name)
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
		case e.Action == "skip":
			if s.Skipped == nil {
				s.Skipped = map[string]string{}
			}
			s.Skipped[e.Test] = reason(said)
		case e.Action == "fail" && !slices.ContainsFunc(s.Failed, func(failed string) bool { return strings.HasPrefix(failed, e.Test+"/") }):
			s.Failed = append(s.Failed, e.Test)
			fmt.Fprintf(out, "FAIL %s\n%s\n", name, said)
		case e.Action == "pass" && !parents[e.Package+e.Test]:
			s.Passed++
			s.PassedTests = append(s.PassedTests, e.Test)
		}
		found[suite] = s
	}
	return found, slices.Sorted(maps.Keys(running)), lines.Err()
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// skipLine is the line of testing for the argument of Skip.
var skipLine = regexp.MustCompile(`(?m)^\s*\S+\.go:\d+: (.*)$`)

func reason(said string) string {
	if m := skipLine.FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return said
}
