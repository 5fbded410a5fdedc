// Package testlog reads the output of go test -json (go doc cmd/test2json): which tests ran, how each ended, and what it printed.
package testlog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Outcome is how a test ended.
type Outcome string

// Unfinished is a test that began and did not end: somebody stopped the run, and nothing else in its output says so.
const (
	Passed     Outcome = "pass"
	Failed     Outcome = "fail"
	Skipped    Outcome = "skip"
	Unfinished Outcome = ""
)

// Measured begins a line with a figure that people watch, even if the test passes.
const Measured = "measured: "

// Test is a test, a subtest or, without a name, a package.
type Test struct {
	Package, Name string
	Outcome       Outcome
	Seconds       float64
	Output        string
	HasSubtests   bool // then those count, and not the test around them
}

// Top is the name of the test function.
func (t Test) Top() string {
	top, _, _ := strings.Cut(t.Name, "/")
	return top
}

// Reader reads one run. All of it is optional.
type Reader struct {
	Out   io.Writer  // gets figures, the output of the compiler, and lines that are no events
	Ended func(Test) // is called when a test or package ends
}

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// Read returns the tests and packages in the order in which they ended. After them come those that did not end, in the order in which they began.
func (r Reader) Read(in io.Reader) ([]Test, error) {
	if r.Out == nil {
		r.Out = io.Discard
	}
	type key struct{ pkg, test string }
	type test struct {
		Test
		output strings.Builder // some tests print much
	}
	var begun []*test
	var all []Test
	running, parents := map[key]*test{}, map[key]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(r.Out, lines.Text())
			continue
		}
		if e.Action == "build-output" {
			fmt.Fprint(r.Out, e.Output)
			continue
		}
		if !slices.Contains([]string{"run", "start", "output", "pass", "fail", "skip"}, e.Action) || e.Package == "" && e.Test == "" {
			continue
		}
		at := key{e.Package, e.Test}
		t := running[at]
		if t == nil {
			t = &test{Test: Test{Package: e.Package, Name: e.Test}}
			running[at], begun = t, append(begun, t)
			for name := e.Test; strings.Contains(name, "/"); {
				name = name[:strings.LastIndex(name, "/")]
				parents[key{e.Package, name}] = true
			}
		}
		switch e.Action {
		case "output":
			t.output.WriteString(e.Output)
			if strings.HasPrefix(e.Output, Measured) {
				fmt.Fprint(r.Out, e.Output)
			}
		case "pass", "fail", "skip":
			t.Outcome, t.Seconds, t.HasSubtests, t.Output = Outcome(e.Action), e.Elapsed, parents[at], t.output.String()
			delete(running, at)
			all = append(all, t.Test)
			if r.Ended != nil {
				r.Ended(t.Test)
			}
		}
	}
	for _, t := range begun {
		if t.Outcome == Unfinished {
			t.HasSubtests, t.Output = parents[key{t.Package, t.Name}], t.output.String()
			all = append(all, t.Test)
		}
	}
	return all, lines.Err()
}
