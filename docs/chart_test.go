package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// flattened are the paths of values, of maps and of what they hold.
func flattened(at string, value any) []string {
	all := []string{at}
	if m, ok := value.(map[string]any); ok {
		for key, child := range m {
			all = append(all, flattened(strings.TrimPrefix(at+"."+key, "."), child)...)
		}
	}
	return all
}

func TestChartPageNamesValuesOfTheChart(t *testing.T) {
	text, err := os.ReadFile("../charts/cinder-csi/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	known := flattened("", values)
	page, err := os.ReadFile("reference/chart.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Values")
	var named int
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		for _, match := range regexp.MustCompile("`([a-zA-Z.]+)`").FindAllStringSubmatch(cells[2], -1) {
			if match[1] == "pullPolicy" {
				continue // a key of an image
			}
			named++
			for _, path := range roles(match[1]) {
				if !slices.Contains(known, path) {
					t.Errorf("%s: values.yaml has no %s", strings.TrimSpace(line), path)
				}
			}
		}
	}
	if named < 35 {
		t.Errorf("want at least 35 values in the table, found %d", named)
	}
}

// roles are the values that a path with ROLE and CONTAINER means.
func roles(path string) []string {
	path = strings.ReplaceAll(path, "CONTAINER", "driver")
	if !strings.Contains(path, "ROLE") {
		return []string{path}
	}
	return []string{strings.ReplaceAll(path, "ROLE", "controller"), strings.ReplaceAll(path, "ROLE", "node")}
}
