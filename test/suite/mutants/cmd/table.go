package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/mutant"
)

// short are the arguments of go test for every test of the table. A test takes seconds, but the gate runs this beside other work.
var short = []string{"-short", "-failfast", "-timeout", "10m"}

// job is one run of go test: a mutant, or the tests of a package without one.
type job struct {
	mutant  *mutant.Mutant
	test    mutant.Test
	changed map[string]string
	result  mutant.Result
	err     error
}

// applyAll runs the test of each mutant. An error says which rules no test holds any more.
func applyAll(ctx context.Context, root string, all []mutant.Mutant, out io.Writer) error {
	if len(all) == 0 {
		return errors.New("no mutant has such a name")
	}
	var problems []string
	var jobs []*job
	patterns := map[string][]string{} // by package
	for _, m := range all {
		changed, err := m.Changed(root)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		jobs = append(jobs, &job{mutant: &m, test: m.CaughtBy, changed: changed})
		patterns[m.CaughtBy.Package] = append(patterns[m.CaughtBy.Package], m.CaughtBy.Pattern)
	}
	for pkg, of := range patterns {
		of = slices.DeleteFunc(of, func(pattern string) bool { return pattern == "" })
		if len(of) > 0 {
			jobs = append(jobs, &job{test: mutant.Test{Package: pkg, Pattern: strings.Join(of, "|")}})
		}
	}
	// By package, and first without a mutant: then go compiles what depends on the package once.
	slices.SortStableFunc(jobs, func(a, b *job) int {
		without := func(j *job) int {
			if j.mutant == nil {
				return 0
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.test.Package, b.test.Package), without(a)-without(b))
	})
	began, processor := time.Now(), time.Duration(0)
	runAll(ctx, root, jobs, out)
	passed := map[string][]string{}
	caught := 0
	for _, j := range jobs {
		processor += j.result.Processor
		switch {
		case j.err != nil:
			return j.err
		case j.mutant != nil:
		case j.result.Verdict != mutant.Survived:
			problems = append(problems, fmt.Sprintf("without a mutant, %s fails in %s: repair that first\n%s", j.result.By, j.test.Package, j.result.Output))
		default:
			passed[j.test.Package] = j.result.Passed
		}
	}
	for _, j := range jobs {
		if j.mutant == nil {
			continue
		}
		problem := j.problem(passed[j.test.Package])
		if problem == "" {
			caught++
			continue
		}
		problems = append(problems, fmt.Sprintf("%s: %s\n  the rule: %s", j.mutant.Name, problem, j.mutant.Rule))
	}
	for _, p := range problems {
		fmt.Fprintln(out, p)
	}
	fmt.Fprintf(out, "caught %d of %d, in %.0f s with %.0f s of processor\n", caught, len(all), time.Since(began).Seconds(), processor.Seconds())
	if len(problems) > 0 {
		return fmt.Errorf("%d problems; a rule that no test holds will be broken: make the test that sees it", len(problems))
	}
	return nil
}

// runAll runs the jobs in their order, atOnce at a time.
func runAll(ctx context.Context, root string, jobs []*job, out io.Writer) {
	next := make(chan *job)
	var wait sync.WaitGroup
	for range atOnce {
		wait.Go(func() {
			for j := range next {
				test, args := j.test, short
				if test.Pattern == "" { // a new row
					test.Pattern, args = ".", []string{"-short", "-timeout", "10m"}
				}
				if j.mutant == nil {
					args = []string{"-short", "-timeout", "10m"}
				}
				j.result, j.err = mutant.Run(ctx, root, j.changed, test, args...)
				if j.mutant != nil {
					fmt.Fprintf(out, "%s %s %s (%.0f s)\n", j.mutant.Name, j.result.Verdict, j.result.By, j.result.Processor.Seconds())
				}
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	wait.Wait()
}

// problem says why a mutant does not count as caught; empty if it is. Passed are the tests that pass without it.
func (j *job) problem(passed []string) string {
	matches := func(name string) bool {
		pattern, _, _ := strings.Cut(j.test.Pattern, "/")
		top, _, _ := strings.Cut(name, "/")
		return regexp.MustCompile(pattern).MatchString(top)
	}
	r := j.result
	switch {
	case r.Verdict == mutant.DoesNotBuild:
		return "it does not build; rewrite it for the same rule, never remove it\n" + r.Output
	case j.test.Pattern == "":
		return fmt.Sprintf("it names no test; these fail in %s: %s", j.test.Package, strings.Join(r.Failed, " "))
	case !slices.ContainsFunc(passed, matches):
		return fmt.Sprintf("the pattern %q matches no test of %s that passes without the mutant, with -short and without root", j.test.Pattern, j.test.Package)
	case r.Verdict == mutant.Caught:
		return ""
	case r.Verdict == mutant.TimedOut:
		return "the test timed out, which proves little: see that it fails"
	}
	return fmt.Sprintf("%s: %s of %s passes", r.Verdict, j.test.Pattern, j.test.Package)
}
