// Command clouds keeps records of runs on the clouds of test/bed/clouds, and makes the table of docs/reference/compatibility.md from them.
// A record has the counts of each suite, the names of failed tests, and the reason of each skip.
//
//	go test -json … | go run ./test/judge/clouds -bed DIR    add a run to the record of the cloud in DIR; prints what failed
//	go test -json … | go run ./test/judge/clouds -bed DIR -again    the run has tests that failed in the record; those that pass now have passed
//	go test -json … | go run ./test/judge/clouds -bed DIR -rest     the run has tests that the stopped run of the record did not reach
//	go run ./test/judge/clouds -page docs/reference/compatibility.md    write the table
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cinder-csi/cinder-csi/test/judge/page"
)

func main() {
	bed := flag.String("bed", "", "directory of the cloud that a run was on; standard input has the output of go test -json")
	runs := flag.String("runs", "test/judge/clouds/runs", "directory of the records")
	isAgain := flag.Bool("again", false, "the run repeats failed tests of the record")
	isRest := flag.Bool("rest", false, "the run has tests that the record counts as not run")
	path := flag.String("page", "", "the page that gets the table")
	flag.Parse()
	if err := run(*bed, *runs, *path, howOf(*isAgain, *isRest), os.Stdin, os.Stdout, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "clouds:", err)
		os.Exit(1)
	}
}

// how is what a run means for the record of an earlier one.
type how int

const (
	whole how = iota // the run replaces it
	again            // the run repeats tests that failed in it
	rest             // the run has tests that it did not reach
)

func howOf(isAgain, isRest bool) how {
	switch {
	case isRest:
		return rest
	case isAgain:
		return again
	}
	return whole
}

func run(bed, runs, path string, h how, in io.Reader, out io.Writer, now time.Time) error {
	switch {
	case bed != "" && path == "":
		return record(bed, runs, h, in, out, now)
	case path != "" && bed == "":
		return fill(path, runs)
	}
	return errors.New("give -bed or -page")
}

// record adds the suites of one run to the record of the cloud. What the run did not have, or skipped, stays.
func record(bed, runs string, h how, in io.Reader, out io.Writer, now time.Time) error {
	c, err := readCloud(filepath.Join(bed, "bed.json"))
	if err != nil {
		return err
	}
	suites, unfinished, err := judge(in, out, now.UTC().Format(time.DateOnly))
	if err != nil {
		return err
	}
	path := filepath.Join(runs, c.file())
	r, err := page.Record[Record](path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r.Cloud = c
	if r.Suites == nil {
		r.Suites = map[string]Suite{}
	}
	var failed []string
	for name, s := range suites {
		if !s.ran() && (h != again || len(s.Skipped) == 0) {
			continue
		}
		before, ok := r.Suites[name]
		switch {
		case ok && h == again:
			s = before.with(s)
		case h == rest:
			if s, err = before.and(s); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		r.Suites[name] = s
		failed = append(failed, s.Failed...)
	}
	if err := r.write(path); err != nil {
		return err
	}
	if len(unfinished) > 0 {
		return fmt.Errorf("the run was stopped in %s; write the number of tests that did not run as notRun of the suite into %s", unfinished[len(unfinished)-1], path)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d failed; %s has the names", len(failed), path)
	}
	if len(suites) == 0 {
		return errors.New("no test ran")
	}
	return nil
}

func fill(path, runs string) error {
	records, err := readRecords(runs)
	if err != nil {
		return err
	}
	return page.Fill(path, map[string]string{"clouds": table(records)})
}
