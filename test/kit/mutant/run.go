package mutant

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testlog"
)

// Verdict says what a test did with a mutant.
type Verdict string

// A mutant that does not build is no mutant, and a test that ran into its timeout has often proved nothing.
const (
	Caught       Verdict = "caught"
	Survived     Verdict = "SURVIVED"
	DoesNotBuild Verdict = "does not build"
	TimedOut     Verdict = "timed out"
)

// Result is the run of one test with one mutant.
type Result struct {
	Verdict   Verdict
	By        string   // the first test that failed
	Failed    []string // all test functions that failed
	Passed    []string // the tests that ran and passed
	Output    string
	Processor time.Duration // of compiler, linker and test
}

// Flags are those of every go test of a mutant: the configuration of make build, so that go compiles only what the mutant changes. Of the package under
// test, which each mutant compiles again, the compiler optimizes nothing: that takes a third of its time.
var Flags = []string{"-trimpath", "-buildvcs=false", "-tags", "grpcnotrace", "-gcflags=-N -l", "-vet=off", "-json"}

// Run runs tests with some files changed. The files may be nil. The arguments go to go test.
func Run(ctx context.Context, root string, changed map[string]string, test Test, args ...string) (Result, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	file, err := overlay(changed, dir)
	if err != nil {
		return Result{}, err
	}
	all := slices.Concat([]string{"test", "-overlay", file}, Flags, []string{"-run", test.Pattern}, args, strings.Fields(test.Package))
	cmd := exec.CommandContext(ctx, "go", all...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=400", "GOFLAGS=")
	cmd.WaitDelay = 10 * time.Second
	var out, compiler bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &compiler
	runErr := cmd.Run()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if cmd.ProcessState == nil {
		return Result{}, runErr
	}
	tests, err := testlog.Reader{Out: &compiler}.Read(&out)
	if err != nil {
		return Result{}, err
	}
	r := judge(tests, runErr != nil)
	r.Output += compiler.String()
	r.Processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}

// judge tells the ends of go test apart. A test that began and did not end, such as one in a deadlock, has failed, if no other has.
func judge(tests []testlog.Test, failed bool) Result {
	var r Result
	unfinished := ""
	for _, t := range tests {
		switch {
		case t.Outcome == testlog.Passed && t.Name != "":
			r.Passed = append(r.Passed, t.Name)
		case t.Outcome == testlog.Failed && t.Name != "":
			r.By = cmp.Or(r.By, t.Name)
			if t.Name == t.Top() {
				r.Failed = append(r.Failed, t.Name)
			}
		case t.Outcome == testlog.Unfinished && t.Name != "":
			unfinished = t.Name
		}
		if t.Outcome == testlog.Failed || t.Outcome == testlog.Unfinished {
			r.Output += t.Output
		}
	}
	r.By = cmp.Or(r.By, unfinished)
	switch {
	case !failed:
		r.Verdict = Survived
	case strings.Contains(r.Output, "panic: test timed out after "):
		r.Verdict = TimedOut
	case r.By == "": // the compiler, or a process that ended itself
		r.Verdict = DoesNotBuild
	default:
		r.Verdict = Caught
	}
	return r
}
