package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/test/judge/anatomy"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
)

// clusterResults has what the runs on the cluster of three nodes showed.
const clusterResults = "test/suite/cluster/RESULTS.md"

// sources are the files of which the parts of that page are made, by their flag and in this order.
var sources = []struct {
	flag, of string
	fill     func(file io.Reader, when string, parts map[string]string) error
}{
	{"log", "what `make test-cluster CASE=e2e` printed", func(file io.Reader, when string, parts map[string]string) error {
		results, err := readLog(file)
		if err == nil {
			parts["run"] = summary(results, when)
			parts["scenarios"], err = withResults(parts["scenarios"], results)
		}
		return err
	}},
	{"upstream", "what `make test-cluster CASE=upstream` printed", func(file io.Reader, _ string, parts map[string]string) (err error) {
		parts["scenarios"], err = withUpstream(parts["scenarios"], file)
		return err
	}},
	{"anatomy", "what `make measure WHAT=anatomy` measured", func(file io.Reader, _ string, parts map[string]string) error {
		var m anatomy.Measurement
		err := json.NewDecoder(file).Decode(&m)
		parts["anatomy"] = m.Markdown()
		return err
	}},
	{"suite", "the summary of the external-storage suite", func(file io.Reader, _ string, parts map[string]string) error {
		text, err := io.ReadAll(file)
		parts["suite"] = string(text)
		return err
	}},
	{"openshift", "what `make test-cluster CASE=openshift` printed", func(file io.Reader, _ string, parts map[string]string) (err error) {
		parts["openshift"], err = openShiftTables(file)
		return err
	}},
}

// report writes what is given into the results, and leaves the rest of them as it is.
func report(root string, f *flags) error {
	path, given := filepath.Join(root, clusterResults), false
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rows, err := page.Part(string(content), "scenarios")
	parts := map[string]string{"scenarios": rows}
	for _, s := range sources {
		if name := f.files[s.flag]; err == nil && name != nil && *name != "" {
			given = true
			var file *os.File
			if file, err = os.Open(*name); err == nil {
				err = s.fill(file, f.when, parts)
				file.Close()
			}
		}
	}
	if err != nil {
		return err
	}
	if !given {
		return errors.New("give -log, -upstream, -anatomy, -suite or -openshift")
	}
	return page.Fill(path, parts)
}
