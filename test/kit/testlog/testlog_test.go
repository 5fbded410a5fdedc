package testlog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachTestHasItsOutcomeAndItsOutput(t *testing.T) {
	in := `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"measured: 3 s\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"    a_test.go:1: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA/one","Elapsed":1.5}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":2}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined\n"}
go: a line of another program
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"run","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"q","Test":"TestD"}
`
	var out strings.Builder
	var ended []string
	got, err := Reader{&out, func(test Test) { ended = append(ended, test.Name) }}.Read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	want := []Test{
		{Package: "p", Name: "TestA/one", Outcome: Failed, Seconds: 1.5, Output: "measured: 3 s\n    a_test.go:1: wrong\n"},
		{Package: "p", Name: "TestA", Outcome: Failed, Seconds: 2, HasSubtests: true},
		{Package: "p", Name: "TestB", Outcome: Skipped},
		{Package: "q", Name: "TestD", Outcome: Passed},
		{Package: "p"},
		{Package: "p", Name: "TestC"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "measured: 3 s\nq.go:1: undefined\ngo: a line of another program\n"; out.String() != want {
		t.Errorf("want the output %q, got %q", want, out.String())
	}
	if diff := cmp.Diff([]string{"TestA/one", "TestA", "TestB", "TestD"}, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}
