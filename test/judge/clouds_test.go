package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
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

// beds makes the directories of a cloud and of its records, and puts a record of an earlier run there if there is one.
func beds(t *testing.T, cloud, record string) (bed, runs string) {
	t.Helper()
	bed, runs = t.TempDir(), t.TempDir()
	for name, text := range map[string]string{filepath.Join(bed, "bed.json"): cloud, filepath.Join(runs, "epoxy-file-loop.json"): record} {
		if text == "" {
			continue
		}
		testfile.Write(t, name, text, 0o644)
	}
	return bed, runs
}

func TestARunIsAddedToTheRecordOfItsCloud(t *testing.T) {
	bed, runs := beds(t,
		`{"cloud":"epoxy","debian":"trixie","backend":"file","compute":"loop","packages":{"keystone":"2:27.0.0-3","cinder-api":"2:26.0.0-2","nova-api":"2:31.0.0-6"}}`,
		`{"cloud":"epoxy","backend":"file","compute":"loop","suites":{"generator":{"date":"2026-01-01","passed":7,"seconds":1},`+
			`"driver":{"date":"2026-01-01","passed":1,"seconds":1},"partial faults":{"date":"2026-01-01","passed":4,"seconds":1}}}`)
	var printed strings.Builder
	err := recordCloud(bed, runs, strings.NewReader(cloudOutput), &printed, time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC))
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
		"generator":   {Date: "2026-01-01", Passed: 7, Seconds: 1},
		// A run that skips all of a suite takes nothing from its record.
		"partial faults": {Date: "2026-01-01", Passed: 4, Seconds: 1},
		theirs:           {Date: "2026-02-03", Passed: 1, Specs: "4 passed, 1 failed, 2 skipped", FailedSpecs: map[string]string{"It works": "it is broken"}},
	}
	if diff := cmp.Diff(want, records[0].Suites); diff != "" {
		t.Errorf("suites (-want +got):\n%s", diff)
	}
	got := cloudTable(records)
	for _, line := range []string{
		"| Epoxy (Keystone 27.0.0, Cinder 26.0.0, Nova 31.0.0) | file, loop | 1 passed, 1 failed, 1 skipped | 7 passed | not run | 3 passed, 0 failed, 1 skipped; 2 passed, 0 failed, 0 skipped | 4 passed, 1 failed, 2 skipped | not run | 4 passed | 0 passed, 1 failed | no guests |\n",
		"- epoxy file loop, cloudparity: `TestParity/another` failed\n- epoxy file loop, cloudparity: 1 skipped: no\n" +
			"- epoxy file loop, upstream's csi-sanity: 1 specs failed ([names and reasons](../../suite/openstack/records/epoxy-file-loop.json))\n- epoxy file loop, driver: `TestAnything` failed\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("want line %q in\n%s", line, got)
		}
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

func TestARunThatIsNoneIsRefused(t *testing.T) {
	const epoxy = `{"cloud":"epoxy","backend":"file","compute":"loop"}`
	began := func(test string) string {
		return `{"Action":"run","Package":"x/test/suite/cloudparity","Test":"` + test + `"}` + "\n"
	}
	ended := func(test string) string { return strings.Replace(began(test), "run", "pass", 1) }
	stopped := began("TestParity") + began("TestParity/one") + ended("TestParity/one") + began("TestParity/two")
	for _, c := range []struct{ cloud, in, want string }{
		{`{"address":"198.18.0.1"}`, cloudOutput, "does not say which cloud"},
		{epoxy, "", "no test ran"},
		{epoxy, stopped, "the run was stopped in cloudparity.TestParity/two"},
		{epoxy, stopped + ended("TestParity/two") + ended("TestParity"), ""},
	} {
		bed, runs := beds(t, c.cloud, "")
		err := recordCloud(bed, runs, strings.NewReader(c.in), &strings.Builder{}, time.Time{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}
