// Command report fills in the figures of docs/explanation/e2e.md. The times of the scenarios come from the log of `make test-cluster CASE=e2e`. Those of
// upstream's plugin come from the log of `make test-cluster CASE=upstream`, and the anatomy from the file of `make measure WHAT=anatomy`. The summary of Kubernetes' external-storage suite is a Markdown file. What is not given stays as it is.
//
//	go run ./test/judge/report -log bin/e2e.log [-when "22 November 2026, commit 1234abc"]
//	go run ./test/judge/report -upstream bin/e2e-upstream.log
//	go run ./test/judge/report -anatomy bin/anatomy.json
//	go run ./test/judge/report -suite FILE
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cinder-csi/cinder-csi/test/judge/anatomy"
)

func main() {
	log := flag.String("log", "", "what `make test-cluster CASE=e2e` printed")
	upstream := flag.String("upstream", "", "what `make test-cluster CASE=upstream` printed")
	when := flag.String("when", "", "date and commit of that run, for the page")
	measured := flag.String("anatomy", "", "what `make measure WHAT=anatomy` measured")
	suite := flag.String("suite", "", "the summary of the external-storage suite")
	page := flag.String("page", "docs/explanation/e2e.md", "the page")
	flag.Parse()
	if err := run(*page, *log, *when, *upstream, *measured, *suite); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(page, log, when, upstream, measured, suite string) error {
	if log == "" && upstream == "" && measured == "" && suite == "" {
		return errors.New("give -log, -upstream, -anatomy or -suite")
	}
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text := string(content)
	if log != "" {
		if text, err = fillScenarios(text, log, when); err != nil {
			return err
		}
	}
	if upstream != "" {
		if text, err = fillUpstream(text, upstream); err != nil {
			return err
		}
	}
	if measured != "" {
		if text, err = fillAnatomy(text, measured, filepath.Join(filepath.Dir(page), "..", "images", "e2e-anatomy.svg")); err != nil {
			return err
		}
	}
	if suite != "" {
		summary, err := os.ReadFile(suite)
		if err != nil {
			return err
		}
		if text, err = fill(text, "suite", string(summary)); err != nil {
			return err
		}
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

func fillScenarios(text, log, when string) (string, error) {
	f, err := os.Open(log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	results, err := readLog(f)
	if err != nil {
		return "", err
	}
	rows, err := block(text, "scenarios")
	if err != nil {
		return "", err
	}
	table, err := withResults(rows, results)
	if err != nil {
		return "", err
	}
	if text, err = fill(text, "scenarios", table); err != nil {
		return "", err
	}
	return fill(text, "run", summary(results, when))
}

func fillUpstream(text, log string) (string, error) {
	f, err := os.Open(log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	rows, err := block(text, "scenarios")
	if err != nil {
		return "", err
	}
	table, err := withUpstream(rows, f)
	if err != nil {
		return "", err
	}
	return fill(text, "scenarios", table)
}

func fillAnatomy(text, file, chart string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var m anatomy.Measurement
	if err := json.Unmarshal(content, &m); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if err := os.WriteFile(chart, []byte(m.SVG()), 0o644); err != nil {
		return "", err
	}
	return fill(text, "anatomy", m.Markdown())
}

func place(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)<!-- ` + regexp.QuoteMeta(name) + ` -->\n(.*?)<!-- end -->`)
}

// block is the text of a generated block of the page.
func block(text, name string) (string, error) {
	found := place(name).FindStringSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("the page has no block %s", name)
	}
	return found[1], nil
}

// fill replaces the text of a generated block.
func fill(text, name, content string) (string, error) {
	if _, err := block(text, name); err != nil {
		return "", err
	}
	return place(name).ReplaceAllLiteralString(text, "<!-- "+name+" -->\n"+content+"<!-- end -->"), nil
}
