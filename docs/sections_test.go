package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Rehearsals on a real cluster run the commands of a section. A page that is written again must not be missed there an hour after the start.
func TestEachSectionThatARehearsalReadsIsOnThePageThatItNames(t *testing.T) {
	heading := regexp.MustCompile(`"\\n(#{2,4} [^"\\]+)(\\n)?"`)
	page := regexp.MustCompile(`[a-z-]+\.md"`)
	found := 0
	err := filepath.WalkDir("../test/suite/cluster", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range heading.FindAllStringSubmatch(string(source), -1) {
			found++
			if line := "\n" + m[1] + strings.Repeat("\n", len(m[2])/2); !anyHas(t, page.FindAllString(string(source), -1), line) {
				t.Errorf("%s reads the section %q, which no page that it names has", path, m[1])
			}
		}
		return nil
	})
	if err != nil || found < 4 {
		t.Errorf("want at least four sections, got %d: %v", found, err)
	}
}

// anyHas reports whether a page of one of the names, in quotes at their end, has the text.
func anyHas(t *testing.T, names []string, text string) bool {
	for _, name := range names {
		paths, err := filepath.Glob("*/" + strings.TrimSuffix(name, `"`))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), text) {
				return true
			}
		}
	}
	return false
}
