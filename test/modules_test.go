package test_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// `go vet ./...` leaves out the modules below the first one. So each of them is vetted by a recipe of make, or by the script that builds it.
func TestEveryModuleWithCodeIsVetted(t *testing.T) {
	recipes := strings.Join(makeFiles(t), "\n")
	const oneCall = "test/kit/render" // the Makefile says why it is not vetted
	modules := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == "bin" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || entry.Name() != "go.mod" || filepath.Dir(path) == ".." {
			return err
		}
		dir := filepath.Dir(path)
		if !hasCode(t, dir) {
			return nil
		}
		modules++
		module, err := filepath.Rel("..", dir)
		if err != nil {
			return err
		}
		byMake := regexp.MustCompile(`(?m)^\tcd ` + regexp.QuoteMeta(filepath.ToSlash(module)) + ` && .*\bgo vet `).MatchString(recipes)
		script, _ := os.ReadFile(filepath.Join(filepath.Dir(dir), "build.sh"))
		byScript := regexp.MustCompile(`(?ms)^cd [^\n]*/` + filepath.Base(dir) + `"$.*^[^#\n]*\bgo vet |^\(cd ` + filepath.Base(dir) + ` && go vet `).Match(script)
		if !byMake && !byScript && module != oneCall {
			t.Errorf("nothing runs `go vet` in module %s; add it to `make lint`, or to the recipe that builds it if its dependencies take minutes to compile", module)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if modules < 5 {
		t.Errorf("found %d modules with code, want at least 5", modules)
	}
}

func hasCode(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		found = found || filepath.Ext(path) == ".go"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
