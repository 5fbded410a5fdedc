package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	openShiftLine = regexp.MustCompile(`^measured: openshift (kustomize|helm|hosted|adopt) +(.+?) +(\d+\.\d) s$`)
	pauseLine     = regexp.MustCompile(`^measured: longest pause of a writing pod during (.+) (\d+\.\d\d) s$`)
)

// openShiftTables makes the tables of a run of `make test-cluster CASE=openshift`: the steps of the two standalone bundles side by side, then the others.
func openShiftTables(r io.Reader) (string, error) {
	var steps, others []string // in the order of the log
	var pauses string
	seconds := map[string]map[string]string{"kustomize": {}, "helm": {}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), " \r")
		if m := pauseLine.FindStringSubmatch(line); m != nil {
			pauses += fmt.Sprintf("| %s | %s |\n", m[1], m[2])
		}
		m := openShiftLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if column, standalone := seconds[m[1]]; !standalone {
			others = append(others, fmt.Sprintf("| %s | %s | %s |\n", m[1], m[2], m[3]))
		} else {
			if seconds["kustomize"][m[2]]+seconds["helm"][m[2]] == "" {
				steps = append(steps, m[2])
			}
			column[m[2]] = m[3]
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	if len(steps) == 0 || len(others) == 0 {
		return "", errors.New("the log is not that of all four bundles of CASE=openshift")
	}
	text := "| step of a standalone bundle | by Kustomize | by Helm |\n| --- | ---: | ---: |\n"
	for _, step := range steps {
		text += fmt.Sprintf("| %s | %s | %s |\n", step, seconds["kustomize"][step], seconds["helm"][step])
	}
	text += "\n| bundle | step | seconds |\n| --- | --- | ---: |\n" + strings.Join(others, "")
	return text + "\n| while | longest pause of a writing pod |\n| --- | ---: |\n" + pauses, nil
}
