package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/judge/page"
)

func TestTheTableOfThePageIsThatOfTheRecords(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := page.Records[run]("runs")
	if err != nil {
		t.Fatal(err)
	}
	want, err := page.With(string(text), tables(runs))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the table is stale; go run ./test/judge/versions (-want +got):\n%s", diff)
	}
}

func TestEachOutcomeIsShown(t *testing.T) {
	got := table([]run{
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
