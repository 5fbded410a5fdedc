// Command scale writes the tables of docs/explanation/scale.md and docs/reference/sizing.md from the records of test/suite/scale.
//
//	go run ./test/judge/scale
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cinder-csi/cinder-csi/test/judge/page"
	"github.com/cinder-csi/cinder-csi/test/judge/scale/record"
)

func main() {
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	dir := filepath.Join(*root, "test/judge/scale")
	runs, err := read(filepath.Join(dir, "runs"))
	var earlier []record.Run
	if err == nil {
		earlier, err = read(filepath.Join(dir, "earlier"))
	}
	for name := range tables {
		if err == nil {
			err = page.Fill(filepath.Join(*root, name), made(name, runs, earlier))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// tables are the tables of each page: the name in its lines <!-- NAME --> and <!-- end of NAME -->.
var tables = map[string]map[string]func([]record.Run) string{
	"docs/explanation/scale.md": {"budgets": budgets, "times": times, "requests": requests, "fairness": fairness, "rpcs": rpcs, "processes": processes, "beyond": atScale, "comparison": comparison, "runs": which},
	"docs/reference/sizing.md":  {"sizes": sizes, "settings": settings},
}

// made are the tables of a page. Only that of how far two runs agree is also made of the earlier runs.
func made(name string, runs, earlier []record.Run) map[string]string {
	all := map[string]string{}
	for table, of := range tables[name] {
		if table == "comparison" || table == "runs" {
			all[table] = of(runs)
		} else {
			all[table] = of(ours(runs))
		}
	}
	if name == "docs/explanation/scale.md" {
		all["agreement"] = agreement(ours(runs), earlier)
	}
	return all
}

// read reads the records, the smallest cluster first.
func read(dir string) ([]record.Run, error) {
	all, err := page.Records[record.Run](dir)
	slices.SortFunc(all, func(a, b record.Run) int { return a.Volumes - b.Volumes })
	return all, err
}
