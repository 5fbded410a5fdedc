package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cluster is the record of the suites on a cluster of one version: which tests passed, and which failed.
type cluster struct {
	Kubernetes string   `json:"kubernetes"`
	Kubelet    string   `json:"kubelet"`
	Date       string   `json:"date"`
	Passed     []string `json:"passed"`
	Failed     []string `json:"failed,omitempty"`
}

// event is one line of `go test -json` (go doc cmd/test2json).
type event struct{ Action, Test, Output string }

// readCluster reads the output of go test -json and prints that of each failed test. Only tests without subtests count: those are the scenarios.
// A test that was skipped, or that began and did not end, has failed: the page says "passed" or it does not.
func readCluster(in io.Reader, out io.Writer) (passed, failed []string, err error) {
	parents, output, running := map[string]bool{}, map[string]string{}, map[string]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			fmt.Fprint(out, e.Output)
			continue
		}
		for i, letter := range e.Test {
			if letter == '/' {
				parents[e.Test[:i]] = true
			}
		}
		switch e.Action {
		case "run":
			running[e.Test] = true
		case "output":
			output[e.Test] += e.Output
			if strings.HasPrefix(e.Output, "measured: ") {
				fmt.Fprint(out, e.Output)
			}
		case "pass":
			delete(running, e.Test)
			if !parents[e.Test] {
				passed = append(passed, e.Test)
			}
		case "fail", "skip":
			delete(running, e.Test)
			fmt.Fprint(out, output[e.Test])
			if !parents[e.Test] {
				failed = append(failed, e.Test)
			}
		}
	}
	for _, test := range slices.Sorted(maps.Keys(running)) {
		if !parents[test] {
			failed = append(failed, test)
		}
	}
	if len(passed)+len(failed) == 0 {
		return nil, nil, errors.Join(errors.New("no test ran"), lines.Err())
	}
	return passed, failed, lines.Err()
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
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, c.Kubernetes+"-kubelet-"+c.Kubelet+".json")
	if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
		return err
	}
	if len(c.Failed) > 0 {
		return fmt.Errorf("failed on Kubernetes %s, kubelet %s: %s", c.Kubernetes, c.Kubelet, strings.Join(c.Failed, ", "))
	}
	return nil
}

// clusterTable has a line for each test and a column for each cluster.
func clusterTable(runs []cluster) string {
	var names []string
	for _, r := range runs {
		for _, name := range append(slices.Clone(r.Passed), r.Failed...) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var out strings.Builder
	out.WriteString("| test |")
	for _, r := range runs {
		out.WriteString(" " + strings.TrimPrefix(r.Kubernetes, "v"))
		if r.Kubelet != r.Kubernetes {
			out.WriteString(", kubelet " + strings.TrimPrefix(r.Kubelet, "v"))
		}
		out.WriteString(" |")
	}
	out.WriteString("\n| --- |" + strings.Repeat(" --- |", len(runs)) + "\n")
	for _, name := range names {
		shown := strings.ReplaceAll(strings.TrimPrefix(name, "TestEndToEnd/"), "_", " ")
		out.WriteString("| " + shown + " |")
		for _, r := range runs {
			switch {
			case slices.Contains(r.Failed, name):
				out.WriteString(" **failed** |")
			case slices.Contains(r.Passed, name):
				out.WriteString(" passed |")
			default:
				out.WriteString(" not run |")
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}
