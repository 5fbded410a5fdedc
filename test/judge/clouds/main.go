// Command clouds keeps records of runs on the clouds of test/bed/clouds, and makes the table of docs/reference/compatibility.md from them.
// A record has the counts of each suite, the names of failed tests, and the reason of each skip.
//
//	go test -json … | go run ./test/judge/clouds -bed DIR    add a run to the record of the cloud in DIR; prints what failed
//	go run ./test/judge/clouds -page docs/reference/compatibility.md    write the table
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	bed := flag.String("bed", "", "directory of the cloud that a run was on; standard input has the output of go test -json")
	runs := flag.String("runs", "test/judge/clouds/runs", "directory of the records")
	page := flag.String("page", "", "the page that gets the table")
	flag.Parse()
	if err := run(*bed, *runs, *page, os.Stdin, os.Stdout, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, "clouds:", err)
		os.Exit(1)
	}
}

func run(bed, runs, page string, in io.Reader, out io.Writer, now time.Time) error {
	switch {
	case bed != "" && page == "":
		return record(bed, runs, in, out, now)
	case page != "" && bed == "":
		return fill(page, runs)
	}
	return errors.New("give -bed or -page")
}

// record adds the suites of one run to the record of the cloud. What the run did not have stays.
func record(bed, runs string, in io.Reader, out io.Writer, now time.Time) error {
	c, err := readCloud(filepath.Join(bed, "bed.json"))
	if err != nil {
		return err
	}
	suites, err := judge(in, out, now.UTC().Format(time.DateOnly))
	if err != nil {
		return err
	}
	path := filepath.Join(runs, c.file())
	r, err := readRecord(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r.Cloud = c
	if r.Suites == nil {
		r.Suites = map[string]Suite{}
	}
	var failed []string
	for name, s := range suites {
		r.Suites[name] = s
		failed = append(failed, s.Failed...)
	}
	if err := r.write(path); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d failed; %s has the names", len(failed), path)
	}
	if len(suites) == 0 {
		return errors.New("no test ran")
	}
	return nil
}

// The table stands between these lines of the page.
const begin, end = "<!-- clouds -->\n", "<!-- end of clouds -->\n"

func fill(page, runs string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	records, err := readRecords(runs)
	if err != nil {
		return err
	}
	filled, err := replace(string(text), table(records))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}

func replace(text, with string) (string, error) {
	before, rest, found := strings.Cut(text, begin)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		return "", fmt.Errorf("the page has no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + with + end + after, nil
}
