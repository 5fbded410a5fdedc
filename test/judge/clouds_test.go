package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const cloudOutput = `{"Action":"output","Package":"x/test/suite/cloudparity","Test":"TestParity/a_case","Output":"    a_test.go:9: no\n"}
{"Action":"skip","Package":"x/test/suite/cloudparity","Test":"TestParity/a_case"}
{"Action":"fail","Package":"x/test/suite/cloudparity","Test":"TestParity/another"}
{"Action":"pass","Package":"x/test/suite/cloudparity","Test":"TestParity/third"}
{"Action":"fail","Package":"x/test/suite/cloudparity","Test":"TestParity","Elapsed":4.6}
{"Action":"pass","Package":"x/test/suite/cloudparity","Test":"TestOther"}
{"Action":"output","Package":"x/test/suite/openstack","Test":"TestSanityOfIt/one","Output":"    s.go:1: 3 passed, 0 failed, 1 skipped; ok\n"}
{"Action":"pass","Package":"x/test/suite/openstack","Test":"TestSanityOfIt/one"}
{"Action":"output","Package":"x/test/suite/openstack","Test":"TestSanityOfIt/two","Output":"    s.go:1: 2 passed, 0 failed, 0 skipped\n"}
{"Action":"pass","Package":"x/test/suite/openstack","Test":"TestSanityOfIt/two"}
{"Action":"pass","Package":"x/test/suite/openstack","Test":"TestSanityOfIt","Elapsed":9}
{"Action":"fail","Package":"x/test/suite/openstack","Test":"TestAnything"}
{"Action":"output","Package":"x/test/suite/openstack","Test":"TestUpstreamBesideIt","Output":"    s.go:1: failed spec: It works\n"}
{"Action":"output","Package":"x/test/suite/openstack","Test":"TestUpstreamBesideIt","Output":"    s.go:1: because: it is broken\n"}
{"Action":"output","Package":"x/test/suite/openstack","Test":"TestUpstreamBesideIt","Output":"    s.go:2: 4 passed, 1 failed, 2 skipped\n"}
{"Action":"pass","Package":"x/test/suite/openstack","Test":"TestUpstreamBesideIt"}
{"Action":"skip","Package":"x/test/suite/openstack","Test":"TestPartialFaultsOf"}
`

func TestARunIsAddedToTheRecordOfItsCloud(t *testing.T) {
	bed, runs := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(bed, "bed.json"): `{"cloud":"epoxy","debian":"trixie","backend":"file","compute":"loop","packages":{"keystone":"2:27.0.0-3","cinder-api":"2:26.0.0-2","nova-api":"2:31.0.0-6"}}`,
		filepath.Join(runs, "epoxy-file-loop.json"): `{"cloud":"epoxy","backend":"file","compute":"loop","suites":{"generator":{"date":"2026-01-01","passed":7,"notRun":2,"seconds":1},` +
			`"driver":{"date":"2026-01-01","passed":1,"seconds":1},"partial faults":{"date":"2026-01-01","passed":4,"seconds":1}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var printed strings.Builder
	err := recordCloud(bed, runs, whole, strings.NewReader(cloudOutput), &printed, time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC))
	if err == nil || !strings.HasPrefix(err.Error(), "2 failed") {
		t.Errorf("want an error that counts 2 failed tests, got %v", err)
	}
	if !strings.Contains(printed.String(), "FAIL openstack.TestAnything") {
		t.Errorf("want the failed test printed, got %q", printed.String())
	}
	records, err := cloudRecords(runs)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	want := map[string]suiteRun{
		"cloudparity": {Date: "2026-02-03", Passed: 1, Failed: []string{"TestParity/another"}, Skipped: map[string]string{"TestParity/a_case": "no"}, Seconds: 5},
		"csi-sanity":  {Date: "2026-02-03", Passed: 2, Specs: "3 passed, 0 failed, 1 skipped; 2 passed, 0 failed, 0 skipped", Seconds: 9},
		"driver":      {Date: "2026-02-03", Failed: []string{"TestAnything"}},
		"generator":   {Date: "2026-01-01", Passed: 7, NotRun: 2, Seconds: 1},
		// A run that skips all of a suite takes nothing from its record.
		"partial faults": {Date: "2026-01-01", Passed: 4, Seconds: 1},
		theirs:           {Date: "2026-02-03", Passed: 1, Specs: "4 passed, 1 failed, 2 skipped", FailedSpecs: map[string]string{"It works": "it is broken"}},
	}
	if diff := cmp.Diff(want, records[0].Suites); diff != "" {
		t.Errorf("suites (-want +got):\n%s", diff)
	}
	got := cloudTable(records)
	for _, line := range []string{
		"| Epoxy (Keystone 27.0.0, Cinder 26.0.0, Nova 31.0.0) | file, loop | 1 passed, 1 failed, 1 skipped | 7 passed, 2 not run | not run | 3 passed, 0 failed, 1 skipped; 2 passed, 0 failed, 0 skipped | 4 passed, 1 failed, 2 skipped | not run | 4 passed | 0 passed, 1 failed | no guests |\n",
		"- epoxy file loop, cloudparity: `TestParity/another` failed\n- epoxy file loop, cloudparity: 1 skipped: no\n" +
			"- epoxy file loop, upstream's csi-sanity: 1 specs failed ([names and reasons](../../suite/openstack/records/epoxy-file-loop.json))\n- epoxy file loop, driver: `TestAnything` failed\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("want line %q in\n%s", line, got)
		}
	}
}

func TestFailedTestsThatPassWhenTheyRunAgainHavePassed(t *testing.T) {
	bed, runs := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bed, "bed.json"), []byte(`{"cloud":"epoxy","backend":"file","compute":"loop"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	repeated := `{"Action":"pass","Package":"x/test/suite/cloudparity","Test":"TestParity/another"}` + "\n" + `{"Action":"pass","Package":"x/test/suite/cloudparity","Test":"TestParity"}`
	for _, in := range []string{cloudOutput, repeated} {
		h := whole
		if in == repeated {
			h = again
		}
		if err := recordCloud(bed, runs, h, strings.NewReader(in), &strings.Builder{}, time.Time{}); (err != nil) != (in == cloudOutput) {
			t.Fatal(err)
		}
	}
	records, err := cloudRecords(runs)
	if err != nil {
		t.Fatal(err)
	}
	s := records[0].Suites["cloudparity"]
	if s.Passed != 2 || len(s.Failed) != 0 || len(s.Skipped) != 1 {
		t.Errorf("want 2 passed, 0 failed, 1 skipped, got %+v", s)
	}
	if driver := records[0].Suites["driver"]; len(driver.Failed) != 1 {
		t.Errorf("a test that did not run again: want it failed, got %+v", driver)
	}
}

func TestACellSaysWhyASuiteCannotRun(t *testing.T) {
	for _, c := range []struct{ compute, suite, want string }{
		{"loop", "guests", "no guests"}, {"loop", "driver", "not run"}, {"libvirt", "driver", "no disks here"}, {"libvirt", "csi-sanity", "not run"}, {"libvirt", "guests", "not run"},
	} {
		if got := (cloudRecord{cloudBed: cloudBed{Compute: c.compute}}).cell(c.suite); got != c.want {
			t.Errorf("%s with %s: want %q, got %q", c.suite, c.compute, c.want, got)
		}
	}
}

func TestAFailedTestThatSkipsItselfWhenItRunsAgainIsSkipped(t *testing.T) {
	bed, runs := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(bed, "bed.json"):              `{"cloud":"epoxy","backend":"file","compute":"loop"}`,
		filepath.Join(runs, "epoxy-file-loop.json"): `{"cloud":"epoxy","backend":"file","compute":"loop","suites":{"cloudparity":{"passed":7,"failed":["TestParity/a_case","TestParity/another"],"seconds":1}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	skipped := strings.Join(strings.SplitAfter(cloudOutput, "\n")[:2], "")
	err := recordCloud(bed, runs, again, strings.NewReader(skipped), &strings.Builder{}, time.Time{})
	if err == nil || !strings.HasPrefix(err.Error(), "1 failed") {
		t.Errorf("want an error that counts 1 failed test, got %v", err)
	}
	records, err := cloudRecords(runs)
	if err != nil {
		t.Fatal(err)
	}
	got := records[0].Suites["cloudparity"]
	want := suiteRun{Date: "0001-01-01", Passed: 7, Failed: []string{"TestParity/another"}, Skipped: map[string]string{"TestParity/a_case": "no (it failed first)"}, Seconds: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACloudWithoutANameIsRefused(t *testing.T) {
	bed := t.TempDir()
	if err := os.WriteFile(filepath.Join(bed, "bed.json"), []byte(`{"address":"198.18.0.1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := recordCloud(bed, t.TempDir(), whole, strings.NewReader(cloudOutput), &strings.Builder{}, time.Time{}); err == nil || !strings.Contains(err.Error(), "does not say which cloud") {
		t.Errorf("want a refusal, got %v", err)
	}
}

func TestTheRestOfAStoppedRunIsAddedToItsRecord(t *testing.T) {
	bed, runs := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(bed, "bed.json"):              `{"cloud":"epoxy","backend":"file","compute":"loop"}`,
		filepath.Join(runs, "epoxy-file-loop.json"): `{"cloud":"epoxy","backend":"file","compute":"loop","suites":{"cloudparity":{"passed":7,"notRun":4,"seconds":1}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	parity := strings.Join(strings.SplitAfter(cloudOutput, "\n")[:5], "")
	err := recordCloud(bed, runs, rest, strings.NewReader(parity), &strings.Builder{}, time.Time{})
	if err == nil || !strings.HasPrefix(err.Error(), "1 failed") {
		t.Errorf("want an error that counts 1 failed test, got %v", err)
	}
	records, err := cloudRecords(runs)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := records[0].cell("cloudparity"), "8 passed, 1 failed, 1 skipped, 1 not run"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if got := records[0].Suites["cloudparity"].Seconds; got != 6 {
		t.Errorf("want the seconds of both runs, 6, got %d", got)
	}
	err = recordCloud(bed, runs, rest, strings.NewReader(parity), &strings.Builder{}, time.Time{})
	if err == nil || !strings.Contains(err.Error(), "some ran twice") {
		t.Errorf("more tests than were left: want a refusal, got %v", err)
	}
}

func TestARunThatSomebodyStoppedIsNoWholeRun(t *testing.T) {
	bed := t.TempDir()
	if err := os.WriteFile(filepath.Join(bed, "bed.json"), []byte(`{"cloud":"epoxy","backend":"file","compute":"loop"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	began := func(test string) string {
		return `{"Action":"run","Package":"x/test/suite/cloudparity","Test":"` + test + `"}` + "\n"
	}
	ended := func(test string) string { return strings.Replace(began(test), "run", "pass", 1) }
	stopped := began("TestParity") + began("TestParity/one") + ended("TestParity/one") + began("TestParity/two")
	for in, want := range map[string]string{
		stopped: "the run was stopped in cloudparity.TestParity/two",
		stopped + ended("TestParity/two") + ended("TestParity"): "",
	} {
		err := recordCloud(bed, t.TempDir(), whole, strings.NewReader(in), &strings.Builder{}, time.Time{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
