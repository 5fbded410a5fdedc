// Command judge reads what a run left, and keeps a record of it beside the suite. It fills the
// parts of RESULTS.md files, and of one page, that are made of records.
//
//	go test -json … | go run ./test/judge clouds -bed DIR      a run on a cloud of test/bed/clouds: the record of that cloud, and the table
//	go test -json … | go run ./test/judge versions -bed DIR    a run on a whole cluster
//	go run ./test/judge report -log FILE [-when TEXT] | -upstream FILE | -anatomy FILE | -suite FILE | -openshift FILE    the results of the cluster of three nodes
//	go run ./test/judge scale                                  the tables of large clusters
//
// Each also fills its pages from all records; without -bed it does that alone.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
)

var commands = map[string]func(root string, f *flags) error{
	"clouds": func(root string, f *flags) error {
		if f.bed == "" {
			return nil
		}
		return recordCloud(f.bed, filepath.Join(root, cloudDir), os.Stdin, os.Stdout, time.Now())
	},
	"versions": func(root string, f *flags) error {
		if f.bed == "" {
			return nil
		}
		return recordCluster(f.bed, root, os.Stdin, os.Stdout, time.Now())
	},
	"scale":  func(string, *flags) error { return nil },
	"report": report,
}

// flags are those of all commands.
type flags struct {
	bed, when string
	files     map[string]*string // of report, by their flags
}

// judged are the files with parts that are made of records, by command.
var judged = []struct {
	command, page string
	parts         func(root string) (map[string]string, error)
}{
	{"clouds", "test/bed/clouds/RESULTS.md", func(root string) (map[string]string, error) {
		records, err := cloudRecords(filepath.Join(root, cloudDir))
		return map[string]string{"clouds": cloudTable(records)}, err
	}},
	{"versions", "test/suite/apiserver/RESULTS.md", func(root string) (map[string]string, error) {
		runs, err := page.Records[versionRun](filepath.Join(root, versionDir))
		if err != nil {
			return nil, err
		}
		clusters, err := page.Records[cluster](filepath.Join(root, clusterDir))
		return map[string]string{"versions": versionTable(runs), "clusters": clusterTable(clusters)}, err
	}},
	{"scale", scaleResults, scaleParts(scaleResults)},
	{"scale", "docs/reference/sizing.md", scaleParts("docs/reference/sizing.md")},
}

func main() {
	f := flags{files: map[string]*string{}}
	set := flag.NewFlagSet("judge", flag.ExitOnError)
	set.StringVar(&f.bed, "bed", "", "directory of the cloud or cluster that the run was on")
	set.StringVar(&f.when, "when", "", "date and commit of the run of -log, for the page")
	for _, s := range sources {
		f.files[s.flag] = set.String(s.flag, "", s.of)
	}
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
		_ = set.Parse(os.Args[2:]) // it exits
	}
	if err := run(name, ".", &f); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

// run keeps the record, and fills the pages even if the run has failures: the page shows them.
func run(name, root string, f *flags) error {
	command, ok := commands[name]
	if !ok {
		return fmt.Errorf("no judge %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	err := command(root, f)
	for _, j := range judged {
		if j.command != name {
			continue
		}
		parts, readErr := j.parts(root)
		if readErr == nil {
			readErr = page.Fill(filepath.Join(root, j.page), parts)
		}
		err = errors.Join(err, readErr)
	}
	return err
}
