package test_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// Code behind a build tag that no gate compiles breaks unseen: `make lint` vets the tags of TEST_TAGS, and crds in its own module.
func TestLintVetsEveryBuildTag(t *testing.T) {
	want := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()):
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if line := regexp.MustCompile(`(?m)^//go:build (.*)$`).FindSubmatch(text); line != nil {
			for _, tag := range regexp.MustCompile(`\w+`).FindAllString(string(line[1]), -1) {
				want[tag] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(want, "linux") // the system that lint runs on; a tag of tests that left files out would need a second vet
	makefile := testfile.Read(t, "../Makefile")
	got := map[string]bool{"crds": strings.Contains(string(makefile), "cd test/suite/examples && go vet -tags '$(TAGS),crds' ./...")}
	if list := regexp.MustCompile(`(?m)^TEST_TAGS := (.*)$`).FindSubmatch(makefile); list != nil {
		for tag := range strings.SplitSeq(string(list[1]), ",") {
			got[tag] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tags of the files and those of TEST_TAGS in the Makefile differ (-files +Makefile):\n%s", diff)
	}
	for _, tool := range []string{"\tgo vet -tags '$(TAGS),$(TEST_TAGS)' ./...", "\t$(TOOL) staticcheck -tags '$(TAGS),$(TEST_TAGS)' ./..."} {
		if !strings.Contains(string(makefile), tool) {
			t.Errorf("the recipe of lint lacks %q", strings.TrimSpace(tool))
		}
	}
}
