package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestJudgeCountsAndNamesUnlistedSkips(t *testing.T) {
	in := strings.NewReader(`{"Action":"pass","Package":"p","Test":"A"}
{"Action":"fail","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"needs root\n"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"skip","Package":"p","Test":"C/sub"}
{"Action":"skip","Package":"p","Test":"D"}
{"Action":"fail","Package":"p"}
`)
	o, err := judge(in, io.Discard, allowed{listed: []string{"C"}, root: true})
	if err != nil {
		t.Fatal(err)
	}
	if o.passed != 1 || o.failed != 1 || o.skipped != 3 {
		t.Errorf("want 1 passed, 1 failed, 3 skipped; got %d, %d, %d", o.passed, o.failed, o.skipped)
	}
	if got := strings.Join(o.unlisted, ","); got != "p D" {
		t.Errorf("want the unlisted skip p D, got %q", got)
	}
}

func TestASkipForWantOfRootOrToolsNeedsNoLine(t *testing.T) {
	in := fmt.Sprintf(`{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:7: %sreal devices\n"}
{"Action":"skip","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:8: %sapt-get install strace\n"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"    c_test.go:9: it %sreal devices\n"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"output","Package":"p","Test":"D","Output":"    d_test.go:10: %sminutes\n"}
{"Action":"skip","Package":"p","Test":"D"}
{"Action":"output","Package":"p","Test":"E","Output":"    e_test.go:11: %s-short leaves it out\n"}
{"Action":"skip","Package":"p","Test":"E"}
`, testenv.NeedsRoot, testenv.NeedsTools, testenv.NeedsRoot, testenv.NeedsFull, testenv.TakesLong)
	for _, c := range []struct {
		may          allowed
		root, tools  int
		wantUnlisted string
	}{
		{allowed{}, 1, 1, "p C,p E"},
		{allowed{root: true, short: true}, 1, 1, "p C"},
		{allowed{root: true}, 0, 0, "p A,p B,p C,p E"},
	} {
		o, err := judge(strings.NewReader(in), io.Discard, c.may)
		if got := strings.Join(o.unlisted, ","); err != nil || o.needRoot != c.root || o.needTools != c.tools || got != c.wantUnlisted {
			t.Errorf("%+v: %v, %d for want of root and %d of tools, unlisted %q", c.may, err, o.needRoot, o.needTools, got)
		}
	}
}

// The tests that a timeout ends have no result of their own, and one of them has what every goroutine does.
func TestATestThatDidNotEndFailsAndSaysWhy(t *testing.T) {
	in := strings.NewReader(`{"Action":"run","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"A","Output":"panic: test timed out after 20m0s\n"}
{"Action":"fail","Package":"p"}
`)
	var out strings.Builder
	o, err := judge(in, &out, allowed{})
	if want := "did not end: p A\npanic: test timed out after 20m0s\n"; err != nil || o.failed != 1 || !strings.Contains(out.String(), want) {
		t.Errorf("%v, %d failed, printed %q; want %q", err, o.failed, &out, want)
	}
}

func TestAMeasuredFigureOfATestThatPassesIsPrinted(t *testing.T) {
	in := strings.NewReader(`{"Action":"output","Package":"p","Test":"A","Output":"measured: 77 MiB\n"}
{"Action":"output","Package":"p","Test":"A","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"A"}
`)
	var out strings.Builder
	if _, err := judge(in, &out, allowed{}); err != nil || out.String() != "measured: 77 MiB\n" {
		t.Errorf("%v, printed %q", err, &out)
	}
}

func TestSkipsWithoutAReasonAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skips.txt")
	testfile.Write(t, path, "TestX\tnot root\t\n", 0o600)
	if _, err := readSkips(path); err == nil {
		t.Error("want an error for a skip without a reason")
	}
}
