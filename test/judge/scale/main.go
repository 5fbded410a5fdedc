// Command scale writes the tables of docs/explanation/scale.md and docs/reference/sizing.md from the records of test/suite/scale.
//
//	go run ./test/judge/scale
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/test/judge/scale/record"
)

func main() {
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	runs, err := read(filepath.Join(*root, "test/judge/scale/runs"))
	for page := range tables {
		if err == nil {
			err = fill(filepath.Join(*root, page), tables[page], runs)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// tables are the tables of each page: the name in its lines <!-- NAME --> and <!-- end of NAME -->.
var tables = map[string]map[string]func([]record.Run) string{
	"docs/explanation/scale.md": {"budgets": budgets, "times": times, "requests": requests, "fairness": fairness, "rpcs": rpcs, "processes": processes},
	"docs/reference/sizing.md":  {"sizes": sizes},
}

// read reads the records, the smallest cluster first.
func read(dir string) ([]record.Run, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []record.Run
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var run record.Run
		if err := json.Unmarshal(text, &run); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, run)
	}
	if len(all) == 0 {
		return nil, errors.New("no record in " + dir)
	}
	slices.SortFunc(all, func(a, b record.Run) int { return a.Volumes - b.Volumes })
	return all, nil
}

func fill(page string, tables map[string]func([]record.Run) string, runs []record.Run) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := filledWith(string(text), tables, runs)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}

func filledWith(text string, tables map[string]func([]record.Run) string, runs []record.Run) (string, error) {
	for name, table := range tables {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(text, begin)
		_, after, ends := strings.Cut(rest, end)
		if !found || !ends {
			return "", fmt.Errorf("no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		text = before + begin + table(runs) + end + after
	}
	return text, nil
}
