// Command versions writes the table of Kubernetes versions in docs/reference/compatibility.md. Its records are those of
// `make test-apiserver CASE=versions`: one for each version of the API server, with what became of each bundle.
//
//	go run ./test/judge/versions
//
// With -cluster it reads the output of go test -json, and keeps a record of the suites on the whole cluster in that directory.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/test/judge/page"
)

// run is the record of one version.
type run struct {
	Version string   `json:"version"`
	Bundles []bundle `json:"bundles"`
}

// bundle is one bundle. Refused is what the generator said: then nothing was applied.
type bundle struct {
	Bundle  string `json:"bundle"`
	Passed  bool   `json:"passed"`
	Refused string `json:"refused"`
}

func main() {
	root := flag.String("root", ".", "the root of the repository")
	bed := flag.String("cluster", "", "the directory of the cluster on which the tests ran whose go test -json is the input")
	flag.Parse()
	dir := filepath.Join(*root, "test/judge/versions")
	var err error
	if *bed != "" {
		err = judge(*bed, *root, dir)
	} else {
		err = fill(*root, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func judge(bed, root, dir string) error {
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
	passed, failed, err := readCluster(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	return cluster{kubernetes, kubelet, time.Now().Format(time.DateOnly), passed, failed}.record(filepath.Join(dir, "clusters"))
}

func fill(root, dir string) error {
	all, err := tables(dir)
	if err != nil {
		return err
	}
	return page.Fill(filepath.Join(root, "docs/reference/compatibility.md"), all)
}

// tables are those of the page. The oldest version comes first: every minor version has two digits.
func tables(dir string) (map[string]string, error) {
	runs, err := page.Records[run](filepath.Join(dir, "runs"))
	if err != nil {
		return nil, err
	}
	clusters, err := page.Records[cluster](filepath.Join(dir, "clusters"))
	return map[string]string{"versions": table(runs), "clusters": clusterTable(clusters)}, err
}

// table has a line for each bundle and a column for each version. Below it stands why a bundle was refused.
func table(runs []run) string {
	var names []string
	for _, r := range runs {
		for _, b := range r.Bundles {
			if !slices.Contains(names, b.Bundle) {
				names = append(names, b.Bundle)
			}
		}
	}
	var out, refusals strings.Builder
	out.WriteString("| bundle |")
	for _, r := range runs {
		out.WriteString(" " + strings.TrimPrefix(r.Version, "v") + " |")
	}
	out.WriteString("\n| --- |" + strings.Repeat(" --- |", len(runs)) + "\n")
	for _, name := range names {
		out.WriteString("| " + name + " |")
		for _, r := range runs {
			out.WriteString(" " + r.outcome(name) + " |")
		}
		out.WriteString("\n")
	}
	for _, r := range runs {
		for _, b := range r.Bundles {
			if b.Refused != "" {
				refusals.WriteString("- " + strings.TrimPrefix(r.Version, "v") + ", " + b.Bundle + ": `" + firstLine(b.Refused) + "`\n")
			}
		}
	}
	if refusals.Len() > 0 {
		out.WriteString("\n" + refusals.String())
	}
	return out.String()
}

func (r run) outcome(name string) string {
	for _, b := range r.Bundles {
		switch {
		case b.Bundle != name:
		case b.Refused != "":
			return "refused"
		case b.Passed:
			return "passed"
		default:
			return "**failed**"
		}
	}
	return "not run"
}

// firstLine is the first line that is a sentence about the configuration.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "Kubernetes") {
			return strings.ReplaceAll(strings.TrimSpace(line), "`", "'")
		}
	}
	return strings.ReplaceAll(strings.TrimSpace(text), "`", "'")
}
