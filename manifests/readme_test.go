package manifests_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/manifests"
)

func TestTheReadmeListsEveryComponentAndNoOther(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "| component | adds |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 4 || strings.TrimSpace(cells[2]) == "" {
			t.Fatalf("want | component | what it adds |, got %q", row)
		}
		listed[strings.Trim(strings.TrimSpace(cells[1]), "`")] = true
	}
	components, err := fs.ReadDir(manifests.Files, "components")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		if !listed[c.Name()] {
			t.Errorf("manifests/README.md does not list component %s", c.Name())
		}
		delete(listed, c.Name())
	}
	for name := range listed {
		t.Errorf("manifests/README.md lists component %s, which is not there", name)
	}
}
