package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testlog"
)

// Records of `make test-apiserver CASE=versions`, one for each version of the API server, and of the suites on a whole cluster.
const (
	versionDir = "test/suite/apiserver/records"
	clusterDir = "test/suite/cluster/records"
)

// versionRun is the record of one version.
type versionRun struct {
	Version string   `json:"version"`
	Bundles []bundle `json:"bundles"`
}

// bundle is one bundle. Refused is what the generator said: then nothing was applied.
type bundle struct {
	Bundle  string `json:"bundle"`
	Passed  bool   `json:"passed"`
	Refused string `json:"refused"`
}

// recordCluster keeps the record of the suites on the cluster in the directory bed.
func recordCluster(bed, root string, in io.Reader, out io.Writer, now time.Time) error {
	pinned, err := pinnedVersion(filepath.Join(root, "test/bed/cluster/programs/go.mod"))
	if err != nil {
		return err
	}
	kubernetes, err := version(bed, "kubernetes", pinned)
	if err != nil {
		return err
	}
	kubelet, err := version(bed, "kubelet", pinned)
	if err != nil {
		return err
	}
	passed, failed, err := readCluster(in, out)
	if err != nil {
		return err
	}
	return cluster{kubernetes, kubelet, now.Format(time.DateOnly), passed, failed}.record(filepath.Join(root, clusterDir))
}

// column is a run in a table: the names that it has in its order, and the outcome of each.
type column struct {
	title    string
	names    []string
	outcomes map[string]string
}

func (c *column) add(outcome string, names ...string) {
	for _, name := range names {
		c.names, c.outcomes[name] = append(c.names, name), outcome
	}
}

// matrix is a table with a line for each name, in the order in which the runs have them, and a column for each run.
func matrix(corner string, runs []column) string {
	head, names, rows := []string{corner}, []string{}, [][]string{}
	for _, run := range runs {
		head = append(head, run.title)
		for _, name := range run.names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		row := []string{name}
		for _, run := range runs {
			row = append(row, cmp.Or(run.outcomes[name], "not run"))
		}
		rows = append(rows, row)
	}
	return page.Table(head, rows)
}

// versionTable has a line for each bundle and a column for each version. Below it stands why a bundle was refused.
func versionTable(runs []versionRun) string {
	var columns []column
	refusals := ""
	for _, r := range runs {
		c := column{title: strings.TrimPrefix(r.Version, "v"), outcomes: map[string]string{}}
		for _, b := range r.Bundles {
			switch {
			case b.Refused != "":
				c.add("refused", b.Bundle)
				refusals += "- " + c.title + ", " + b.Bundle + ": `" + firstLine(b.Refused) + "`\n"
			case b.Passed:
				c.add("passed", b.Bundle)
			default:
				c.add("**failed**", b.Bundle)
			}
		}
		columns = append(columns, c)
	}
	text := matrix("bundle", columns)
	if refusals != "" {
		text += "\n" + refusals
	}
	return text
}

// firstLine is the first line that is a sentence about the configuration.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "Kubernetes") {
			text = line
			break
		}
	}
	return strings.ReplaceAll(strings.TrimSpace(text), "`", "'")
}

// cluster is the record of the suites on a cluster of one version: which tests passed, and which failed.
type cluster struct {
	Kubernetes string   `json:"kubernetes"`
	Kubelet    string   `json:"kubelet"`
	Date       string   `json:"date"`
	Passed     []string `json:"passed"`
	Failed     []string `json:"failed,omitempty"`
}

// readCluster reads the output of go test -json and prints that of each failed test. Only tests without subtests count: those are the scenarios.
// A test that was skipped, or that began and did not end, has failed: the page says "passed" or it does not.
func readCluster(in io.Reader, out io.Writer) (passed, failed []string, err error) {
	tests, err := testlog.Reader{Out: out}.Read(in)
	for _, t := range tests {
		if t.Outcome != testlog.Passed {
			fmt.Fprint(out, t.Output)
		}
		switch {
		case t.Name == "" || t.HasSubtests:
		case t.Outcome == testlog.Passed:
			passed = append(passed, t.Name)
		default:
			failed = append(failed, t.Name)
		}
	}
	if err == nil && len(passed)+len(failed) == 0 {
		err = errors.New("no test ran")
	}
	return passed, failed, err
}

// pinnedVersion is the version of Kubernetes that a go.mod requires: a cluster has it unless it was started with another.
func pinnedVersion(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "k8s.io/kubernetes" {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s requires no k8s.io/kubernetes", path)
}

// version is what up.sh has written into the directory of the bed; empty for the version that is pinned.
func version(bed, name, pinned string) (string, error) {
	text, err := os.ReadFile(filepath.Join(bed, name))
	if found := strings.TrimSpace(string(text)); err != nil || found != "" {
		return found, err
	}
	return pinned, nil
}

// record writes the record of a run on the cluster in the directory bed. An error says which tests failed.
func (c cluster) record(dir string) error {
	if err := page.Keep(filepath.Join(dir, c.Kubernetes+"-kubelet-"+c.Kubelet+".json"), c); err != nil {
		return err
	}
	if len(c.Failed) > 0 {
		return fmt.Errorf("failed on Kubernetes %s, kubelet %s: %s", c.Kubernetes, c.Kubelet, strings.Join(c.Failed, ", "))
	}
	return nil
}

// clusterTable has a line for each test and a column for each cluster.
func clusterTable(runs []cluster) string {
	var columns []column
	for _, r := range runs {
		c := column{title: strings.TrimPrefix(r.Kubernetes, "v"), outcomes: map[string]string{}}
		if r.Kubelet != r.Kubernetes {
			c.title += ", kubelet " + strings.TrimPrefix(r.Kubelet, "v")
		}
		c.add("passed", shown(r.Passed)...)
		c.add("**failed**", shown(r.Failed)...)
		columns = append(columns, c)
	}
	return matrix("test", columns)
}

// shown are the names of tests as a reader knows them.
func shown(tests []string) []string {
	var names []string
	for _, name := range tests {
		names = append(names, strings.ReplaceAll(strings.TrimPrefix(name, "TestEndToEnd/"), "_", " "))
	}
	return names
}
