package main

import (
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
	err := eachLine(r, func(line string) {
		if m := pauseLine.FindStringSubmatch(line); m != nil {
			pauses += fmt.Sprintf("| %s | %s |\n", m[1], m[2])
		} else if m := openShiftLine.FindStringSubmatch(line); m != nil {
			column, standalone := seconds[m[1]]
			if !standalone {
				others = append(others, fmt.Sprintf("| %s | %s | %s |\n", m[1], m[2], m[3]))
				return
			}
			if seconds["kustomize"][m[2]]+seconds["helm"][m[2]] == "" {
				steps = append(steps, m[2])
			}
			column[m[2]] = m[3]
		}
	})
	if err != nil {
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
