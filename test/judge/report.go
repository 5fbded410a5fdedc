package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/test/judge/anatomy"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
)

// given are the files of which the page about a run is made.
type given struct {
	log, when string // what `make test-cluster CASE=e2e` printed, with date and commit of that run
	upstream  string // what `make test-cluster CASE=upstream` printed
	anatomy   string // what `make measure WHAT=anatomy` measured
	suite     string // the summary of the external-storage suite
	openShift string // what `make test-cluster CASE=openshift` printed
}

// clusterResults has what the runs on the cluster of three nodes showed.
const clusterResults = "test/suite/cluster/RESULTS.md"

// report writes what is given into the results, and leaves the rest of them as it is.
func report(root string, g given) error {
	if g == (given{when: g.when}) {
		return errors.New("give -log, -upstream, -anatomy, -suite or -openshift")
	}
	path, parts := filepath.Join(root, clusterResults), map[string]string{}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rows, err := page.Part(string(content), "scenarios")
	if err != nil {
		return err
	}
	if g.log != "" {
		results, err := readFile(g.log, readLog)
		if err != nil {
			return err
		}
		if rows, err = withResults(rows, results); err != nil {
			return err
		}
		parts["run"], parts["scenarios"] = summary(results, g.when), rows
	}
	if g.upstream != "" {
		if parts["scenarios"], err = readFile(g.upstream, func(r io.Reader) (string, error) { return withUpstream(rows, r) }); err != nil {
			return err
		}
	}
	if g.anatomy != "" {
		m, err := page.Record[anatomy.Measurement](g.anatomy)
		if err != nil {
			return err
		}
		parts["anatomy"] = m.Markdown()
	}
	if g.suite != "" {
		summary, err := os.ReadFile(g.suite)
		if err != nil {
			return err
		}
		parts["suite"] = string(summary)
	}
	if g.openShift != "" {
		if parts["openshift"], err = readFile(g.openShift, openShiftTables); err != nil {
			return err
		}
	}
	return page.Fill(path, parts)
}

func readFile[T any](name string, read func(io.Reader) (T, error)) (T, error) {
	f, err := os.Open(name)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	return read(f)
}
