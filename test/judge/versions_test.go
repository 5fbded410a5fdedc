package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/google/go-cmp/cmp"
)

func TestEachOutcomeIsShown(t *testing.T) {
	got := versionTable([]versionRun{
		{Version: "v1.27.16", Bundles: []bundle{{Bundle: "a", Passed: true}, {Bundle: "b", Refused: "error:\nspec.x: needs Kubernetes 1.29\n"}}},
		{Version: "v1.30.1", Bundles: []bundle{{Bundle: "b"}, {Bundle: "c", Passed: true}}},
	})
	want := `| bundle | 1.27.16 | 1.30.1 |
| --- | --- | --- |
| a | passed | not run |
| b | refused | **failed** |
| c | not run | passed |

- 1.27.16, b: ` + "`spec.x: needs Kubernetes 1.29`\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheScenariosOfAClusterAreShown(t *testing.T) {
	passed, failed, err := readCluster(strings.NewReader(`{"Action":"run","Test":"TestBundle"}
{"Action":"output","Test":"TestBundle/helm","Output":"measured: helm 3 s\n"}
{"Action":"pass","Test":"TestBundle/helm"}
{"Action":"pass","Test":"TestBundle"}
{"Action":"output","Test":"TestEndToEnd/a_claim","Output":"want 1, got 2\n"}
{"Action":"fail","Test":"TestEndToEnd/a_claim"}
{"Action":"fail","Test":"TestEndToEnd"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
`), out(t, "measured: helm 3 s\nwant 1, got 2\nFAIL\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := clusterTable([]cluster{
		{Kubernetes: "v1.27.16", Kubelet: "v1.27.16", Passed: passed, Failed: failed},
		{Kubernetes: "v1.36.2", Kubelet: "v1.34.3", Passed: []string{"TestEndToEnd/a_claim", "TestThePages"}},
	})
	want := `| test | 1.27.16 | 1.36.2, kubelet 1.34.3 |
| --- | --- | --- |
| TestBundle/helm | passed | not run |
| a claim | **failed** | passed |
| TestThePages | not run | passed |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// out compares what is written with a text when the test ends.
func out(t *testing.T, want string) *strings.Builder {
	b := &strings.Builder{}
	t.Cleanup(func() {
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
	})
	return b
}

func TestWhatDidNotPassHasFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"skipped": {`{"Action":"pass","Test":"TestA"}
{"Action":"skip","Test":"TestB"}`, []string{"TestB"}},
		"stopped": {`{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/b"}`, []string{"TestA/b"}},
	} {
		if _, failed, err := readCluster(strings.NewReader(tt.in), io.Discard); err != nil || !cmp.Equal(tt.want, failed) {
			t.Errorf("%s: want %v, got %v, %v", name, tt.want, failed, err)
		}
	}
	if _, _, err := readCluster(strings.NewReader(`{"Action":"fail","Package":"a"}`), io.Discard); err == nil {
		t.Error("want an error if no test ran: the package may not compile")
	}
}

func TestARecordNamesItsVersionsAndItsFailures(t *testing.T) {
	bed, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"kubernetes": "v1.32.13\n", "kubelet": "\n"} {
		testfile.Write(t, filepath.Join(bed, name), text, 0o600)
	}
	kubernetes, err := version(bed, "kubernetes", "v1.37.1")
	kubelet, other := version(bed, "kubelet", "v1.37.1")
	if kubernetes != "v1.32.13" || kubelet != "v1.37.1" || err != nil || other != nil {
		t.Errorf("got %s, %s, %v, %v", kubernetes, kubelet, err, other)
	}
	if _, err := version(bed, "nothing", "v1.37.1"); err == nil {
		t.Error("want an error without a cluster")
	}
	if pinned, err := pinnedVersion("../bed/cluster/programs/go.mod"); err != nil || !strings.HasPrefix(pinned, "v1.") {
		t.Errorf("got %q, %v", pinned, err)
	}
	if _, err := pinnedVersion("../../go.mod"); err == nil {
		t.Error("want an error: this program is not made of Kubernetes")
	}
	err = cluster{Kubernetes: kubernetes, Kubelet: kubelet, Failed: []string{"TestBundle"}}.record(dir)
	if err == nil || !strings.Contains(err.Error(), "TestBundle") {
		t.Errorf("want an error that names the failed test, got %v", err)
	}
	records, err := page.Records[cluster](dir)
	if err != nil || len(records) != 1 || records[0].Kubelet != kubelet {
		t.Errorf("want the record, got %v, %v", records, err)
	}
}
